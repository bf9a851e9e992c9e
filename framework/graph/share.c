/* SPDX-License-Identifier: MIT */
/*
 * Estimates how many threads are available to a stage whose pool also serves other stages.
 *
 * The threads of a group serve its stages in turn, one batch at a time (sched/shared.c). In a
 * round, each stage with work runs one batch. So
 *
 *   share(s) = max(threads - threads used by the other stages, threads * batch time of s / round)
 *
 * If the queue of a stage has been non-empty for a while, no estimate is needed: its share is the
 * number of threads that it has used.
 *
 * sink->share is the number of threads that the stage can keep busy. sink->rotation has mean times
 * of the stage. The waits of events are predicted from these times and the queues of all stages of
 * the pool (pool_turn_ns).
 *
 * The control thread updates sink->share and sink->rotation each tick. Pools with a single stage
 * are skipped.
 */
#include "graph/graph.h"

#include <math.h>
#include <stdlib.h>

#include "sched/pool.h"

/* Time constant, in ns, of a stage's smoothed use: the time constant of the offered load
 * (OFFERED_NS in weir_fill.c), or the time in which the pool handles USED_BATCHES batches,
 * whichever is longer. */
#define USED_NS      100000000.0
#define USED_BATCHES 40.0

/* A queue is standing if, in this number of consecutive ticks, it had events and no thread was
 * idle. 10 ticks are 100 ms, as in weir.c (INTERVAL_NS). */
#define STANDING_TICKS 10

/* Smallest share of a stage, in threads. 0.05 is a guess: the smallest share of events that
 * admission admits (FLOOR in weir.c). */
#define LEAST 0.05

/* Estimates of the use of one stage. */
struct share {
	int64_t at_ns; /* time of the last reading; 0 before the first */
	double busy_ns, ended_ns, batches, events; /* totals at the last reading */
	double used;                               /* smoothed mean number of threads in use */
	double ended;                              /* the same without calls in progress */
	double batches_per_ns;                     /* smoothed */
	double events_per_ns;                      /* smoothed */
	int standing; /* consecutive ticks with a non-empty queue and no idle thread */
};

/* Sums over all threads at one stage. */
struct work {
	double busy_ns;  /* with the calls in progress */
	double ended_ns; /* without them */
	double batches, events;
};

static void add_book(struct work *w, const struct book *b, int64_t now_ns)
{
	int64_t since_ns = atomic_load_explicit(&b->running_since_ns, memory_order_relaxed);

	double ended_ns = (double)book_read(&b->busy_ns);
	for (int c = 0; c < WEIR_CLASSES_MAX; c++)
		ended_ns += (double)book_read(&b->class_book[c].behind_ns);
	w->ended_ns += ended_ns;
	w->busy_ns += ended_ns;
	w->batches += (double)book_read(&b->batches);
	w->events += (double)book_read(&b->batch_events);
	if (since_ns && now_ns > since_ns)
		w->busy_ns += (double)(now_ns - since_ns);
}

static struct work work_of(struct weir_graph *g, int id, int64_t now_ns)
{
	struct work w = {0};

	lock_take(&g->threads_lock);
	add_book(&w, &g->gone[id].book, now_ns);
	for (const struct local *l = g->gone[id].books; l; l = l->next)
		add_book(&w, &l->book, now_ns);
	lock_release(&g->threads_lock);
	return w;
}

/* Use the totals in `w` as the start of the next differences. */
static void begin_at(struct share *s, const struct work *w)
{
	s->busy_ns = w->busy_ns;
	s->ended_ns = w->ended_ns;
	s->batches = w->batches;
	s->events = w->events;
}

/* Update the smoothed use and batch rate of the stage. */
static void follow(
    struct share *s, const struct work *w, double span_ns, double pool_batch_ns, double threads)
{
	double used = (w->busy_ns - s->busy_ns) / span_ns, batches = w->batches - s->batches;
	double slow_ns = fmax(USED_NS, USED_BATCHES * pool_batch_ns / threads);
	double weight = span_ns / (span_ns + slow_ns);

	/* A call that ends while the counters are read may be counted twice or not at all; the next
	 * reading corrects that. */
	s->used += weight * (used - s->used);
	s->ended += weight * ((w->ended_ns - s->ended_ns) / span_ns - s->ended);
	s->batches_per_ns += weight * (batches / span_ns - s->batches_per_ns);
	s->events_per_ns += weight * ((w->events - s->events) / span_ns - s->events_per_ns);
	begin_at(s, w);
}

