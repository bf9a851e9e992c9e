/* SPDX-License-Identifier: MIT */
/*
 * The way in and the way out of the world: init and finish.
 *
 * Finish is the one door out. It counts the outcome in the book of the stage that holds the event, so
 * the law offered = completed + shed + failed + in flight closes there, and dies on an event that is
 * not in flight: finishing twice is our bug, never load.
 */
#include "flow/local.h"

#include <string.h>

_Thread_local struct thread *thread_current;

void weir_event_init(struct weir_event *ev, const struct weir_event_type *type, int64_t now_ns)
{
	WEIR_ASSERT(ev->state == WEIR_EVENT_IDLE || ev->state == WEIR_EVENT_FINISHED);
	*ev = (struct weir_event){
	    .type = type,
	    .arrival_ns = now_ns,
	    .deadline_ns = WEIR_NO_DEADLINE,
	    .stage = WEIR_NO_STAGE,
	    .state = WEIR_EVENT_NEW,
	};
}

static void count_outcome(struct class_book *c, int status)
{
	int shed = weir_shed_index(status);

	if (status == WEIR_OK)
		book_add(&c->completed, 1);
	else if (shed >= 0)
		book_add(&c->shed[shed], 1);
	else
		book_add(&c->failed, 1);
}

void weir_event_finish(struct weir_event **slot, int status)
{
	struct weir_event *ev = *slot;
	struct thread *t = thread_self();

	WEIR_ASSERT(ev->state == WEIR_EVENT_NEW || ev->state == WEIR_EVENT_RUNNING ||
	    ev->state == WEIR_EVENT_HELD);
	bool refused = t->refused_by != WEIR_NO_STAGE && weir_shed_index(status) >= 0;

	*slot = NULL;
	if (ev->stage != WEIR_NO_STAGE) {
		struct book *book = &t->local[ev->stage]->book;
		/* Shed is counted once, at the stage that refused; its sender has done its part. */
		count_outcome(&book->class_book[ev->class_id], refused ? WEIR_OK : status);
		book_add(ev->state == WEIR_EVENT_HELD ? &book->held : &book->running, (uint64_t)-1);
	}
	if (refused)
		ev->stage = (uint16_t)t->refused_by; /* the answer names who refused */
	ev->state = WEIR_EVENT_FINISHED;
	ev->type->finish(ev, status);
}
