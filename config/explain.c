/* SPDX-License-Identifier: MIT */
/*
 * `weir explain`: writes every key with its effective value and its origin.
 *
 *   stages.disk.threads.max    32      files.yaml:24
 *   stages.disk.queue.limit    4096    files.yaml:7 (defaults)
 *   stages.disk.threads.spin   auto    default
 *
 * Values are taken from the spec, positions from the merged tree that the spec holds. A spec built
 * by a program has no tree; the origin of its values is "program".
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <weir/stage.h>

#include "bind.h"
#include "groups.h"
#include "rows.h"
#include "source.h"
#include "tree.h"

/* Maximum length of a path: the name of a stage and names of rows, or two levels of names. */
#define PATH_BYTES 512

/* Column widths, sufficient for most paths and values. */
#define PATH_WIDTH  36
#define VALUE_WIDTH 20

struct explain {
	const struct weir_spec *spec;
	const struct sources *all; /* NULL for a spec built by a program */
	const char *only;          /* path to show; NULL for all */
	FILE *out;
	int shown;
	bool no_memory;
	bool values;           /* write "path value" without origins, for config_values */
	config_said_fn *said;  /* called for each key that a file sets, instead of writing lines */
	config_value_fn *each; /* called for each key, instead of writing lines */
	void *arg;
};

/* Where the values of a group of rows may be set. */
struct scope {
	const char *path;             /* "stages.disk" */
	const struct weir_node *node; /* the file's node for `path`, or NULL */
	const struct weir_node *defaults;
	const char *stage; /* name of the stage, for --set; NULL if the scope is not a stage */
};

static bool is_below(const char *path, const char *only)
{
	size_t n = only ? strlen(only) : 0;

	return n == 0 || (strncmp(path, only, n) == 0 && (path[n] == '\0' || path[n] == '.'));
}

static void put_line(FILE *out, const struct config_value *v)
{
	fprintf(out, "%-*s %-*s ", PATH_WIDTH, v->path, VALUE_WIDTH, v->value);
	if (v->file)
		fprintf(out, "%s:%d%s\n", v->file, v->line,
		    strcmp(v->origin, "defaults") == 0 ? " (defaults)" : "");
	else
		fprintf(out, "%s\n", strcmp(v->origin, "set") == 0 ? "--set" : v->origin);
}

static void show(struct explain *x, const struct config_value *v)
{
	if (!is_below(v->path, x->only))
		return;
	x->shown++;
	if (x->values)
		fprintf(x->out, "%s %s\n", v->path, v->value);
	else if (x->each)
		x->each(x->arg, v);
	else
		put_line(x->out, v);
}

/* Find the node that sets `path` ("threads.max") below `node`. It is the value itself, or a number
 * that sets both bounds (`threads: 4`). */
static const struct weir_node *find_node(const struct weir_node *node, const char *path)
{
	char word[PATH_BYTES];

	while (node && path) {
		if (node->kind != WEIR_NODE_MAP)
			return strcmp(path, "min") == 0 || strcmp(path, "max") == 0 ? node : NULL;
		/* keys with dots, such as header.accept */
		const struct weir_node *whole = weir_node_get(node, path);
		if (whole)
			return whole;
		size_t n = strcspn(path, ".");
		snprintf(word, sizeof(word), "%.*s", (int)n, path);
		node = weir_node_get(node, word);
		path = path[n] ? path + n + 1 : NULL;
	}
	return node;
}

/* Return whether an override sets `path` of the stage, or the section that contains it. */
static bool is_set(const struct explain *x, const char *stage, const char *path)
{
	char full[PATH_BYTES];

	if (!x->all || !stage)
		return false;
	int n = snprintf(full, sizeof(full), "%s.%s", stage, path);
	for (int i = 0; i < x->all->n_sets; i++) {
		size_t len = strcspn(x->all->sets[i], "=");
		if (len <= (size_t)n && strncmp(full, x->all->sets[i], len) == 0 &&
		    (full[len] == '\0' || full[len] == '.'))
			return true;
	}
	return false;
}

static void find_origin(
    const struct explain *x, const struct scope *scope, const char *path, struct config_value *v)
{
	const struct weir_node *own = find_node(scope->node, path);
	const struct weir_node *node = own ? own : find_node(scope->defaults, path);

	if (is_set(x, scope->stage, path)) {
		v->origin = "set";
	} else if (node && node->mark.file) {
		v->origin = own ? "file" : "defaults";
		v->file = node->mark.file;
		v->line = node->mark.line;
	} else {
		v->origin = x->all ? "default" : "program";
	}
}

