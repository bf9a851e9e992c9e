/* SPDX-License-Identifier: MIT */
/* Checks core groups: groups with a schedule other than `shared`; and that the knobs of core groups
 * are written nowhere else. */
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/task.h"
#include "plan/policies.h"
#include "sched/cores.h"
#include "sched/policy.h"

static bool is_core_group(const struct weir_group_spec *gs)
{
	return gs->schedule && next_policy_find(gs->schedule) != NULL;
}

bool plan_schedule_known(const struct weir_group_spec *gs)
{
	return sched_policy_find(gs->schedule) || next_policy_find(gs->schedule);
}

bool plan_in_cores(const struct plan *p, const struct plan_stage *ps)
{
	return ps->group >= 0 && is_core_group(&p->spec->groups[ps->group]);
}

int plan_cores_most(const struct plan *p, int g)
{
	const struct weir_group_spec *gs = &p->spec->groups[g];
	int cpu[POOL_THREADS_MAX], most = task_cores();
	bool listed, serial = false;
	int n = cores_parse(gs->cores, cpu, &listed);

	for (int i = 0; i < p->n; i++)
		serial |= p->stages[i].group == g && p->stages[i].serial;
	if (serial && most > PARTITIONS_MAX) /* each core has a partition of the queues */
		most = PARTITIONS_MAX;
	return listed || n > most ? n : most;
}

struct weir_threads_spec plan_core_threads(const struct weir_group_spec *gs)
{
	int cpu[POOL_THREADS_MAX];
	bool listed;
	int n = cores_parse(gs->cores, cpu, &listed), most;
	int least = listed || n < 1 ? n : cores_range(gs->cores, &most);

	return (struct weir_threads_spec){
	    .min = least > 0 ? least : 1, .max = n > 0 ? n : 1, .start = -1};
}

/* Whether a policy resizes the group. */
static bool is_resized(const struct weir_group_spec *gs)
{
	struct weir_threads_spec t = plan_core_threads(gs);

	return is_core_group(gs) && t.min < t.max;
}

/* Whether `threads` of a core group says how many threads there are, and where. */
static bool sizes_threads(const struct weir_group_spec *gs)
{
	const struct weir_threads_spec *t = &gs->threads;

	return t->mark.file || t->min != 1 || t->max != -1 || t->start != -1 || t->pinned ||
	       (t->policy && strcmp(t->policy, "weir") != 0 && !is_resized(gs));
}

/* ---- groups ---- */

const char *plan_schedules(char *hint, size_t size, const char *before)
{
	int n = snprintf(hint, size, "%s", before);

	for (int i = 0; next_policy_at(i) && n > 0 && (size_t)n < size; i++)
		n += snprintf(
		    hint + n, size - (size_t)n, "%s%s", i ? ", " : "", next_policy_at(i)->name);
	return hint;
}

/* Position of a key of the group, or of the group. */
static const struct weir_mark *key_mark(const struct weir_group_spec *gs, const char *key)
{
	const struct weir_mark *own = &gs->mark;

	if (strcmp(key, "cores") == 0)
		own = &gs->cores_mark;
	else if (strcmp(key, "gate") == 0)
		own = &gs->gate_mark;
	else if (strcmp(key, "starve") == 0)
		own = &gs->starve_mark;
	else if (strcmp(key, "visit") == 0)
		own = &gs->visit_mark;
	return plan_mark(own, &gs->mark);
}

static void check_pool_group(struct plan *p, const struct weir_group_spec *gs)
{
	const struct weir_gate_spec *gate = &gs->gate;
	char hint[POLICIES_HINT_BYTES];
	const char *key = NULL;

	if (gs->cores && strcmp(gs->cores, "auto") != 0)
		key = "cores";
	else if (gate->events || gate->time_ns || gate->arrived || gate->cutoff_ns)
		key = "gate";
	else if (gs->starve_ns >= 0)
		key = "starve";
	else if (gs->order != WEIR_ORDER_ARRIVAL)
		key = "order";
	else if (!gs->balance)
		key = "balance";
	else if (gs->visit.n > 0)
		key = "visit";
	else if (gs->replicas > 1)
		key = "replicas";
	else if (gs->serial && gs->serial[0])
		key = "serial";
	if (key)
		weir_errs_add(p->errs, key_mark(gs, key), WEIR_EINVAL,
		    plan_schedules(hint, sizeof(hint), "write one of these: "),
		    "group '%s': '%s' needs a schedule per core, not '%s'", gs->name, key,
		    gs->schedule);
}

