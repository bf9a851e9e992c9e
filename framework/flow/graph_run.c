/* SPDX-License-Identifier: MIT */
/*
 * Starting and draining a graph.
 *
 * Drain: sources stop making events and let their connections end; then the graph is left alone
 * until nothing is in flight but what stages hold on purpose, whose ops->stop then lets it go. At
 * the end of the grace time queues are closed upstream first, what is left in them is finished as
 * WEIR_ECLOSED, pools end after their present batch, and the law is checked exactly.
 */
#include <sched.h>

#include "base/clock.h"
#include "base/stack.h"
#include "control/control.h"
#include "flow/graph.h"
#include "flow/graph_acts.h"
#include "flow/thread.h"
#include "flow/trail.h"
#include "sched/pool.h"

/* Drain looks at least this often, for the hurry flag, which a signal handler may set. */
#define DRAIN_LOOK_NS (20 * NS_PER_MS)
/* A turn of an I/O thread takes microseconds; on a machine that is busy otherwise, more. A guess. */
#define LATE_NS NS_PER_S

bool weir_graph_ready(const struct weir_graph *g)
{
	return atomic_load(&g->phase) == GRAPH_RUNNING;
}

void weir_graph_hurry(struct weir_graph *g)
{
	atomic_store(&g->hurry, true);
}

bool weir_hurried(const struct weir_stage *st)
{
	return atomic_load_explicit(&st->graph->hurry, memory_order_relaxed);
}

void graph_pulse(struct weir_graph *g)
{
	pthread_mutex_lock(&g->drain_mutex);
	pthread_cond_signal(&g->drain_cond);
	pthread_mutex_unlock(&g->drain_mutex);
}

static bool is_source(const struct weir_stage *st)
{
	return st->ops->flags & WEIR_STAGE_SOURCE;
}

static void stop_pools(struct weir_graph *g)
{
	for (int i = 0; i < g->n_pools; i++)
		pool_stop(g->pools[i]);
}

int64_t graph_in_flight(struct weir_graph *g, int id)
{
	struct book b = {0};
	int64_t n = 0;

	graph_sum(g, id, &b, NULL, NULL, NULL, NULL);
	for (int c = 0; c < g->n_classes; c++) {
		const struct class_book *cb = &b.class_book[c];
		n += (int64_t)(book_read(&cb->offered) - book_read(&cb->completed) -
			       book_read(&cb->failed));
		for (int r = 0; r < WEIR_SHED_REASONS; r++)
			n -= (int64_t)book_read(&cb->shed[r]);
	}
	return n;
}

/* Events in flight in the graph; those that stages hold on purpose in *held. */
static int64_t in_flight(struct weir_graph *g, int64_t *held)
{
	int64_t n = 0;

	*held = 0;
	for (int i = 0; i < g->n_stages; i++) {
		struct book b = {0};
		graph_sum(g, i, &b, NULL, NULL, NULL, NULL);
		*held += (int64_t)book_read(&b.held);
		n += graph_in_flight(g, i);
	}
	return n;
}

/* Is nothing but held events in flight? What has ended is read everywhere before what was offered
 * is read anywhere: an event that moves meanwhile can only make the second greater (Mattern 1987,
 * four counters), whatever the order of the stages and whether they loop. */
static bool is_quiet(struct weir_graph *g)
{
	int64_t ended = 0, offered = 0;

	for (int i = 0; i < g->n_stages; i++) {
		struct book b = {0};
		graph_sum(g, i, &b, NULL, NULL, NULL, NULL);
		ended += (int64_t)book_read(&b.held);
		for (int c = 0; c < g->n_classes; c++) {
			const struct class_book *cb = &b.class_book[c];
			ended += (int64_t)(book_read(&cb->completed) + book_read(&cb->failed));
			for (int r = 0; r < WEIR_SHED_REASONS; r++)
				ended += (int64_t)book_read(&cb->shed[r]);
		}
	}
	for (int i = 0; i < g->n_stages; i++) {
		struct book b = {0};
		graph_sum(g, i, &b, NULL, NULL, NULL, NULL);
		for (int c = 0; c < g->n_classes; c++)
			offered += (int64_t)book_read(&b.class_book[c].offered);
	}
	return offered == ended;
}

