/* SPDX-License-Identifier: MIT */
/* Operations: making events (weir_event_new); see graph/op.c. */
#include <string.h>

#include "event/op.h"
#include "event/place.h"
#include "event/slab.h"
#include "graph/graph.h"

/* Make a new event of the memory at `at`. Returns it. */
static inline struct weir_event *init(
    const struct thread *t, const struct weir_event_type *type, void *at, size_t size)
{
	struct weir_event *ev = at;
	struct weir_op *op = (struct weir_op *)((uintptr_t)at + type->op);

	/* line by line, to which the memory is rounded up: most events are too short for a call */
	for (char *line = (char *)at; line < (char *)at + size; line += WEIR_CACHE_LINE)
		memset(line, 0, WEIR_CACHE_LINE);
	ev->type = type;
	ev->arrival_ns = t->now_ns;
	ev->deadline_ns = WEIR_NO_DEADLINE;
	event_set_place(ev, event_place_of(WEIR_NO_STAGE, 0, WEIR_EVENT_NEW));
	op_init(op, OP_SLAB);
	return ev;
}

/* As weir_event_new, if the list of free memory is empty, or has none of this size. */
static __attribute__((noinline)) struct weir_event *new_slow(
    struct thread *t, const struct weir_event_type *type)
{
	void *at = slab_take_slow(&t->slab, type->size);

	return at ? init(t, type, at, type->size) : NULL;
}

struct weir_event *weir_event_new(struct weir_stage *st, const struct weir_event_type *type)
{
	struct thread *t = thread_self();

	(void)st;
	WEIR_ASSERT(type->op != 0);
	size_t size = type->size;
	void *at = slab_take_fast(&t->slab, size);
	return WEIR_LIKELY(at != NULL) ? init(t, type, at, size) : new_slow(t, type);
}
