/* SPDX-License-Identifier: MIT */
/* Warns of core groups that work, but hardly as intended. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

#include "base/task.h"
#include "sched/cores.h"

/* The CPUs of a group. */
struct cpus {
	int n;
	bool listed;
	int cpu[POOL_THREADS_MAX];
};

/* More CPUs than a machine has. */
#define CPUS_MAX 4096

/* CPU `i` of those that this process may use, modulo their number. */
static int allowed(int i)
{
	int cpu = 0;

	for (int left = i % task_cores(); cpu < CPUS_MAX; cpu++)
		if (task_may_run_on(cpu) && left-- == 0)
			break;
	return cpu;
}

/* Find the CPUs of the threads of group `g`, as core_pin() does. `first` is the number of cores of the
 * groups before that do not name theirs. */
static void find_cpus(const struct plan *p, int g, int first, struct cpus *out)
{
	out->n = cores_parse(p->spec->groups[g].cores, out->cpu, &out->listed);
	for (int i = 0; i < out->n && !out->listed; i++)
		out->cpu[i] = allowed(first + i);
}

/* Return a CPU that both have, or -1. */
static int common(const struct cpus *a, const struct cpus *b)
{
	for (int i = 0; i < a->n; i++)
		for (int k = 0; k < b->n; k++)
			if (a->cpu[i] == b->cpu[k])
				return a->cpu[i];
	return -1;
}

static void warn_of_cpus(const struct plan *p, const int *core_group, int n)
{
	struct cpus *cpus = n > 1 ? calloc((size_t)n, sizeof(*cpus)) : NULL;

	if (!cpus)
		return;
	for (int k = 0, first = 0; k < n; k++) {
		find_cpus(p, core_group[k], first, &cpus[k]);
		first += cpus[k].listed ? 0 : cpus[k].n;
		for (int i = 0; i < k; i++) {
			int cpu = common(&cpus[i], &cpus[k]);
			if (cpu >= 0)
				weir_log(WEIR_LOG_WARN,
				    "groups '%s' and '%s' both have a thread on CPU %d, of %d CPUs "
				    "that this process may use; lower 'cores', or list CPUs in it",
				    p->spec->groups[core_group[i]].name,
				    p->spec->groups[core_group[k]].name, cpu, task_cores());
		}
	}
	free(cpus);
}

static void warn_of_linger(const struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	int64_t time_ns = plan_in_cores(p, ps) ? p->spec->groups[ps->group].gate.time_ns : 0;

	if (time_ns > 0 && s->cohort.linger_ns > time_ns)
		weir_log(WEIR_LOG_WARN,
		    "stage '%s': 'linger' of %.3g ms is longer than 'gate.time' of its group "
		    "'%s', %.3g ms, so each wait for a fuller cohort ends a visit",
		    s->name, (double)s->cohort.linger_ns / 1e6, s->group, (double)time_ns / 1e6);
}

/* Whether events that the policy of the stage has to judge may enter a cell (admit_passed). */
static bool passes(const char *policy)
{
	return strcmp(policy, "none") == 0 || strcmp(policy, "weir") == 0;
}

/* The policies judge by the length and the waits of the queue, so events must enter that. */
static void warn_of_policy(const struct plan *p, const struct plan_stage *ps)
{
	const struct weir_stage_spec *s = ps->spec;
	const char *policy = weir_spec_admission(s, false);
	const struct weir_mark *mark = plan_mark(&s->admission.policy_mark, &s->mark);

	if (!plan_in_cores(p, ps) || s->local != WEIR_LOCAL_ALWAYS || passes(policy))
		return;
	plan_warn(mark,
	    "stage '%s': with admission policy '%s' all events take the queue, so "
	    "'local: always' means nothing; choose policy weir or none, or remove 'local'",
	    s->name, policy);
}

void plan_cores_warn(const struct plan *p)
{
	int *core_group = calloc((size_t)p->spec->n_groups + 1, sizeof(*core_group)), n = 0;

	for (int g = 0; core_group && g < p->spec->n_groups; g++)
		if (next_policy_find(p->spec->groups[g].schedule))
			core_group[n++] = g;
	warn_of_cpus(p, core_group, n);
	free(core_group);
	for (int i = 0; i < p->n; i++) {
		warn_of_linger(p, &p->stages[i]);
		warn_of_policy(p, &p->stages[i]);
	}
}
