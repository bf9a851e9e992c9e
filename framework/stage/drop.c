/* SPDX-License-Identifier: MIT */
/* Drops events of a batch before it is handled; see stage.h. */
#include "event/op.h"
#include "event/place.h"
#include "stage/stage.h"

/* Finish an event of a batch before it is handled. It is counted first, as in stage_end_waiting. */
static void drop(struct sink *sink, struct weir_event **slot, int status)
{
	book_add(&thread_self()->local[sink->id]->book.dropped, 1);
	weir_event_finish(slot, status);
}

int stage_drop_some(
    struct sink *sink, struct weir_event **ev, int kept, int n, int64_t now_ns, int *again)
{
	int64_t least_ns = atomic_load_explicit(&sink->least_left_ns, memory_order_relaxed);
	int64_t most_ns = atomic_load_explicit(&sink->most_wait_ns, memory_order_relaxed);
	struct op_check check = {0};
	bool checks = op_checks();

	for (int i = kept; i < n; i++) {
		if (WEIR_UNLIKELY(checks) && op_check(&check, ev[i])) {
			ev[i]->state = WEIR_EVENT_RUNNING;
			drop(sink, &ev[i], WEIR_ECANCELLED);
			continue;
		}
		if (WEIR_UNLIKELY(ev[i]->state == WEIR_EVENT_AGAIN)) {
			(*again)++;
			ev[kept++] = ev[i];
			continue;
		}
		event_set_state(ev[i], WEIR_EVENT_RUNNING);
		if (WEIR_UNLIKELY(ev[i]->deadline_ns <= now_ns))
			drop(sink, &ev[i], WEIR_EDEADLINE);
		else if (WEIR_UNLIKELY(weir_event_left_ns(ev[i], now_ns) < least_ns))
			drop(sink, &ev[i], WEIR_EHOPELESS);
		else if (WEIR_UNLIKELY(now_ns - ev[i]->queued_ns > most_ns))
			drop(sink, &ev[i], WEIR_EDELAY);
		else
			ev[kept++] = ev[i];
	}
	for (int i = kept; i < n; i++)
		ev[i] = NULL;
	return kept;
}

int stage_drop_late(struct sink *sink, struct weir_event **ev, int n, int64_t now_ns)
{
	int dropped = sink_drop(sink, ev, n, now_ns, &thread_self()->local[sink->id]->book);

	for (int i = 0; i < dropped; i++)
		drop(sink, &ev[i], WEIR_EDELAY);
	return n - dropped;
}

int stage_drop_over(struct sink *sink, struct weir_event **ev, int n)
{
	struct op_check check = {0};
	int kept = 0;

	for (int i = 0; i < n; i++) {
		if (!op_check(&check, ev[i])) {
			ev[kept++] = ev[i];
			continue;
		}
		ev[i]->state = WEIR_EVENT_RUNNING;
		drop(sink, &ev[i], WEIR_ECANCELLED);
	}
	for (int i = kept; i < n; i++)
		ev[i] = NULL;
	return kept;
}