/* Wait until it is worth to look again, at most until `until_ns`. */
static void wait_look(struct weir_graph *g, int64_t now_ns, int64_t until_ns)
{
	int64_t look_ns = now_ns + DRAIN_LOOK_NS < until_ns ? now_ns + DRAIN_LOOK_NS : until_ns;
	struct timespec ts = {look_ns / NS_PER_S, look_ns % NS_PER_S};

	pthread_mutex_lock(&g->drain_mutex);
	pthread_cond_timedwait(&g->drain_cond, &g->drain_mutex, &ts);
	pthread_mutex_unlock(&g->drain_mutex);
}

/* Wait until nothing but held events is in flight, or `until_ns`. Returns true when so. */
static bool wait_quiet(struct weir_graph *g, int64_t until_ns)
{
	while (!is_quiet(g)) {
		int64_t now_ns = clock_now_ns();
		if (now_ns >= until_ns || atomic_load(&g->hurry))
			return false;
		wait_look(g, now_ns, until_ns);
	}
	return true;
}

/* An event that a stage let go of at the last moment is given back by a thread of a source (http.server: weir_http_wait),
 * which finds the queue closed and ends it. Those threads live on: wait for them. Returns what is left. */
static int64_t wait_late(struct weir_graph *g)
{
	int64_t until_ns = clock_now_ns() + LATE_NS, now_ns, held, left;

	while ((left = in_flight(g, &held)) != 0 && (now_ns = clock_now_ns()) < until_ns)
		wait_look(g, now_ns, until_ns);
	return left;
}

/* Let go of what stages hold, upstream first; what a stage lets go comes to rest further down
 * before the next is told, if there is time. */
static void stop_stages(struct weir_graph *g, int64_t until_ns, bool wait)
{
	for (int k = 0; k < g->n_stages; k++) {
		struct weir_stage *st = g->stages[g->order[k]];
		if (is_source(st) || !st->ops->stop)
			continue;
		st->ops->stop(st, until_ns);
		weir_thread_flush();
		if (wait)
			wait = wait_quiet(g, until_ns);
	}
}

/* End what is queued in `st`. The queue is closed: nothing follows. */
static uint64_t end_queued(struct weir_stage *st)
{
	struct weir_event *ev[WEIR_BATCH_MAX];
	struct book *book = &thread_self()->local[st->id]->book;
	uint64_t ended = 0;
	int n;

	queue_close(&st->sink.queue);
	for (int rank = 0; rank < st->sink.queue.n_parts; rank++) {
		struct queue_take take = {.rank = rank,
		    .n_ranks = st->sink.queue.n_parts,
		    .max = WEIR_BATCH_MAX,
		    .sharers = 1};
		while ((n = queue_pop(&st->sink.queue, &take, ev)) > 0) {
			book_add(&book->running, (uint64_t)n);
			trail_note(ev, n, st->id, clock_now_ns(), true);
			for (int i = 0; i < n; i++) {
				ev[i]->state = WEIR_EVENT_RUNNING;
				weir_event_finish(&ev[i], WEIR_ECLOSED);
			}
			queue_release(&st->sink.queue, take.part);
			ended += (uint64_t)n;
		}
	}
	weir_thread_flush();
	return ended;
}

static uint64_t end_all_queued(struct weir_graph *g)
{
	uint64_t ended = 0;

	for (int k = 0; k < g->n_stages; k++)
		ended += end_queued(g->stages[g->order[k]]);
	return ended;
}

static void drain_stages(struct weir_graph *g, int64_t until_ns, struct weir_drain_report *r)
{
	stop_stages(g, until_ns, wait_quiet(g, until_ns));
	r->closed = end_all_queued(g);
	control_stop(g->control);
	stop_pools(g);
	r->closed += end_all_queued(g); /* leased partitions, batches that ended since */
	stop_stages(g, until_ns, false);
}

/* Enter with the struct that was made at start. Only a stage's thread_init can refuse, for lack of
 * memory, which ending connections give back: try until the grace time is over. */
static void enter_drain(struct weir_graph *g, int64_t until_ns)
{
	while (thread_enter_spare(g->drain_thread) != 0) {
		WEIR_ASSERT(clock_now_ns() < until_ns);
		sched_yield();
	}
	g->drain_thread = NULL;
}

