/* SPDX-License-Identifier: MIT */
/*
 * Running a batch in a stage, and what a handler may ask while it runs.
 *
 * stage_run() is the only place that calls ops->handle, whether the thread is a handler of a pool
 * or the sender of an inline stage. It drops what expired in the queue, records waits per run of
 * equal stamps, and one clock read per batch serves as the end of this batch and the start of the
 * next.
 */
#include "flow/stage.h"

#include <string.h>

#include <weir/graph.h>
#include <weir/log.h>

#include "base/clock.h"
#include "base/probe.h"
#include "flow/cohort.h"
#include "flow/trail.h"
#include "sched/pool.h"

/* Weight of a batch in the smoothed service time: one in so many. Guess: quick enough to follow a
 * stage that slows down, slow enough not to follow one odd batch. */
#define SERVICE_SMOOTH 4

struct weir_graph *stage_graph(const struct weir_stage *st)
{
	return st->graph;
}

static struct local *local_of(const struct weir_stage *st)
{
	return thread_self()->local[st->id];
}

/* Finish what waited past its deadline, has too little time left to be worth a handler, or waited
 * longer than the policy has any use for; the rest moves up. What was begun before is spared and keeps its state;
 * *again says how many those are. Returns how many are left. */
static int drop_expired(
    struct sink *sink, struct weir_event **ev, int n, int64_t now_ns, int *again)
{
	int64_t least_ns = atomic_load_explicit(&sink->least_left_ns, memory_order_relaxed);
	int64_t most_ns = atomic_load_explicit(&sink->most_wait_ns, memory_order_relaxed);
	int kept = 0;

	for (int i = 0; i < n; i++) {
		if (WEIR_UNLIKELY(ev[i]->state == WEIR_EVENT_AGAIN)) {
			(*again)++;
			ev[kept++] = ev[i];
			continue;
		}
		ev[i]->state = WEIR_EVENT_RUNNING;
		if (WEIR_UNLIKELY(ev[i]->deadline_ns <= now_ns))
			weir_event_finish(&ev[i], WEIR_EDEADLINE);
		else if (WEIR_UNLIKELY(weir_event_left_ns(ev[i], now_ns) < least_ns))
			weir_event_finish(&ev[i], WEIR_EHOPELESS);
		else if (WEIR_UNLIKELY(now_ns - ev[i]->queued_ns > most_ns))
			weir_event_finish(&ev[i], WEIR_EDELAY);
		else
			ev[kept++] = ev[i];
	}
	for (int i = kept; i < n; i++)
		ev[i] = NULL;
	return kept;
}

/* Record the waits: events of one hand-off share a stamp, so a run of them is one entry. */
static void record_waits(const char *stage, struct local *l, struct weir_event **ev, int n,
    int64_t now_ns, int *per_class)
{
	for (int i = 0; i < n;) {
		int run = 1;
		uint8_t c = ev[i]->class_id;
		int64_t queued_ns = ev[i]->queued_ns;
		while (i + run < n && ev[i + run]->class_id == c &&
		       ev[i + run]->queued_ns == queued_ns)
			run++;
		hist_book_add(&l->times[c].wait, now_ns - queued_ns, (uint64_t)run);
		probe_dequeue(stage, c, run, now_ns - queued_ns);
		per_class[c] += run;
		i += run;
	}
}

/* An inline batch comes straight from the door: it has not waited, nothing in it has expired. */
static void record_no_waits(
    struct local *l, struct weir_event **ev, int n, int n_classes, int *per_class)
{
	if (n_classes == 1)
		per_class[0] = n;
	for (int i = 0; n_classes > 1 && i < n; i++)
		per_class[ev[i]->class_id]++;
	for (int c = 0; c < n_classes; c++)
		if (per_class[c])
			hist_book_add(&l->times[c].wait, 0, (uint64_t)per_class[c]);
}

