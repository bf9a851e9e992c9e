/* SPDX-License-Identifier: MIT */
/* Who asks, and what he may do; see gate.h. */
#include "gate_priv.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <weir/log.h>

#include "assets.h"

#define SECOND_NS 1000000000LL

/* Lines about wrong tokens in a minute, from however many addresses. A guess: an operator sees that
 * somebody tries, and from where. */
#define LINES_MAX 20

/* ---- judging ---- */

static bool refuse(struct gate *g, struct head_problem *problem, int status, const char *why)
{
	if (why != g->why)
		snprintf(g->why, sizeof(g->why), "%s", why);
	*problem = (struct head_problem){.status = status, .why = g->why};
	return false;
}

static void let(struct gate_pass *pass, const struct client *c)
{
	*pass = (struct gate_pass){.role = c->role, .token = -1, .edition = c->edition};
	snprintf(pass->name, sizeof(pass->name), "%s", c->name);
}

/* Over a socket file. The first row counts: root and we are operators, whatever `users:` says. */
static bool judge_user(
    struct gate *g, uid_t uid, struct gate_pass *pass, struct head_problem *problem)
{
	for (int i = 0; i < g->n_users; i++) {
		if (g->user[i].uid == uid) {
			let(pass, &g->user[i]);
			return true;
		}
	}
	snprintf(g->why, sizeof(g->why),
	    "user %u may not ask here: 'admin: { users: }' of the server does not name it",
	    (unsigned)uid);
	return refuse(g, problem, 403, g->why);
}

static bool is_read(const char *p, size_t n)
{
	return n > 5 && (memcmp(p, "GET ", 4) == 0 || memcmp(p, "HEAD ", 5) == 0);
}

/* What a page needs before anybody can say who he is, and what a load balancer asks. */
static bool is_open(const char *p, size_t n)
{
	struct weir_slice target = head_target(p, n);
	const char *query = memchr(target.p, '?', target.n);
	size_t length = query ? (size_t)(query - target.p) : target.n;
	char path[64];

	if (!is_read(p, n) || length >= sizeof(path))
		return false;
	memcpy(path, target.p, length);
	path[length] = '\0';
	return strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0 ||
	       (asset_find(path) && strncmp(path, "/api/", 5) != 0);
}

/* An address is easy to change: the log is not for others to fill. */
static bool may_log(struct gate *g, int64_t now_ns)
{
	if (g->lines == 0 || now_ns - g->lines_ns >= FAILURES_WINDOW_NS) {
		g->lines = 0;
		g->lines_ns = now_ns;
	}
	return g->lines < LINES_MAX && ++g->lines > 0;
}

static void log_failure(struct gate *g, const struct gate_from *from, int n, int64_t now_ns)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&from->address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&from->address;
	char text[INET6_ADDRSTRLEN] = "?";

	if (n != 1 && n != FAILURES_MAX)
		return;
	if (!may_log(g, now_ns)) {
		if (!g->silent)
			weir_log(WEIR_LOG_WARN,
			    "admin: wrong tokens from many addresses: no more is said of "
			    "them for a minute");
		g->silent = true;
		return;
	}
	g->silent = false;
	if (from->address.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
	weir_log(WEIR_LOG_WARN, "admin: a wrong token from %s, %d of %d in a minute", text, n,
	    FAILURES_MAX);
}

/* All tokens are compared, whichever it is. */
static int find_token(const struct gate *g, struct weir_slice token)
{
	struct secret_digest digest;
	unsigned found = 0; /* its number + 1 */

	if (!secret_digest(token.p, token.n, &digest))
		return -1;
	for (int i = 0; i < g->n_tokens; i++)
		found |= (0u - secret_equal(&g->token[i].digest, &digest)) & (unsigned)(i + 1);
	return (int)found - 1;
}

