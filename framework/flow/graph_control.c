/* SPDX-License-Identifier: MIT */
/* What the control thread sees of pools, and how its decisions reach them. */
#include <stdlib.h>
#include <string.h>

#include "base/task.h"
#include "control/control.h"
#include "flow/graph.h"
#include "flow/graph_acts.h"
#include "flow/trail.h"
#include "flow/meter.h"
#include "sched/pool.h"

/* Threads that may be added in all pools together. */
static int budget_left(const struct weir_graph *g)
{
	int left = task_budget();

	for (int i = 0; i < g->n_pools; i++)
		left -= atomic_load(&g->pools[i]->target);
	return left > 0 ? left : 0;
}

/* Threads that can work at once: one per partition where these are leased. */
static int useful_threads(const struct pool *pool)
{
	int n = 0;

	for (int s = 0; s < pool->n_sinks; s++)
		n += pool->sinks[s]->queue.leasing ? pool->sinks[s]->queue.n_parts
						   : POOL_THREADS_MAX;
	return n < POOL_THREADS_MAX ? n : POOL_THREADS_MAX;
}

/* What the kernel and the machine say. */
static void machine_view(struct weir_graph *g, struct pool *pool, struct resize_view *v)
{
	struct schedstat_sample sched;

	v->runq_known = pool_sched(pool, &sched);
	v->cpu_ns_total = sched.cpu_ns;
	v->runq_ns_total = sched.runq_ns;
	v->cores = task_cores();
	v->budget_left = budget_left(g);
}

static void pool_view(void *ctx, int i, struct resize_view *v)
{
	struct weir_graph *g = ctx;
	struct pool *pool = g->pools[i];
	int states[WEIR_THREAD_STATES];

	v->live = pool_read(pool, states);
	v->busy = states[WEIR_THREAD_BUSY];
	v->target = atomic_load(&pool->target);
	v->min = atomic_load(&pool->min);
	v->max = atomic_load(&pool->max);
	v->useful = useful_threads(pool);
	machine_view(g, pool, v);
	for (int s = 0; s < pool->n_sinks; s++) {
		struct book book = {0};
		int64_t running_ns = 0;
		graph_sum(g, pool->sinks[s]->id, &book, NULL, NULL, &running_ns, NULL);
		v->queue_length += queue_ready(&pool->sinks[s]->queue);
		v->paused |= queue_paused(&pool->sinks[s]->queue);
		v->queue_limit += atomic_load(&pool->sinks[s]->queue.limit);
		for (int c = 0; c < g->n_classes; c++) {
			v->offered_total += atomic_load_explicit(
			    &pool->sinks[s]->refused_ahead[c], memory_order_relaxed);
			v->offered_total += book_read(&book.class_book[c].offered);
			v->completed_total += book_read(&book.class_book[c].completed);
		}
		v->busy_ns_total += book_read(&book.busy_ns) + (uint64_t)running_ns;
		v->items += book_read(&book.batch_events);
		v->running += book_read(&book.running);
	}
}

static int pool_resize(void *ctx, int i, int target)
{
	struct weir_graph *g = ctx;

	return pool_set_target(g->pools[i], target);
}

static struct control_repairs repair(void *ctx, int i, int64_t now_ns)
{
	struct weir_graph *g = ctx;
	struct pool_repairs r = pool_repair(g->pools[i], now_ns);

	return (struct control_repairs){.joined = r.joined,
	    .spawned = r.spawned,
	    .failed = r.failed,
	    .deaths = atomic_load(&g->pools[i]->deaths)};
}

/* When nothing has happened anywhere for half a second, a look in so many ticks will do: the caps hold
 * without ticks, and who looks a hundred times a second takes 0.3 % of a core for waking up. */
#define REST_TICKS 10