static void record_service(
    struct local *l, const int *per_class, int n_classes, int n, int64_t took_ns)
{
	for (int c = 0; c < n_classes; c++)
		if (per_class[c])
			hist_book_add(&l->times[c].service, took_ns / n, (uint64_t)per_class[c]);
	if (WEIR_UNLIKELY(l->service_ns < 0))
		l->service_ns = took_ns / n;
	l->service_ns += (took_ns / n - l->service_ns) / SERVICE_SMOOTH;
	book_add(&l->book.busy_ns, (uint64_t)took_ns);
	book_add(&l->book.batches, 1);
	book_add(&l->book.batch_events, (uint64_t)n);
}

/* Slots that the handler left behind are our counted bug, not a leak. */
static void finish_leftovers(struct weir_stage *st, struct local *l, struct weir_event **ev, int n)
{
	int left = 0;

	for (int i = 0; i < n; i++) {
		if (ev[i]) {
			weir_event_finish(&ev[i], WEIR_EDROPPED);
			left++;
		}
	}
	if (WEIR_LIKELY(left == 0))
		return;
	book_add(&l->book.unhandled, (uint64_t)left);
	if (weir_log_first(&st->unhandled_logged))
		weir_log(WEIR_LOG_ERROR,
		    "stage '%s' (%s) left %d of %d events behind: finished as unhandled; a handler "
		    "must "
		    "emit, finish or hold each event",
		    st->name, st->ops->name, left, n);
}

/* Shed what the policy finds to have waited too long. Returns how many are left, at the end of ev. */
static int drop_late(struct sink *sink, struct weir_event **ev, int n, struct thread *t)
{
	int dropped = sink_drop(sink, ev, n, t->now_ns, &t->local[sink->id]->book);

	for (int i = 0; i < dropped; i++)
		weir_event_finish(&ev[i], WEIR_EDELAY);
	return n - dropped;
}

/* Events that were begun before run again; per_class[c] of them. */
static void run_again(struct weir_event **ev, int n, int *per_class)
{
	for (int i = 0; i < n; i++) {
		per_class[ev[i]->class_id] += ev[i]->state == WEIR_EVENT_AGAIN;
		ev[i]->state = WEIR_EVENT_RUNNING;
	}
}

void stage_run(struct sink *sink, struct weir_event **ev, int n)
{
	struct weir_stage *st = sink->stage;
	struct thread *t = thread_self();
	struct local *l = t->local[st->id];
	int per_class[WEIR_CLASSES_MAX] = {0}, before[WEIR_CLASSES_MAX] = {0}, again = 0;
	int64_t start_ns = t->now_ns;

	t->batch++;
	atomic_store_explicit(&t->moves, atomic_load_explicit(&t->moves, memory_order_relaxed) + 2,
	    memory_order_relaxed);
	book_add(&l->book.running, (uint64_t)n);
	/* Before anything is dropped, which had a way, too: here it ended. */
	if (!st->type || st->type->trail)
		trail_note(ev, n, st->id, start_ns, !sink->inlined);
	if (sink->inlined) {
		record_no_waits(l, ev, n, sink->queue.n_classes, per_class);
	} else {
		n = drop_expired(sink, ev, n, start_ns, &again);
		int left = n ? drop_late(sink, ev, n, t) : 0;
		ev += n - left;
		n = left;
		if (n == 0)
			return;
		if (WEIR_UNLIKELY(again > 0))
			run_again(ev, n, before);
		record_waits(sink->name, l, ev, n, start_ns, per_class);
	}
	if (sink->policy->tick)
		atomic_fetch_add_explicit(&sink->running, (unsigned)n, memory_order_relaxed);
	t->run_ev = ev;
	t->run_n = n;
	atomic_store_explicit(&l->book.running_n, n, memory_order_relaxed);
	atomic_store_explicit(&l->book.running_since_ns, start_ns, memory_order_relaxed);
	atomic_store_explicit(&t->running, st, memory_order_relaxed);
	atomic_store_explicit(&t->running_type, ev[0]->type, memory_order_relaxed);
	probe_handle_start(sink->name, n);
	st->ops->handle(st, ev, n);
	finish_leftovers(st, l, ev, n);
	t->run_n = 0;
	/* Only now: what is counted ahead of where it goes looks as if it went nowhere (route.h). Once
	 * per event, however often it was requeued. */
	for (int c = 0; c < sink->queue.n_classes; c++)
		if (per_class[c] > before[c])
			book_add(
			    &l->book.class_book[c].handled, (uint64_t)(per_class[c] - before[c]));
	if (sink->policy->tick)
		atomic_fetch_sub_explicit(&sink->running, (unsigned)n, memory_order_relaxed);
	t->now_ns = clock_now_ns();
	probe_handle_end(sink->name, n, t->now_ns - start_ns);
	record_service(l, per_class, sink->queue.n_classes, n, t->now_ns - start_ns);
	if (WEIR_UNLIKELY(sink->policy->tick && !sink_mean_cost_ns(sink)))
		sink_first_cost(sink, (t->now_ns - start_ns) / n);
	atomic_store_explicit(&l->book.running_since_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&t->running, NULL, memory_order_relaxed);
}

