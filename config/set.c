/* SPDX-License-Identifier: MIT */
/* Applies overrides from the command line: --set stage.knob=value, group.knob=value, or
 * classes.NAME.knob=value. */
#include "bind.h"

#include <stdio.h>
#include <string.h>

#include "source.h"
#include "tree.h"

#define TEXT_BYTES 256

/* Return the stage that `set` begins with. Names may contain dots, so the longest matching name is
 * used. */
static struct weir_stage_spec *stage_of(struct weir_spec *spec, const char *set, size_t path_len)
{
	struct weir_stage_spec *found = NULL;

	for (int i = 0; i < spec->n_stages; i++) {
		struct weir_stage_spec *s = &spec->stages[i];
		size_t n = strlen(s->name);
		if (n + 1 < path_len && strncmp(set, s->name, n) == 0 && set[n] == '.' &&
		    (!found || n > strlen(found->name)))
			found = s;
	}
	return found;
}

/* Return the group that `set` begins with, if its name has more than `longer` bytes. */
static struct weir_group_spec *group_of(
    struct weir_spec *spec, const char *set, size_t path_len, size_t longer)
{
	struct weir_group_spec *found = NULL;

	for (int i = 0; i < spec->n_groups; i++) {
		size_t n = strlen(spec->groups[i].name);
		if (n > longer && n + 1 < path_len && set[n] == '.' &&
		    strncmp(set, spec->groups[i].name, n) == 0) {
			found = &spec->groups[i];
			longer = n;
		}
	}
	return found;
}

/* Return the class that `set` begins with, as "classes.NAME.", and the length of that without the
 * last dot in *n. NULL if there is none. */
static struct weir_class_spec *class_of(
    struct weir_spec *spec, const char *set, size_t path_len, size_t *n)
{
	static const char classes[] = "classes.";
	const size_t skip = sizeof(classes) - 1;
	struct weir_class_spec *found = NULL;

	for (int i = 0; i < spec->n_classes && strncmp(set, classes, skip) == 0; i++) {
		const char *name = spec->classes[i].name;
		size_t len = skip + strlen(name);
		if (len + 1 < path_len && set[len] == '.' && (!found || len > *n) &&
		    strncmp(set + skip, name, len - skip) == 0) {
			found = &spec->classes[i];
			*n = len;
		}
	}
	return found;
}

static int report(struct bind *bind, const char *set, int code, const char *text)
{
	struct weir_mark mark = {.file = "--set"};

	weir_errs_add(bind->errs, &mark, code, NULL, "%s: %s", set, text);
	return code == WEIR_ENOMEM ? code : 0;
}

/* Set the position of the overridden value to "--set", since an error in it has no position in the
 * file. */
static void keep_mark(struct weir_stage_spec *stage, const char *path)
{
	const struct weir_mark mark = {.file = "--set"};

	if (strcmp(path, "slo") == 0)
		stage->slo_mark = mark;
	if (strcmp(path, "mode") == 0)
		stage->mode_mark = mark;
	if (strcmp(path, "local") == 0)
		stage->local_mark = mark;
	if (strncmp(path, "urgent.", 7) == 0)
		stage->urgent_mark = mark;
	if (strcmp(path, "serial") == 0)
		stage->serial_mark = mark;
	if (strcmp(path, "children") == 0)
		stage->children_mark = mark;
	if (strcmp(path, "threads") == 0 || strcmp(path, "threads.min") == 0)
		stage->threads.mark = mark;
	if (strcmp(path, "threads.policy") == 0)
		stage->threads.policy_mark = mark;
	if (strcmp(path, "cohort.policy") == 0)
		stage->cohort.policy_mark = mark;
	if (strcmp(path, "admission.policy") == 0)
		stage->admission.policy_mark = mark;
	if (strcmp(path, "width.policy") == 0)
		stage->width.policy_mark = mark;
}