/* Let the policies that learn look at their stages. */
static int64_t tick(void *ctx, int64_t now_ns)
{
	struct weir_graph *g = ctx;
	bool any = false, all_rest = true;

	for (int i = 0; i < g->n_stages; i++) {
		struct admission_sample sample;
		if (!g->meters[i])
			continue;
		any = true;
		if (queue_paused(&g->stages[i]->sink.queue)) {
			g->meters[i]->at_ns =
			    0; /* a pause teaches nothing: the next sample begins behind it */
			continue;
		}
		if (meter_rests(g->meters[i], g->stages[i]))
			continue;
		all_rest = false;
		meter_sample(g->meters[i], g, g->stages[i], now_ns, &sample);
		sink_tick(&g->stages[i]->sink, &sample);
	}
	if (g->route)
		graph_route_tick(g, now_ns);
	if (!any)
		return INT64_MAX;
	return now_ns + (all_rest ? REST_TICKS : 1) * ADMISSION_TICK_NS;
}

static void watch(void *ctx, int64_t now_ns, struct journal *journal)
{
	struct weir_graph *g = ctx;

	graph_batch(g, now_ns, journal);
	graph_degrade(g, now_ns);
	slowest_tick(g->slowest, now_ns);
	graph_watch(g, now_ns, journal);
	graph_expire(g, now_ns);
	atomic_store(&g->ticked_ns, now_ns);
}

int64_t weir_graph_tick_ns(const struct weir_graph *g)
{
	return atomic_load(&g->ticked_ns);
}

static const struct control_ops graph_control_ops = {
    .view = pool_view, .resize = pool_resize, .repair = repair, .tick = tick, .watch = watch};

static const char *policy_of(const struct weir_graph *g, const struct pool *pool)
{
	for (int k = 0; k < g->spec->n_groups; k++)
		if (strcmp(g->spec->groups[k].name, pool->name) == 0)
			return g->spec->groups[k].threads.policy;
	for (int s = 0; s < g->n_stages; s++)
		if (g->stages[s]->pool == pool)
			return g->stages[s]->spec->threads.policy;
	return "static";
}

int graph_grow_around(struct weir_graph *g, struct pool *pool)
{
	int target = atomic_load(&pool->target);
	bool may = resize_find(policy_of(g, pool)) != &resize_static && budget_left(g) > 0 &&
		   target < atomic_load(&pool->max) && target < useful_threads(pool);

	return may ? pool_set_target(pool, target + 1) : target;
}

static int make_meters(struct weir_graph *g)
{
	g->meters = calloc((size_t)g->n_stages + 1, sizeof(struct meter *));
	for (int i = 0; g->meters && i < g->n_stages; i++) {
		const struct sink *k = &g->stages[i]->sink;
		if (!k->policy->tick || !k->look)
			continue;
		g->meters[i] = calloc(1, sizeof(struct meter));
		if (!g->meters[i])
			return WEIR_ENOMEM;
	}
	return g->meters ? 0 : WEIR_ENOMEM;
}

void graph_control_free(struct weir_graph *g)
{
	control_free(g->control);
	for (int i = 0; g->meters && i < g->n_stages; i++)
		free(g->meters[i]);
	free(g->meters);
	g->control = NULL;
	g->meters = NULL;
}

int graph_control_new(struct weir_graph *g)
{
	struct control_pool *pools;
	int rc = make_meters(g);

	if (rc != 0)
		return rc;
	pools = calloc((size_t)g->n_pools + 1, sizeof(*pools));
	if (!pools)
		return WEIR_ENOMEM;
	for (int i = 0; i < g->n_pools; i++)
		pools[i] = (struct control_pool){
		    .name = g->pools[i]->name, .policy = resize_find(policy_of(g, g->pools[i]))};
	rc = control_new(&graph_control_ops, g, pools, g->n_pools, &g->control);
	free(pools);
	return rc;
}

int weir_graph_decisions(const struct weir_graph *g, struct weir_decision *out, int n)
{
	return journal_read(control_journal(g->control), out, n);
}