static bool judge_token(struct gate *g, const struct gate_from *from, struct weir_slice token,
    int64_t now_ns, struct gate_pass *pass, struct head_problem *problem)
{
	struct failures_key key = failures_key(&from->address);
	int64_t wait_ns = failures_wait_ns(&g->failures, key, now_ns);

	if (wait_ns > 0) {
		refuse(g, problem, 429,
		    "too many wrong tokens from your address: no token is looked at until "
		    "Retry-After seconds have passed");
		problem->retry_after_s = (int)((wait_ns + SECOND_NS - 1) / SECOND_NS);
		return false;
	}
	int i = find_token(g, token);
	if (i < 0) {
		log_failure(g, from, failures_add(&g->failures, key, now_ns), now_ns);
		return refuse(g, problem, 401, "this token is not one of the endpoint's");
	}
	let(pass, &g->token[i]);
	pass->token = i;
	return true;
}

/* The value of our cookie; p NULL: it was not sent. */
static struct weir_slice cookie_of(const struct gate *g, struct weir_slice field)
{
	size_t name = strlen(g->cookie);

	for (const char *p = field.p, *end = field.p + field.n; p && p < end;) {
		const char *semicolon = memchr(p, ';', (size_t)(end - p));
		const char *stop = semicolon ? semicolon : end;
		while (p < stop && *p == ' ')
			p++;
		if ((size_t)(stop - p) > name && memcmp(p, g->cookie, name) == 0 && p[name] == '=')
			return (struct weir_slice){p + name + 1, (size_t)(stop - p) - name - 1};
		p = stop + 1;
	}
	return (struct weir_slice){0};
}

/* A browser sends the cookie by itself, also for a form of another page; it also says where the
 * page is from, and a request that does not was not made by one. */
static bool judge_session(struct gate *g, struct weir_slice id, const char *p, size_t n,
    int64_t now_ns, struct gate_pass *pass, struct head_problem *problem)
{
	uint64_t serial;
	int i = sessions_find(&g->sessions, id, &serial, now_ns);

	if (i < 0)
		return refuse(g, problem, 401, "your session is over: log in again");
	if (!is_read(p, n) && !head_field(p, n, "Origin").p &&
	    !head_field(p, n, "Sec-Fetch-Site").p)
		return refuse(g, problem, 403,
		    "a session is for browsers, which say where a request comes from: send the "
		    "token instead");
	let(pass, &g->token[i]);
	pass->token = i;
	pass->session = serial;
	return true;
}

/* "Bearer TOKEN"; p NULL when it is something else. */
static struct weir_slice bearer_of(struct weir_slice field)
{
	static const char scheme[] = "Bearer ";
	size_t n = sizeof(scheme) - 1;

	if (field.n <= n || strncasecmp(field.p, scheme, n) != 0)
		return (struct weir_slice){0};
	while (n < field.n && field.p[n] == ' ')
		n++;
	return (struct weir_slice){field.p + n, field.n - n};
}

/* http://us:9900 is not https://us:9900: somebody between may have made that page. */
static bool origin_is_clear(const char *p, size_t n)
{
	struct weir_slice origin = head_field(p, n, "Origin");

	return origin.n >= 5 && strncasecmp(origin.p, "http:", 5) == 0;
}

bool gate_judge(struct gate *g, const struct gate_from *from, const char *p, size_t n,
    int64_t now_ns, struct gate_pass *pass, struct head_problem *problem)
{
	static const struct client local = {.name = "operator", .role = WEIR_ADMIN_OPERATOR};

	if (g->tls && origin_is_clear(p, n))
		return refuse(g, problem, 403, "a page without TLS may not ask here");
	if (from->by_file)
		return judge_user(g, from->uid, pass, problem);
	if (g->n_tokens == 0) {
		let(pass, &local);
		return true;
	}
	if (is_open(p, n)) {
		*pass = (struct gate_pass){.role = WEIR_ADMIN_VIEWER, .token = -1, .anyone = true};
		return true;
	}
	struct weir_slice field = head_field(p, n, "Authorization");
	struct weir_slice token = bearer_of(field);
	struct weir_slice id = cookie_of(g, head_field(p, n, "Cookie"));
	if (token.p)
		return judge_token(g, from, token, now_ns, pass, problem);
	if (field.p)
		return refuse(g, problem, 401, "Authorization must be: Bearer TOKEN");
	if (id.p)
		return judge_session(g, id, p, n, now_ns, pass, problem);
	return refuse(g, problem, 401, "send a token as Authorization: Bearer TOKEN");
}

