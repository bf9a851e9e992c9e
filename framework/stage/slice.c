/* SPDX-License-Identifier: MIT */
/* Time slices of long events: weir_slice_over. The threads of core groups set their length
 * (sched/core.c). */
#include "base/clock.h"
#include "event/local.h"
#include "stage/stage.h"

bool weir_slice_over(const struct weir_stage *st)
{
	struct thread *t = thread_self();
	struct slice *s = &t->slice;

	if (s->ns == 0 || st->pool != t->pool ||
	    atomic_load_explicit(&t->running, memory_order_relaxed) != st)
		return false;
	int64_t now_ns = clock_now_ns();
	bool begins = s->batch != t->batch;
	int at = begins ? 0 : s->at;
	while (at < t->run_n && !t->run_ev[at])
		at++;
	if (begins || at != s->at)
		s->from_ns = begins && at == 0 ? t->now_ns : now_ns;
	s->batch = t->batch;
	s->at = at;
	return now_ns - s->from_ns >= s->ns;
}
