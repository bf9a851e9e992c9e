/* SPDX-License-Identifier: MIT */
/*
 * Authentication: determines the user and role of each request; see auth.h.
 *
 * auth_judge checks a request when its head is complete and issues a pass. auth_still checks that
 * pass again later, for connections and streams that outlive a change of tokens or the end of a
 * session. Each token and user has an edition number, which is replaced whenever the token or user
 * changes; a pass is valid while its edition exists. Admin thread only; nothing blocks.
 */
#include "auth_internal.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <weir/log.h>

#include "admin/request/assets.h"

#define SECOND_NS 1000000000LL

/* Maximum number of log lines about wrong tokens per minute, over all addresses. 20 is a guess:
 * enough for an operator to notice the attempts and their origin. */
#define LINES_MAX 20

/* ---- checking a request ---- */

static bool refuse(struct auth *g, struct head_problem *problem, int status, const char *why)
{
	if (why != g->why)
		snprintf(g->why, sizeof(g->why), "%s", why);
	*problem = (struct head_problem){.status = status, .why = g->why};
	return false;
}

static void let(struct auth_pass *pass, const struct client *c)
{
	*pass = (struct auth_pass){.role = c->role, .token = -1, .edition = c->edition};
	snprintf(pass->name, sizeof(pass->name), "%s", c->name);
}

/* Authenticate a client of a socket file. The first match determines the role. Root and the
 * server's own user come first, so they are operators even if `users:` lists them with another
 * role. */
static bool judge_user(
    struct auth *g, uid_t uid, struct auth_pass *pass, struct head_problem *problem)
{
	for (int i = 0; i < g->n_users; i++) {
		if (g->user[i].uid == uid) {
			let(pass, &g->user[i]);
			return true;
		}
	}
	snprintf(g->why, sizeof(g->why),
	    "user %u has no access: add the user to 'admin: { users: }' of the server",
	    (unsigned)uid);
	return refuse(g, problem, 403, g->why);
}

static bool is_read(const char *p, size_t n)
{
	return n > 5 && (memcmp(p, "GET ", 4) == 0 || memcmp(p, "HEAD ", 5) == 0);
}

/* Return whether the path needs no authentication: files that the dashboard needs before a login,
 * and load balancer probes. */
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

/* Return whether another failure may be logged. An attacker can easily change its address, so the
 * number of lines per minute is limited over all addresses. */
static bool may_log(struct auth *g, int64_t now_ns)
{
	if (g->lines == 0 || now_ns - g->lines_ns >= FAILURES_WINDOW_NS) {
		g->lines = 0;
		g->lines_ns = now_ns;
	}
	return g->lines < LINES_MAX && ++g->lines > 0;
}

static void log_failure(struct auth *g, const struct auth_from *from, int n, int64_t now_ns)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&from->address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&from->address;
	char text[INET6_ADDRSTRLEN] = "?";

	if (n != 1 && n != FAILURES_MAX)
		return;
	if (!may_log(g, now_ns)) {
		if (!g->silent)
			weir_log(WEIR_LOG_WARN, "admin: wrong tokens come from many addresses, and "
						"no more of them are logged for a minute");
		g->silent = true;
		return;
	}
	g->silent = false;
	if (from->address.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
	weir_log(WEIR_LOG_WARN,
	    "admin: a wrong token came from %s, number %d of the %d allowed in a minute", text, n,
	    FAILURES_MAX);
}

/* Return the index of the token, or -1 if it is unknown. All tokens are compared, so the time does
 * not depend on which one matches. */
static int find_token(const struct auth *g, struct weir_slice token)
{
	struct secret_digest digest;
	unsigned found = 0; /* index of the match + 1 */

	if (!secret_digest(token.p, token.n, &digest))
		return -1;
	for (int i = 0; i < g->n_tokens; i++)
		found |= (0u - secret_equal(&g->token[i].digest, &digest)) & (unsigned)(i + 1);
	return (int)found - 1;
}

/* Refuse a wrong token. Failures are not counted while the address must wait; otherwise the wait of
 * a client that keeps retrying would never end. */
static bool refuse_token(
    struct auth *g, const struct auth_from *from, int64_t now_ns, struct head_problem *problem)
{
	struct failures_key key = failures_key(&from->address);
	int64_t wait_ns = failures_wait_ns(&g->failures, key, now_ns);

	if (wait_ns == 0) {
		log_failure(g, from, failures_add(&g->failures, key, now_ns), now_ns);
		return refuse(g, problem, 401, "this endpoint does not accept the token");
	}
	refuse(g, problem, 429,
	    "this endpoint does not accept the token, and too many wrong ones came from your "
	    "address: correct the token before you try again");
	problem->retry_after_s = (int)((wait_ns + SECOND_NS - 1) / SECOND_NS);
	return false;
}

static bool judge_token(struct auth *g, const struct auth_from *from, struct weir_slice token,
    int64_t now_ns, struct auth_pass *pass, struct head_problem *problem)
{
	int i = find_token(g, token);

	if (i < 0)
		return refuse_token(g, from, now_ns, problem);
	let(pass, &g->token[i]);
	pass->token = i;
	return true;
}

/* Return the value of our session cookie in `field`, the Cookie field of a request. Its p is NULL
 * if our cookie is not there. */
static struct weir_slice cookie_of(const struct auth *g, struct weir_slice field)
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

