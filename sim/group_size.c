/* SPDX-License-Identifier: MIT */
/* How many cores a core group has, between `cores_min` and `cores`; see group.h. The resize policy sees
 * the group as one pool, as in framework/graph/control.c. */
#include "group.h"

void group_count_cores(struct sim *s, struct group *g)
{
	g->cores_ns += g->present * (s->now_ns - g->cores_at_ns);
	g->cores_at_ns = s->now_ns;
}

static void set_present(struct sim *s, struct group *g, int present)
{
	group_count_cores(s, g);
	g->present = present;
	for (int i = 0; i < g->n_stages; i++) {
		workers_mark(s, g->stage[i]);
		s->stage[g->stage[i]].live = present;
	}
}

void group_leave(struct sim *s, struct group *g, struct group_core *core)
{
	core->absent = true;
	set_present(s, g, g->present - 1);
	if (g->serial)
		keys_died(s, g, group_core_number(g, core));
	for (int i = 0; i < g->n_stages; i++)
		group_give(s, g, core, i, UINT32_MAX);
	group_share(s, g, core); /* it may have been woken for what waits in a queue */
	next_core_init(&core->next, g->conf->policy);
	laws_group_new(core);
	core->place = -1;
}

/* The core has a thread again, which begins like one that was woken. */
static void join(struct sim *s, struct group *g, struct group_core *core)
{
	core->absent = false;
	core->waking = true;
	g->n_waking++;
	set_present(s, g, g->present + 1);
	sim_at(s, s->now_ns + g->conf->cost.wake_ns, STEP_WOKEN,
	    g->first + (uint32_t)group_core_number(g, core));
}

/* Cores that must leave and are in a batch, or wake up, do so at their next turn. */
static void set_cores(struct sim *s, struct group *g, int cores, const char *rule)
{
	int before = g->cores;

	g->cores = cores;
	g->law.woke = false;
	for (int i = 0; i < g->n_stages; i++) {
		struct stage *st = &s->stage[g->stage[i]];
		laws_resized(s, g->stage[i], cores, rule);
		st->direction = cores > before ? 1 : -1;
		st->target = cores;
	}
	for (int k = before; k < cores; k++)
		if (g->core[k].absent)
			join(s, g, &g->core[k]);
	for (int k = before; k-- > cores;)
		if (g->core[k].idle) {
			g->core[k].idle = false;
			g->n_idle--;
			group_leave(s, g, &g->core[k]);
		}
	for (int i = 0; i < g->n_stages; i++) /* partitions are served by other cores now */
		if (s->stage[g->stage[i]].conf->partition)
			parts_poke(s, &s->stage[g->stage[i]]);
	g->sum.resized++;
}

void group_resize(struct sim *s, struct group *g, double cpu)
{
	struct resize_view v = {.live = g->present,
	    .target = g->cores,
	    .min = sim_fewest_cores(g->conf),
	    .max = g->conf->cores,
	    .runq_known = true,
	    .useful = g->conf->cores,
	    .budget_left = g->conf->cores - g->cores,
	    .cores = s->conf->cores,
	    .cpu_ratio = cpu};
	struct resize_decision d = {0};

	if (!g->conf->resize || v.min == v.max || g->n_stages == 0)
		return;
	for (int i = 0; i < g->n_stages; i++)
		meter_add_view(s, &s->stage[g->stage[i]], &v);
	if (!g->conf->resize->decide(g->resize_state, &v, s->now_ns, &d))
		return;
	int to = d.target > v.max ? v.max : d.target < v.min ? v.min : d.target;
	if (to != g->cores)
		set_cores(s, g, to, d.rule);
}
