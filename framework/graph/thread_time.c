/* SPDX-License-Identifier: MIT */
/*
 * Counts how the threads of each stage spend their time (enum weir_thread_time).
 *
 * In each round of the control thread, the counters of the kernel and of weir are read, for each pool
 * and each source with loops of its own, and what they have grown by is split (time_split.h). Each
 * thread that is in a handler then is looked at once: whether it sleeps, and why. A look costs about
 * 5 us, so at most LOOKS_MAX threads are looked at in a round, with others in the next one.
 *
 * Only the control thread uses the data, except `ns`, which views read. Stages are never added to a
 * graph, so no lock is needed for that.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/schedstat.h"
#include "graph/graph.h"
#include "graph/thread_time.h"
#include "graph/time_split.h"
#include "event/local.h"
#include "sched/pool.h"

/* Threads looked at in a round, and loops of a source whose counters are read. Guesses: 32 looks
 * ten times a second take 0.2 % of a core, and so does reading the counters of 64 loops. */
#define LOOKS_MAX 32
#define LOOPS_MAX 64

const char *const weir_thread_time_words[WEIR_TIMES] = {
    [WEIR_TIME_RUNNING] = "running",
    [WEIR_TIME_RUNNABLE] = "runnable",
    [WEIR_TIME_IO] = "io",
    [WEIR_TIME_LOCK] = "lock",
    [WEIR_TIME_MEMORY] = "memory",
    [WEIR_TIME_SLEEP] = "sleep",
    [WEIR_TIME_BLOCKED] = "blocked",
    [WEIR_TIME_DOWNSTREAM] = "downstream",
    [WEIR_TIME_IDLE] = "idle",
};

/* The threads of a pool, or the loops of a source. */
struct owner {
	bool known;                     /* the other members are set: it has been read once */
	struct schedstat_sample latest; /* of a pool: totals now */
	struct schedstat_sample sched;  /* totals at the last round */
	uint64_t spun_ns;               /* likewise */
	double seen_behind, in_calls;   /* samples, see struct time_round */
	double carry_ns;
	int n_loops; /* of a source, in this round; more than LOOPS_MAX are not read */
	struct schedstat_sample grown; /* of these loops, in this round */
	uint64_t inline_ns,
	    inline_was_ns; /* time of inline stages in them: now, at the last round */
};

struct stage_time {
	_Atomic uint64_t ns[WEIR_TIMES];
	uint64_t busy_ns, behind_ns; /* at the last round */
	double pending_ns[SLEEP_REASONS];
	struct time_stage part; /* of the current round; its samples remain */
};

struct thread_time {
	int64_t at_ns;  /* time of the last round; 0: there was none */
	unsigned first; /* number of the first thread that the next round looks at */
	atomic_bool runq_known, paused;
	struct owner *pools;      /* by number of the pool */
	struct owner *sources;    /* by stage id */
	struct time_stage *parts; /* of the stages of one pool, for time_split */
	struct stage_time stage[];
};

int graph_time_new(struct weir_graph *g)
{
	size_t n = (size_t)g->n_stages;
	struct thread_time *t = calloc(1, sizeof(*t) + n * sizeof(t->stage[0]));

	if (!t)
		return WEIR_ENOMEM;
	g->times = t;
	t->pools = calloc((size_t)g->n_pools + 1, sizeof(*t->pools));
	t->sources = calloc(n + 1, sizeof(*t->sources));
	t->parts = calloc(n + 1, sizeof(*t->parts));
	return t->pools && t->sources && t->parts ? 0 : WEIR_ENOMEM;
}

void graph_time_free(struct weir_graph *g)
{
	if (!g->times)
		return;
	free(g->times->pools);
	free(g->times->sources);
	free(g->times->parts);
	free(g->times);
	g->times = NULL;
}

