/* SPDX-License-Identifier: MIT */
/*
 * Loops of stages (WEIR_STAGE_LOOP). The threads of the pool take events from the queue, as for
 * every stage. They do not call ops->handle, but hold the events and send them to the loop, whose
 * thread calls ops->handle. So the queue, the width and the counters work as for any stage that
 * holds events. Events whose tickets have expired are sent to the loop in the same way. The state
 * of an event decides whether ops->handle or ops->expired is called.
 *
 * A loop is started before ops->start of its stage, and ended before ops->fini. A drain waits until
 * the loop has handled the events that were sent to it (weir_stage.arriving). After the grace time
 * they end as WEIR_ECLOSED instead. The loop notes its calls as other threads do, so that the
 * watchdog and a drain report a call that does not return.
 */
#include <weir/io.h>

#include "event/op.h"
#include "graph/graph.h"
#include "stage/call.h"

/* State of an event whose ticket has expired, on its way to the loop: its ticket is void. */
#define EXPIRED WEIR_EVENT_TICKETED

/* Call the stage with events that it holds. If events end in the call, queued events can take their
 * place within the width when the call has returned. The call is not part of the busy time of the
 * pool. */
static void call_stage(struct weir_stage *st, struct weir_event **ev, int n, bool expired)
{
	struct thread *t = thread_self();
	struct local *l = t->local[st->id];

	t->now_ns = clock_now_ns();
	atomic_store(&t->loop_since_ns, t->now_ns);
	call_note(l, ev, n);
	(expired ? stage_expire : stage_handle)(st, ev, n);
	call_left(l);
	atomic_store(&t->running, NULL);
	atomic_store(&t->loop_since_ns, 0);
	hold_wake(t, st);
}

/* Families may have ended since the events were sent to the loop. */
static int left_of(struct weir_event **ev, int n)
{
	return WEIR_UNLIKELY(op_checks()) ? stage_end_over(ev, n) : n;
}

static void loop_mail(struct weir_loop *loop, struct weir_event *list)
{
	struct weir_stage *st = weir_loop_stage(loop);
	struct weir_event *ev[WEIR_BATCH_MAX];

	while (list) {
		int n = 0, left, state = list->state;
		for (; list && list->state == state && n < WEIR_BATCH_MAX; list = list->next)
			ev[n++] = list;
		for (int i = 0; i < n; i++)
			ev[i]->state = WEIR_EVENT_HELD;
		if (WEIR_UNLIKELY(graph_tickets_closed(st)))
			weir_event_finish_run(ev, n, WEIR_ECLOSED);
		else if ((left = left_of(ev, n)) > 0)
			call_stage(st, ev, left, state == EXPIRED);
		atomic_fetch_sub(&st->arriving, n);
	}
}

static void loop_turn_end(struct weir_loop *loop)
{
	(void)loop;
}

static const struct weir_loop_ops loop_ops = {.mail = loop_mail, .turn_end = loop_turn_end};

static void send_to_loop(struct weir_stage *st, struct weir_event **ev, int n)
{
	if (ev[0]->state != WEIR_EVENT_HELD) /* give_back in tickets.c has counted expired ones */
		atomic_fetch_add(&st->arriving, n);
	for (int i = 0; i < n; i++) {
		struct weir_event *e = ev[i];
		if (e->state == WEIR_EVENT_HELD) {
			e->state = EXPIRED;
			ev[i] = NULL;
		} else {
			weir_hold(st, &ev[i]);
		}
		weir_loop_send(st->loop, e);
	}
}

int graph_loop_start(struct weir_stage *st)
{
	if (!(st->ops->flags & WEIR_STAGE_LOOP))
		return 0;
	st->to_loop = send_to_loop;
	return weir_loop_start(st, 0, &loop_ops, NULL, &st->loop);
}

void graph_loop_end(struct weir_stage *st)
{
	if (!st->loop)
		return;
	weir_loop_stop(st->loop);
	weir_loop_join(st->loop);
	st->loop = NULL;
}