/* Return the line at `mark` as it was read, or "" if it is unknown. */
static const char *line_of(const struct explain *x, const struct weir_mark *mark)
{
	for (int i = 0; x->all && i < x->all->n; i++)
		if (strcmp(x->all->item[i]->name, mark->file) == 0)
			return source_line(x->all->item[i], mark->line);
	return "";
}

static void tell(const struct explain *x, const struct scope *scope, const char *path,
    const char *full, const char *value)
{
	const struct weir_node *own = find_node(scope->node, path);
	const struct weir_node *node = own ? own : find_node(scope->defaults, path);

	if (!node || !node->mark.file || is_set(x, scope->stage, path))
		return;
	x->said(x->arg, &(struct config_said){.path = full,
			    .value = strstr(line_of(x, &node->mark), "${") ? NULL : value,
			    .file = node->mark.file,
			    .line = node->mark.line});
}

static void show_value(
    struct explain *x, const struct scope *scope, const char *path, const char *value)
{
	char full[PATH_BYTES];
	struct config_value v = {.path = full, .value = value};

	snprintf(full, sizeof(full), "%s%s%s", scope->path, scope->path[0] ? "." : "", path);
	if (x->said) {
		tell(x, scope, path, full, value);
		return;
	}
	find_origin(x, scope, path, &v);
	show(x, &v);
}

static void show_text(
    struct explain *x, const struct scope *scope, const char *path, const char *text)
{
	const struct weir_knob row = {.type = WEIR_KNOB_STRING};
	char *value = row_value(&row, &text);

	x->no_memory |= value == NULL;
	if (value)
		show_value(x, scope, path, value);
	free(value);
}

/* Show the rows of a table. Each member of a map is shown as a separate row. `prefix` is "threads."
 * or "". */
static void show_rows(struct explain *x, const struct scope *scope, const char *prefix,
    const struct weir_knob *table, const void *base)
{
	char path[PATH_BYTES];

	for (const struct weir_knob *row = table; row && row->name; row++) {
		if (row->type == WEIR_KNOB_MAP) {
			snprintf(path, sizeof(path), "%s%s.", prefix, row->name);
			show_rows(x, scope, path, row->fields, (const char *)base + row->offset);
			continue;
		}
		char *value = row_value(row, base);
		snprintf(path, sizeof(path), "%s%s", prefix, row->name);
		x->no_memory |= value == NULL;
		if (value)
			show_value(x, scope, path, value);
		free(value);
	}
}

/* ---- sections ---- */

static const struct weir_node *section(const struct explain *x, const char *key)
{
	return x->all ? weir_node_get(x->all->root, key) : NULL;
}

/* Show tokens and users by name. For the file of a token, the path is shown, never the contents. */
static void explain_clients(struct explain *x, const char *key,
    const struct weir_admin_client_spec *client, int n, const struct weir_knob *table)
{
	const struct weir_node *said = section(x, "admin");
	char path[PATH_BYTES];

	said = said ? weir_node_get(said, key) : NULL;
	for (int i = 0; i < n; i++) {
		struct scope scope = {
		    .path = path, .node = said ? weir_node_get(said, client[i].name) : NULL};
		snprintf(path, sizeof(path), "admin.%s.%s", key, client[i].name);
		show_rows(x, &scope, "", table, &client[i]);
	}
}

/* Show "plugin.upper" with the path as written and a hash of the file. Because of the hash, a
 * replaced file counts as another plug-in. */
static void explain_plugin(struct explain *x, const struct weir_plugin_spec *p)
{
	const char *base = strrchr(p->path, '/') ? strrchr(p->path, '/') + 1 : p->path;
	char path[PATH_BYTES], value[PATH_BYTES];
	struct config_value v = {.path = path, .value = value, .origin = "program"};

	snprintf(path, sizeof(path), "plugin.%.*s", (int)strcspn(base, "."), base);
	snprintf(value, sizeof(value), "%.400s (%016llx)", p->path, (unsigned long long)p->id);
	if (p->mark.file) {
		v.origin = "file";
		v.file = p->mark.file;
		v.line = p->mark.line;
	}
	if (!x->said)
		show(x, &v);
	else if (p->mark.file)
		x->said(x->arg, &(struct config_said){.path = path,
				    .value = strstr(line_of(x, &p->mark), "${") ? NULL : value,
				    .file = p->mark.file,
				    .line = p->mark.line});
}