void stage_look(const struct sink *sink, struct admission_view *view)
{
	const struct pool *pool = sink->pool;
	int target = atomic_load_explicit(&pool->target, memory_order_relaxed);

	view->threads = target > 0 ? target : 1;
	view->idle = (int)(atomic_load_explicit(&pool->n_idle, memory_order_relaxed) +
			   atomic_load_explicit(&pool->n_spinning, memory_order_relaxed));
}

void stage_wake(struct sink *sink, uint32_t before, uint32_t length, uint64_t parts)
{
	struct pool *pool = sink->pool;
	int woken;

	if (queue_paused(&sink->queue) || !cohort_wakes(sink, before, length))
		return; /* who ends the pause wakes the pool */
	if (sink->queue.n_parts > 1)
		woken = pool_wake_parts(pool, parts);
	else
		woken = pool_wake(pool);
	if (woken)
		book_add(&local_of(sink->stage)->book.wakeups, (uint64_t)woken);
}

void stage_refused(
    struct weir_stage *st, int outlet, struct weir_event **ev, int n, const int *reason)
{
	struct thread *t = thread_self();

	t->refused_by = st->outlets[outlet].to->id;
	t->run_ev = ev; /* for a thread that dies in ops->refused */
	t->run_n = n;
	for (int i = 0; i < n;) {
		int run = 1;
		while (i + run < n && reason[i + run] == reason[i])
			run++;
		if (st->ops->refused)
			st->ops->refused(st, outlet, ev + i, run, reason[i]);
		for (int k = i; k < i + run; k++)
			if (ev[k])
				weir_event_finish(&ev[k], reason[i]);
		i += run;
	}
	t->run_n = 0;
	t->refused_by = WEIR_NO_STAGE;
}

/* ---- what callbacks may ask ---- */

static void unlinked(struct weir_stage *st, int outlet, struct weir_event **ev)
{
	bool known = outlet >= 0 && outlet < st->n_outlets;

	if (known && st->outlets[outlet].any) {
		weir_event_finish(ev, WEIR_OK);
		return;
	}
	if (weir_log_first(&st->unlinked_logged))
		weir_log(WEIR_LOG_ERROR,
		    "stage '%s' (%s) emitted to outlet %s%s%s, which is not linked", st->name,
		    st->ops->name, known ? "'" : "number out of range",
		    known ? st->outlets[outlet].name : "", known ? "'" : "");
	weir_event_finish(ev, WEIR_ELINK);
}

