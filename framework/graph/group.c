/* SPDX-License-Identifier: MIT */
/*
 * Makes core groups from the plan, and tells their policies what stages cost.
 *
 * The control thread measures, about every 100 ms, the mean service time of each stage, the mean
 * work from it to the end of an event, and the load, and lets the policy of each group compute its
 * order from them (next_order_make).
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/task.h"
#include "graph/group.h"
#include "plan/plan.h"
#include "sched/cores.h"
#include "sched/serial.h"
#include "stage/replica.h"

/* Share of the shortest objective that a stage may wait while others are visited. 5 % is a guess:
 * small beside the objective, long beside a batch. */
#define STARVE_SHARE 0.05

/* Interval of the order. 100 ms is a guess: long enough for a mean, short beside a change of load. */
#define ORDER_NS (100 * NS_PER_MS)

/* Weight of a new interval in the smoothed load. A guess. */
#define LOAD_WEIGHT 0.25

/* What the control thread knows of a stage. */
struct cost {
	uint64_t busy_ns, handled, offered; /* totals at the last look */
	int64_t service_ns;                 /* mean of the last interval in which it was called */
	int64_t rest_ns;
	double work_ns_per_s; /* smoothed */
};

struct groups {
	int64_t at_ns;     /* time of the last look, 0 before the first */
	struct cost *cost; /* by stage id */
};

/* ---- build ---- */

static bool is_fed(const struct plan *plan, int k, int to)
{
	for (int i = 0; i < plan->n; i++) {
		const struct plan_stage *ps = &plan->stages[i];
		bool ours = ps->group == k || ps->spec->inlined;
		for (int o = 0; ours && o < ps->n_outlets; o++)
			if (ps->outlets[o].to == to)
				return true;
	}
	return false;
}

/* Whether the policy lets events pass into cells (admit_passed). */
static bool passes(const struct weir_stage *st)
{
	return st->sink.policy == &admission_none || st->sink.policy == &admission_weir;
}

/* Whether the stage gets cells. Those that no event could enter would only make the queue smaller. */
static bool has_cells(const struct plan *plan, const struct weir_stage *st, int k)
{
	const struct weir_stage_spec *s = st->spec;
	bool several = s->mode == WEIR_MODE_SHARED || s->mode == WEIR_MODE_REPLICATED;
	bool shared = several && !(st->ops->flags & WEIR_STAGE_SINGLE);

	return shared && passes(st) && s->queue.discipline != WEIR_DISCIPLINE_SHORTEST &&
	       !st->sink.cohort_by_key && !stage_has_width(st) &&
	       !(st->ops->flags & WEIR_STAGE_LOOP) && is_fed(plan, k, st->id);
}

/* Store the ids of the stages of group `k` in `id`, in the order of `visit`. Returns the number. */
static int members(const struct weir_graph *g, const struct plan *plan, int k, int *id)
{
	const struct weir_strings *visit = &g->spec->groups[k].visit;
	int n = 0;

	for (int i = 0; i < visit->n; i++)
		id[n++] = weir_graph_stage(g, visit->items[i])->id;
	for (int i = 0; visit->n == 0 && i < g->n_stages; i++)
		if (plan_is_member(plan, &plan->stages[g->order[i]], k))
			id[n++] = g->order[i];
	return n;
}

/* Number of cores of the groups that exist, without those whose CPUs are listed. */
static int cores_before(const struct weir_graph *g)
{
	int n = 0;

	for (int i = 0; i < g->n_pools; i++) {
		const struct core_group *group = g->pools[i]->cores;
		if (group && !group->cpu)
			n += atomic_load(&g->pools[i]->max);
	}
	return n;
}

static int make_pool(struct weir_graph *g, const struct plan *plan, int k, struct pool **pool)
{
	const struct weir_group_spec *gs = &g->spec->groups[k];
	int cpu[POOL_THREADS_MAX], most;
	bool listed;
	int n = cores_parse(gs->cores, cpu, &listed);
	struct cores_spec spec = {.name = gs->name,
	    .threads = &gs->threads,
	    .policy = next_policy_find(gs->schedule),
	    .n = listed ? n : cores_range(gs->cores, &most),
	    .most = n,
	    .max = plan_cores_most(plan, k),
	    .cpu = listed ? cpu : NULL,
	    .first = cores_before(g),
	    .newest = gs->order == WEIR_ORDER_NEWEST,
	    .unbalanced = !gs->balance,
	    .copies = (int)gs->replicas};

	return cores_new(g, &spec, pool);
}

