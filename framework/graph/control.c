/* SPDX-License-Identifier: MIT */
/* Callbacks for the control thread. They describe the pools to it and apply its decisions. */
#include <stdlib.h>
#include <string.h>

#include "base/task.h"
#include "control/control.h"
#include "graph/graph.h"
#include "graph/group.h"
#include "trace/trail.h"
#include "graph/meter.h"
#include "graph/thread_time.h"
#include "sched/pool.h"

/* Number of threads that may still be added, in all pools together. */
static int budget_left(const struct weir_graph *g)
{
	int left = task_budget();

	for (int i = 0; i < g->n_pools; i++)
		left -= atomic_load(&g->pools[i]->target);
	return left > 0 ? left : 0;
}

/* Number of threads that can work at once: at a stage with leased partitions one per partition, at
 * other stages any number. */
static int useful_threads(const struct pool *pool)
{
	int n = 0;

	for (int s = 0; s < pool->n_sinks; s++)
		n += pool->sinks[s]->queue.leasing ? pool->sinks[s]->queue.n_parts
						   : POOL_THREADS_MAX;
	return n < POOL_THREADS_MAX ? n : POOL_THREADS_MAX;
}

/* Fill in the kernel's scheduling statistics and the limits of the machine. */
static void machine_view(struct weir_graph *g, int i, struct resize_view *v)
{
	struct schedstat_sample sched;

	v->runq_known = pool_sched(g->pools[i], &sched);
	graph_time_sched(g, i, v->runq_known, &sched);
	v->cpu_ns_total = sched.cpu_ns;
	v->runq_ns_total = sched.runq_ns;
	v->cores = task_cores();
	v->budget_left = budget_left(g);
}

/* Read the change numbers of all stages in one critical section. */
static void look_for_changes(struct weir_graph *g)
{
	lock_take(&g->threads_lock);
	for (int i = 0; i < g->n_stages; i++)
		g->changes[i] = graph_stage_changes(g, i);
	lock_release(&g->threads_lock);
}

/* Change numbers are read before counters. If a counter changes in between, its new change number
 * is seen in the next round, and the counters are read again. */
const struct stage_sums *graph_sums(struct weir_graph *g, int id)
{
	struct stage_sums *s = &g->sums[id];
	struct book book = {0};
	int64_t running_ns = 0;

	if (s->known && s->changes == g->changes[id] && s->running == 0)
		return s;
	graph_sum(g, id, &book, NULL, NULL, &running_ns, NULL);
	*s = (struct stage_sums){.known = true,
	    .changes = g->changes[id],
	    .ended_busy_ns = book_read(&book.busy_ns),
	    .busy_ns = book_read(&book.busy_ns) + (uint64_t)running_ns,
	    .batches = book_read(&book.batches),
	    .items = book_read(&book.batch_events),
	    .running = book_read(&book.running)};
	for (int c = 0; c < g->n_classes; c++) {
		/* Add the time of inline stages, which run in the threads of this stage. */
		uint64_t behind_ns = book_read(&book.class_book[c].behind_ns);
		s->behind_ns += behind_ns;
		s->ended_busy_ns += behind_ns;
		s->busy_ns += behind_ns;
		s->offered += book_read(&book.class_book[c].offered);
		s->completed += book_read(&book.class_book[c].completed);
	}
	return s;
}

static void add_sums(struct weir_graph *g, const struct weir_stage *st, struct resize_view *v)
{
	const struct stage_sums *s = graph_sums(g, st->id);

	for (int c = 0; c < g->n_classes; c++)
		v->offered_total +=
		    atomic_load_explicit(&st->sink.refused_ahead[c], memory_order_relaxed);
	v->offered_total += s->offered;
	v->completed_total += s->completed;
	v->busy_ns_total += s->busy_ns;
	v->items += s->items;
	v->running += s->running;
}