static void explain_alerts(struct explain *x)
{
	const struct weir_alerts_spec *a = &x->spec->alerts;
	const struct weir_node *said = section(x, "alerts");
	char path[PATH_BYTES];

	for (int k = 0; k < WEIR_ALERTS; k++) {
		const char *name = weir_alert_names[k];
		const struct weir_node *node = said ? weir_node_get(said, name) : NULL;
		const struct weir_node *stages = node ? weir_node_get(node, "stages") : NULL;
		struct scope scope = {.path = path, .node = node};
		snprintf(path, sizeof(path), "alerts.%s", name);
		show_rows(x, &scope, "", config_alert_knobs[k], &a->rule[k]);
		for (int i = 0; i < a->n_stages; i++) {
			if (a->stages[i].kind != k)
				continue;
			snprintf(
			    path, sizeof(path), "alerts.%s.stages.%s", name, a->stages[i].stage);
			scope.node = stages ? weir_node_get(stages, a->stages[i].stage) : NULL;
			show_rows(x, &scope, "", config_alert_stage_knobs[k], &a->stages[i].rule);
		}
	}
}

static void explain_server(struct explain *x)
{
	struct scope top = {.path = "", .node = x->all ? x->all->root : NULL};
	struct scope admin = {.path = "admin", .node = section(x, "admin")};
	struct scope drain = {.path = "drain", .node = section(x, "drain")};
	struct scope overload = {.path = "overload", .node = section(x, "overload")};
	struct scope payloads = {.path = "payloads", .node = section(x, "payloads")};
	struct scope trace = {.path = "trace", .node = section(x, "trace")};
	struct scope log = {.path = "log", .node = section(x, "log")};

	show_text(x, &top, "name", x->spec->name);
	show_text(x, &top, "user", x->spec->user);
	for (int i = 0; i < x->spec->n_plugins; i++)
		explain_plugin(x, &x->spec->plugins[i]);
	show_rows(x, &admin, "", config_admin_knobs, &x->spec->admin);
	explain_clients(
	    x, "tokens", x->spec->admin.tokens, x->spec->admin.n_tokens, config_token_knobs);
	explain_clients(
	    x, "users", x->spec->admin.users, x->spec->admin.n_users, config_user_knobs);
	show_rows(x, &drain, "", config_drain_knobs, x->spec);
	show_rows(x, &overload, "", config_overload_knobs, x->spec);
	show_rows(x, &payloads, "", config_payloads_knobs, x->spec);
	show_rows(x, &trace, "", config_trace_knobs, &x->spec->trace);
	show_rows(x, &log, "", config_log_knobs, &x->spec->log);
	explain_alerts(x);
}

static void explain_class(struct explain *x, const struct weir_class_spec *class)
{
	char path[PATH_BYTES], match[PATH_BYTES];
	struct scope scope = {
	    .path = path, .node = weir_node_get(section(x, "classes"), class->name)};

	snprintf(path, sizeof(path), "classes.%s", class->name);
	for (int i = 0; i < class->n_match; i++) {
		snprintf(match, sizeof(match), "match.%s", class->match[i].field);
		show_text(x, &scope, match, class->match[i].pattern);
	}
	show_rows(x, &scope, "", weir_class_knobs, class);
}

static void note_group(struct explain *x, const char *path, const struct weir_group_spec *group)
{
	char *text = group_note(x->spec, group);

	x->no_memory |= text == NULL;
	if (text)
		x->each(
		    x->arg, &(struct config_value){.path = path, .value = text, .origin = "note"});
	free(text);
}

static void explain_group(struct explain *x, const struct weir_group_spec *group)
{
	char path[PATH_BYTES];
	struct scope scope = {
	    .path = path, .node = weir_node_get(section(x, "groups"), group->name)};

	snprintf(path, sizeof(path), "groups.%s", group->name);
	show_rows(x, &scope, "", weir_group_knobs, group);
	if (is_below(path, x->only) && x->each && group_is_core(group))
		note_group(x, path, group);
	if (is_below(path, x->only) && x->out && !x->values && group_is_core(group))
		group_words(x->spec, group, x->out);
}