static void check_cpus(
    struct plan *p, const struct weir_group_spec *gs, const int *cpu, int n, bool listed)
{
	for (int i = 0; listed && i < n; i++)
		if (!task_may_run_on(cpu[i]))
			weir_errs_add(p->errs, plan_mark(&gs->cores_mark, &gs->mark), WEIR_EINVAL,
			    "name CPUs that this process may use, or write a number of cores",
			    "group '%s': this process may not run on CPU %d", gs->name, cpu[i]);
	if (!listed && n > task_cores())
		weir_errs_add(p->errs, plan_mark(&gs->cores_mark, &gs->mark), WEIR_EINVAL,
		    "lower 'cores', or write 'cores: auto'",
		    "group '%s': cores %d, but this process may use %d", gs->name, n, task_cores());
}

/* Two groups may share cores only if they do not both name them. */
static void check_apart(struct plan *p, int g, const int *cpu, int n)
{
	int other[POOL_THREADS_MAX];
	const struct weir_group_spec *own = &p->spec->groups[g];
	bool listed;

	for (int k = 0; k < g; k++) {
		const struct weir_group_spec *gs = &p->spec->groups[k];
		int m = is_core_group(gs) ? cores_parse(gs->cores, other, &listed) : 0;
		for (int i = 0; m > 0 && listed && i < n * m; i++)
			if (cpu[i / m] == other[i % m])
				weir_errs_add(p->errs, plan_mark(&own->cores_mark, &own->mark),
				    WEIR_EINVAL, "give each group CPUs of its own",
				    "groups '%s' and '%s' both have CPU %d", gs->name, own->name,
				    cpu[i / m]);
	}
}

static bool consists_of(const char *text, const char *characters)
{
	return text[0] && text[strspn(text, characters)] == '\0';
}

/* Report a text that is no value of `cores`. */
static void bad_cores(struct plan *p, const struct weir_group_spec *gs)
{
	const char *text = gs->cores;

	if (consists_of(text, "0"))
		weir_errs_add(p->errs, plan_mark(&gs->cores_mark, &gs->mark), WEIR_EINVAL,
		    "write at least 1, or 0-0 if you mean CPU 0",
		    "group '%s': 'cores' is a number, and a group cannot have %s cores", gs->name,
		    text);
	else if (consists_of(text, "0123456789"))
		weir_errs_add(p->errs, plan_mark(&gs->cores_mark, &gs->mark), WEIR_EINVAL,
		    "lower 'cores', or write 'cores: auto'",
		    "group '%s': cores %s, but at most %d are allowed", gs->name, text,
		    POOL_THREADS_MAX);
	else if (consists_of(text, "0123456789,-"))
		weir_errs_add(p->errs, plan_mark(&gs->cores_mark, &gs->mark), WEIR_EINVAL,
		    "name each CPU once, and the lower end of a range first, such as 0-3,6",
		    "group '%s': '%s' is not a list of different CPUs", gs->name, text);
	else
		weir_errs_add(p->errs, plan_mark(&gs->cores_mark, &gs->mark), WEIR_EINVAL,
		    "write auto, a number of cores, { min: 1, max: 8 }, or a list of CPUs such as "
		    "0-3,6",
		    "group '%s': '%s' is neither a number of cores nor a list of CPUs", gs->name,
		    text);
}

