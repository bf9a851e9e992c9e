/* SPDX-License-Identifier: MIT */
/* Binds the sections that apply to the whole server: name, user, drain, overload, payloads, plugin. */
#include "bind.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tree.h"

#define PATH_BYTES 4096

/* Maximum grace time of a drain. An hour is a guess. */
#define GRACE_MAX_NS 3600e9
/* Maximum lifetime of a graph after its replacement. A year is practically unlimited. */
#define OLD_MAX_NS (365 * 24 * 3600e9)

/* Maximum memory of payloads. A PiB is practically unlimited. */
#define PAYLOADS_MAX_BYTES 1125899906842624.0

const struct weir_knob config_drain_knobs[] = {
    {.name = "grace",
	.type = WEIR_KNOB_DURATION,
	.offset = offsetof(struct weir_spec, grace_ns),
	.def = "10s",
	.min = 0,
	.max = GRACE_MAX_NS,
	.help = "how long a stopping server may take to finish what it has accepted"},
    {.name = "old",
	.type = WEIR_KNOB_DURATION,
	.offset = offsetof(struct weir_spec, old_ns),
	.def = "10m",
	.min = 0,
	.max = OLD_MAX_NS,
	.help = "how long requests that began before a reload may continue after it; requests that "
		"are not complete by then end in the same way as at the end of 'grace'"},
    {.name = NULL}};

const struct weir_knob config_overload_knobs[] = {
    {.name = "mode",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct weir_spec, overload_mode),
	.def = "enforce",
	.choices = "off|shadow|enforce",
	.help = "upper limit of the admission modes of all stages: with shadow no policy refuses, "
		"with off no policy is evaluated"},
    {.name = NULL}};

const struct weir_knob config_payloads_knobs[] = {
    {.name = "memory",
	.type = WEIR_KNOB_BYTES,
	.offset = offsetof(struct weir_spec, payload_bytes),
	.def = "1GiB",
	.min = 0,
	.max = PAYLOADS_MAX_BYTES,
	.help =
	    "memory that the payloads of all events may reserve in total; stages that need more "
	    "are refused, and their events end as 'pressure' or 'memory'"},
    {.name = "family_memory",
	.type = WEIR_KNOB_BYTES,
	.offset = offsetof(struct weir_spec, family_bytes),
	.def = "256MiB",
	.min = 0,
	.max = PAYLOADS_MAX_BYTES,
	.help =
	    "memory that the events of one family, such as all that was begun for a client, may "
	    "use with their payloads; children and payloads above it are refused as 'limit'"},
    {.name = NULL}};

static bool is_text(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	if (node->kind == WEIR_NODE_SCALAR && !tree_is_empty(node))
		return true;
	weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL, NULL, "'%s' takes a string, not %s",
	    name->text, tree_kind(node));
	return false;
}

int section_name(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	if (!is_text(bind, name, node) || !bind_check_name(bind, node, "server"))
		return 0;
	return weir_spec_text(&bind->spec->name, node->text);
}

/* Whether the user exists is not checked here, since the file may be checked on another machine. It
 * is checked when the server becomes that user. */
int section_user(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	if (!is_text(bind, name, node))
		return 0;
	bind->spec->user_mark = node->mark;
	return weir_spec_text(&bind->spec->user, node->text);
}

int section_drain(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	(void)name;
	int rc = weir_knobs_bind(config_drain_knobs, node, bind->spec, "'drain'", bind->errs);
	return rc == WEIR_ENOMEM ? rc : 0;
}

int section_overload(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	(void)name;
	int rc = weir_knobs_bind(config_overload_knobs, node, bind->spec, "'overload'", bind->errs);
	return rc == WEIR_ENOMEM ? rc : 0;
}

int section_payloads(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	(void)name;
	int rc = weir_knobs_bind(config_payloads_knobs, node, bind->spec, "'payloads'", bind->errs);
	return rc == WEIR_ENOMEM ? rc : 0;
}

/* ---- plug-ins ---- */

static int keep_plugin(struct weir_spec *spec, const struct weir_node *node, uint64_t id)
{
	struct weir_plugin_spec *plugins =
	    realloc(spec->plugins, ((size_t)spec->n_plugins + 1) * sizeof(*plugins));

	if (!plugins)
		return WEIR_ENOMEM;
	spec->plugins = plugins;
	plugins += spec->n_plugins;
	*plugins = (struct weir_plugin_spec){strdup(node->text), id, node->mark};
	if (!plugins->path)
		return WEIR_ENOMEM;
	spec->n_plugins++;
	return 0;
}

/* Load a plug-in. Its path is relative to the file that names it, so that a server can be moved
 * together with its plug-ins. */
static int load_plugin(struct bind *bind, const struct weir_node *node)
{
	char path[PATH_BYTES];
	struct weir_err err = {0};
	uint64_t id;

	if (node->kind != WEIR_NODE_SCALAR || !node->text[0] ||
	    !load_relative(node->mark.file, node->text, path, sizeof(path))) {
		weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL, NULL,
		    "'plugin' takes the path of a .so, or a list of them");
		return 0;
	}
	if (!bind->from_file) {
		weir_errs_add(
		    bind->errs, &node->mark, WEIR_EINVAL, NULL, "only a file can load plug-ins");
		return 0;
	}
	int rc = weir_stage_plugin(path, bind->look, &id, &err);
	if (rc != 0) {
		bool relative = !err.hint[0] && node->text[0] != '/' && access(path, F_OK) != 0;
		weir_errs_add(bind->errs, &node->mark, rc,
		    relative ? "a relative path begins at the folder of this file" : err.hint, "%s",
		    err.text);
		return 0;
	}
	return keep_plugin(bind->spec, node, id);
}

int section_plugin(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	int rc = 0;

	(void)name;
	if (node->kind != WEIR_NODE_LIST)
		return load_plugin(bind, node);
	for (int i = 0; rc == 0 && i < node->n; i++)
		rc = load_plugin(bind, node->item[i]);
	return rc;
}
