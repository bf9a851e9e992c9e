/* SPDX-License-Identifier: MIT */
/* Closes the queues of a graph and finishes the events in them, at the end of a drain
 * (graph/run.c). */
#include "base/clock.h"
#include "event/local.h"
#include "graph/graph.h"
#include "stage/thread.h"

/* Finish the events that `st` holds with tickets, and those whose tickets have expired and that are
 * on their way back to `st`. Returns their number. */
static uint64_t end_ticketed(struct weir_stage *st)
{
	struct queue *q = &st->sink.queue;
	struct weir_event *ev[WEIR_BATCH_MAX], *list = graph_tickets_close(st);
	uint64_t ended = 0;
	int n, part;

	for (; list; ended++) {
		ev[0] = list;
		list = list->next;
		ev[0]->state = WEIR_EVENT_HELD;
		weir_event_finish(&ev[0], WEIR_ECLOSED);
	}
	for (int rank = 0; rank < q->n_parts; rank++) {
		while ((n = queue_take_back(q, rank, q->n_parts, ev, &part)) > 0) {
			for (int i = 0; i < n; i++)
				ev[i]->state = WEIR_EVENT_HELD;
			weir_event_finish_run(ev, n, WEIR_ECLOSED);
			atomic_fetch_sub(&st->arriving, n);
			queue_release(q, part);
			ended += (uint64_t)n;
		}
	}
	return ended;
}

/* Finish the events in the queue of `st`, and return their number. The queue is closed first, so
 * that no more events can enter. */
static uint64_t end_queued(struct weir_stage *st)
{
	struct weir_event *ev[WEIR_BATCH_MAX];
	uint64_t ended = 0;
	int n;

	queue_close(&st->sink.queue);
	ended += end_ticketed(st);
	for (int rank = 0; rank < st->sink.queue.n_parts; rank++) {
		struct queue_take take = {.rank = rank,
		    .n_ranks = st->sink.queue.n_parts,
		    .max = WEIR_BATCH_MAX,
		    .sharers = 1};
		while ((n = queue_pop(&st->sink.queue, &take, ev)) > 0) {
			for (int i = 0; take.counted && i < n; i++)
				queue_taken(&st->sink.queue, ev[i]->class_id, -1);
			stage_end_waiting(st, ev, n, WEIR_ECLOSED);
			queue_release(&st->sink.queue, take.part);
			ended += (uint64_t)n;
		}
	}
	weir_thread_flush();
	return ended;
}

uint64_t graph_end_queued(struct weir_graph *g)
{
	uint64_t ended = 0;

	for (int k = 0; k < g->n_stages; k++)
		ended += end_queued(g->stages[g->order[k]]);
	return ended;
}