static void check_cores(struct plan *p, int g)
{
	const struct weir_group_spec *gs = &p->spec->groups[g];
	int cpu[POOL_THREADS_MAX];
	bool listed;
	int n = cores_parse(gs->cores, cpu, &listed), most, least;

	if (!listed && n <= 0 && (least = cores_range(gs->cores, &most)) > most) {
		weir_errs_add(p->errs, plan_mark(&gs->cores_mark, &gs->mark), WEIR_EINVAL,
		    "exchange them", "group '%s': 'min' of 'cores' is %d, but 'max' is %d",
		    gs->name, least, most);
		return;
	}
	if (n <= 0) {
		bad_cores(p, gs);
		return;
	}
	check_cpus(p, gs, cpu, n, listed);
	if (listed)
		check_apart(p, g, cpu, n);
}

static int64_t shortest_slo(const struct plan *p, int g)
{
	int64_t least_ns = INT64_MAX;

	for (int i = 0; i < p->n; i++) {
		int64_t slo_ns = weir_spec_slo_ns(p->spec, p->stages[i].spec);
		if (plan_is_member(p, &p->stages[i], g) && slo_ns < least_ns)
			least_ns = slo_ns;
	}
	return least_ns;
}

static void check_visits(struct plan *p, int g)
{
	const struct weir_group_spec *gs = &p->spec->groups[g];
	const struct weir_gate_spec *gate = &gs->gate;

	if ((gate->events > 0) + (gate->time_ns > 0) + gate->arrived + (gate->cutoff_ns > 0) > 1)
		weir_errs_add(p->errs, plan_mark(&gs->gate_mark, &gs->mark), WEIR_EINVAL,
		    "write one of 'events', 'time', 'arrived' and 'cutoff'",
		    "group '%s': 'gate' says more than once when a visit ends", gs->name);
	if (gate->cutoff_ns > 0 && gs->order == WEIR_ORDER_NEWEST)
		weir_errs_add(p->errs, plan_mark(&gs->gate_mark, &gs->mark), WEIR_EINVAL,
		    "remove 'order', or choose another gate",
		    "group '%s': with 'order: newest' an event that yields would have nothing "
		    "behind it, so 'cutoff' of 'gate' would do nothing",
		    gs->name);
	if (gate->cutoff_ns > shortest_slo(p, g))
		weir_errs_add(p->errs, plan_mark(&gs->gate_mark, &gs->mark), WEIR_EINVAL,
		    "lower 'cutoff', or raise 'slo'",
		    "group '%s': 'cutoff' of 'gate' is longer than the shortest objective of its "
		    "stages, so it would act too late",
		    gs->name);
	if (gs->starve_ns > shortest_slo(p, g))
		weir_errs_add(p->errs, plan_mark(&gs->starve_mark, &gs->mark), WEIR_EINVAL,
		    "lower 'starve', or raise 'slo'",
		    "group '%s': 'starve' is longer than the shortest objective of its stages, so "
		    "it would act too late",
		    gs->name);
}

static struct plan_stage *member(struct plan *p, int g, const char *name)
{
	for (int i = 0; i < p->n; i++)
		if (plan_is_member(p, &p->stages[i], g) &&
		    strcmp(p->stages[i].spec->name, name) == 0)
			return &p->stages[i];
	return NULL;
}

static int count_members(const struct plan *p, int g)
{
	int n = 0;

	for (int i = 0; i < p->n; i++)
		n += plan_is_member(p, &p->stages[i], g);
	return n;
}

static bool is_source(const struct plan *p, const char *name)
{
	for (int i = 0; i < p->n; i++)
		if (p->stages[i].ops && p->stages[i].ops->flags & WEIR_STAGE_SOURCE &&
		    strcmp(p->stages[i].spec->name, name) == 0)
			return true;
	return false;
}

static bool has_name(const struct weir_strings *s, int before, const char *name)
{
	bool has = false;

	for (int i = 0; i < before; i++)
		has |= strcmp(s->items[i], name) == 0;
	return has;
}

