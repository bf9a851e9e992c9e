/* SPDX-License-Identifier: MIT */
/*
 * The longest wait of the events of a stage on a core of a core group, over the present and the
 * previous window of time. So it covers 30 to 60 s: a reader that asks twice a minute misses none.
 *
 * The thread of the core writes, any thread reads. The windows are numbered, and the control thread
 * tells the cores the number (struct cores_plan); a core that has slept through a window is recognised by
 * its old number. A reader may see a value of the window before for a moment.
 */
#ifndef WEIR_SCHED_LONGEST_H
#define WEIR_SCHED_LONGEST_H

#include <stdatomic.h>
#include <stdint.h>

#define LONGEST_WINDOW_NS 30000000000LL

struct longest {
	_Atomic int64_t now_ns, before_ns; /* in the present and in the previous window */
};

/** An event has waited for `wait_ns`. */
static inline void longest_note(struct longest *l, int64_t wait_ns)
{
	if (__builtin_expect(wait_ns > atomic_load_explicit(&l->now_ns, memory_order_relaxed), 0))
		atomic_store_explicit(&l->now_ns, wait_ns, memory_order_relaxed);
}

/** A new window begins, `windows` after the one of the last call. */
static inline void longest_turn(struct longest *l, unsigned windows)
{
	int64_t was_ns = atomic_load_explicit(&l->now_ns, memory_order_relaxed);

	atomic_store_explicit(&l->before_ns, windows == 1 ? was_ns : 0, memory_order_relaxed);
	atomic_store_explicit(&l->now_ns, 0, memory_order_relaxed);
}

/** Return the longest wait if the last window of the writer was `windows` ago. */
static inline int64_t longest_read(const struct longest *l, unsigned windows)
{
	int64_t now_ns = atomic_load_explicit(&l->now_ns, memory_order_relaxed);
	int64_t before_ns = atomic_load_explicit(&l->before_ns, memory_order_relaxed);

	if (windows > 1)
		return 0;
	return windows == 1 || now_ns > before_ns ? now_ns : before_ns;
}

#endif
