/* SPDX-License-Identifier: MIT */
/* What a thread notes before and after it calls a stage with a batch of events, for views, crash
 * reports, the watchdog, and the case that the thread exits in the call (graph/threads.c). */
#ifndef WEIR_STAGE_CALL_H
#define WEIR_STAGE_CALL_H

#include "base/clock.h"
#include "event/local.h"
#include "stage/stage.h"

/** Begin a new batch. */
static inline void call_next(struct thread *t)
{
	t->batch++;
	atomic_store_explicit(&t->moves, atomic_load_explicit(&t->moves, memory_order_relaxed) + 2,
	    memory_order_relaxed);
}

/** Note that the calling thread, whose local is `l`, is about to call the stage with ev[0..n). */
static inline void call_note(struct local *l, struct weir_event **ev, int n)
{
	struct thread *t = l->thread;

	t->run_ev = ev;
	t->run_n = n;
	atomic_store_explicit(&l->book.running_n, n, memory_order_relaxed);
	atomic_store_explicit(&t->running, l->stage, memory_order_relaxed);
	atomic_store_explicit(&t->running_type, ev[0]->type, memory_order_relaxed);
}

/** The call has returned: settle the thread's counts of held events. */
static inline void call_left(struct local *l)
{
	l->thread->run_n = 0;
	hold_settle(l->thread);
}

/** The calling thread is about to call the stage of `sink` with ev[0..n). */
static inline void call_begin(struct sink *sink, struct local *l, struct weir_event **ev, int n)
{
	if (sink->policy->tick)
		atomic_fetch_add_explicit(&sink->running, (unsigned)n, memory_order_relaxed);
	atomic_store_explicit(&l->book.running_since_ns, l->thread->now_ns, memory_order_relaxed);
	call_note(l, ev, n);
}

/** The call has returned. Returns how long it took. */
static inline int64_t call_end(struct sink *sink, struct local *l, int n)
{
	struct thread *t = l->thread;
	int64_t start_ns = t->now_ns;

	call_left(l);
	if (sink->policy->tick)
		atomic_fetch_sub_explicit(&sink->running, (unsigned)n, memory_order_relaxed);
	t->now_ns = clock_now_ns();
	return t->now_ns - start_ns;
}

/** End the call, after its time has been recorded: the thread no longer counts as in the stage. */
static inline void call_over(struct local *l)
{
	atomic_store_explicit(&l->book.running_since_ns, 0, memory_order_relaxed);
	book_changed(&l->book);
	atomic_store_explicit(&l->thread->running, NULL, memory_order_relaxed);
}

#endif