void graph_time_view(const struct weir_graph *g, int id, struct weir_stage_view *v)
{
	const struct thread_time *t = g->times;

	for (int i = 0; t && i < WEIR_TIMES; i++)
		v->time_ns[i] = atomic_load_explicit(&t->stage[id].ns[i], memory_order_relaxed);
	v->times_known = t && atomic_load_explicit(&t->runq_known, memory_order_relaxed);
}

/* ---- reading ---- */

/* The pool or the source that the thread belongs to, NULL for threads of embedders. */
static struct owner *owner_of(const struct weir_graph *g, const struct thread *t)
{
	for (int i = 0; t->pool && i < g->n_pools; i++)
		if (g->pools[i] == t->pool)
			return &g->times->pools[i];
	return t->source ? &g->times->sources[t->source->id] : NULL;
}

/* Let the samples of earlier rounds count for less. */
static void age(struct owner *o)
{
	o->seen_behind *= SEEN_KEPT;
	o->in_calls *= SEEN_KEPT;
}

/* Look whether the thread sleeps in a handler, and count the reason. Returns whether it was in one. */
static bool look_at(struct weir_graph *g, const struct thread *t)
{
	struct weir_stage *st;

	if (graph_in_call(t, &st) == 0)
		return false;
	enum sleep_reason why = sleep_reason(t->tid);
	struct owner *o = owner_of(g, t);
	if (o)
		o->in_calls++;
	if (why == SLEEP_AWAKE)
		return true;
	g->times->stage[st->id].part.seen[why]++;
	if (o && (!t->pool || st->pool != t->pool))
		o->seen_behind++;
	return true;
}

static void look(struct weir_graph *g) WEIR_REQUIRES(&g->threads_lock)
{
	struct thread_time *times = g->times;
	unsigned i = 0, looks = 0, next = 0;

	for (const struct thread *t = g->threads; t && looks < LOOKS_MAX; t = t->next, i++) {
		if (i < times->first)
			continue;
		looks += look_at(g, t);
		next = i + 1;
	}
	times->first = looks == LOOKS_MAX ? next : 0;
}

/* Add what the loop `t` has used since it was last read. */
static void read_loop(struct owner *o, struct thread *t)
{
	struct schedstat_sample now;

	if (++o->n_loops > LOOPS_MAX || !schedstat_of(t->tid, &now))
		return;
	if (t->used.cpu_ns > 0) {
		o->grown.cpu_ns += now.cpu_ns - t->used.cpu_ns;
		o->grown.runq_ns += now.runq_ns - t->used.runq_ns;
	}
	t->used = now;
}

static void read_loops(struct weir_graph *g) WEIR_REQUIRES(&g->threads_lock)
{
	struct owner *sources = g->times->sources;

	for (int i = 0; i < g->n_stages; i++) {
		sources[i].n_loops = 0;
		sources[i].grown = (struct schedstat_sample){0};
		sources[i].inline_ns = 0;
	}
	for (struct thread *t = g->threads; t; t = t->next)
		if (t->source && t->link && !t->pool)
			read_loop(&sources[t->source->id], t);
	for (int i = 0; i < g->n_stages; i++)
		for (const struct local *l = g->gone[i].books; l; l = l->next)
			if (l->thread->source && !l->thread->pool)
				sources[l->thread->source->id].inline_ns +=
				    book_read(&l->book.busy_ns);
}

/* ---- the round ---- */

static double grown(uint64_t *was, uint64_t now)
{
	uint64_t by = now > *was ? now - *was : 0;

	*was = now > *was ? now : *was;
	return (double)by;
}

/* Read what the stages have grown by. */
static void read_stages(struct weir_graph *g)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct stage_time *t = &g->times->stage[i];
		const struct stage_sums *s = graph_sums(g, i);
		t->part.busy_ns = grown(&t->busy_ns, s->busy_ns - s->behind_ns);
		t->part.behind_ns = grown(&t->behind_ns, s->behind_ns);
	}
}

static void add(struct stage_time *t, const struct time_stage *part)
{
	for (int i = 0; i < WEIR_TIMES; i++)
		book_add(&t->ns[i], (uint64_t)part->out[i]);
	t->part = *part;
}

