/* SPDX-License-Identifier: MIT */
/*
 * Sets knobs of the groups of a running graph.
 *
 * A value is parsed into a copy of the group's spec, and the whole spec is checked with it, as by
 * `weir check`. So no value can be set that the YAML could not have. Errors that the spec has
 * without the new value, too, do not count: knobs may have been set to values that would be refused
 * together. Then the cores, or the threads of a pool, follow the spec. Under graph->lock.
 */
#include <stdlib.h>
#include <string.h>

#include "base/knob_in.h"
#include "base/task.h"
#include "graph/group.h"
#include "operate/changes.h"
#include "plan/plan.h"
#include "sched/cores.h"
#include "sched/policy.h"

static bool has_error(const struct weir_errs *errs, const struct weir_err *e)
{
	for (int i = 0; i < errs->n; i++)
		if (strcmp(errs->err[i].text, e->text) == 0)
			return true;
	return false;
}

static void find_errors(const struct weir_spec *spec, struct weir_errs *errs)
{
	struct plan plan;

	plan_make(spec, &plan, errs);
	plan_free(&plan);
}

int graph_check_spec(
    const struct weir_spec *now, const struct weir_spec *wanted, char *why, size_t size)
{
	struct weir_errs *errs = calloc(2, sizeof(*errs));

	if (!errs)
		return graph_say(why, size, WEIR_ENOMEM, "out of memory");
	find_errors(now, &errs[0]);
	find_errors(wanted, &errs[1]);
	int rc = 0;
	for (int i = 0; i < errs[1].n && rc == 0; i++) {
		const struct weir_err *e = &errs[1].err[i];
		if (!has_error(&errs[0], e))
			rc = graph_say(why, size, e->code == WEIR_ENOMEM ? e->code : WEIR_EINVAL,
			    "%s%s%s", e->text, e->hint[0] ? ": " : "", e->hint);
	}
	free(errs);
	return rc;
}

int graph_check_stage(
    const struct weir_stage *st, const struct weir_stage_spec *next, char *why, size_t size)
{
	const struct weir_spec *now = st->graph->spec;
	struct weir_spec wanted = *now;
	size_t bytes = (size_t)now->n_stages * sizeof(*now->stages);

	wanted.stages = malloc(bytes);
	if (!wanted.stages)
		return graph_say(why, size, WEIR_ENOMEM, "out of memory");
	memcpy(wanted.stages, now->stages, bytes);
	wanted.stages[st->id] = *next;
	int rc = graph_check_spec(now, &wanted, why, size);
	free(wanted.stages);
	return rc;
}

static int check_group(
    const struct owner *of, const struct weir_group_spec *next, char *why, size_t size)
{
	const struct weir_spec *now = of->graph->spec;
	struct weir_spec wanted = *now;
	size_t bytes = (size_t)now->n_groups * sizeof(*now->groups);

	wanted.groups = malloc(bytes);
	if (!wanted.groups)
		return graph_say(why, size, WEIR_ENOMEM, "out of memory");
	memcpy(wanted.groups, now->groups, bytes);
	struct weir_group_spec *one = &wanted.groups[of->group - now->groups];
	*one = *next;
	/* `policy` of `cores` has no effect while `cores` is a number, and must be no error then */
	if (next_policy_find(one->schedule))
		one->threads.policy = NULL;
	int rc = graph_check_spec(now, &wanted, why, size);
	free(wanted.groups);
	return rc;
}

static bool is_listed(const char *cores)
{
	return strpbrk(cores, "-,") != NULL;
}

/* Whether the text is a number of cores, a range (whose ends the check of the plan compares), or a list
 * of CPUs. */
static bool is_cores(const char *text)
{
	int cpu[POOL_THREADS_MAX], most;
	bool listed;

	return cores_parse(text, cpu, &listed) > 0 || (!listed && cores_range(text, &most) > 0);
}

/* Report a text that is not a value of `cores`. Not all values that a file may have can be set. */
static int check_cores(
    const struct owner *of, const struct weir_group_spec *next, char *why, size_t size)
{
	if (!next_policy_find(of->group->schedule) || is_listed(of->group->cores) ||
	    is_cores(next->cores))
		return 0;
	return graph_say(why, size, WEIR_EINVAL,
	    "'%s' is not a number of cores for group '%s': write a number from 1 to %d, a range "
	    "such "
	    "as 1..%d, or auto",
	    next->cores, of->group->name, task_cores(), task_cores());
}

/* Report a value that only a new graph can have. */
static int check_same_graph(
    const struct owner *of, const struct weir_group_spec *next, char *why, size_t size)
{
	const struct weir_group_spec *gs = of->group;
	bool was = next_policy_find(gs->schedule), is = next_policy_find(next->schedule);

	if (was ? sched_policy_find(next->schedule) != NULL : is)
		return graph_say(why, size, WEIR_EINVAL,
		    "group '%s' cannot change between schedule 'shared', a pool, and a schedule "
		    "per core while the server runs: change the file and reload",
		    gs->name);
	if (strcmp(gs->cores, next->cores) != 0 && (is_listed(gs->cores) || is_listed(next->cores)))
		return graph_say(why, size, WEIR_EINVAL,
		    "the CPUs of group '%s' cannot change while the server runs if 'cores' names "
		    "them: change the file and reload",
		    gs->name);
	if (strcmp(gs->cores, next->cores) != 0 && gs->replicas > 1)
		return graph_say(why, size, WEIR_EINVAL,
		    "the number of cores of group '%s' cannot change while the server runs, since "
		    "it "
		    "has replicas: change the file and reload",
		    gs->name);
	return 0;
}