static double batch_ns(const struct share *s)
{
	return s->batches_per_ns > 0 ? fmax(s->used, 0) / s->batches_per_ns : 0;
}

/* Return the mean thread time of a batch, or of an event, if these end at the rate `per_ns`. Calls
 * in progress are left out: they would make the mean grow without limit while no other call
 * ends. */
static double mean_ns(const struct share *s, double per_ns)
{
	return per_ns > 0 ? fmax(s->ended, 0) / per_ns : 0;
}

static void publish_rotation(const struct share *s, struct rotation *to)
{
	atomic_store_explicit(&to->used, fmax(s->used, 0), memory_order_relaxed);
	atomic_store_explicit(&to->batch_ns, mean_ns(s, s->batches_per_ns), memory_order_relaxed);
	atomic_store_explicit(&to->event_ns, mean_ns(s, s->events_per_ns), memory_order_relaxed);
}

/* The stage's share of a round: its mean batch time divided by the sum over the stages of the pool.
 * If its batch time is not known yet, the stage gets an equal share. */
static double part_of_round(
    const struct weir_graph *g, const struct pool *pool, const struct share *mine)
{
	double all_ns = 0;

	for (int i = 0; i < pool->n_sinks; i++)
		all_ns += batch_ns(&g->shares[pool->sinks[i]->id]);
	return all_ns > 0 && batch_ns(mine) > 0 ? batch_ns(mine) / all_ns : 1.0 / pool->n_sinks;
}

static void publish(struct weir_graph *g, const struct pool *pool, struct sink *k, double threads)
{
	struct share *s = &g->shares[k->id];
	double others = 0, share;
	bool idle = atomic_load(&pool->n_idle) + atomic_load(&pool->n_spinning) > 0;

	for (int i = 0; i < pool->n_sinks; i++)
		if (pool->sinks[i] != k)
			others += fmax(g->shares[pool->sinks[i]->id].used, 0);
	/* If threads are idle, queued events wait for a fuller cohort (cohort.linger) or a lease,
	 * not for a thread. */
	s->standing = queue_ready(&k->queue) + sink_in_cells(k) > 0 && !idle ? s->standing + 1 : 0;
	if (s->standing >= STANDING_TICKS)
		share = s->used;
	else
		share = fmax(threads - others, threads * part_of_round(g, pool, s));
	share = fmin(fmax(share, LEAST), threads);
	atomic_store_explicit(&k->share, share, memory_order_relaxed);
	atomic_store_explicit(
	    &k->rotation.first_ns, idle ? 0 : pool_turn_ns(k, 0, TURN_FIRST), memory_order_relaxed);
}

static void share_pool(struct weir_graph *g, struct pool *pool, int64_t now_ns)
{
	double threads = fmax(atomic_load(&pool->target), 1), batches_per_ns = 0, used = 0;

	for (int i = 0; i < pool->n_sinks; i++) {
		used += fmax(g->shares[pool->sinks[i]->id].used, 0);
		batches_per_ns += g->shares[pool->sinks[i]->id].batches_per_ns;
	}
	double pool_batch_ns = batches_per_ns > 0 ? used / batches_per_ns : 0;
	for (int i = 0; i < pool->n_sinks; i++) {
		struct share *s = &g->shares[pool->sinks[i]->id];
		struct work w = work_of(g, pool->sinks[i]->id, now_ns);
		if (s->at_ns)
			follow(s, &w, (double)(now_ns - s->at_ns), pool_batch_ns, threads);
		else
			begin_at(s, &w);
		s->at_ns = now_ns;
		publish_rotation(s, &pool->sinks[i]->rotation);
	}
	for (int i = 0; i < pool->n_sinks; i++)
		publish(g, pool, pool->sinks[i], threads);
}

void graph_share_tick(struct weir_graph *g, int64_t now_ns)
{
	for (int i = 0; i < g->n_pools; i++)
		if (g->pools[i]->n_sinks > 1)
			share_pool(g, g->pools[i], now_ns);
}

int graph_share_new(struct weir_graph *g)
{
	bool some = false;

	for (int i = 0; i < g->n_pools; i++)
		some |= g->pools[i]->n_sinks > 1;
	if (!some)
		return 0;
	g->shares = calloc((size_t)g->n_stages, sizeof(*g->shares));
	return g->shares ? 0 : WEIR_ENOMEM;
}

void graph_share_free(struct weir_graph *g)
{
	free(g->shares);
	g->shares = NULL;
}
