/* SPDX-License-Identifier: MIT */
/* Moves the counts of held events from threads to queues; see local.h. */
#include <string.h>

#include "graph/graph.h"
#include "event/local.h"
#include "stage/stage.h"

void hold_count(struct thread *t, int id, int class_id, int n)
{
	struct weir_stage *st = t->graph->stages[id];

	if (atomic_load_explicit(&t->running, memory_order_relaxed) != st) {
		queue_hold(&st->sink.queue, class_id, n);
		return;
	}
	t->holds[class_id] += n;
	t->holding = true;
}

static void count_held(struct thread *t, struct queue *q)
{
	for (int c = 0; c < q->n_classes; c++)
		if (t->holds[c])
			queue_hold(q, c, t->holds[c]);
	memset(t->holds, 0, sizeof(t->holds));
	t->holding = false;
}

void hold_settle(struct thread *t, struct queue *q)
{
	if (WEIR_UNLIKELY(t->holding))
		count_held(t, q);
	/* after count_held, so that each event is always in at least one of the counts */
	if (WEIR_UNLIKELY(t->reserves)) {
		queue_return(q, t->reserved);
		memset(t->reserved, 0, sizeof(t->reserved));
		t->reserves = false;
	}
}

void hold_requeued(struct local *l)
{
	struct queue *q = &l->stage->sink.queue;

	for (int c = 0; c < q->n_classes; c++)
		if (l->again_held[c])
			queue_hold(q, c, -l->again_held[c]);
	memset(l->again_held, 0, sizeof(l->again_held));
	l->again_holds = false;
}