/* ---- later ---- */

/* The number that the token of `pass` has now, -1: it is none any more. */
static int token_now(const struct gate *g, const struct gate_pass *pass)
{
	for (int i = 0; i < g->n_tokens; i++)
		if (g->token[i].edition == pass->edition)
			return i;
	return -1;
}

static bool user_still(const struct gate *g, const struct gate_pass *pass)
{
	for (int i = 0; i < g->n_users; i++)
		if (g->user[i].edition == pass->edition)
			return true;
	return false;
}

bool gate_still(struct gate *g, const struct gate_pass *pass, int64_t now_ns)
{
	if (pass->anyone)
		return true;
	if (pass->edition == 0) /* everybody may ask */
		return g->n_tokens == 0;
	if (pass->token < 0)
		return user_still(g, pass);
	if (token_now(g, pass) < 0)
		return false;
	return pass->session == 0 || sessions_use(&g->sessions, pass->session, now_ns);
}

static bool has_twin(const struct gate *g, int k, const struct secret_digest *digest)
{
	for (int i = 0; i < g->n_tokens; i++)
		if (i != k && secret_equal(&g->token[i].digest, digest))
			return true;
	return false;
}

static void read_again(struct gate *g, int k)
{
	struct client *c = &g->token[k];
	struct secret_digest digest;
	struct weir_err err = {0};

	if (secret_read(c->file, c->name, &digest, &err) != 0) {
		weir_log(WEIR_LOG_ERROR, "admin: the token before stays good: %s", err.text);
	} else if (has_twin(g, k, &digest)) {
		weir_log(WEIR_LOG_ERROR,
		    "admin: the token '%s' stays as it was: its file holds that of another",
		    c->name);
	} else if (!secret_equal(&c->digest, &digest)) {
		c->digest = digest;
		c->edition = ++g->editions;
		sessions_end_all(&g->sessions, k);
		weir_log(WEIR_LOG_INFO, "admin: the token '%s' is a new one", c->name);
	}
}

void gate_reload(struct gate *g)
{
	for (int i = 0; i < g->n_tokens; i++)
		read_again(g, i);
}

const char *gate_role_word(const struct gate_pass *pass)
{
	return !pass || pass->role == WEIR_ADMIN_OPERATOR ? "operator" : "viewer";
}

const struct weir_strings *gate_hosts(const struct gate *g)
{
	return &g->hosts;
}

bool gate_asks(const struct gate *g)
{
	return g->n_tokens > 0;
}

/* ---- sessions ---- */

int gate_begin(struct gate *g, struct gate_pass *pass, char *cookie, size_t size, int64_t now_ns)
{
	char id[SESSION_ID_LETTERS + 1];
	int token = token_now(g, pass);
	uint64_t serial = token < 0 ? 0 : sessions_begin(&g->sessions, token, id, now_ns);

	if (serial == 0)
		return WEIR_ESYS;
	pass->session = serial;
	snprintf(cookie, size, "%s=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%lld%s",
	    g->cookie, id, SESSION_LIFE_NS / SECOND_NS, g->tls ? "; Secure" : "");
	explicit_bzero(id, sizeof(id));
	return 0;
}

void gate_end(struct gate *g, const struct gate_pass *pass, char *cookie, size_t size)
{
	sessions_end(&g->sessions, pass->session);
	snprintf(cookie, size, "%s=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0%s", g->cookie,
	    g->tls ? "; Secure" : "");
}

int64_t gate_left_ns(const struct gate *g, const struct gate_pass *pass, int64_t now_ns)
{
	int64_t ends_ns = sessions_ends_ns(&g->sessions, pass->session);

	return ends_ns > now_ns ? ends_ns - now_ns : 0;
}