static void set_limits(const struct weir_graph *g, const struct weir_group_spec *gs,
    const struct pool *pool, struct next_limits *l)
{
	int64_t slo_ns = INT64_MAX;

	*l = (struct next_limits){0};
	l->gate = gs->gate.arrived         ? NEXT_ARRIVED
		  : gs->gate.events > 0    ? NEXT_EVENTS
		  : gs->gate.time_ns > 0   ? NEXT_TIME
		  : gs->gate.cutoff_ns > 0 ? NEXT_CUTOFF
					   : NEXT_ALL;
	l->gate_events = (uint32_t)gs->gate.events;
	l->gate_ns = l->gate == NEXT_CUTOFF ? gs->gate.cutoff_ns : gs->gate.time_ns;
	for (int i = 0; i < pool->n_sinks; i++) {
		const struct weir_stage_spec *s = pool->sinks[i]->stage->spec;
		int64_t own_ns = weir_spec_slo_ns(g->spec, s);
		slo_ns = own_ns < slo_ns ? own_ns : slo_ns;
		l->urgent[i] = (struct next_urgent){
		    .events = (uint32_t)s->urgent.events, .wait_ns = s->urgent.wait_ns};
		if (s->urgent.events > 0 || s->urgent.wait_ns > 0)
			l->urgent_set |= 1ULL << i;
	}
	l->starve_ns =
	    gs->starve_ns >= 0 ? gs->starve_ns : (int64_t)((double)slo_ns * STARVE_SHARE);
}

/* Let the policy compute the order from what is known of the stages. */
static void order(struct weir_graph *g, const struct pool *pool, struct cores_plan *plan)
{
	struct next_stage stage[NEXT_STAGES_MAX] = {0};
	struct next_view view = {.n = pool->n_sinks, .stage = stage, .order = &plan->order};
	double cores = atomic_load(&pool->target) > 0 ? atomic_load(&pool->target) : 1;

	for (int i = 0; i < pool->n_sinks; i++) {
		const struct cost *c = &g->groups->cost[pool->sinks[i]->id];
		stage[i].service_ns = c->service_ns;
		stage[i].rest_ns = c->rest_ns;
		stage[i].load = c->work_ns_per_s / (double)NS_PER_S / cores;
		stage[i].load = stage[i].load < 1 ? stage[i].load : 1;
	}
	struct next_order out;
	next_order_make(plan->policy, &view, &plan->limits, &out);
	plan->order = out;
}

static int groups_new(struct weir_graph *g)
{
	g->groups = calloc(1, sizeof(*g->groups));
	if (!g->groups)
		return WEIR_ENOMEM;
	g->groups->cost = calloc((size_t)g->n_stages, sizeof(*g->groups->cost));
	return g->groups->cost ? 0 : WEIR_ENOMEM;
}

/* If a source is in group `k`, its loops are the threads of the group (sched/host.h). */
static void host(struct weir_graph *g, const struct plan *plan, int k, struct pool *pool)
{
	for (int i = 0; i < g->n_stages; i++)
		if (plan->stages[i].group == k && g->stages[i]->ops->flags & WEIR_STAGE_SOURCE) {
			g->stages[i]->host = pool;
			atomic_store(&pool->waits, true);
		}
}

static int local_of_spec(const struct weir_stage_spec *s)
{
	if (s->mode == WEIR_MODE_REPLICATED)
		return LOCAL_KEPT;
	return s->local == WEIR_LOCAL_ALWAYS  ? LOCAL_ALWAYS
	       : s->local == WEIR_LOCAL_NEVER ? LOCAL_NEVER
					      : LOCAL_AUTO;
}

int graph_group_new(struct weir_graph *g, const struct plan *plan, int k, struct pool **out)
{
	int *id = calloc((size_t)g->n_stages, sizeof(*id));
	int rc = id ? make_pool(g, plan, k, out) : WEIR_ENOMEM;
	uint64_t celled = 0;

	if (rc != 0)
		goto out;
	g->pools[g->n_pools++] = *out;
	host(g, plan, k, *out);
	int n = members(g, plan, k, id);
	for (int i = 0; i < n && rc == 0; i++) {
		struct weir_stage *st = g->stages[id[i]];
		st->pool = *out;
		atomic_store(&st->sink.local, (uint8_t)local_of_spec(st->spec));
		celled |= (uint64_t)has_cells(plan, st, k) << i;
		rc = pool_add(*out, &st->sink, st->depth);
		if (rc == 0 && st->spec->mode == WEIR_MODE_REPLICATED)
			rc = replicas_new(st, (*out)->cores->max);
	}
	if (rc == 0)
		rc = cores_open(*out, celled);
	if (rc == 0 && !g->groups)
		rc = groups_new(g);
	if (rc == 0)
		graph_group_renew(g, *out);
out:
	free(id);
	return rc;
}

static void set_local(struct pool *pool)
{
	for (int i = 0; i < pool->n_sinks; i++) {
		struct sink *s = pool->sinks[i];
		atomic_store_explicit(
		    &s->local, (uint8_t)local_of_spec(s->stage->spec), memory_order_relaxed);
	}
}