/* Beside a graph that runs: nothing may come in before it is sure that every stage starts. */
static void hold_sources(struct weir_graph *g)
{
	for (int i = 0; i < g->n_stages; i++)
		if (is_source(g->stages[i]) && g->stages[i]->ops->pause)
			g->stages[i]->ops->pause(g->stages[i], true);
}

static int start_sources(struct weir_graph *g, struct weir_errs *errs, int *n_started)
{
	for (int k = g->n_stages; k-- > 0;) {
		struct weir_stage *st = g->stages[g->order[k]];
		struct weir_err err = {0};
		st->blamed = NULL;
		int rc = st->ops->start ? st->ops->start(st, &err) : 0;
		if (rc == 0)
			continue;
		weir_errs_add(errs, st->blamed ? st->blamed : &st->spec->mark, rc,
		    err.hint[0] ? err.hint : NULL, "stage '%s' (%s): %s", st->name, st->ops->name,
		    err.text[0] ? err.text : weir_error_text(rc));
		*n_started = g->n_stages - 1 - k;
		return rc;
	}
	return 0;
}

/* Undo a start: sources that had started may have let events in, so it ends like a drain. */
static void abort_start(struct weir_graph *g, int n_started)
{
	struct weir_drain_report r = {0};
	int64_t now_ns = clock_now_ns();

	atomic_store(&g->phase, GRAPH_DRAINING);
	enter_drain(g, now_ns + NS_PER_S);
	for (int k = g->n_stages - n_started; k < g->n_stages; k++) {
		struct weir_stage *st = g->stages[g->order[k]];
		if (is_source(st) && st->ops->stop)
			st->ops->stop(st, now_ns);
	}
	drain_stages(g, now_ns, &r);
	weir_thread_detach();
	atomic_store(&g->phase, GRAPH_DRAINED);
}

int graph_start(struct weir_graph *g, struct weir_graph *old, struct weir_errs *errs)
{
	WEIR_ASSERT(atomic_load(&g->phase) == GRAPH_BUILT);
	if (thread_spare_new(g, "drain", &g->drain_thread) != 0)
		return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	/* Who follows has the age of the first one: shed ids and uptimes go on. */
	int64_t now_ns = old ? atomic_load(&old->started_ns) : clock_now_ns();
	atomic_store(&g->started_ns, now_ns);
	for (int i = 0; i < g->n_stages; i++)
		g->stages[i]->sink.started_ns = now_ns;
	stack_prepare(); /* without it the watchdog has no stacks to show */
	atomic_store(&g->phase, GRAPH_RUNNING);
	for (int i = 0; i < g->n_pools; i++)
		pool_start(g->pools[i]); /* what could not be made, control makes later */
	if (old)
		hold_sources(g);
	int n_started = 0, rc = control_start(g->control);
	if (rc != 0)
		weir_errs_add(errs, NULL, rc, NULL, "the control thread could not be created");
	else
		rc = start_sources(g, errs, &n_started);
	if (rc != 0)
		abort_start(g, n_started);
	else
		graph_steer_begin(g);
	return rc;
}

int weir_graph_start(struct weir_graph *g, struct weir_errs *errs)
{
	return graph_start(g, NULL, errs);
}

void weir_graph_drain(struct weir_graph *g, int64_t grace_ns, struct weir_drain_report *report)
{
	struct weir_drain_report r = {0};
	int64_t start_ns = clock_now_ns(), until_ns = start_ns + grace_ns;
	bool attach = thread_current == NULL;

	WEIR_ASSERT(atomic_load(&g->phase) == GRAPH_RUNNING);
	graph_steer_end(g);
	atomic_store(&g->phase, GRAPH_DRAINING);
	if (attach)
		enter_drain(g, until_ns + NS_PER_S);
	for (int k = 0; k < g->n_stages; k++) {
		struct weir_stage *st = g->stages[g->order[k]];
		if (is_source(st) && st->ops->stop)
			st->ops->stop(st, until_ns);
	}
	drain_stages(g, until_ns, &r);
	r.law_error = wait_late(g);
	if (attach)
		weir_thread_detach();
	atomic_store(&g->phase, GRAPH_DRAINED);
	r.took_ns = clock_now_ns() - start_ns;
	if (report)
		*report = r;
}
