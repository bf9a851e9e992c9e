/* SPDX-License-Identifier: MIT */
/* Finds what limits the throughput of a simulated server; see simulate.h. */
#include "simulate.h"

#include <math.h>

/* The work of an event at stage `i`, or at all stages that share its cores. */
static double shared_work_ns(const struct simulate_plan *plan, const double *work_ns, int i)
{
	const struct sim_config *c = &plan->config;
	double all_ns = work_ns[i];

	for (int k = 0; k < c->n_stages && c->stage[i].group; k++)
		if (k != i && c->stage[k].group == c->stage[i].group)
			all_ns += work_ns[k];
	return all_ns;
}

/* The most events per second that the values of the key of stage `i` allow: those of one value are
 * handled one at a time, with a serial key in all stages of the group with the same key. */
static double keyed_per_s(const struct simulate_plan *plan, const double *work_ns, int i)
{
	const struct sim_config *c = &plan->config;
	const struct sim_stage *st = &c->stage[i];
	double all_ns = st->serial ? 0 : work_ns[i];

	for (int k = 0; k < c->n_stages && st->serial; k++)
		if (c->stage[k].group == c->stage[i].group &&
		    c->stage[k].serial == c->stage[i].serial)
			all_ns += work_ns[k];
	uint32_t values = c->field[(st->serial ? st->serial : st->partition) - 1].values;
	if (values == 0) /* the class */
		values = (uint32_t)c->n_classes;
	return all_ns > 0 ? 1e9 * values / all_ns : INFINITY;
}

/* The most events per second that stage `i` of the simulator can serve. */
static double ceiling_of(struct simulate_plan *plan, const double *work_ns, int i)
{
	const struct sim_stage *st = &plan->config.stage[i];
	int at_once = st->servers > 0 ? st->servers : st->threads_max;
	double all_ns = shared_work_ns(plan, work_ns, i);
	double per_s = all_ns > 0 ? 1e9 * at_once / all_ns : 0;

	if ((st->serial || st->partition) && keyed_per_s(plan, work_ns, i) < per_s) {
		plan->alone[i] = plan->keyed[i] = true;
		return keyed_per_s(plan, work_ns, i);
	}
	plan->alone[i] = st->exclusive && all_ns < at_once * work_ns[i];
	return plan->alone[i] ? 1e9 / work_ns[i] : per_s;
}

void simulate_capacity(
    struct simulate_plan *plan, const double *work_ns, const double *cpu_ns, int cores)
{
	struct sim_config *c = &plan->config;
	double least = 1e12, all_cpu_ns = 0;

	plan->bottleneck = -1;
	for (int i = 0; i < c->n_stages; i++) {
		c->stage[i].service.mean_ns = (int64_t)(work_ns[i] / plan->visits[i]);
		c->stage[i].cpu_share = work_ns[i] > 0 ? cpu_ns[i] / work_ns[i] : 0;
		all_cpu_ns += cpu_ns[i];
		plan->ceiling_per_s[i] = ceiling_of(plan, work_ns, i);
		bool as_low = plan->bottleneck >= 0 && plan->ceiling_per_s[i] <= least &&
			      work_ns[i] > work_ns[plan->bottleneck];
		if (work_ns[i] > 0 && (plan->ceiling_per_s[i] < least || as_low)) {
			least = plan->ceiling_per_s[i];
			plan->bottleneck = i;
		}
	}
	plan->cores_ceiling_per_s = all_cpu_ns > 0 ? 1e9 * cores / all_cpu_ns : 0;
	if (all_cpu_ns > 0 && plan->cores_ceiling_per_s < least) {
		least = plan->cores_ceiling_per_s;
		plan->bottleneck = -1;
	}
	plan->capacity_per_s = least;
}
