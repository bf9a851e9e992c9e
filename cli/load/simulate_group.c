/* SPDX-License-Identifier: MIT */
/* Sets up the core groups of a simulation, as framework/graph/group.c sets up those of a server. The
 * costs of scheduling are those of weir (sim/group_search.h). */
#include "simulate.h"

#include <string.h>

#include <weir/stage.h>

#include "load/sentence.h"
#include "sched/cores.h"
#include "sim/group_search.h"

/* The same as STARVE_SHARE in framework/graph/group.c, and in build.c there. */
#define STARVE_SHARE       0.05
#define QUEUE_STARVE_SHARE 0.5

/* Set the number of cores; `auto` stands for those of the simulated machine. */
static void set_cores(const struct weir_group_spec *gs, int machine, struct sim_group *g)
{
	int cpu[POOL_THREADS_MAX], most, least = cores_range(gs->cores, &most);
	bool listed;

	g->cores = cores_parse(gs->cores, cpu, &listed);
	if (g->cores < 1)
		g->cores = machine;
	g->cores = g->cores < SIM_CORES_MAX ? g->cores : SIM_CORES_MAX;
	if (listed || least < 1 || least >= g->cores)
		return;
	g->cores_min = least;
	g->resize = resize_find(gs->threads.policy);
}

int simulate_group(const struct weir_group_spec *gs, int machine, struct sim_config *c)
{
	for (int i = 0; i < c->n_groups; i++)
		if (strcmp(c->group[i].name, gs->name) == 0)
			return i;
	if (c->n_groups == SIM_GROUPS_MAX)
		return -1;
	struct sim_group *g = &c->group[c->n_groups];
	*g = (struct sim_group){.name = gs->name,
	    .policy = next_policy_find(gs->schedule),
	    .unbalanced = !gs->balance,
	    .newest = gs->order == WEIR_ORDER_NEWEST,
	    .replicas = (int)gs->replicas,
	    .cost = group_costs(),
	    .limits = {.gate = gs->gate.arrived         ? NEXT_ARRIVED
			       : gs->gate.events > 0    ? NEXT_EVENTS
			       : gs->gate.time_ns > 0   ? NEXT_TIME
			       : gs->gate.cutoff_ns > 0 ? NEXT_CUTOFF
							: NEXT_ALL,
		.gate_events = (uint32_t)gs->gate.events,
		.gate_ns = gs->gate.time_ns > 0 ? gs->gate.time_ns : gs->gate.cutoff_ns,
		.starve_ns = gs->starve_ns}};
	set_cores(gs, machine, g);
	return c->n_groups++;
}

void simulate_join(
    const struct weir_stage_spec *st, int group, struct sim_config *c, struct sim_stage *to)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(st->use);
	bool single = ops && ops->flags & WEIR_STAGE_SINGLE;
	bool queue_only = st->mode != WEIR_MODE_SHARED || st->local == WEIR_LOCAL_NEVER;

	to->name = st->name;
	to->group = group + 1;
	to->threads_max = c->group[group].cores;
	to->threads_min = to->threads_start = sim_fewest_cores(&c->group[group]);
	to->resize = NULL;
	to->exclusive = single || st->mode == WEIR_MODE_EXCLUSIVE;
	to->local = st->mode == WEIR_MODE_REPLICATED ? SIM_LOCAL_KEPT
		    : queue_only                     ? SIM_LOCAL_NEVER
		    : st->local == WEIR_LOCAL_ALWAYS ? SIM_LOCAL_ALWAYS
						     : SIM_LOCAL_AUTO;
}

static const struct weir_group_spec *cores_with(
    const struct weir_spec *spec, const struct weir_stage_spec *st)
{
	for (int i = 0; st->group && i < spec->n_groups; i++)
		if (strcmp(spec->groups[i].name, st->group) == 0)
			return next_policy_find(spec->groups[i].schedule) ? &spec->groups[i] : NULL;
	return NULL;
}

int simulate_front(const struct weir_spec *spec, const struct weir_stage_spec *st, int machine,
    struct sim_config *c, struct sim_stage *to)
{
	const struct weir_group_spec *gs = cores_with(spec, st);
	int g = gs ? simulate_group(gs, machine, c) : 0;

	if (!gs || g < 0)
		return g < 0 ? -1 : 0;
	simulate_join(st, g, c, to);
	to->exclusive = false;
	to->local = SIM_LOCAL_ALWAYS;
	return 0;
}

bool simulate_reads(const struct weir_spec *spec, const struct weir_stage_spec *st)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(st->use);

	return ops && ops->flags & WEIR_STAGE_SOURCE && cores_with(spec, st);
}

bool simulate_read(const struct weir_spec *spec, const struct weir_group_spec *gs)
{
	for (int i = 0; i < spec->n_stages; i++)
		if (simulate_reads(spec, &spec->stages[i]) &&
		    cores_with(spec, &spec->stages[i]) == gs)
			return true;
	return false;
}

int simulate_source(
    const struct weir_spec *spec, const struct weir_stage_spec *st, const struct sim_config *c)
{
	for (int g = 0; simulate_reads(spec, st) && g < c->n_groups; g++)
		if (strcmp(c->group[g].name, st->group) == 0)
			return g + 1;
	return 0;
}

