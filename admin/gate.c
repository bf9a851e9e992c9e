/* SPDX-License-Identifier: MIT */
/* Who asks, and what he may do; see gate.h. */
#include "gate.h"

#include <arpa/inet.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <weir/log.h>

#include "assets.h"
#include "failures.h"

#define SECOND_NS 1000000000LL

/* Lines about wrong tokens in a minute, from however many addresses. A guess: an operator sees that
 * somebody tries, and from where. */
#define LINES_MAX 20

struct client {
	char name[WEIR_ADMIN_NAME_MAX + 1];
	enum weir_admin_role role;
	/* a token */
	char *file;
	struct secret_digest digest;
	uint64_t edition;
	/* a user */
	uid_t uid;
};

struct gate {
	bool tls;
	char cookie[40]; /* its name: browsers keep one jar for all ports of a host */
	int n_tokens, n_users;
	struct client token[GATE_CLIENTS_MAX];
	struct client user[GATE_CLIENTS_MAX + 2]; /* root and ourselves first */
	struct weir_strings hosts;
	struct sessions sessions;
	struct failures failures;
	int lines; /* about failures, since `lines_ns` */
	int64_t lines_ns;
	bool silent;   /* and it was said so */
	char why[160]; /* of the newest refusal */
};

/* ---- making ---- */

static struct client client_of(const struct weir_admin_client_spec *spec)
{
	struct client c = {.role = (enum weir_admin_role)spec->role};

	snprintf(c.name, sizeof(c.name), "%s", spec->name);
	return c;
}

static int take_token(
    struct gate *g, const struct weir_admin_client_spec *spec, struct weir_errs *errs)
{
	struct client c = client_of(spec);
	struct weir_err err = {0};
	char what[64];

	snprintf(what, sizeof(what), "token '%s'", spec->name);
	if (secret_read(spec->file, what, &c.digest, &err) != 0)
		return weir_errs_add(errs, &spec->mark, err.code, err.hint, "%s", err.text);
	for (int i = 0; i < g->n_tokens; i++)
		if (secret_equal(&g->token[i].digest, &c.digest))
			return weir_errs_add(errs, &spec->mark, WEIR_EINVAL,
			    "give each its own, so that one can be withdrawn",
			    "the files of '%s' and '%s' hold the same token", g->token[i].name,
			    c.name);
	c.file = strdup(spec->file);
	if (!c.file)
		return weir_errs_add(errs, &spec->mark, WEIR_ENOMEM, NULL, "out of memory");
	g->token[g->n_tokens++] = c;
	return 0;
}

/* A number, or a name that this machine knows. */
static bool find_user(const char *name, uid_t *uid)
{
	char buf[4096];
	struct passwd entry, *found = NULL;
	char *end;
	unsigned long number = strtoul(name, &end, 10);

	if (*end == '\0' && strlen(name) < 10) {
		*uid = (uid_t)number;
		return true;
	}
	if (getpwnam_r(name, &entry, buf, sizeof(buf), &found) != 0 || !found)
		return false;
	*uid = found->pw_uid;
	return true;
}

static int take_user(
    struct gate *g, const struct weir_admin_client_spec *spec, struct weir_errs *errs)
{
	struct client c = client_of(spec);

	if (!find_user(spec->name, &c.uid))
		return weir_errs_add(errs, &spec->mark, WEIR_EINVAL, NULL,
		    "this machine has no user '%s'", spec->name);
	g->user[g->n_users++] = c;
	return 0;
}

/* The two who may do all: they could end the server as well. */
static void add_masters(struct gate *g)
{
	char buf[4096];
	struct passwd entry, *found = NULL;
	struct client root = {.name = "root", .role = WEIR_ADMIN_OPERATOR};
	struct client self = {.role = WEIR_ADMIN_OPERATOR, .uid = geteuid()};

	snprintf(self.name, sizeof(self.name), "uid %u", (unsigned)self.uid);
	if (getpwuid_r(self.uid, &entry, buf, sizeof(buf), &found) == 0 && found)
		snprintf(self.name, sizeof(self.name), "%s", found->pw_name);
	g->user[g->n_users++] = root;
	g->user[g->n_users++] = self;
}

static int copy_hosts(struct gate *g, const struct weir_strings *hosts)
{
	g->hosts.items = calloc((size_t)hosts->n + 1, sizeof(*g->hosts.items));
	for (int i = 0; g->hosts.items && i < hosts->n; i++) {
		g->hosts.items[i] = strdup(hosts->items[i]);
		if (!g->hosts.items[i])
			return WEIR_ENOMEM;
		g->hosts.n++;
	}
	return g->hosts.items ? 0 : WEIR_ENOMEM;
}

static int take_spec(struct gate *g, const struct weir_admin_spec *spec, struct weir_errs *errs)
{
	int rc = 0;

	if (spec->n_tokens > GATE_CLIENTS_MAX || spec->n_users > GATE_CLIENTS_MAX)
		return weir_errs_add(errs, &spec->mark, WEIR_EINVAL, NULL,
		    "the admin endpoint has at most %d tokens and %d users", GATE_CLIENTS_MAX,
		    GATE_CLIENTS_MAX);
	for (int i = 0; i < spec->n_tokens; i++) {
		int one = take_token(g, &spec->tokens[i], errs);
		rc = rc != 0 ? rc : one;
	}
	for (int i = 0; i < spec->n_users; i++) {
		int one = take_user(g, &spec->users[i], errs);
		rc = rc != 0 ? rc : one;
	}
	return rc;
}

int gate_new(const struct weir_admin_spec *spec, const struct authority *address, struct gate **out,
    struct weir_errs *errs)
{
	struct gate *g = calloc(1, sizeof(*g));
	int rc;

	if (!g)
		return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	g->tls = spec && *spec->tls.cert;
	snprintf(g->cookie, sizeof(g->cookie), "%sweir-%d", g->tls ? "__Host-" : "", address->port);
	add_masters(g);
	rc = spec ? take_spec(g, spec, errs) : 0;
	if (rc == 0 && ((spec && copy_hosts(g, &spec->hosts) != 0) ||
			   sessions_init(&g->sessions, g->n_tokens) != 0))
		rc = weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	if (rc != 0) {
		gate_free(g);
		return rc;
	}
	*out = g;
	return 0;
}

void gate_free(struct gate *g)
{
	if (!g)
		return;
	for (int i = 0; i < g->n_tokens; i++)
		free(g->token[i].file);
	for (int i = 0; i < g->hosts.n; i++)
		free(g->hosts.items[i]);
	free(g->hosts.items);
	sessions_fini(&g->sessions);
	free(g);
}

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
	*pass = (struct gate_pass){.role = c->role, .token = -1};
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
	pass->edition = g->token[i].edition;
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
	pass->edition = g->token[i].edition;
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

bool gate_still(struct gate *g, const struct gate_pass *pass, int64_t now_ns)
{
	if (pass->token < 0)
		return true;
	if (g->token[pass->token].edition != pass->edition)
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
		c->edition++;
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
	uint64_t serial = sessions_begin(&g->sessions, pass->token, id, now_ns);

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