static void set_cores(const struct weir_group_spec *gs, struct core_group *group)
{
	int max, min = cores_range(gs->cores, &max);

	set_local(group->pool);
	if (group->cpu)
		cores_divide(group);
	else
		cores_bound(group, min, max);
}

struct weir_group_spec *graph_group_spec(const struct weir_graph *g, const char *name)
{
	for (int k = 0; k < g->spec->n_groups; k++)
		if (strcmp(g->spec->groups[k].name, name) == 0)
			return &g->spec->groups[k];
	return NULL;
}

struct pool *graph_group_pool(const struct weir_graph *g, const struct weir_group_spec *gs)
{
	for (int i = 0; i < g->n_pools; i++)
		if (strcmp(g->pools[i]->name, gs->name) == 0)
			return g->pools[i];
	return NULL;
}

void graph_group_renew(struct weir_graph *g, struct pool *pool)
{
	const struct weir_group_spec *gs = graph_group_spec(g, pool->name);
	struct cores_plan plan;

	cores_get(pool->cores, &plan);
	plan.policy = next_policy_find(gs->schedule);
	plan.balance = gs->balance;
	plan.window = (unsigned)(clock_now_ns() / LONGEST_WINDOW_NS);
	set_limits(g, gs, pool, &plan.limits);
	order(g, pool, &plan);
	cores_set(pool->cores, &plan);
	set_cores(gs, pool->cores);
}

void graph_groups_free(struct weir_graph *g)
{
	if (g->groups)
		free(g->groups->cost);
	free(g->groups);
	g->groups = NULL;
}

/* ---- orders ---- */

/* Return the mean work that an event has left behind stage `st`: the sum over the outlets of the
 * share of events that take the outlet, times rest_ns of the stage to which it leads. Outlets that
 * lead back count nothing. `links` are the events by outlet. */
static int64_t behind_ns(const struct weir_graph *g, const struct weir_stage *st,
    const uint64_t *links, uint64_t handled)
{
	double ns = 0;

	for (int o = 0; o < st->n_outlets && handled > 0; o++) {
		const struct weir_stage *to = st->outlets[o].to;
		if (to && !st->outlets[o].loop)
			ns += (double)links[o] / (double)handled *
			      (double)g->groups->cost[to->id].rest_ns;
	}
	return (int64_t)ns;
}

static void look(struct weir_graph *g, struct weir_stage *st, uint64_t *links, int64_t span_ns)
{
	struct cost *c = &g->groups->cost[st->id];
	struct book b = {0};
	uint64_t handled = 0, offered = 0;

	memset(links, 0, (size_t)st->n_outlets * sizeof(*links));
	graph_sum(g, st->id, &b, NULL, links, NULL, NULL);
	for (int k = 0; k < g->n_classes; k++) {
		handled += book_read(&b.class_book[k].handled);
		offered += book_read(&b.class_book[k].offered);
	}
	uint64_t busy_ns = book_read(&b.busy_ns);
	if (handled > c->handled)
		c->service_ns = (int64_t)((busy_ns - c->busy_ns) / (handled - c->handled));
	if (span_ns > 0) {
		double work = (double)(offered - c->offered) * (double)c->service_ns /
			      ((double)span_ns / (double)NS_PER_S);
		c->work_ns_per_s += LOAD_WEIGHT * (work - c->work_ns_per_s);
	}
	c->busy_ns = busy_ns;
	c->handled = handled;
	c->offered = offered;
	int64_t rest_ns = behind_ns(g, st, links, handled);
	c->rest_ns = c->service_ns > 0 || rest_ns > 0 ? c->service_ns + rest_ns : 0;
}

void graph_groups_tick(struct weir_graph *g, int64_t now_ns)
{
	struct groups *gr = g->groups;
	int most = 1;

	if (!gr || now_ns - gr->at_ns < ORDER_NS)
		return;
	lock_take(&g->lock); /* operators change plans, too */
	for (int i = 0; i < g->n_stages; i++)
		most = g->stages[i]->n_outlets > most ? g->stages[i]->n_outlets : most;
	uint64_t *links = calloc((size_t)most, sizeof(*links));
	if (!links) { /* memory is short: the order stays */
		lock_release(&g->lock);
		return;
	}
	for (int k = g->n_stages; k-- > 0;) /* downstream first */
		look(g, g->stages[g->order[k]], links, gr->at_ns ? now_ns - gr->at_ns : 0);
	free(links);
	gr->at_ns = now_ns;
	for (int i = 0; i < g->n_pools; i++) {
		struct core_group *group = g->pools[i]->cores;
		struct cores_plan plan;
		if (!group)
			continue;
		if (group->serial)
			serial_tend(group);
		cores_get(group, &plan);
		order(g, g->pools[i], &plan);
		plan.window = (unsigned)(now_ns / LONGEST_WINDOW_NS);
		cores_set(group, &plan);
		if (group->undivided)
			cores_divide(group);
	}
	lock_release(&g->lock);
}
