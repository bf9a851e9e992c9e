/* SPDX-License-Identifier: MIT */
/*
 * Starts and drains a graph.
 *
 * In a drain, sources stop creating events and let their connections finish. Then the drain waits
 * until nothing is in flight except held events, and calls ops->stop of each stage to release
 * those, again and again until nothing is in flight (graph/quiet.c), or only events that threads hold
 * until they exit. At the end of the grace time the queues are closed, upstream first, and the events
 * left in them are finished as WEIR_ECLOSED. The threads of pools finish their current batch and exit.
 * Finally the conservation law offered = ended is checked exactly. No wait in this file is
 * unbounded: threads that do not return from a handler are left behind (graph/stuck.c).
 */
#include <stdlib.h>

#include <weir/log.h>

#include "base/clock.h"
#include "base/stack.h"
#include "control/control.h"
#include "graph/graph.h"
#include "stage/thread.h"
#include "sched/cores.h"

/* Longest time between two checks of the hurry flag during a drain. The flag may be set by a signal
 * handler, which cannot wake the drain. */
#define DRAIN_LOOK_NS (20 * NS_PER_MS)
/* Longest wait for I/O threads and loops of stages to finish the last events. 1 s is a guess: an
 * iteration of a loop takes microseconds, more on a busy machine. */
#define LATE_NS NS_PER_S
/* How long a handler call may continue after the grace time. 2 s is a guess: a batch takes
 * milliseconds, unless its stage sleeps. */
#define LEAVE_NS (2 * NS_PER_S)

bool weir_graph_ready(const struct weir_graph *g)
{
	return atomic_load(&g->phase) == GRAPH_RUNNING && atomic_load(&g->started);
}

void weir_graph_hurry(struct weir_graph *g)
{
	atomic_store(&g->hurry, true);
}

bool weir_hurried(const struct weir_stage *st)
{
	return atomic_load_explicit(&st->graph->hurry, memory_order_relaxed);
}

static void set_draining(struct weir_graph *g, enum graph_phase phase)
{
	atomic_store(&g->phase, phase);
	atomic_store(&g->drain.draining, phase == GRAPH_DRAINING);
}

static bool is_source(const struct weir_stage *st)
{
	return st->ops->flags & WEIR_STAGE_SOURCE;
}

static int join_pools(struct weir_graph *g, int64_t at_ns)
{
	int left = 0;

	for (int i = 0; i < g->n_pools; i++)
		left += pool_join(g->pools[i], at_ns);
	return left;
}

/* Stop the pools. Their threads have the remaining grace time plus LEAVE_NS to finish. Once the
 * hurry flag is set, they have only LEAVE_NS from that time on. */
static void stop_pools(struct weir_graph *g, int64_t until_ns)
{
	int64_t now_ns = clock_now_ns();
	int64_t end_ns = (now_ns > until_ns ? now_ns : until_ns) + LEAVE_NS;
	bool hurried = false;

	for (int i = 0; i < g->n_pools; i++)
		pool_close(g->pools[i]);
	while (join_pools(g, now_ns + DRAIN_LOOK_NS) > 0) {
		now_ns = clock_now_ns();
		if (!hurried && atomic_load(&g->hurry) && now_ns + LEAVE_NS < end_ns)
			end_ns = now_ns + LEAVE_NS;
		hurried |= atomic_load(&g->hurry);
		if (now_ns >= end_ns)
			return;
	}
}

/* The number of events in flight in the graph. */
static int64_t in_flight(struct weir_graph *g)
{
	int64_t n = 0;

	for (int i = 0; i < g->n_stages; i++)
		n += graph_in_flight(g, i);
	return n;
}

/* Wait until a batch ends, for at most DRAIN_LOOK_NS and at most until `until_ns`. */
static void wait_look(struct weir_graph *g, int64_t now_ns, int64_t until_ns)
{
	int64_t look_ns = now_ns + DRAIN_LOOK_NS < until_ns ? now_ns + DRAIN_LOOK_NS : until_ns;
	struct timespec ts = {look_ns / NS_PER_S, look_ns % NS_PER_S};

	pthread_mutex_lock(&g->drain.mutex);
	pthread_cond_timedwait(&g->drain.cond, &g->drain.mutex, &ts);
	pthread_mutex_unlock(&g->drain.mutex);
}

