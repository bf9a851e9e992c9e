/* SPDX-License-Identifier: MIT */
/*
 * Binds `stages:` and `defaults:`. Three kinds of values are applied to a stage, each overriding
 * the previous one: the defaults of the rows, the `defaults:` of the file, and the stage's own
 * values. `defaults:` does not apply to sources, since they have neither a queue nor a pool.
 */
#include "bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree.h"

#define WHERE_BYTES 100

/* Maximum number of keys considered for a hint; a stage has fewer. */
#define MAX_NAMES 32

static const char *const own_keys[] = {"use", "with", "to"};

#define N_OWN_KEYS (sizeof(own_keys) / sizeof(own_keys[0]))

/* Rows of weir_stage_knobs that are useful as defaults for all stages. */
static const char *const default_keys[] = {"threads", "queue", "cohort", "admission", "slo"};

#define N_DEFAULT_KEYS (sizeof(default_keys) / sizeof(default_keys[0]))

static bool is_one_of(const char *key, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

bool config_is_stage_key(const char *key)
{
	return is_one_of(key, own_keys, N_OWN_KEYS) || weir_knob_find(weir_stage_knobs, key);
}

bool config_is_default_key(const char *key)
{
	return is_one_of(key, default_keys, N_DEFAULT_KEYS);
}

/* ---- keys at the wrong level ---- */

/* List the sections of a stage that contain the row `key`, as in "'threads:' or 'cohort:'". The
 * result is "" if there is none. */
static void sections_with(const char *key, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (const struct weir_knob *row = weir_stage_knobs; row->name; row++)
		if (row->type == WEIR_KNOB_MAP && weir_knob_find(row->fields, key) && used < size)
			used += (size_t)snprintf(
			    buf + used, size - used, "%s'%s:'", used > 0 ? " or " : "", row->name);
}

/* Write a hint that names the level of the file at which `key` is allowed. The hint is "" if `key`
 * is not allowed anywhere. */
static void right_level(
    const char *key, const struct weir_stage_spec *stage, char *hint, size_t size)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(stage->use);
	char inside[100];

	sections_with(key, inside, sizeof(inside));
	if (ops && weir_knob_find(ops->knobs, key))
		snprintf(hint, size, "'%s' takes it inside 'with:'", ops->name);
	else if (inside[0])
		snprintf(hint, size, "move it into %s", inside);
	else if (config_is_section(key))
		snprintf(hint, size, "move the key to the top level of the file");
	else
		hint[0] = '\0';
}

void bind_unknown_stage_key(
    struct bind *bind, const struct weir_node *name, const struct weir_stage_spec *stage)
{
	const char *names[MAX_NAMES];
	char hint[160];
	int n = 0;

	right_level(name->text, stage, hint, sizeof(hint));
	if (hint[0]) {
		weir_errs_add(bind->errs, &name->mark, WEIR_EINVAL, hint,
		    "'%s' is not a key of a stage", name->text);
		return;
	}
	for (size_t i = 0; i < N_OWN_KEYS; i++)
		names[n++] = own_keys[i];
	for (const struct weir_knob *row = weir_stage_knobs; row->name && n < MAX_NAMES; row++)
		names[n++] = row->name;
	bind_hint(name->text, names, n, hint, sizeof(hint));
	weir_errs_add(bind->errs, &name->mark, WEIR_EINVAL, hint, "unknown key '%s' in stage '%s'",
	    name->text, stage->name);
}

/* ---- threads, and the other rows ---- */

void bind_threads_number(
    struct bind *bind, const struct weir_node *node, struct weir_threads_spec *threads)
{
	const struct weir_knob *min = weir_knob_find(weir_threads_knobs, "min");
	char why[160];

	if (tree_is_empty(node)) {
		weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL, NULL, "'threads' has no value");
		return;
	}
	if (weir_knob_parse(min, node->text, threads, why, sizeof(why)) != 0) {
		weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL,
		    "write a number, 'inline' (stages), or { min: 1, max: 8 }",
		    "'%s' is not a number of threads from 1 to %.0f", node->text, min->max);
		return;
	}
	threads->max = threads->min;
	threads->start = -1; /* a `start` from `defaults:` was meant for other bounds */
}