static void bad_visit(struct plan *p, const struct weir_group_spec *gs, const char *name,
    const char *what, const char *hint)
{
	weir_errs_add(p->errs, plan_mark(&gs->visit_mark, &gs->mark), WEIR_EINVAL, hint,
	    "group '%s': 'visit' %s stage '%s'%s", gs->name, what, name,
	    is_source(p, name) ? ", a source, which is not visited" : "");
}

static void check_order(struct plan *p, int g)
{
	const struct weir_group_spec *gs = &p->spec->groups[g];
	const struct weir_strings *visit = &gs->visit;

	if (visit->n == 0)
		return;
	if (strcmp(gs->schedule, "wavefront") != 0 && strcmp(gs->schedule, "srpt") != 0)
		weir_errs_add(p->errs, plan_mark(&gs->visit_mark, &gs->mark), WEIR_EINVAL,
		    "remove it, or choose one of these schedules",
		    "group '%s': 'visit' orders wavefront and srpt only, not %s", gs->name,
		    gs->schedule);
	for (int i = 0; i < visit->n; i++) {
		if (!member(p, g, visit->items[i]))
			bad_visit(p, gs, visit->items[i], "names",
			    "name the stages of the group, and no others");
		else if (has_name(visit, i, visit->items[i]))
			bad_visit(p, gs, visit->items[i], "repeats", "name each stage once");
	}
	for (int i = 0; i < p->n; i++)
		if (plan_is_member(p, &p->stages[i], g) &&
		    !has_name(visit, visit->n, p->stages[i].spec->name))
			bad_visit(p, gs, p->stages[i].spec->name, "lacks",
			    "name all stages of the group, or remove 'visit'");
}

/* Report a group whose only stages are sources, or that has none. A stage of unknown type may be no
 * source. */
static void check_used(struct plan *p, int g)
{
	const struct weir_group_spec *gs = &p->spec->groups[g];
	const char *source = plan_source_in(p, g);
	bool used = false;
	char hint[160];

	for (int i = 0; i < p->n; i++)
		used |= p->stages[i].group == g &&
			(!p->stages[i].ops || plan_is_member(p, &p->stages[i], g));
	if (used)
		return;
	if (source)
		snprintf(hint, sizeof(hint),
		    "write 'group: %.40s' at the stages after '%.40s', or remove it there",
		    gs->name, source);
	else
		snprintf(hint, sizeof(hint),
		    "write 'group: %.64s' at its stages, or remove the group", gs->name);
	weir_errs_add(p->errs, &gs->mark, WEIR_EINVAL, hint,
	    "group '%s' has schedule '%s' but no stages%s", gs->name, gs->schedule,
	    source ? " other than a source" : "");
}

static void check_core_group(struct plan *p, int g)
{
	const struct weir_group_spec *gs = &p->spec->groups[g];
	int n = count_members(p, g);

	if (sizes_threads(gs))
		weir_errs_add(p->errs, &gs->mark, WEIR_EINVAL,
		    "remove them from 'threads', and write 'cores: N' or 'cores: { min: 1, max: N, "
		    "policy: weir }'",
		    "group '%s' with schedule '%s' has a thread per core, so 'min', 'max', "
		    "'start', 'pin' and 'policy' mean nothing",
		    gs->name, gs->schedule);
	if (n > NEXT_STAGES_MAX)
		weir_errs_add(p->errs, &gs->mark, WEIR_EINVAL, "make two groups of it",
		    "group '%s' has %d stages; with schedule '%s' at most %d are allowed", gs->name,
		    n, gs->schedule, NEXT_STAGES_MAX);
	check_used(p, g);
	check_cores(p, g);
	check_visits(p, g);
	check_order(p, g);
	plan_group_replicas(p, g);
	plan_group_serial(p, g);
}

void plan_group_cores(struct plan *p, int g)
{
	const struct weir_group_spec *gs = &p->spec->groups[g];

	if (is_core_group(gs))
		check_core_group(p, g);
	else
		check_pool_group(p, gs);
}