static void apply(const struct owner *of)
{
	struct pool *pool = graph_group_pool(of->graph, of->group);
	int min, max;

	if (pool->cores) {
		graph_group_renew(of->graph, pool);
		return;
	}
	pool_bounds(&of->group->threads, task_cores(), &min, &max);
	pool_set_bounds(pool, min, max);
}

/* Whether only core groups have the knob. */
static bool is_for_cores(const char *knob)
{
	return strncmp(knob, "gate.", 5) == 0 || strcmp(knob, "cores") == 0 ||
	       strcmp(knob, "starve") == 0 || strcmp(knob, "balance") == 0;
}

int graph_group_knob_live(const struct owner *of, const char *knob, char *why, size_t size)
{
	void *base = of->group;
	const struct weir_knob *row = graph_knob_row(weir_group_knobs, knob, &base);

	if (!row)
		return graph_no_knob(weir_group_knobs, "group", of->group->name, knob, why, size);
	if (!(row->flags & WEIR_KNOB_LIVE))
		return graph_say(why, size, WEIR_EINVAL,
		    "'%s' of group '%s' cannot change while the server runs", knob,
		    of->group->name);
	bool cores = next_policy_find(of->group->schedule);
	if (!cores && is_for_cores(knob))
		return graph_say(why, size, WEIR_EINVAL,
		    "group '%s': '%s' needs a schedule per core, not '%s'", of->group->name, knob,
		    of->group->schedule);
	if (cores && strncmp(knob, "threads.", 8) == 0)
		return graph_say(why, size, WEIR_EINVAL,
		    "group '%s' has a thread per core, so '%s' means nothing: set 'cores'",
		    of->group->name, knob);
	return 0;
}

/* Free the texts of `next`, a copy of `of` in which some were replaced. */
static void free_texts(struct weir_group_spec *next, struct weir_group_spec *of)
{
	for (const struct weir_knob *row = weir_group_knobs; row->name; row++) {
		if (row->type != WEIR_KNOB_STRING)
			continue;
		char **text = knob_member(row, next), **own = knob_member(row, of);
		if (*text != *own)
			free(*text);
	}
}

/* Set a knob of `next`, a copy of `of` that shares its texts. */
static int set_copy(struct weir_group_spec *next, struct weir_group_spec *of, const char *knob,
    const char *value, char *why, size_t size)
{
	void *base = next, *own = of;
	const struct weir_knob *row = graph_knob_row(weir_group_knobs, knob, &base);

	graph_knob_row(weir_group_knobs, knob, &own);
	if (row->type == WEIR_KNOB_STRING) {
		char **text = knob_member(row, base), **shared = knob_member(row, own);
		if (*text == *shared)
			*text = NULL; /* that of the group is not freed */
	}
	return graph_knob_parse(row, value, base, why, size);
}

int graph_group_knob_lasts(const struct owner *of, const char *knob, const char *value,
    int64_t until_ns, char *why, size_t size)
{
	struct weir_group_spec next = *of->group;
	const struct override *ends = NULL;
	char reason[256];

	if (graph_group_knob_live(of, knob, reason, sizeof(reason)) != 0)
		return 0; /* the caller reports it */
	int rc = set_copy(&next, of->group, knob, value, reason, sizeof(reason));
	for (const struct override *o = of->graph->overrides; o && rc == 0; o = o->next) {
		if (o->of.group != of->group || !o->values.temporary ||
		    o->values.until_ns >= until_ns || strcmp(o->knob, knob) == 0)
			continue;
		const char *later = o->values.permanent ? o->values.permanent : o->configured;
		rc = set_copy(&next, of->group, o->knob, later, reason, sizeof(reason));
		ends = o;
	}
	bool bad = rc == 0 && ends && check_group(of, &next, reason, sizeof(reason)) != 0;
	if (bad)
		rc = graph_say(why, size, WEIR_EINVAL,
		    "'%s' of group '%s' is %s for a time only, and this value would be invalid "
		    "when "
		    "that ends (%s): set '%s' permanently first",
		    ends->knob, of->group->name, ends->values.temporary, reason, ends->knob);
	free_texts(&next, of->group);
	return bad ? rc : 0;
}

int graph_group_knob_turn(
    const struct owner *of, const char *knob, const char *value, char *why, size_t size)
{
	struct weir_group_spec next = *of->group;
	void *base = &next, *live = of->group;
	const struct weir_knob *row = graph_knob_row(weir_group_knobs, knob, &base);
	char **text = row->type == WEIR_KNOB_STRING ? knob_member(row, base) : NULL;

	if (text)
		*text = NULL; /* that of the group is not freed */
	int rc = graph_knob_parse(row, value, base, why, size);
	if (rc == 0)
		rc = check_cores(of, &next, why, size);
	if (rc == 0)
		rc = check_same_graph(of, &next, why, size);
	if (rc == 0)
		rc = check_group(of, &next, why, size);
	if (rc == 0) {
		graph_knob_row(weir_group_knobs, knob, &live);
		rc = weir_knob_parse(row, value, live, why, size);
	}
	if (rc == 0)
		apply(of);
	if (text)
		free(*text);
	return rc;
}