void simulate_queue(
    const struct weir_spec *spec, const struct weir_stage_spec *st, struct sim_stage *to)
{
	if (!simulate_ordered(spec, st))
		return;
	to->discipline = (int)st->queue.discipline;
	to->queue_starve_ns = st->queue.starve_ns < 0
				  ? (int64_t)((double)to->slo_ns * QUEUE_STARVE_SHARE)
				  : st->queue.starve_ns;
}

bool simulate_lingers(const struct weir_spec *spec, const struct weir_stage_spec *st)
{
	const struct weir_group_spec *gs = cores_with(spec, st);

	if (simulate_holds(st) || (!gs && st->group && st->group[0]))
		return false;
	return !gs || (gs->replicas <= 1 && st->mode != WEIR_MODE_REPLICATED &&
			  st->mode != WEIR_MODE_PARTITIONED && !simulate_serial(spec, st));
}

bool simulate_ordered(const struct weir_spec *spec, const struct weir_stage_spec *st)
{
	const struct weir_group_spec *gs = cores_with(spec, st);

	if (!gs)
		return !st->group || !st->group[0];
	return (gs->replicas <= 1 && st->mode != WEIR_MODE_PARTITIONED) ||
	       st->queue.discipline != WEIR_DISCIPLINE_SHORTEST;
}

/* The position of stage `name` in `visit`, or its number of entries if it is not there. */
static int listed_at(const struct weir_strings *visit, const char *name)
{
	int i = 0;

	while (i < visit->n && strcmp(visit->items[i], name) != 0)
		i++;
	return i;
}

/* The last position of stage `i` on a route. */
static int depth_of(const struct sim_config *c, int i)
{
	int depth = 0;

	for (int r = 0; r < c->n_routes; r++)
		for (int k = 0; k < c->route[r].n; k++)
			if (c->route[r].stage[k] == i && k > depth)
				depth = k;
	return depth;
}

/* Number the stages of group `g`: in the order of `visit`, or upstream first. */
static void give_places(const struct weir_group_spec *gs, int g, struct sim_config *c)
{
	int rank[SIM_STAGES_MAX];

	for (int i = 0; i < c->n_stages; i++)
		rank[i] = gs->visit.n ? listed_at(&gs->visit, c->stage[i].name) : depth_of(c, i);
	for (int i = 0; i < c->n_stages; i++) {
		if (c->stage[i].group != g + 1)
			continue;
		c->stage[i].place = 0;
		for (int k = 0; k < c->n_stages; k++)
			c->stage[i].place += c->stage[k].group == g + 1 &&
					     (rank[k] != rank[i] ? rank[k] < rank[i] : k < i);
	}
}

static void set_limits(const struct weir_spec *spec, int g, struct sim_config *c)
{
	struct next_limits *l = &c->group[g].limits;
	int64_t slo_ns = INT64_MAX;

	for (int i = 0; i < c->n_stages; i++) {
		if (c->stage[i].group != g + 1)
			continue;
		int at = simulate_stage(spec, c->stage[i].name, strlen(c->stage[i].name));
		const struct weir_urgent_spec *u = &spec->stages[at].urgent;
		int place = c->stage[i].place;
		slo_ns = c->stage[i].slo_ns < slo_ns ? c->stage[i].slo_ns : slo_ns;
		l->urgent[place] =
		    (struct next_urgent){.events = (uint32_t)u->events, .wait_ns = u->wait_ns};
		if (u->events > 0 || u->wait_ns > 0)
			l->urgent_set |= UINT64_C(1) << place;
	}
	if (l->starve_ns < 0)
		l->starve_ns = (int64_t)((double)slo_ns * STARVE_SHARE);
}

/* Give the group its most cores for good. */
static void keep_all(int g, struct sim_config *c)
{
	c->group[g].cores_min = 0;
	c->group[g].resize = NULL;
	for (int i = 0; i < c->n_stages; i++)
		if (c->stage[i].group == g + 1)
			c->stage[i].threads_min = c->stage[i].threads_start =
			    c->stage[i].threads_max;
}

int simulate_groups(const struct weir_spec *spec, struct sim_config *c, struct weir_err *err)
{
	for (int g = 0; g < c->n_groups; g++)
		if (c->group[g].replicas > 1 && c->group[g].cores % c->group[g].replicas != 0)
			return sentence(err, WEIR_EINVAL,
			    "the %d cores of group '%s' cannot be divided equally among %d "
			    "replicas",
			    c->group[g].cores, c->group[g].name, c->group[g].replicas);
	for (int g = 0; g < c->n_groups; g++)
		for (int i = 0; i < spec->n_groups; i++)
			if (strcmp(spec->groups[i].name, c->group[g].name) == 0) {
				if (simulate_read(spec, &spec->groups[i]))
					keep_all(g, c);
				give_places(&spec->groups[i], g, c);
				set_limits(spec, g, c);
			}
	return 0;
}

/* The group that is the bottleneck, or 0 if it is something else. */
static int limiting_group(const struct simulate_plan *plan)
{
	int b = plan->bottleneck;

	return b < 0 || plan->alone[b] ? 0 : plan->config.stage[b].group;
}

void simulate_bottleneck(const struct simulate_plan *plan, char *text, size_t size)
{
	int b = plan->bottleneck, g = limiting_group(plan);

	snprintf(text, size, "%s%s",
	    b < 0   ? "the cores"
	    : g > 0 ? "group "
		    : "stage ",
	    b < 0   ? ""
	    : g > 0 ? plan->config.group[g - 1].name
		    : plan->label[b]);
}
