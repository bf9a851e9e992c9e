/* SPDX-License-Identifier: MIT */
/* The input of the policy of a core group: its stages, and the work that waits in the group; see
 * group.h. */
#include "group.h"

#define LOAD_WEIGHT 0.25 /* as in framework/graph/group.c */

/* Compute the mean work from each place to the end of a request, at the measured costs. */
static void measure_rest(struct sim *s, struct group *g)
{
	double visits[SIM_STAGES_MAX] = {0}, rest_ns[SIM_STAGES_MAX] = {0};

	for (int i = 0; i < s->conf->n_sources; i++) {
		const struct sim_source *src = &s->conf->source[i];
		const struct sim_route *route = &s->conf->route[src->route];
		double rate = src->rate_per_s > 0 ? src->rate_per_s : src->clients;
		double work_ns = 0;
		for (int k = route->n - 1; k >= 0; k--) {
			const struct stage *st = &s->stage[route->stage[k]];
			work_ns += (double)st->mean_cost_ns;
			if (st->group != g)
				continue;
			visits[st->conf->place] += rate;
			rest_ns[st->conf->place] += rate * work_ns;
		}
	}
	for (int i = 0; i < g->n_stages; i++)
		g->rest_ns[i] = visits[i] > 0 ? (int64_t)(rest_ns[i] / visits[i]) : 0;
}

static void measure_load(struct sim *s, struct group *g, int64_t span_ns)
{
	for (int i = 0; i < g->n_stages; i++) {
		const struct stage *st = &s->stage[g->stage[i]];
		uint64_t offered = 0;
		for (int c = 0; c < s->conf->n_classes; c++)
			offered += st->books[c].offered;
		double work = (double)(offered - g->offered[i]) * (double)st->mean_cost_ns /
			      (double)span_ns / g->cores;
		g->load[i] += LOAD_WEIGHT * (work - g->load[i]);
		g->offered[i] = offered;
	}
}

void group_order(struct sim *s, struct group *g, int64_t span_ns)
{
	struct next_stage stage[NEXT_STAGES_MAX] = {0};
	struct next_view v = {.n = g->n_stages, .stage = stage, .order = &g->order};

	if (g->n_stages == 0)
		return;
	measure_rest(s, g);
	if (span_ns > 0)
		measure_load(s, g, span_ns);
	for (int i = 0; i < g->n_stages; i++) {
		stage[i].service_ns = s->stage[g->stage[i]].mean_cost_ns;
		stage[i].rest_ns = g->rest_ns[i];
		stage[i].load = g->load[i] < 1 ? g->load[i] : 1;
	}
	next_order_make(g->conf->policy, &v, &g->conf->limits, &g->order);
	laws_group_ordered(s, g);
}

int64_t group_work_ns(const struct sim *s, const struct stage *st, int64_t own_ns)
{
	const struct group *g = st->group;

	for (int i = 0; g && g->n_idle == 0 && i < g->n_stages; i++)
		if (&s->stage[g->stage[i]] != st)
			own_ns += queue_work_ns(s, &s->stage[g->stage[i]]);
	return own_ns;
}