void bind_threads_mark(const struct weir_node *node, struct weir_threads_spec *threads)
{
	const struct weir_node *min =
	    node->kind == WEIR_NODE_SCALAR ? node : weir_node_get(node, "min");

	if (min)
		threads->mark = min->mark;
	bind_mark(node, "policy", &threads->policy_mark);
}

void bind_mark(const struct weir_node *node, const char *key, struct weir_mark *mark)
{
	const struct weir_node *value = weir_node_get(node, key);

	if (value)
		*mark = value->mark;
}

/* Record the positions that weir_spec_check may report. */
static void keep_marks(
    struct weir_stage_spec *stage, const struct weir_node *name, const struct weir_node *item)
{
	const char *key = name->text;
	const struct weir_mark *mark = item->kind == WEIR_NODE_SCALAR ? &item->mark : &name->mark;

	if (strcmp(key, "threads") == 0) {
		bind_threads_mark(item, &stage->threads);
	} else if (strcmp(key, "slo") == 0) {
		stage->slo_mark = item->mark;
	} else if (strcmp(key, "mode") == 0) {
		stage->mode_mark = *mark;
	} else if (strcmp(key, "local") == 0) {
		stage->local_mark = *mark;
	} else if (strcmp(key, "urgent") == 0) {
		stage->urgent_mark = *mark;
	} else if (strcmp(key, "serial") == 0) {
		stage->serial_mark = *mark;
	} else if (strcmp(key, "children") == 0) {
		stage->children_mark = item->mark;
	} else if (strcmp(key, "cohort") == 0) {
		bind_mark(item, "policy", &stage->cohort.policy_mark);
	} else if (strcmp(key, "admission") == 0) {
		bind_mark(item, "policy", &stage->admission.policy_mark);
	} else if (strcmp(key, "width") == 0) {
		stage->width.mark = name->mark;
		bind_mark(item, "policy", &stage->width.policy_mark);
	}
}

static bool is_inline(const struct weir_node *node)
{
	return node->kind == WEIR_NODE_SCALAR && strcmp(node->text, "inline") == 0;
}

void bind_stage_knob(struct bind *bind, struct weir_node *name, struct weir_node *item,
    struct weir_stage_spec *stage, const char *where)
{
	bool threads = strcmp(name->text, "threads") == 0;

	if (threads)
		stage->inlined = is_inline(item);
	if (threads && is_inline(item))
		return;
	keep_marks(stage, name, item);
	if (strcmp(name->text, "width") == 0)
		stage->width.given = true;
	if (threads && item->kind == WEIR_NODE_SCALAR)
		bind_threads_number(bind, item, &stage->threads);
	else
		bind_one(bind, weir_stage_knobs, name, item, stage, where);
}

/* ---- to ---- */

struct link {
	char *stage;
	bool loop;
};

static const struct weir_knob link_knobs[] = {{.name = "stage",
						  .type = WEIR_KNOB_STRING,
						  .offset = offsetof(struct link, stage),
						  .flags = WEIR_KNOB_REQUIRED,
						  .help = "the stage that the outlet leads to"},
    {.name = "loop",
	.type = WEIR_KNOB_BOOL,
	.offset = offsetof(struct link, loop),
	.def = "false",
	.help = "true if the link is meant to close a cycle"},
    {.name = NULL}};

/* Return the position for an error in a link. The error may be in the outlet or in the target. If
 * both are on one line, the position covers both, else only the target. */
static struct weir_mark link_mark(const struct weir_node *outlet, const struct weir_node *target)
{
	struct weir_mark mark = target->mark;

	if (outlet && outlet->mark.line == mark.line && target->kind == WEIR_NODE_SCALAR) {
		mark.len += mark.col - outlet->mark.col;
		mark.col = outlet->mark.col;
	}
	return mark;
}