/* Return the number of events that are in handlers, in outboxes or in cells, are held by stages, or
 * wait for their children. */
static uint64_t under_way(struct weir_graph *g)
{
	uint64_t n = 0;

	for (int i = 0; i < g->n_stages; i++) {
		struct book b = {0};
		graph_sum(g, i, &b, NULL, NULL, NULL, NULL);
		n += book_read(&b.running) + book_read(&b.held);
		for (int c = 0; c < g->n_classes; c++)
			n += book_read(&b.class_book[c].awaiting);
		n += sink_in_cells(&g->stages[i]->sink); /* of threads that are left behind */
	}
	return n;
}

/* Report the threads that have not returned from a handler, and the events that are lost with
 * them. */
static void report_left(struct weir_graph *g, struct weir_drain_report *r)
{
	r->left = graph_say_left(g, r->left_text, sizeof(r->left_text));
	if (r->left == 0)
		return;
	r->lost = under_way(g);
	r->law_error -= (int64_t)r->lost;
}

/* Wait until nothing is in flight except held events, at most until `until_ns`. Returns false on
 * timeout or hurry. */
static bool wait_quiet(struct weir_graph *g, int64_t until_ns)
{
	while (!graph_is_quiet(g, true)) {
		int64_t now_ns = clock_now_ns();
		if (now_ns >= until_ns || atomic_load(&g->hurry))
			return false;
		wait_look(g, now_ns, until_ns);
	}
	return true;
}

/* Wait for I/O threads, which run until the graph is freed, to finish the last events. For example,
 * a stage has just released an event (weir_http_wait of http.server); an I/O thread emits the
 * event, finds the queue closed and finishes it. Returns the number of events still in flight. */
static int64_t wait_late(struct weir_graph *g)
{
	int64_t until_ns = clock_now_ns() + LATE_NS, now_ns, left;

	while (((left = in_flight(g)) != 0 || graph_left(g, true) > 0) &&
	       (now_ns = clock_now_ns()) < until_ns)
		wait_look(g, now_ns, until_ns);
	return left;
}

/* Wait until `st` has claimed the events that it holds with tickets, or they have expired. Returns
 * false on timeout or hurry. */
static bool wait_tickets(struct weir_graph *g, struct weir_stage *st, int64_t until_ns)
{
	while (graph_tickets_out(st) > 0) {
		int64_t now_ns = clock_now_ns();
		if (now_ns >= until_ns || atomic_load(&g->hurry))
			return false;
		wait_look(g, now_ns, until_ns);
	}
	return true;
}

/* Whether `st` releases the events that it holds before its threads exit. */
static bool releases(const struct weir_stage *st)
{
	return !is_source(st) && (st->ops->stop || st->tickets);
}

/* Make the stages release the events that they hold, upstream first. If `wait` is set, wait after each
 * stage until the released events have ended or are held downstream, while there is time left. With
 * `again`, leave out the stages that hold nothing. Returns whether there
 * may be time left. */
static bool stop_each(struct weir_graph *g, int64_t until_ns, bool wait, bool again)
{
	for (int k = 0; k < g->n_stages; k++) {
		struct weir_stage *st = g->stages[g->order[k]];
		if (!releases(st))
			continue;
		if (again && graph_held_at(g, st) == 0)
			continue;
		if (st->ops->stop && st->replicas)
			cores_stop(st->pool->cores, st, until_ns);
		else if (st->ops->stop)
			st->ops->stop(st, until_ns);
		weir_thread_flush();
		if (wait)
			wait = wait_tickets(g, st, until_ns) && wait_quiet(g, until_ns);
	}
	return wait;
}

/* Whether nothing is in flight but events that are held by stages which release them only in
 * ops->thread_fini, and events that await those. */
static bool is_left_to_threads(struct weir_graph *g)
{
	for (int i = 0; i < g->n_stages; i++)
		if (releases(g->stages[i]) && graph_held_at(g, g->stages[i]) > 0)
			return false;
	return graph_is_quiet(g, true);
}

/* Make the stages release the events that they hold. If `wait` is set, repeat this until nothing is in
 * flight or there is no time left: a parent whose last child was held downstream goes on at a stage that
 * has been stopped before, as does an event in a loop of the graph, and may be held there. */