static void pool_view(void *ctx, int i, struct resize_view *v)
{
	struct weir_graph *g = ctx;
	struct pool *pool = g->pools[i];
	int states[WEIR_THREAD_STATES];

	if (i == 0) /* the first pool of a new round */
		look_for_changes(g);
	v->live = pool_read_own(pool, states);
	v->busy = states[WEIR_THREAD_BUSY];
	v->target = atomic_load(&pool->target);
	v->min = atomic_load(&pool->min);
	v->max = atomic_load(&pool->max);
	v->fixed = pool->cores && v->min == v->max;
	v->useful = useful_threads(pool);
	machine_view(g, i, v);
	v->paused = pool->n_sinks > 0;
	for (int s = 0; s < pool->n_sinks; s++) {
		struct queue *q = &pool->sinks[s]->queue;
		v->queue_limit += atomic_load(&q->limit);
		if (queue_paused(q)) {
			v->paused_set |= 1ULL << s % 64;
			continue;
		}
		v->paused = false;
		v->queue_length += queue_ready(q) + sink_in_cells(pool->sinks[s]);
		add_sums(g, pool->sinks[s]->stage, v);
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
	struct thread_deaths *deaths = &g->pools[i]->deaths;
	struct pool_repairs r = pool_repair(g->pools[i], now_ns);
	const struct weir_stage *in = atomic_load(&deaths->last_in);
	struct control_repairs out = {.joined = r.joined,
	    .spawned = r.spawned,
	    .failed = r.failed,
	    .deaths = atomic_load(&deaths->n),
	    .died_in = in ? in->name : NULL};

	if (r.failed)
		graph_refusal_text(&r.refusal, out.why, sizeof(out.why));
	return out;
}

/* Divisor of the tick rate while every stage rests (meter.h). Admission works without ticks then,
 * and a hundred wake-ups a second would cost 0.3 % of a core. */
#define REST_TICKS 10

/* Run a tick of the policies that learn, and of shares and routes. Returns the time at which the
 * next tick is due. */
static int64_t learn(struct weir_graph *g, int64_t now_ns)
{
	bool any = false, all_rest = true;

	look_for_changes(g);
	for (int i = 0; i < g->n_stages; i++) {
		if (!g->meters[i])
			continue;
		any = true;
		if (queue_paused(&g->stages[i]->sink.queue)) {
			/* Nothing can be learned from a pause. The next sample starts after it. */
			g->meters[i]->at_ns = 0;
			continue;
		}
		all_rest &= meter_look(g->meters[i], g->stages[i], g->changes[i], now_ns);
	}
	if (g->shares && !all_rest)
		graph_share_tick(g, now_ns);
	if (g->route)
		graph_route_tick(g, now_ns);
	if (!any)
		return INT64_MAX;
	return now_ns + (all_rest ? REST_TICKS : 1) * ADMISSION_TICK_NS;
}

static int64_t tick(void *ctx, int64_t now_ns)
{
	struct weir_graph *g = ctx;
	int64_t cores_ns = graph_watch_cores(g, now_ns);

	if (now_ns >= g->learn_ns)
		g->learn_ns = learn(g, now_ns);
	return cores_ns < g->learn_ns ? cores_ns : g->learn_ns;
}

static void watch(void *ctx, int64_t now_ns, struct journal *journal)
{
	struct weir_graph *g = ctx;

	if (g->n_pools == 0)
		look_for_changes(g);
	graph_time(g, now_ns);
	graph_batch(g, now_ns, journal);
	graph_width(g, now_ns, journal);
	graph_groups_tick(g, now_ns);
	graph_families_tick(g);
	graph_degrade(g, now_ns);
	slowest_tick(g->slowest, now_ns);
	graph_watch(g, now_ns, journal);
	graph_watch_loops(g, now_ns);
	graph_watch_hung(g, now_ns);
	graph_operator.tick(g, now_ns);
	atomic_store(&g->ticked_ns, now_ns);
}

int64_t weir_graph_tick_ns(const struct weir_graph *g)
{
	return atomic_load(&g->ticked_ns);
}

static const struct control_ops graph_control_ops = {
    .view = pool_view, .resize = pool_resize, .repair = repair, .tick = tick, .watch = watch};

int graph_grow_around(struct weir_graph *g, struct pool *pool)
{
	int target = atomic_load(&pool->target);
	bool may = resize_find(pool->spec->policy) != &resize_static && budget_left(g) > 0 &&
		   target < atomic_load(&pool->max) && target < useful_threads(pool);

	return may ? pool_set_target(pool, target + 1) : target;
}

static int make_meters(struct weir_graph *g)
{
	g->meters = calloc((size_t)g->n_stages + 1, sizeof(struct meter *));
	g->changes = calloc((size_t)g->n_stages + 1, sizeof(*g->changes));
	g->sums = calloc((size_t)g->n_stages + 1, sizeof(*g->sums));
	for (int i = 0; g->meters && i < g->n_stages; i++) {
		const struct sink *k = &g->stages[i]->sink;
		if (!k->policy->tick || !k->look)
			continue;
		g->meters[i] = calloc(1, sizeof(struct meter));
		if (!g->meters[i])
			return WEIR_ENOMEM;
	}
	return g->meters && g->changes && g->sums ? 0 : WEIR_ENOMEM;
}

void graph_control_free(struct weir_graph *g)
{
	control_free(g->control);
	for (int i = 0; g->meters && i < g->n_stages; i++)
		meter_free(g->meters[i]);
	free(g->meters);
	graph_share_free(g);
	graph_time_free(g);
	free(g->changes);
	free(g->sums);
	g->changes = NULL;
	g->sums = NULL;
	g->control = NULL;
	g->meters = NULL;
}

int graph_control_new(struct weir_graph *g)
{
	struct control_pool *pools;
	int rc = make_meters(g);

	if (rc == 0)
		rc = graph_share_new(g);
	if (rc == 0)
		rc = graph_time_new(g);
	if (rc != 0)
		return rc;
	pools = calloc((size_t)g->n_pools + 1, sizeof(*pools));
	if (!pools)
		return WEIR_ENOMEM;
	for (int i = 0; i < g->n_pools; i++)
		pools[i] = (struct control_pool){
		    .name = g->pools[i]->name, .policy = resize_find(g->pools[i]->spec->policy)};
	rc = control_new(&graph_control_ops, g, pools, g->n_pools, &g->control);
	free(pools);
	return rc;
}

int weir_graph_decisions(const struct weir_graph *g, struct weir_decision *out, int n)
{
	return journal_read(control_journal(g->control), out, n);
}
