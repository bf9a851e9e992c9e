/* SPDX-License-Identifier: MIT */
/* Making a gate of a spec, and another one in the place of one that is in use; see gate.h. */
#include "gate_priv.h"

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
	c.edition = ++g->editions;
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
	c.edition = ++g->editions;
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
	root.edition = ++g->editions;
	self.edition = ++g->editions;
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

/* What it points to. */
static void fini(struct gate *g)
{
	for (int i = 0; i < g->n_tokens; i++)
		free(g->token[i].file);
	for (int i = 0; i < g->hosts.n; i++)
		free(g->hosts.items[i]);
	free(g->hosts.items);
	sessions_fini(&g->sessions);
}

void gate_free(struct gate *g)
{
	if (!g)
		return;
	fini(g);
	free(g);
}

/* ---- another one in its place ---- */

static bool is_same(const struct client *a, const struct client *b)
{
	return strcmp(a->name, b->name) == 0 && a->role == b->role && a->uid == b->uid &&
	       secret_equal(&a->digest, &b->digest);
}

/* The number of the one among before[n] that `c` is, -1. */
static int find(const struct client *c, const struct client *before, int n)
{
	for (int i = 0; i < n; i++)
		if (is_same(c, &before[i]))
			return i;
	return -1;
}

/* What is in the place of `i` goes to that of token `to`. */
static void carry_sessions(const struct gate *g, int i, struct gate *next, int to)
{
	memcpy(&next->sessions.place[to * SESSIONS_PER_TOKEN],
	    &g->sessions.place[i * SESSIONS_PER_TOKEN],
	    SESSIONS_PER_TOKEN * sizeof(*g->sessions.place));
}

static void carry_tokens(struct gate *g, struct gate *next)
{
	for (int k = 0; k < next->n_tokens; k++) {
		struct client *c = &next->token[k];
		int i = find(c, g->token, g->n_tokens);
		c->edition = i >= 0 ? g->token[i].edition : ++g->editions;
		if (i >= 0)
			carry_sessions(g, i, next, k);
		else
			weir_log(WEIR_LOG_INFO, "admin: the token '%s' (%s) is a new one", c->name,
			    c->role == WEIR_ADMIN_OPERATOR ? "operator" : "viewer");
	}
	for (int i = 0; i < g->n_tokens; i++)
		if (find(&g->token[i], next->token, next->n_tokens) < 0)
			weir_log(WEIR_LOG_INFO, "admin: the token '%s' of before is no longer good",
			    g->token[i].name);
}

static void carry_users(struct gate *g, struct gate *next)
{
	for (int k = 0; k < next->n_users; k++) {
		int i = find(&next->user[k], g->user, g->n_users);
		next->user[k].edition = i >= 0 ? g->user[i].edition : ++g->editions;
	}
}

void gate_become(struct gate *g, struct gate *next)
{
	carry_tokens(g, next);
	carry_users(g, next);
	next->sessions.serial = g->sessions.serial;
	next->editions = g->editions;
	next->failures = g->failures; /* a reload gives nobody new tries */
	next->lines = g->lines;
	next->lines_ns = g->lines_ns;
	next->silent = g->silent;
	fini(g);
	*g = *next;
	free(next);
}