static int add_link(struct bind *bind, struct weir_stage_spec *stage,
    const struct weir_node *outlet, const struct weir_node *target, const struct link *link)
{
	if (weir_spec_link(stage, outlet ? outlet->text : "", link->stage, link->loop) != 0)
		return source_no_memory(bind->errs);
	stage->to[stage->n_to - 1].mark = link_mark(outlet, target);
	return 0;
}

static int bind_link(struct bind *bind, struct weir_stage_spec *stage,
    const struct weir_node *outlet, const struct weir_node *target)
{
	struct link link = {0};
	char where[160];

	if (target->kind == WEIR_NODE_SCALAR && target->text[0]) {
		link.stage = target->text;
		return add_link(bind, stage, outlet, target, &link);
	}
	snprintf(where, sizeof(where), "outlet '%.64s' of stage '%.64s'",
	    outlet ? outlet->text : "", stage->name);
	if (target->kind != WEIR_NODE_MAP) {
		weir_errs_add(bind->errs, &target->mark, WEIR_EINVAL,
		    "write its name, or { stage: NAME, loop: true }", "%s takes a stage, not %s",
		    where, tree_kind(target));
		return 0;
	}
	int rc = weir_knobs_bind(link_knobs, target, &link, where, bind->errs);
	if (rc == 0)
		rc = add_link(bind, stage, outlet, target, &link);
	weir_knobs_fini(link_knobs, &link);
	return rc == WEIR_ENOMEM ? rc : 0;
}

static int bind_to(struct bind *bind, struct weir_stage_spec *stage, const struct weir_node *node)
{
	int rc = 0;

	if (node->kind == WEIR_NODE_SCALAR && node->text[0])
		return bind_link(bind, stage, NULL, node);
	if (node->kind != WEIR_NODE_MAP) {
		weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL,
		    "write 'to: STAGE' or 'to: { OUTLET: STAGE }'",
		    "'to' of stage '%s' takes a stage or a map of outlets, not %s", stage->name,
		    tree_kind(node));
		return 0;
	}
	for (int i = 0; rc == 0 && i < node->n; i++)
		rc = bind_link(bind, stage, node->name[i], node->item[i]);
	return rc;
}

/* ---- with ---- */

static int bind_with(struct bind *bind, struct weir_stage_spec *stage, const struct weir_node *node)
{
	if (node->kind != WEIR_NODE_MAP) {
		weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL, NULL,
		    "'with' of stage '%s' must be a map, not %s", stage->name, tree_kind(node));
		return 0;
	}
	stage->with = tree_copy(node); /* a copy, since `explain` needs the unchanged tree */
	return stage->with ? 0 : source_no_memory(bind->errs);
}

/* ---- one stage ---- */

static void bind_use(struct bind *bind, struct weir_stage_spec *stage, const struct weir_node *node)
{
	if (!node) {
		weir_errs_add(bind->errs, &stage->mark, WEIR_EINVAL,
		    "add 'use: TYPE'; `weir list` shows the types",
		    "stage '%s' does not name its type", stage->name);
		return;
	}
	stage->use_mark = node->mark;
	if (node->kind != WEIR_NODE_SCALAR || !node->text[0])
		weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL, "`weir list` shows the types",
		    "'use' of stage '%s' takes a stage type, not %s", stage->name, tree_kind(node));
}

/* Apply the file's defaults to the stage. Mistakes in them are not reported here, since
 * section_defaults has reported them. Returns 0 or WEIR_ENOMEM. */
static int apply_defaults(struct bind *bind, struct weir_stage_spec *stage)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(stage->use);
	struct weir_errs seen = {0};
	struct bind quiet = *bind;

	quiet.errs = &seen;
	if (!bind->defaults || (ops && ops->flags & WEIR_STAGE_SOURCE))
		return 0;
	for (int i = 0; i < bind->defaults->n; i++)
		if (config_is_default_key(bind->defaults->name[i]->text))
			bind_stage_knob(&quiet, bind->defaults->name[i], bind->defaults->item[i],
			    stage, "'defaults'");
	return source_lacked_memory(&seen) ? source_no_memory(bind->errs) : 0;
}

