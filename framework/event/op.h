/* SPDX-License-Identifier: MIT */
/* Operations (weir/op.h), within the framework. The members of a weir_op that several threads use,
 * `pending` and `status` of an event that awaits, are accessed by atomic operations. */
#ifndef WEIR_EVENT_OP_H
#define WEIR_EVENT_OP_H

#include <stdatomic.h>
#include <string.h>

#include <weir/op.h>

struct thread;
struct outbox;
struct weir_family;

/* Bits of weir_op.flags: the memory comes from weir_event_new; the event has ended before it was
 * sent, with `status`; a child of the event, which is in a handler, could not be made, which counts in
 * thread.unsent; the parent awaits the first child (family_race); of the unsent children of the event,
 * one cannot be sent, or they leave by several outlets. */
#define OP_SLAB   1
#define OP_UNSENT 2
#define OP_LACKS  4
#define OP_RACES  8
#define OP_MIXED  16

/** Number of families that have ended and still have members. Events are checked only while there are
 *  some. It is raised before a family is over and lowered when the family is freed, so a thread that
 *  sees a member of one that is over sees this, too. In a cache line of its own. */
struct op_over {
	WEIR_ALIGNED atomic_int families;
};
extern struct op_over op_over;

static inline struct weir_op *op_of(const struct weir_event *ev)
{
	return (struct weir_op *)((uintptr_t)ev + ev->type->op);
}

/** Set the members from `maker` on of a struct weir_op whose other members are zero. In one store: see
 *  event/place.h. */
static inline void op_init(struct weir_op *op, uint8_t flags)
{
	const struct weir_op from = {.maker = WEIR_NO_STAGE, .flags = flags};
	const size_t at = offsetof(struct weir_op, maker);

	memcpy((char *)op + at, (const char *)&from + at, sizeof(from) - at);
}

/** Whether events must be checked for families that have ended. */
static inline bool op_checks(void)
{
	return atomic_load_explicit(&op_over.families, memory_order_relaxed) > 0;
}

/** Whether the event belongs to a family that has ended. */
static inline bool op_is_over(const struct weir_event *ev)
{
	return ev->type->op && op_of(ev)->family && weir_family_over(op_of(ev)->family);
}

/** The family of the last event that was checked, and the result: the next event is mostly of the same
 *  one. Zeroed at first. */
struct op_check {
	const struct weir_family *family;
	bool over;
};

/** As op_is_over, for one event after another. */
static inline bool op_check(struct op_check *c, const struct weir_event *ev)
{
	const struct weir_family *f = ev->type->op ? op_of(ev)->family : NULL;

	if (f != c->family)
		*c = (struct op_check){f, weir_family_over(f)};
	return c->over;
}

/** Whether the end of the event, whose type has a struct weir_op, is only a call of `finish`: it has no
 *  children, is none, is in no family, and its memory belongs to its owner. HTTP requests, mostly. */
static inline bool op_is_plain(const struct weir_event *ev)
{
	const struct weir_op *op = op_of(ev);

	return !op->children && !op->family && !op->parent && op->maker == WEIR_NO_STAGE &&
	       !(op->flags & OP_SLAB) && ev->type->finish;
}

/** Whether the end of the event is only the release of its memory: weir_event_new has made it, no stage has
 *  got it, it is in no family and has no finish callback. */
static inline bool op_is_new(const struct weir_event *ev)
{
	const struct weir_event_type *type = ev->type;

	if (ev->state != WEIR_EVENT_NEW || !type->op || type->finish || type->payloads ||
	    type->trail)
		return false;
	const struct weir_op *op = op_of(ev);
	return op->flags == OP_SLAB && op->maker == WEIR_NO_STAGE && !op->family;
}

struct weir_family {
	WEIR_ALIGNED atomic_long refs;
	atomic_bool over;
	struct weir_family *within;    /* a reference; constant */
	struct weir_family *next_kept; /* see family.c */
	/* of the children of weir_await_first: their parent, until it is resumed; the number of those
	 * that have not ended; and the first status but WEIR_OK */
	_Atomic(struct weir_event *) waiter;
	atomic_int racing;
	_Atomic int16_t status;
	/* bytes of the members, and the bound on them; 0: that of the graph */
	_Atomic uint64_t used, limit;
};

/** Make the unsent children of `ev`, at least one, members of a new family that ends with the first of
 *  them that succeeds. Returns false if memory is short. */
bool family_race(struct weir_event *ev);
/** A child of family_race has ended with `status`. Returns its parent if this decides the race, and the
 *  status of the race in *result; otherwise NULL. */
struct weir_event *family_raced(struct weir_family *f, int status, int *result);

/** Number of families that have ended so far. */
uint64_t family_ends(void);
/** Between these calls a family that was found in a slot with a ticket may be read (weir_family_over),
 *  though the event may leave the slot meanwhile. The thread must read the ticket first. */
void family_search_begin(void);
void family_search_end(void);

/** Add `n` references to a family, or release them; NULL is allowed. */
void family_take(struct weir_family *f, int n);
void family_put(struct weir_family *f, int n);

/** Count `bytes` more in `f` and in the families that contain it. Returns false, with nothing counted, if
 *  that would exceed the memory of one. NULL is allowed. */
bool family_grow(struct weir_family *f, uint64_t bytes);
/** Count `bytes` less. */
void family_shrink(struct weir_family *f, uint64_t bytes);
/** Make `ev`, which is in no family, a member of `f`, not NULL, with its payloads. Returns false if that
 *  would exceed the memory. */
bool family_enter(struct weir_family *f, struct weir_event *ev);
/** The memory of `n` members of `f`, each of `size` bytes, has been released. */
static inline void family_leave(struct weir_family *f, int n, size_t size)
{
	family_shrink(f, (size_t)n * size);
	family_put(f, n);
}

/** `ev`, whose type has a struct weir_op, has ended with `status` and has been counted: let its
 *  parent know, or release its memory. */
void op_end(struct thread *t, struct weir_event *ev, int status);

/** End the events at the front of slot[0..n), n >= 1, that have the type of the first one, are awaited by
 *  parents, and whose end need only be told to these: they have no children. The type has a struct weir_op
 *  and no trail. The events have been counted, as for op_end. Sets their slots to NULL and returns their
 *  number. */
int op_end_run(struct thread *t, struct weir_event **slot, int n, int status);

/** The calling thread's handler lets `ev` go without awaiting its unsent children: send them as
 *  orphans, or end them as WEIR_ECANCELLED if `cancel` is set. */
void op_let_go(struct thread *t, struct weir_event *ev, bool cancel);

/** Release the children of an event without unsent ones, which have ended. */
void op_free_ended(struct thread *t, struct weir_op *op);
/** Release ended children, linked by `next` and by `sibling`. */
void op_free_list(struct thread *t, struct weir_event *list);

/** Finish the events of `o` whose family has ended, as WEIR_ECANCELLED. */
void op_strip(struct outbox *o);

#endif