static void explain_with(
    struct explain *x, const struct scope *scope, const struct weir_stage_spec *stage)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(stage->use);
	struct weir_errs errs = {0}; /* config_load has reported any errors */
	void *conf = ops && ops->knobs ? calloc(1, ops->conf_size) : NULL;

	if (!conf) {
		x->no_memory |= ops && ops->knobs;
		return;
	}
	if (weir_knobs_init(ops->knobs, conf) == 0) {
		weir_knobs_bind(ops->knobs, stage->with, conf, stage->name, &errs);
		x->no_memory |= source_lacked_memory(&errs);
		show_rows(x, scope, "with.", ops->knobs, conf);
		weir_knobs_fini(ops->knobs, conf);
	} else {
		x->no_memory = true;
	}
	free(conf);
}

static void explain_links(
    struct explain *x, const struct scope *scope, const struct weir_stage_spec *stage)
{
	char path[PATH_BYTES];

	for (int i = 0; i < stage->n_to; i++) {
		const struct weir_link_spec *link = &stage->to[i];
		snprintf(path, sizeof(path), "to%s%s", link->outlet[0] ? "." : "", link->outlet);
		show_text(x, scope, path, link->stage);
	}
}

/* Show only the rows that apply. A source has no placement but its group; an inline stage, or one in a
 * group, has no pool of its own. */
static void explain_placement(
    struct explain *x, const struct scope *scope, const struct weir_stage_spec *stage)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(stage->use);
	const struct weir_knob *row = weir_stage_knobs;

	if (ops && ops->flags & WEIR_STAGE_SOURCE) {
		if (stage->group[0])
			show_value(x, scope, "group", stage->group);
		return;
	}
	if (stage->inlined)
		show_value(x, scope, "threads", "inline");
	for (; row->name; row++) {
		struct weir_knob one[2] = {*row, {.name = NULL}};
		bool pool = strcmp(row->name, "threads") == 0;
		if (!pool || (!stage->inlined && !stage->group[0]))
			show_rows(x, scope, "", one, stage);
	}
}

static void explain_stage(struct explain *x, const struct weir_stage_spec *stage)
{
	char path[PATH_BYTES];
	struct scope scope = {.path = path,
	    .node = weir_node_get(section(x, "stages"), stage->name),
	    .defaults = section(x, "defaults"),
	    .stage = stage->name};

	snprintf(path, sizeof(path), "stages.%s", stage->name);
	show_text(x, &scope, "use", stage->use);
	explain_with(x, &scope, stage);
	explain_links(x, &scope, stage);
	explain_placement(x, &scope, stage);
}

static void explain_all(struct explain *x)
{
	const struct weir_spec *spec = x->spec;

	if (spec->free_sources == sources_free)
		x->all = spec->sources;
	explain_server(x);
	for (int i = 0; i < spec->n_classes; i++)
		explain_class(x, &spec->classes[i]);
	for (int i = 0; i < spec->n_groups; i++)
		explain_group(x, &spec->groups[i]);
	for (int i = 0; i < spec->n_stages; i++)
		explain_stage(x, &spec->stages[i]);
}

int config_values(const struct weir_spec *spec, FILE *out)
{
	struct explain x = {.spec = spec, .out = out, .values = true};

	explain_all(&x);
	return x.no_memory ? WEIR_ENOMEM : 0;
}

char *config_values_text(const struct weir_spec *spec)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	int rc = out ? config_values(spec, out) : WEIR_ENOMEM;

	if (out && fclose(out) != 0)
		rc = WEIR_ENOMEM;
	if (rc == 0)
		return text;
	free(text);
	return NULL;
}

int config_said(const struct weir_spec *spec, config_said_fn *fn, void *arg)
{
	struct explain x = {.spec = spec, .said = fn, .arg = arg};

	explain_all(&x);
	return x.no_memory ? WEIR_ENOMEM : 0;
}

static int explain_shown(struct explain *x)
{
	explain_all(x);
	if (x->no_memory)
		return WEIR_ENOMEM;
	return x->shown > 0 ? 0 : WEIR_ENOENT;
}

int config_explain(const struct weir_spec *spec, const char *path, FILE *out)
{
	struct explain x = {.spec = spec, .only = path, .out = out};

	return explain_shown(&x);
}

int config_explain_each(
    const struct weir_spec *spec, const char *path, config_value_fn *fn, void *arg)
{
	struct explain x = {.spec = spec, .only = path, .each = fn, .arg = arg};

	return explain_shown(&x);
}