/* Authenticate a session cookie. A browser sends the cookie automatically, even with a form of a
 * foreign site. It then also sends the origin of that site, which the routes check. A request that
 * could change state and has no origin does not come from a browser, so it is refused. */
static bool judge_session(struct auth *g, struct weir_slice id, const char *p, size_t n,
    int64_t now_ns, struct auth_pass *pass, struct head_problem *problem)
{
	uint64_t serial;
	int i = sessions_find(&g->sessions, id, &serial, now_ns);

	if (i < 0)
		return refuse(g, problem, 401, "your session has ended: log in again");
	if (!is_read(p, n) && !head_field(p, n, "Origin").p &&
	    !head_field(p, n, "Sec-Fetch-Site").p)
		return refuse(g, problem, 403,
		    "a request that changes something needs the header Origin if it uses a session "
		    "cookie; outside a browser, send the token instead");
	let(pass, &g->token[i]);
	pass->token = i;
	pass->session = serial;
	return true;
}

/* Return the token of "Bearer TOKEN"; its p is NULL for any other value. */
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

/* Return whether the request was sent by a page that was loaded without TLS. An attacker on the
 * network path could have forged such a page, even under our own name and port. */
static bool origin_is_clear(const char *p, size_t n)
{
	struct weir_slice origin = head_field(p, n, "Origin");

	return origin.n >= 5 && strncasecmp(origin.p, "http:", 5) == 0;
}

bool auth_judge(struct auth *g, const struct auth_from *from, const char *p, size_t n,
    int64_t now_ns, struct auth_pass *pass, struct head_problem *problem)
{
	static const struct client local = {.name = "operator", .role = WEIR_ADMIN_OPERATOR};

	if (g->tls && origin_is_clear(p, n))
		return refuse(g, problem, 403, "a page loaded without TLS has no access here");
	if (from->by_file)
		return judge_user(g, from->uid, pass, problem);
	if (g->n_tokens == 0) {
		let(pass, &local);
		return true;
	}
	if (is_open(p, n)) {
		*pass = (struct auth_pass){.role = WEIR_ADMIN_VIEWER, .token = -1, .anyone = true};
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

/* ---- checking a pass again ---- */

/* Return the current index of the token of `pass`, or -1 if it no longer exists. */
static int token_now(const struct auth *g, const struct auth_pass *pass)
{
	for (int i = 0; i < g->n_tokens; i++)
		if (g->token[i].edition == pass->edition)
			return i;
	return -1;
}

static bool user_still(const struct auth *g, const struct auth_pass *pass)
{
	for (int i = 0; i < g->n_users; i++)
		if (g->user[i].edition == pass->edition)
			return true;
	return false;
}

bool auth_still(struct auth *g, const struct auth_pass *pass, int64_t now_ns)
{
	if (pass->anyone)
		return true;
	/* issued while no tokens were configured, so everybody had access */
	if (pass->edition == 0)
		return g->n_tokens == 0;
	if (pass->token < 0)
		return user_still(g, pass);
	if (token_now(g, pass) < 0)
		return false;
	return pass->session == 0 || sessions_use(&g->sessions, pass->session, now_ns);
}

static bool has_twin(const struct auth *g, int k, const struct secret_digest *digest)
{
	for (int i = 0; i < g->n_tokens; i++)
		if (i != k && secret_equal(&g->token[i].digest, digest))
			return true;
	return false;
}

static void read_again(struct auth *g, int k)
{
	struct client *c = &g->token[k];
	struct secret_digest digest;
	struct weir_err err = {0};
	char what[64];

	snprintf(what, sizeof(what), "token '%s'", c->name);
	if (secret_read(c->file, what, &digest, &err) != 0) {
		weir_log(WEIR_LOG_ERROR,
		    "admin: a token file could not be read again, and the old token remains valid: "
		    "%s",
		    err.text);
	} else if (has_twin(g, k, &digest)) {
		weir_log(WEIR_LOG_ERROR,
		    "admin: the token '%s' is unchanged: its file now holds the token of another "
		    "client",
		    c->name);
	} else if (!secret_equal(&c->digest, &digest)) {
		c->digest = digest;
		c->edition = ++g->editions;
		sessions_end_all(&g->sessions, k);
		weir_log(WEIR_LOG_INFO, "admin: the token '%s' was replaced", c->name);
	}
}

void auth_reload(struct auth *g)
{
	for (int i = 0; i < g->n_tokens; i++)
		read_again(g, i);
}

const char *auth_role_word(const struct auth_pass *pass)
{
	return !pass || pass->role == WEIR_ADMIN_OPERATOR ? "operator" : "viewer";
}

const struct weir_strings *auth_hosts(const struct auth *g)
{
	return &g->hosts;
}

bool auth_asks(const struct auth *g)
{
	return g->n_tokens > 0;
}

/* ---- sessions ---- */

int auth_begin(struct auth *g, struct auth_pass *pass, char *cookie, size_t size, int64_t now_ns)
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

void auth_end(struct auth *g, const struct auth_pass *pass, char *cookie, size_t size)
{
	sessions_end(&g->sessions, pass->session);
	snprintf(cookie, size, "%s=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0%s", g->cookie,
	    g->tls ? "; Secure" : "");
}

int64_t auth_left_ns(const struct auth *g, const struct auth_pass *pass, int64_t now_ns)
{
	int64_t ends_ns = sessions_ends_ns(&g->sessions, pass->session);

	return ends_ns > now_ns ? ends_ns - now_ns : 0;
}