void weir_emit(struct weir_stage *st, int outlet, struct weir_event **slot)
{
	struct thread *t = thread_self();
	struct local *l = t->local[st->id];
	struct weir_event *ev = *slot;

	if (ev->state == WEIR_EVENT_NEW) { /* a source lets it into the world */
		ev->stage = (uint16_t)st->id;
		ev->state = WEIR_EVENT_RUNNING;
		book_add(&l->book.class_book[ev->class_id].offered, 1);
		book_add(&l->book.running, 1);
	}
	if (WEIR_UNLIKELY(ev->state == WEIR_EVENT_HELD)) {
		book_add(&l->book.held, (uint64_t)-1);
		book_add(&l->book.running, 1);
		ev->state = WEIR_EVENT_RUNNING;
	}
	WEIR_ASSERT(ev->state == WEIR_EVENT_RUNNING && ev->stage == st->id);
	if (WEIR_UNLIKELY(outlet < 0 || outlet >= st->n_outlets || !st->outlets[outlet].to)) {
		unlinked(st, outlet, slot);
		return;
	}
	*slot = NULL;
	outbox_add(t, &l->outbox[outlet], ev);
}

void weir_emit_run(struct weir_stage *st, int outlet, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		weir_emit(st, outlet, &ev[i]);
}

void weir_hold(struct weir_stage *st, struct weir_event **slot)
{
	WEIR_ASSERT((*slot)->state == WEIR_EVENT_RUNNING && (*slot)->stage == st->id);
	(*slot)->state = WEIR_EVENT_HELD;
	book_add(&local_of(st)->book.held, 1);
	book_add(&local_of(st)->book.running, (uint64_t)-1);
	*slot = NULL;
}

void weir_requeue(struct weir_stage *st, struct weir_event **slot)
{
	struct thread *t = thread_self();
	struct local *l = t->local[st->id];
	struct weir_event *ev = *slot;

	if (ev->state == WEIR_EVENT_HELD) {
		book_add(&l->book.held, (uint64_t)-1);
		book_add(&l->book.running, 1);
		ev->state = WEIR_EVENT_RUNNING;
	}
	WEIR_ASSERT(ev->state == WEIR_EVENT_RUNNING && ev->stage == st->id);
	*slot = NULL;
	outbox_add(t, &l->again, ev);
}

int weir_outlet_find(const struct weir_stage *st, const char *name)
{
	for (int i = 0; i < st->n_outlets; i++)
		if (strcmp(st->outlets[i].name, name) == 0)
			return i;
	return -1;
}

bool weir_outlet_linked(const struct weir_stage *st, int outlet)
{
	return outlet >= 0 && outlet < st->n_outlets && st->outlets[outlet].to != NULL;
}

void *weir_state(const struct weir_stage *st)
{
	return st->state;
}

void *weir_thread_state(const struct weir_stage *st)
{
	return local_of(st)->thread_state;
}

const struct weir_stage_ops *weir_stage_type(const struct weir_stage *st)
{
	return st->ops;
}

const char *weir_stage_name(const struct weir_stage *st)
{
	return st->name;
}

int64_t weir_now_ns(const struct weir_stage *st)
{
	(void)st;
	return thread_current ? thread_current->now_ns : clock_now_ns();
}

int64_t weir_remaining_ns(const struct weir_stage *st, const struct weir_event *ev)
{
	return weir_event_left_ns(ev, weir_now_ns(st));
}

/* Half the objective is what the policy `weir` lets anybody wait (overload.md 3.2). */
#define FULL_WAIT_SHARE 0.5

double weir_pressure(const struct weir_stage *st)
{
	const struct sink *s = &st->sink;
	uint32_t limit = atomic_load_explicit(&s->queue.limit, memory_order_relaxed);
	int64_t wait_ns = atomic_load_explicit(&s->wait_ns, memory_order_relaxed);
	double full = limit > 0 ? (double)queue_length(&s->queue) / (double)limit : 0;
	double late = s->slo_ns > 0 ? (double)wait_ns / (FULL_WAIT_SHARE * (double)s->slo_ns) : 0;
	double p = full > late ? full : late;

	return p > 1 ? 1 : p;
}

double weir_degradation(const struct weir_stage *st)
{
	return (double)atomic_load_explicit(&st->degraded, memory_order_relaxed) / DEGRADE_TENTHS;
}

void weir_count(struct weir_stage *st, int row, int64_t n)
{
	WEIR_ASSERT(row >= 0 && row < WEIR_METRICS_MAX);
	book_add(&local_of(st)->book.metric[row], (uint64_t)n);
}
