/* SPDX-License-Identifier: MIT */
/*
 * Builds a struct auth from a spec, and replaces the contents of one in use; see auth.h.
 *
 * auth_new may run in any thread: it reads the token files and looks up the users. In the admin
 * thread, auth_become then gives each token and user its edition. One that also exists in the
 * current object, with the same name, role and token, keeps its edition, so its passes stay valid;
 * its sessions are copied. Every other one gets a new edition, so passes issued for an old token
 * are no longer valid.
 */
#include "auth_internal.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/log.h>

static struct client client_of(const struct weir_admin_client_spec *spec)
{
	struct client c = {.role = (enum weir_admin_role)spec->role};

	snprintf(c.name, sizeof(c.name), "%s", spec->name);
	return c;
}

static int take_token(
    struct auth *g, const struct weir_admin_client_spec *spec, struct weir_errs *errs)
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
			    "give each client its own token, so that one of them can be revoked",
			    "the files of '%s' and '%s' hold the same token", g->token[i].name,
			    c.name);
	c.file = strdup(spec->file);
	if (!c.file)
		return weir_errs_add(errs, &spec->mark, WEIR_ENOMEM, NULL, "out of memory");
	c.edition = ++g->editions;
	g->token[g->n_tokens++] = c;
	return 0;
}

/* Set *uid from `name`, a number or a user name of this host. Returns false if it is neither. */
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
    struct auth *g, const struct weir_admin_client_spec *spec, struct weir_errs *errs)
{
	struct client c = client_of(spec);

	if (!find_user(spec->name, &c.uid))
		return weir_errs_add(errs, &spec->mark, WEIR_EINVAL, NULL,
		    "this machine has no user '%s'", spec->name);
	c.edition = ++g->editions;
	g->user[g->n_users++] = c;
	return 0;
}

/* Add root and the server's own user as operators. Restricting them would be pointless, since they
 * can kill the server. */
static void add_masters(struct auth *g)
{
	char buf[4096];
	struct passwd entry, *found = NULL;
	struct client root = {.name = "root", .role = WEIR_ADMIN_OPERATOR};
	struct client self = {.role = WEIR_ADMIN_OPERATOR, .uid = geteuid()};

	snprintf(self.name, sizeof(self.name), "uid %u", (unsigned)self.uid);
	if (getpwuid_r(self.uid, &entry, buf, sizeof(buf), &found) == 0 && found)
		snprintf(self.name, sizeof(self.name), "%s", found->pw_name);
	root.edition = ++g->editions;
	self.edition = ++g->editions;
	g->user[g->n_users++] = root;
	g->user[g->n_users++] = self;
}

static int copy_hosts(struct auth *g, const struct weir_strings *hosts)
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

static int check_number(
    const struct weir_admin_client_spec *client, int n, const char *kind, struct weir_errs *errs)
{
	if (n <= AUTH_CLIENTS_MAX)
		return 0;
	return weir_errs_add(errs, &client[AUTH_CLIENTS_MAX].mark, WEIR_EINVAL,
	    "this is the first one over the limit: let several clients share one",
	    "the admin endpoint has %d %s, at most %d are allowed", n, kind, AUTH_CLIENTS_MAX);
}

static int take_spec(struct auth *g, const struct weir_admin_spec *spec, struct weir_errs *errs)
{
	int rc = check_number(spec->tokens, spec->n_tokens, "tokens", errs);

	if (rc == 0)
		rc = check_number(spec->users, spec->n_users, "users", errs);
	if (rc != 0)
		return rc;
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

int auth_new(const struct weir_admin_spec *spec, const struct authority *address, struct auth **out,
    struct weir_errs *errs)
{
	struct auth *g = calloc(1, sizeof(*g));
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
		auth_free(g);
		return rc;
	}
	*out = g;
	return 0;
}

/* Free the objects that `g` points to, but not `g` itself. */
static void fini(struct auth *g)
{
	for (int i = 0; i < g->n_tokens; i++)
		free(g->token[i].file);
	for (int i = 0; i < g->hosts.n; i++)
		free(g->hosts.items[i]);
	free(g->hosts.items);
	sessions_fini(&g->sessions);
}

void auth_free(struct auth *g)
{
	if (!g)
		return;
	fini(g);
	free(g);
}

/* ---- replacing the contents ---- */

static bool is_same(const struct client *a, const struct client *b)
{
	return strcmp(a->name, b->name) == 0 && a->role == b->role && a->uid == b->uid &&
	       secret_equal(&a->digest, &b->digest);
}

/* Return the index of `c` in before[n], or -1 if it is not there. */
static int find(const struct client *c, const struct client *before, int n)
{
	for (int i = 0; i < n; i++)
		if (is_same(c, &before[i]))
			return i;
	return -1;
}

/* Move the sessions of token `i` to token `to`. */
static void carry_sessions(const struct auth *g, int i, struct auth *next, int to)
{
	memcpy(&next->sessions.slot[to * SESSIONS_PER_TOKEN],
	    &g->sessions.slot[i * SESSIONS_PER_TOKEN],
	    SESSIONS_PER_TOKEN * sizeof(*g->sessions.slot));
}

static void carry_tokens(struct auth *g, struct auth *next)
{
	for (int k = 0; k < next->n_tokens; k++) {
		struct client *c = &next->token[k];
		int i = find(c, g->token, g->n_tokens);
		c->edition = i >= 0 ? g->token[i].edition : ++g->editions;
		if (i >= 0)
			carry_sessions(g, i, next, k);
		else
			weir_log(WEIR_LOG_INFO, "admin: the token '%s' (%s) is new", c->name,
			    c->role == WEIR_ADMIN_OPERATOR ? "operator" : "viewer");
	}
	for (int i = 0; i < g->n_tokens; i++)
		if (find(&g->token[i], next->token, next->n_tokens) < 0)
			weir_log(WEIR_LOG_INFO, "admin: the previous token '%s' is no longer valid",
			    g->token[i].name);
}

static void carry_users(struct auth *g, struct auth *next)
{
	for (int k = 0; k < next->n_users; k++) {
		int i = find(&next->user[k], g->user, g->n_users);
		next->user[k].edition = i >= 0 ? g->user[i].edition : ++g->editions;
	}
}

void auth_become(struct auth *g, struct auth *next)
{
	carry_tokens(g, next);
	carry_users(g, next);
	next->sessions.serial = g->sessions.serial;
	next->editions = g->editions;
	next->failures = g->failures; /* a reload does not reset the counts */
	next->lines = g->lines;
	next->lines_ns = g->lines_ns;
	next->silent = g->silent;
	fini(g);
	*g = *next;
	free(next);
}