void graph_time_sched(
    struct weir_graph *g, int number, bool known, const struct schedstat_sample *sched)
{
	g->times->pools[number].latest = *sched;
	atomic_store_explicit(&g->times->runq_known, known, memory_order_relaxed);
}

static void split_pool(struct weir_graph *g, int number, double passed_ns)
{
	struct thread_time *t = g->times;
	struct owner *o = &t->pools[number];
	struct pool *pool = g->pools[number];
	const struct schedstat_sample now = o->latest;
	int states[WEIR_THREAD_STATES];
	bool was_known = o->known;
	struct time_round round = {.wall_ns = pool_read(pool, states) * passed_ns,
	    .cpu_ns = grown(&o->sched.cpu_ns, now.cpu_ns),
	    .runq_ns = grown(&o->sched.runq_ns, now.runq_ns),
	    .spun_ns =
		grown(&o->spun_ns, atomic_load_explicit(&pool->spun_ns, memory_order_relaxed)),
	    .seen_behind = o->seen_behind,
	    .in_calls = o->in_calls};

	o->known = true;
	if (!was_known || pool->n_sinks == 0)
		return;
	for (int i = 0; i < pool->n_sinks; i++)
		t->parts[i] = t->stage[pool->sinks[i]->stage->id].part;
	time_split(&round, t->parts, pool->n_sinks, &o->carry_ns);
	time_split_age(t->parts, pool->n_sinks);
	age(o);
	for (int i = 0; i < pool->n_sinks; i++)
		add(&t->stage[pool->sinks[i]->stage->id], &t->parts[i]);
}

/* The loops of a source run inline stages only, which are `behind` it. */
static void split_source(struct weir_graph *g, int id, double passed_ns)
{
	struct thread_time *t = g->times;
	struct owner *o = &t->sources[id];
	struct time_stage part = {.behind_ns = grown(&o->inline_was_ns, o->inline_ns)};
	struct time_round round = {.wall_ns = o->n_loops * passed_ns,
	    .cpu_ns = (double)o->grown.cpu_ns,
	    .runq_ns = (double)o->grown.runq_ns,
	    .seen_behind = o->seen_behind,
	    .in_calls = o->in_calls};

	if (o->n_loops > 0 && o->n_loops <= LOOPS_MAX) {
		time_split(&round, &part, 1, &o->carry_ns);
		add(&t->stage[id], &part);
	}
	/* the time of loops that have ended is in no local any more */
	o->inline_was_ns = o->inline_ns;
	age(o);
}

static void split_inline(struct weir_graph *g, int id, double passed_ns)
{
	struct stage_time *t = &g->times->stage[id];
	struct time_stage part = t->part;

	time_split_inline(&part, passed_ns, t->pending_ns);
	for (int r = 0; r < SLEEP_REASONS; r++)
		part.seen[r] = 0;
	add(t, &part);
}

void graph_time_pause(struct weir_graph *g, bool pause)
{
	atomic_store_explicit(&g->times->paused, pause, memory_order_relaxed);
}

void graph_time(struct weir_graph *g, int64_t now_ns)
{
	struct thread_time *t = g->times;
	double passed_ns = (double)(now_ns - t->at_ns);
	bool first = t->at_ns == 0;

	t->at_ns = now_ns;
	if (atomic_load_explicit(&t->paused, memory_order_relaxed))
		return;
	lock_take(&g->threads_lock);
	if (!first)
		look(g);
	read_loops(g);
	lock_release(&g->threads_lock);
	read_stages(g);
	for (int i = 0; i < g->n_pools; i++)
		split_pool(g, i, passed_ns);
	for (int i = 0; i < g->n_stages && !first; i++) {
		if (g->stages[i]->ops->flags & WEIR_STAGE_SOURCE)
			split_source(g, i, passed_ns);
		else if (!g->stages[i]->pool)
			split_inline(g, i, passed_ns);
	}
}