static int bind_stage_key(struct bind *bind, struct weir_stage_spec *stage, struct weir_node *name,
    struct weir_node *item, const char *where)
{
	const char *key = name->text;

	if (strcmp(key, "use") == 0 || strncmp(key, "x-", 2) == 0)
		return 0;
	if (strcmp(key, "with") == 0)
		return bind_with(bind, stage, item);
	if (strcmp(key, "to") == 0)
		return bind_to(bind, stage, item);
	if (weir_knob_find(weir_stage_knobs, key))
		bind_stage_knob(bind, name, item, stage, where);
	else
		bind_unknown_stage_key(bind, name, stage);
	return 0;
}

/* Report `threads:` of a stage in a group, since nothing would use it. `threads: inline`, which is
 * also impossible there, is reported by weir_spec_check. */
static void check_group(
    struct bind *bind, const struct weir_stage_spec *stage, const struct weir_node *node)
{
	for (int i = 0; i < node->n; i++)
		if (strcmp(node->name[i]->text, "threads") == 0 && stage->group[0] &&
		    !stage->inlined)
			weir_errs_add(bind->errs, &node->name[i]->mark, WEIR_EINVAL,
			    "the stage uses the threads of the group: move the key to the group, "
			    "or remove 'group'",
			    "stage '%s' is in group '%s', so it cannot have threads of its own",
			    stage->name, stage->group);
}

static int bind_stage(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	const struct weir_node *use = weir_node_get(node, "use");
	char where[WHERE_BYTES];
	int rc = 0;

	bind_check_name(bind, name, "stage");
	snprintf(where, sizeof(where), "stage '%.64s'", name->text);
	if (node->kind != WEIR_NODE_MAP) {
		weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL, "write { use: TYPE }",
		    "%s must be a map, not %s", where, tree_kind(node));
		return 0;
	}
	struct weir_stage_spec *stage = weir_spec_add_stage(
	    bind->spec, name->text, use && use->kind == WEIR_NODE_SCALAR ? use->text : "");
	if (!stage)
		return source_no_memory(bind->errs);
	stage->mark = name->mark;
	bind_use(bind, stage, use);
	rc = apply_defaults(bind, stage);
	for (int i = 0; rc == 0 && i < node->n; i++)
		rc = bind_stage_key(bind, stage, node->name[i], node->item[i], where);
	check_group(bind, stage, node);
	return rc;
}

int section_stages(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	static const struct bind_form form = {"stages", "NAME", "{ use: TYPE }"};

	(void)name;
	return bind_each(bind, node, &form, bind_stage);
}

/* ---- defaults ---- */

static void check_default(struct bind *bind, struct weir_node *name, struct weir_node *item,
    struct weir_stage_spec *scratch)
{
	if (config_is_default_key(name->text))
		bind_stage_knob(bind, name, item, scratch, "'defaults'");
	else if (config_is_stage_key(name->text))
		weir_errs_add(bind->errs, &name->mark, WEIR_EINVAL, "set the key in each stage",
		    "'%s' cannot be a default", name->text);
	else if (strncmp(name->text, "x-", 2) != 0)
		weir_errs_add(bind->errs, &name->mark, WEIR_EINVAL,
		    "known here: threads, queue, cohort, admission, slo",
		    "unknown key '%s' in 'defaults'", name->text);
}

int section_defaults(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	struct weir_stage_spec scratch = {0};

	(void)name;
	if (node->kind != WEIR_NODE_MAP) {
		weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL, NULL,
		    "'defaults' must be a map, not %s", tree_kind(node));
		return 0;
	}
	if (weir_knobs_init(weir_stage_knobs, &scratch) != 0)
		return source_no_memory(bind->errs);
	for (int i = 0; i < node->n; i++)
		check_default(bind, node->name[i], node->item[i], &scratch);
	weir_knobs_fini(weir_stage_knobs, &scratch);
	bind->defaults = node;
	return 0;
}