static void stop_stages(struct weir_graph *g, int64_t until_ns, bool wait)
{
	for (bool again = false; (wait = stop_each(g, until_ns, wait, again)); again = true) {
		int64_t now_ns = clock_now_ns();
		if (graph_is_quiet(g, false) || is_left_to_threads(g) || now_ns >= until_ns ||
		    atomic_load(&g->hurry))
			return;
		wait_look(g, now_ns, until_ns);
	}
}

/* Wait for the loops of stages to finish the events that were sent to them, at most LATE_NS. */
static void wait_arrivals(struct weir_graph *g)
{
	int64_t until_ns = clock_now_ns() + LATE_NS, now_ns;

	for (int i = 0; i < g->n_stages; i++)
		while (atomic_load(&g->stages[i]->arriving) > 0 &&
		       (now_ns = clock_now_ns()) < until_ns)
			wait_look(g, now_ns, until_ns);
}

static void drain_stages(struct weir_graph *g, int64_t until_ns, struct weir_drain_report *r)
{
	stop_stages(g, until_ns, wait_quiet(g, until_ns));
	r->closed = graph_end_queued(g);
	control_stop(g->control);
	stop_pools(g, until_ns);
	wait_arrivals(g);
	for (int i = 0; i < g->n_pools; i++)
		r->closed += g->pools[i]->cores ? atomic_load(&g->pools[i]->cores->closed) : 0;
	/* Since the first call of graph_end_queued, batches have ended: they have released their
	 * partitions and emitted events. Finish the events in those partitions, and the emitted
	 * ones. */
	r->closed += graph_end_queued(g);
	stop_stages(g, until_ns, false);
}

/* Register the calling thread with the graph. The struct for it was allocated at startup, so a
 * drain cannot fail here. If the thread is registered with another graph, leave_drain restores that
 * registration. */
static struct thread *enter_drain(struct weir_graph *g)
{
	struct thread *other = thread_step_out();

	thread_enter_spare(g->drain_thread);
	g->drain_thread = NULL;
	return other;
}

static void leave_drain(struct thread *other)
{
	weir_thread_detach();
	thread_step_in(other);
}

/* Pause all sources, so that on a reload no event enters the new graph before all its stages have
 * started. */
static void hold_sources(struct weir_graph *g)
{
	for (int i = 0; i < g->n_stages; i++)
		if (is_source(g->stages[i]) && g->stages[i]->ops->pause)
			g->stages[i]->ops->pause(g->stages[i], true);
}

static int refused(const struct weir_stage *by, int rc, const char *threads, struct weir_errs *errs)
{
	return weir_errs_add(errs, &by->spec->mark, rc, NULL,
	    "stage '%s' (%s) refuses threads of '%s' (thread_init): %s", by->name, by->ops->name,
	    threads, weir_error_text(rc));
}

static int start_sources(struct weir_graph *g, struct weir_errs *errs, int *n_started)
{
	for (int k = g->n_stages; k-- > 0;) {
		struct weir_stage *st = g->stages[g->order[k]];
		struct weir_err err = {0};
		st->blamed = NULL;
		int rc = graph_loop_start(st);
		if (rc == 0 && st->ops->start)
			rc = st->ops->start(st, &err);
		if (rc == 0)
			continue;
		weir_errs_add(errs, st->blamed ? st->blamed : &st->spec->mark, rc,
		    err.hint[0] ? err.hint : NULL, "stage '%s' (%s): %s", st->name, st->ops->name,
		    err.text[0] ? err.text : weir_error_text(rc));
		if (st->refused_by)
			refused(st->refused_by, rc, st->name, errs);
		*n_started = g->n_stages - 1 - k;
		return rc;
	}
	return 0;
}

/* Stop the graph as in a drain, because sources that have started may have admitted events. */
void graph_abort(struct weir_graph *g, int n_started)
{
	struct weir_drain_report r = {0};
	int64_t now_ns = clock_now_ns();

	set_draining(g, GRAPH_DRAINING);
	struct thread *other = enter_drain(g);
	for (int k = g->n_stages - n_started; k < g->n_stages; k++) {
		struct weir_stage *st = g->stages[g->order[k]];
		if (is_source(st) && st->ops->stop)
			st->ops->stop(st, now_ns);
	}
	drain_stages(g, now_ns, &r);
	report_left(g, &r);
	leave_drain(other);
	set_draining(g, GRAPH_DRAINED);
}

