/* SPDX-License-Identifier: MIT */
/* Binds `classes:`, whose order is their priority, and `groups:`, which are pools shared by
 * stages. */
#include "bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree.h"

#define WHERE_BYTES 100

/* ---- classes ---- */

static int keep_match(
    struct weir_class_spec *class, const struct weir_node *field, const char *pattern)
{
	size_t n = (size_t) class->n_match + 1;
	struct weir_match_spec *match = realloc(class->match, n * sizeof(*match));

	if (!match)
		return WEIR_ENOMEM;
	class->match = match;
	struct weir_match_spec *m = &match[class->n_match++];
	*m = (struct weir_match_spec){.mark = field->mark};
	if (weir_spec_text(&m->field, field->text) != 0 ||
	    weir_spec_text(&m->pattern, pattern) != 0)
		return WEIR_ENOMEM;
	return 0;
}

static int bind_match(
    struct bind *bind, const struct weir_node *name, const struct weir_node *pattern)
{
	struct weir_class_spec *class = &bind->spec->classes[bind->spec->n_classes - 1];

	if (pattern->kind != WEIR_NODE_SCALAR || tree_is_empty(pattern)) {
		weir_errs_add(bind->errs, &pattern->mark, WEIR_EINVAL,
		    "write a value, or a prefix followed by '*'",
		    "'%s' of class '%s' takes one pattern, not %s", name->text, class->name,
		    tree_kind(pattern));
		return 0;
	}
	const char *star = strchr(pattern->text, '*');
	if (star && star[1]) {
		weir_errs_add(bind->errs, &pattern->mark, WEIR_EINVAL, NULL,
		    "'*' can only be at the end of a pattern");
		return 0;
	}
	return keep_match(class, name, pattern->text);
}

static void bind_class_knob(struct bind *bind, struct weir_class_spec *class,
    struct weir_node *name, struct weir_node *item, const char *where)
{
	bind_one(bind, weir_class_knobs, name, item, class, where);
	if (strcmp(name->text, "slo") == 0)
		class->slo_mark = item->mark;
	else if (strcmp(name->text, "priority") == 0)
		class->priority_mark = item->mark;
	else
		class->guarantee_mark = item->mark;
}

static const struct bind_form match_form = {"match", "path", "/shop/*"};

static int bind_class(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	char where[WHERE_BYTES];
	int rc = 0;

	bind_check_name(bind, name, "class");
	snprintf(where, sizeof(where), "class '%.64s'", name->text);
	struct weir_class_spec *class = weir_spec_add_class(bind->spec, name->text);
	if (!class)
		return source_no_memory(bind->errs);
	class->mark = name->mark;
	if (node->kind != WEIR_NODE_MAP) {
		weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL, "write {} to match all",
		    "%s must be a map, not %s", where, tree_kind(node));
		return 0;
	}
	for (int i = 0; rc == 0 && i < node->n; i++) {
		if (strcmp(node->name[i]->text, "match") == 0)
			rc = bind_each(bind, node->item[i], &match_form, bind_match);
		else if (weir_knob_find(weir_class_knobs, node->name[i]->text))
			bind_class_knob(bind, class, node->name[i], node->item[i], where);
		else if (strncmp(node->name[i]->text, "x-", 2) != 0)
			weir_errs_add(bind->errs, &node->name[i]->mark, WEIR_EINVAL,
			    "known here: match, slo, priority, guarantee", "unknown key '%s' in %s",
			    node->name[i]->text, where);
	}
	return rc;
}

int section_classes(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	static const struct bind_form form = {"classes", "NAME", "{}"};

	(void)name;
	return bind_each(bind, node, &form, bind_class);
}

/* ---- groups ---- */

/* Bind `cores: { min, max, policy }`. Returns 0 or WEIR_ENOMEM. */
static int bind_cores(struct bind *bind, const struct weir_node *node,
    struct weir_group_spec *group, const char *where)
{
	struct weir_cores_spec cores = {0};
	char text[64], max[24] = "auto";

	if (weir_knobs_init(weir_cores_knobs, &cores) != 0)
		return source_no_memory(bind->errs);
	int rc = weir_knobs_bind(weir_cores_knobs, node, &cores, where, bind->errs);
	if (cores.max > 0)
		snprintf(max, sizeof(max), "%lld", (long long)cores.max);
	snprintf(text, sizeof(text), "%lld..%s", (long long)cores.min, max);
	if (rc == 0)
		rc = weir_spec_text(&group->cores, text);
	if (rc == 0 && weir_node_get(node, "policy"))
		rc = weir_spec_text(&group->threads.policy, cores.policy);
	bind_mark(node, "policy", &group->threads.policy_mark);
	weir_knobs_fini(weir_cores_knobs, &cores);
	return rc == WEIR_ENOMEM ? source_no_memory(bind->errs) : 0;
}

/* Record the positions of the keys that weir_spec_check may report. */
static void keep_marks(
    struct weir_group_spec *group, const struct weir_node *name, const struct weir_node *item)
{
	const struct weir_mark *mark = item->kind == WEIR_NODE_SCALAR ? &item->mark : &name->mark;

	if (strcmp(name->text, "threads") == 0)
		bind_threads_mark(item, &group->threads);
	else if (strcmp(name->text, "schedule") == 0)
		group->schedule_mark = item->mark;
	else if (strcmp(name->text, "cores") == 0)
		group->cores_mark = *mark;
	else if (strcmp(name->text, "gate") == 0)
		group->gate_mark = *mark;
	else if (strcmp(name->text, "starve") == 0)
		group->starve_mark = *mark;
	else if (strcmp(name->text, "visit") == 0)
		group->visit_mark = *mark;
}

static int bind_group(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	char where[WHERE_BYTES];
	int rc = 0;

	bind_check_name(bind, name, "group");
	snprintf(where, sizeof(where), "group '%.64s'", name->text);
	struct weir_group_spec *group = weir_spec_add_group(bind->spec, name->text);
	if (!group)
		return source_no_memory(bind->errs);
	group->mark = name->mark;
	if (node->kind != WEIR_NODE_MAP) {
		weir_errs_add(bind->errs, &node->mark, WEIR_EINVAL, "write {} for the defaults",
		    "%s must be a map, not %s", where, tree_kind(node));
		return 0;
	}
	for (int i = 0; rc == 0 && i < node->n; i++) {
		struct weir_node *item = node->item[i];
		if (strcmp(node->name[i]->text, "threads") == 0 && item->kind == WEIR_NODE_SCALAR)
			bind_threads_number(bind, item, &group->threads);
		else if (strcmp(node->name[i]->text, "cores") == 0 && item->kind == WEIR_NODE_MAP)
			rc = bind_cores(bind, item, group, where);
		else
			bind_one(bind, weir_group_knobs, node->name[i], item, group, where);
		keep_marks(group, node->name[i], item);
	}
	return rc;
}

int section_groups(struct bind *bind, const struct weir_node *name, const struct weir_node *node)
{
	static const struct bind_form form = {"groups", "NAME", "{}"};

	(void)name;
	return bind_each(bind, node, &form, bind_group);
}