static void keep_group_mark(struct weir_group_spec *group, const char *path)
{
	const struct weir_mark mark = {.file = "--set"};

	if (strcmp(path, "cores") == 0)
		group->cores_mark = mark;
	if (strncmp(path, "gate.", 5) == 0)
		group->gate_mark = mark;
	if (strcmp(path, "starve") == 0)
		group->starve_mark = mark;
	if (strcmp(path, "visit") == 0)
		group->visit_mark = mark;
}

/* Drop the policy of `cores: { min, max, policy }` if `cores` is no longer a range. Returns 0 or
 * WEIR_ENOMEM. */
static int end_policy(struct bind *bind, struct weir_group_spec *group, const char *path)
{
	if (strcmp(path, "cores") != 0 || strstr(group->cores, ".."))
		return 0;
	group->threads.policy_mark = (struct weir_mark){0};
	if (weir_spec_text(&group->threads.policy, "weir") == 0)
		return 0;
	return source_no_memory(bind->errs);
}

/* Set the knob of a class; set[at] follows the dot behind the name of the class. Returns 0 or
 * WEIR_ENOMEM. */
static int set_class(struct bind *bind, struct weir_class_spec *class, const char *set, size_t at)
{
	const struct weir_mark mark = {.file = "--set"};
	char why[TEXT_BYTES], knob[TEXT_BYTES];

	snprintf(knob, sizeof(knob), "%.*s", (int)strcspn(set + at, "="), set + at);
	const struct weir_knob *row = weir_knob_find(weir_class_knobs, knob);
	if (!row) {
		snprintf(why, sizeof(why),
		    "class '%.64s' has no knob '%.64s': known are slo, "
		    "priority and guarantee",
		    class->name, knob);
		return report(bind, set, WEIR_ENOENT, why);
	}
	int rc = weir_knob_parse(row, strchr(set, '=') + 1, class, why, sizeof(why));
	if (rc != 0)
		return report(bind, set, rc, why);
	if (strcmp(knob, "slo") == 0)
		class->slo_mark = mark;
	else if (strcmp(knob, "priority") == 0)
		class->priority_mark = mark;
	else
		class->guarantee_mark = mark;
	return 0;
}

int bind_set(struct bind *bind, const char *set)
{
	size_t class_len = 0;
	size_t path_len = strcspn(set, "=");
	char why[TEXT_BYTES], path[TEXT_BYTES];

	if (set[path_len] != '=')
		return report(bind, set, WEIR_EINVAL, "write STAGE.KNOB=VALUE");
	struct weir_stage_spec *stage = stage_of(bind->spec, set, path_len);
	struct weir_group_spec *group =
	    group_of(bind->spec, set, path_len, stage ? strlen(stage->name) : 0);
	struct weir_class_spec *class = class_of(bind->spec, set, path_len, &class_len);
	/* a stage may be called "classes", but has no key that is the name of a class */
	if (class)
		return set_class(bind, class, set, class_len + 1);
	if (!stage && !group)
		return report(bind, set, WEIR_ENOENT, "there is no such stage");
	size_t name_len = strlen(group ? group->name : stage->name) + 1;
	int n = snprintf(path, sizeof(path), "%.*s", (int)(path_len - name_len), set + name_len);
	if (n < 0 || (size_t)n >= sizeof(path))
		return report(bind, set, WEIR_EINVAL, "this path is too long");
	if (group) {
		int rc = weir_group_spec_set(group, path, set + path_len + 1, why, sizeof(why));
		if (rc != 0)
			return report(bind, set, rc, why);
		keep_group_mark(group, path);
		return end_policy(bind, group, path);
	}
	if (strncmp(path, "threads", 7) == 0 && stage->group[0])
		return report(bind, set, WEIR_EINVAL,
		    "the stage is in a group, and uses the threads of the group");
	int rc = weir_stage_spec_set(stage, path, set + path_len + 1, why, sizeof(why));
	if (rc != 0)
		return report(bind, set, rc, why);
	keep_mark(stage, path);
	return 0;
}