/* Start the pools. A thread that cannot be created is not an error, since it may be created later,
 * but a failed thread_init is an error. */
static int start_pools(struct weir_graph *g, struct weir_errs *errs)
{
	int rc = 0;

	for (int i = 0; i < g->n_pools; i++)
		pool_start(g->pools[i]);
	for (int i = 0; i < g->n_pools; i++) {
		struct pool_refusal refusal;
		pool_started(g->pools[i], &refusal);
		if (refusal.by)
			rc = refused(refusal.by, refusal.code, g->pools[i]->name, errs);
	}
	return rc;
}

/* Start the threads of core groups that no loop of a source hosts. */
static void start_rest(struct weir_graph *g)
{
	for (int i = 0; i < g->n_pools; i++)
		if (atomic_exchange(&g->pools[i]->waits, false))
			pool_start(g->pools[i]);
}

int graph_start(struct weir_graph *g, struct weir_graph *old, struct weir_errs *errs)
{
	WEIR_ASSERT(atomic_load(&g->phase) == GRAPH_BUILT);
	if (thread_spare_new(g, "drain", &g->drain_thread) != 0)
		return weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	/* A graph that replaces another one takes over its start time, so that shed ids and uptimes
	 * continue. */
	int64_t now_ns = old ? atomic_load(&old->started_ns) : clock_now_ns();
	atomic_store(&g->started_ns, now_ns);
	for (int i = 0; i < g->n_stages; i++)
		g->stages[i]->sink.started_ns = now_ns;
	stack_prepare(); /* if this fails, the watchdog cannot log call stacks */
	atomic_store(&g->phase, GRAPH_RUNNING);
	if (old)
		hold_sources(g);
	int n_started = 0, rc = start_pools(g, errs);
	if (rc == 0) {
		rc = control_start(g->control);
		if (rc != 0)
			weir_errs_add(
			    errs, NULL, rc, NULL, "the control thread could not be created");
	}
	if (rc == 0)
		rc = start_sources(g, errs, &n_started);
	if (rc == 0)
		start_rest(g);
	if (rc != 0) {
		graph_abort(g, n_started);
		return rc;
	}
	atomic_store(&g->started, true);
	graph_operator.started(g);
	return 0;
}

int weir_graph_start(struct weir_graph *g, struct weir_errs *errs)
{
	return graph_start(g, NULL, errs);
}

/* Cleanup handler of a drain, called if a stage's handler terminates the draining thread. Handlers
 * run in that thread for events released by ops->stop. No other thread can continue the drain, so
 * the process aborts. */
static void drain_died(void *arg)
{
	const struct weir_graph *g = arg;

	weir_log(WEIR_LOG_ERROR,
	    "%s: a handler ended the draining thread (pthread_exit): the process exits",
	    g->spec->name);
	abort();
}

static void drain(struct weir_graph *g, int64_t grace_ns, struct weir_drain_report *report)
{
	struct weir_drain_report r = {0};
	int64_t start_ns = clock_now_ns(), until_ns = start_ns + grace_ns;
	bool attach = !thread_current || thread_current->graph != g;
	struct thread *other = NULL;

	WEIR_ASSERT(atomic_load(&g->phase) == GRAPH_RUNNING);
	graph_operator.drains(g);
	set_draining(g, GRAPH_DRAINING);
	if (attach)
		other = enter_drain(g);
	for (int k = 0; k < g->n_stages; k++) {
		struct weir_stage *st = g->stages[g->order[k]];
		if (is_source(st) && st->ops->stop)
			st->ops->stop(st, until_ns);
	}
	drain_stages(g, until_ns, &r);
	r.law_error = wait_late(g);
	report_left(g, &r);
	if (attach)
		leave_drain(other);
	set_draining(g, GRAPH_DRAINED);
	r.took_ns = clock_now_ns() - start_ns;
	if (report)
		*report = r;
}

void weir_graph_drain(struct weir_graph *g, int64_t grace_ns, struct weir_drain_report *report)
{
	pthread_cleanup_push(drain_died, g);
	drain(g, grace_ns, report);
	pthread_cleanup_pop(0);
}
