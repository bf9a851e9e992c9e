/* SPDX-License-Identifier: MIT */
/* Ends events that wait for a stage and will not be handled, such as those at the end of a drain. */
#include "base/clock.h"
#include "stage/stage.h"
#include "trace/trail.h"

void stage_end_waiting(struct weir_stage *st, struct weir_event **ev, int n, int status)
{
	struct thread *t = thread_self();
	struct book *book = book_take(t, st->id);

	book_add(&book->running, (uint64_t)n);
	book_add(&book->dropped, (uint64_t)n);
	book_give(t, st->id, book);
	trail_note(ev, n, st->id, clock_now_ns(), true);
	for (int i = 0; i < n; i++) {
		ev[i]->state = WEIR_EVENT_RUNNING;
		weir_event_finish(&ev[i], status);
	}
}
