/* SPDX-License-Identifier: MIT */
/*
 * Binds `admin:`, the address of the endpoint and its clients. The endpoint itself
 * (admin/auth/auth.h) reads the token and key files and checks their contents. It also checks
 * whether the settings can be combined.
 */
#include "bind.h"

#include <stdio.h>
#include <string.h>

#include "tree.h"

#define WHERE_BYTES 100

static const struct weir_knob history_knobs[] = {
    {.name = "file",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct weir_history_spec, file),
	.def = "",
	.help = "file that keeps the history across restarts; empty keeps it in memory only"},
    {.name = NULL}};

static const struct weir_knob tls_knobs[] = {
    {.name = "cert",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct weir_admin_tls_spec, cert),
	.def = "",
	.help = "PEM file with the certificate, followed by its intermediate certificates"},
    {.name = "key",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct weir_admin_tls_spec, key),
	.def = "",
	.help = "PEM file with the private key of the certificate, readable only by the owner of "
		"the file"},
    {.name = NULL}};

static const struct weir_knob ready_knobs[] = {
    {.name = "unless_shed",
	.type = WEIR_KNOB_BOOL,
	.offset = offsetof(struct weir_ready_spec, unless_shed),
	.def = "false",
	.help = "true: /readyz answers 503 while the highest class is shed (the alert "
		"top_class_shed). Not behind a balancer that would send the load to other servers"},
    {.name = NULL}};

const struct weir_knob config_admin_knobs[] = {
    {.name = "listen",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct weir_admin_spec, listen),
	.def = "",
	.help = "address of the admin endpoint, such as 127.0.0.1:9900; empty for none"},
    {.name = "history",
	.type = WEIR_KNOB_MAP,
	.offset = offsetof(struct weir_admin_spec, history),
	.fields = history_knobs,
	.help = "history of the last hours of every stage"},
    {.name = "hosts",
	.type = WEIR_KNOB_STRINGS,
	.offset = offsetof(struct weir_admin_spec, hosts),
	.def = "",
	.help =
	    "host names that clients may use, besides localhost and the address of the endpoint"},
    {.name = "tls",
	.type = WEIR_KNOB_MAP,
	.offset = offsetof(struct weir_admin_spec, tls),
	.fields = tls_knobs,
	.help = "serve over HTTPS"},
    {.name = "ready",
	.type = WEIR_KNOB_MAP,
	.offset = offsetof(struct weir_admin_spec, ready),
	.fields = ready_knobs,
	.help = "when /readyz answers 503"},
    {.name = NULL}};

#define ROLE_KNOB                                                                                  \
	{                                                                                          \
		.name = "role", .type = WEIR_KNOB_ENUM,                                            \
		.offset = offsetof(struct weir_admin_client_spec, role), .def = "viewer",          \
		.choices = "viewer|operator",                                                      \
		.help = "a viewer may only read, an operator may also make changes"                \
	}

const struct weir_knob config_token_knobs[] = {ROLE_KNOB,
    {.name = "file",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct weir_admin_client_spec, file),
	.flags = WEIR_KNOB_REQUIRED,
	.help = "file that holds the token, readable only by the owner of the file"},
    {.name = NULL}};

const struct weir_knob config_user_knobs[] = {ROLE_KNOB, {.name = NULL}};

/* ---- clients ---- */

/* Check that the name is not too long for the list of changes, and is not one that the server
 * itself uses there. */
static void check_client_name(struct bind *bind, const struct weir_node *name, const char *what)
{
	if (!bind_check_name(bind, name, what))
		return;
	if (strlen(name->text) > WEIR_ADMIN_NAME_MAX)
		weir_errs_add(bind->errs, &name->mark, WEIR_EINVAL, NULL,
		    "the name of a %s can have at most %d characters", what, WEIR_ADMIN_NAME_MAX);
	if (strcmp(name->text, "expiry") == 0 || strcmp(name->text, "drain") == 0 ||
	    strcmp(name->text, "reload") == 0 || strcmp(name->text, "signal") == 0)
		weir_errs_add(bind->errs, &name->mark, WEIR_EINVAL, "choose another name",
		    "the server itself uses the name '%s'", name->text);
}

static int bind_client(
    struct bind *bind, const struct weir_node *name, const struct weir_node *node, bool token)
{
	const char *what = token ? "token" : "user";
	char where[WHERE_BYTES];

	check_client_name(bind, name, what);
	struct weir_admin_client_spec *c =
	    weir_spec_add_client(bind->spec, name->text, token ? "" : NULL);
	if (!c)
		return source_no_memory(bind->errs);
	snprintf(where, sizeof(where), "%s '%.64s'", what, name->text);
	c->mark = name->mark;
	if (node->kind != WEIR_NODE_MAP) {
		weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL,
		    token ? "write { role: viewer, file: PATH }" : "write { role: viewer }",
		    "%s must be a map, not %s", where, tree_kind(node));
		return 0;
	}
	int rc = weir_knobs_bind(
	    token ? config_token_knobs : config_user_knobs, node, c, where, bind->errs);
	const struct weir_node *file = weir_node_get(node, "file");
	if (file)
		c->mark = file->mark;
	return rc == WEIR_ENOMEM ? rc : 0;
}

static int bind_token(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	return bind_client(bind, name, node, true);
}

static int bind_user(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	return bind_client(bind, name, node, false);
}

/* ---- the section ---- */

static void unknown_key(struct bind *bind, const struct weir_node *name)
{
	static const char *const names[] = {
	    "listen", "tokens", "users", "hosts", "tls", "history", "ready"};
	char hint[160];

	bind_hint(name->text, names, sizeof(names) / sizeof(names[0]), hint, sizeof(hint));
	weir_errs_add(
	    bind->errs, &name->mark, WEIR_EINVAL, hint, "unknown key '%s' in 'admin'", name->text);
}

static int bind_key(struct bind *bind, struct weir_node *name, struct weir_node *item)
{
	static const struct bind_form token = {"tokens", "NAME", "{ role: viewer, file: PATH }"};
	static const struct bind_form user = {"users", "NAME", "{ role: viewer }"};
	struct weir_admin_spec *admin = &bind->spec->admin;
	const char *key = name->text;

	if (strcmp(key, "tokens") == 0)
		return bind_each(bind, item, &token, bind_token);
	if (strcmp(key, "users") == 0)
		return bind_each(bind, item, &user, bind_user);
	if (strcmp(key, "listen") == 0)
		admin->mark = item->mark;
	else if (strcmp(key, "hosts") == 0)
		admin->hosts_mark = item->mark;
	else if (strcmp(key, "tls") == 0) {
		admin->tls_mark = admin->tls.cert_mark = admin->tls.key_mark = item->mark;
		bind_mark(item, "cert", &admin->tls.cert_mark);
		bind_mark(item, "key", &admin->tls.key_mark);
	}
	if (weir_knob_find(config_admin_knobs, key))
		bind_one(bind, config_admin_knobs, name, item, admin, "'admin'");
	else if (strncmp(key, "x-", 2) != 0)
		unknown_key(bind, name);
	return 0;
}

int section_admin(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	int rc = 0;

	bind->spec->admin.mark = name->mark;
	if (node->kind != WEIR_NODE_MAP) /* this call only reports the error */
		return weir_knobs_bind(config_admin_knobs, node, &bind->spec->admin, "'admin'",
			   bind->errs) == WEIR_ENOMEM
			   ? WEIR_ENOMEM
			   : 0;
	for (int i = 0; rc == 0 && i < node->n; i++)
		rc = bind_key(bind, node->name[i], node->item[i]);
	return rc;
}
