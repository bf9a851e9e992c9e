/* SPDX-License-Identifier: MIT */
/*
 * Operations: events that are split into children, wait for them, or wait for something outside.
 *
 * An event whose type has a struct weir_op (weir_event_type.op) can have children: events that a
 * stage makes for it and sends through its outlets. The stage then awaits them. The parent waits
 * without a thread, and when all its children have ended, its stage gets it again, in a continuation
 * instead of in `handle`:
 *
 *         static void joined(struct weir_stage *st, struct weir_event **ev, int n);
 *
 *         static void handle(struct weir_stage *st, struct weir_event **ev, int n)
 *         {
 *                 for (int i = 0; i < n; i++) {
 *                         struct weir_event *c = weir_event_new(st, &tile_type);
 *                         weir_child(st, ev[i], TILE, &c);
 *                         weir_await(st, &ev[i], joined);
 *                 }
 *         }
 *
 * This is the staged computation of Larus and Parkes (Using Cohort Scheduling to Enhance Server
 * Performance, 2002, sections 3 and 4.2): weir_await is their WaitForChildren, weir_wait their
 * WaitForEvent, and a child that is not awaited is one of DispatchChildren.
 *
 * Rules:
 *   - A child has the class, session, trace and family of its parent, and the deadline of its parent
 *     unless its own is earlier. Its stages see it as any other event: it passes admission, may be
 *     refused, and may have children of its own, up to WEIR_GENERATIONS.
 *   - Children are sent when the handler lets their parent go: in weir_await, or as orphans when the
 *     parent is emitted, finished, held or requeued instead. Nobody waits for an orphan.
 *   - A parent outlives the children that it awaits. A child that has ended, however it ended, is the
 *     parent's to read (weir_ended) until the parent ends or awaits again.
 *   - A child that the next stage refuses has ended with that status. So every parent gets its
 *     continuation, and calls in cycles cannot block each other.
 *   - A parent that awaits is in flight at its stage and occupies a slot there, as a held event does:
 *     a stage has at most `queue.limit` events that are queued, held or awaiting.
 *   - A continuation runs where `handle` runs: in the threads, the mode and the order of keys of the
 *     stage. Its batch has events with the same continuation only. In a replicated stage it may run in
 *     another replica than `handle`. The event has been admitted, so
 *     it gets its continuation even past its deadline.
 *   - If a thread exits in a handler, or a handler leaves an event behind, the unsent children of its
 *     events end as WEIR_ECANCELLED.
 *   - The thread that ends the last child puts the parent back into the queue of its stage when it
 *     sends its events. An attached thread does that in weir_thread_flush.
 *   - A mistake that can be seen at once, such as a child that has been given before, or a call for an
 *     event that waits already, ends the process by an assertion.
 *
 * The calls are for threads of the graph.
 */
#ifndef WEIR_OP_H
#define WEIR_OP_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/event.h>

WEIR_C_BEGIN

struct weir_stage;
struct weir_family;

/** Largest depth of children of children. A choice (16): a recursion that is deeper is more likely
 *  to be endless than to be useful. */
#define WEIR_GENERATIONS 16

/** Largest number of children that an event can have at a time, unless the stage sets `children:`.
 *  A choice (256): one batch. */
#define WEIR_CHILDREN 256

/** Called instead of ops->handle, with events of the stage that have waited: ev[0..n), n >= 1. The
 *  same rules hold as for ops->handle. */
typedef void weir_next(struct weir_stage *st, struct weir_event **ev, int n);

/**
 * What an event needs to have children, to be one, or to be resumed: a cache line. A type that has it
 * sets weir_event_type.op to its offset in the event. The members belong to the framework.
 */
struct weir_op {
	struct weir_event *parent;  /* awaits this event; NULL if none does */
	struct weir_family *family; /* NULL if it is in none */
	union {
		weir_next *next;          /* continuation of an event that waits; otherwise NULL */
		struct weir_event *ended; /* of an event with unsent children: the awaited ones */
	};
	/* The last unsent child; they are a ring by `next`. If there is none, the first awaited one. */
	struct weir_event *children;
	struct weir_event *sibling; /* next child of the parent; NULL for the last one */
	uint32_t pending;           /* awaited children that have not ended */
	uint32_t n_unsent, n_awaited;
	/* first status but WEIR_OK of a child; of an event that has ended, its own status */
	int16_t status;
	int16_t unsent_status;  /* first status of children that could not be made */
	uint16_t maker, outlet; /* stage that made the event, and by which outlet it leaves */
	uint8_t depth;          /* generations above */
	uint8_t flags;
};
static_assert(sizeof(struct weir_op) == WEIR_CACHE_LINE, "it is one cache line");

/**
 * Allocate an event of `type` in state NEW, with its whole struct zeroed (type->size bytes, aligned
 * to a cache line) and the time of the batch as its arrival. The type must have a struct weir_op.
 * The memory is released when the event has ended, after type->finish, which may be NULL for such
 * types and must not release the memory itself. Returns NULL if memory is short. Costs about 6 ns
 * with its end, since each thread has a list of free memory.
 */
WEIR_API struct weir_event *weir_event_new(
    struct weir_stage *st, const struct weir_event_type *type);

/**
 * Make `*child`, a new event of a type with a struct weir_op, a child of `ev`, to be sent through
 * `outlet` when `ev` is let go, and set `*child` to NULL. `ev` must be in a handler of the stage, or
 * held by it without a ticket; the thread that gives children to a held event lets it go, too, before
 * the callback in which it does so returns. A `*child` of NULL counts as a child that failed with WEIR_ENOMEM, so
 * the result of weir_event_new need not be checked.
 *
 * Returns 0, or the status with which the child ends without being sent: WEIR_ELIMIT if `ev` has as
 * many children as the stage's `children:` allows, is WEIR_GENERATIONS deep, or is in a family that has
 * no memory left for the child (weir_family_set_memory); WEIR_ELINK if the outlet is not linked;
 * WEIR_ECANCELLED if the family of `ev` has ended; WEIR_ENOMEM as above. The caller need not check it
 * either: weir_ended_status reports it. A child that is refused with WEIR_ELIMIT ends before this call
 * returns and is not one of weir_ended, so a handler that goes on making children does not use more
 * memory. Costs about 3 ns, and an atomic operation more for each family that contains the child.
 */
WEIR_API int weir_child(
    struct weir_stage *st, struct weir_event *ev, int outlet, struct weir_event **child);

/**
 * Let `*ev` wait until all children that it has been given have ended, and set `*ev` to NULL. Then
 * the stage gets it in `next`; at once if it has no children. `*ev` must be in a handler of the
 * stage, or held by it without a ticket. After this call the stage must not touch the event before
 * `next`. Costs about 12 ns.
 */
WEIR_API void weir_await(struct weir_stage *st, struct weir_event **ev, weir_next *next);

/**
 * As weir_await, but the stage gets the event as soon as one of the children has ended as WEIR_OK, or
 * all of them have ended. For a question that is put to several servers (hedging). The children become
 * members of a new family within that of `*ev`, which ends with the first WEIR_OK: so the others end as
 * WEIR_ECANCELLED at their next door, and nobody waits for them. They must have no other family than
 * the event. In `next`, weir_ended returns one child: the first that ended as WEIR_OK, or else the last
 * that ended; weir_ended_status is WEIR_OK, or else the first status with which one ended. If memory is
 * short, the children end as WEIR_ECANCELLED and the event as WEIR_ENOMEM. Costs an allocation more
 * than weir_await.
 */
WEIR_API void weir_await_first(struct weir_stage *st, struct weir_event **ev, weir_next *next);

/**
 * Let `*ev` wait until weir_resume is called with the returned ticket, and set `*ev` to NULL. Then
 * the stage gets it in `next`. This is weir_hold_until with a continuation (weir/hold.h): only for
 * stages with WEIR_STAGE_HOLDS; the wait ends at `until_ns` or at the event's deadline, when the
 * event is passed to ops->expired or ends as WEIR_EDEADLINE; and the result is 0 if memory is short.
 * The ticket exists only once the event waits, so it cannot be resumed too early: make the request
 * first, then wait, and then send the request with the ticket. An event that is taken with
 * weir_hold_claim instead, or whose wait has expired, has no continuation any more.
 */
WEIR_API uint64_t weir_wait(
    struct weir_stage *st, struct weir_event **ev, weir_next *next, int64_t until_ns);

/** Resume the event that waits with `ticket`. Returns false if no event waits with it: it has been
 *  resumed before, its wait has expired, or it has ended with its family or with the graph. */
WEIR_API bool weir_resume(struct weir_stage *st, uint64_t ticket);

/** The children that `ev` last awaited, linked by `next`, in the order in which they were made, or
 *  NULL. For a continuation of weir_await, where all have ended. */
WEIR_API struct weir_event *weir_ended(const struct weir_event *ev);

/** The first status but WEIR_OK with which one of these children ended, or WEIR_OK. */
WEIR_API int weir_ended_status(const struct weir_event *ev);

/** The status with which `child`, an event from weir_ended, has ended. */
WEIR_API int weir_child_status(const struct weir_event *child);

/* ---- families ---- */

/**
 * A set of events that can be ended together, for example all that has been begun for a client. The
 * children of a member are members. `within` is a family that contains the new one, or NULL: if it
 * ends, so does the new one. Returns NULL if memory is short; the calls below accept NULL and do
 * nothing. Its memory is bounded (weir_family_set_memory). The caller has a reference, to be released with weir_family_put. Any thread.
 */
WEIR_API struct weir_family *weir_family_new(struct weir_family *within);

/** Release a reference. Any thread. */
WEIR_API void weir_family_put(struct weir_family *f);

/** Make `ev`, whose type has a struct weir_op and which is in no family, a member. Returns 0, or
 *  WEIR_ELIMIT if the family has no memory left for it (weir_family_set_memory), when `ev` stays in no
 *  family. Called by the owner of the event. */
WEIR_API int weir_family_join(struct weir_family *f, struct weir_event *ev);

/**
 * Bound the memory of the members to `bytes` in total. 0, which a new family has, stands for
 * `payloads: { family_memory }` of the configuration; threads outside a graph, which know none, are not
 * bounded then. A member counts with the size of its type until its memory is released, so a child that
 * has ended counts until its parent has read it; a payload of a member counts with its size and what is
 * reserved for it (weir_payload_reserve) until it is dropped, also after it has been taken. Bodies of
 * HTTP requests do not count. Members count in each family that contains theirs. A member, a payload or
 * a reservation that would exceed a bound is refused with WEIR_ELIMIT; a bound that is lowered ends
 * nothing. Any thread.
 */
WEIR_API void weir_family_set_memory(struct weir_family *f, uint64_t bytes);

/** The bytes that count now. NULL: 0. Any thread. */
WEIR_API uint64_t weir_family_memory(const struct weir_family *f);

/**
 * End the family: no member is passed to a handler any more. Each member ends with WEIR_ECANCELLED
 * when it is about to enter a stage, be taken from a queue, or be resumed. Members in a running batch
 * are not interrupted. Any thread; takes no lock.
 *
 * A member that waits with a ticket (weir_wait, weir_hold_until) ends within about 0.1 s, in a thread of
 * its stage, and its ticket is void from then on: weir_resume returns false and weir_hold_claim NULL, as
 * after an expiry. ops->expired is not called, since it may answer the event. So a stage must free what
 * belongs to an event where the event ends, whatever ends it (weir_event_type.finish, or a tap of
 * weir_http_add_tap), and what belongs to a ticket, such as a connection that waits for an answer, when
 * the answer comes or a time-out of its own has passed. An event that a stage holds without a ticket
 * ends when the stage requeues or emits it.
 */
WEIR_API void weir_family_end(struct weir_family *f);

/** Whether the family has ended. A handler that takes long may ask this. NULL: false. Any thread;
 *  costs a load for each family that contains it. */
WEIR_API bool weir_family_over(const struct weir_family *f);

/** The family of `ev`, or NULL. */
WEIR_API struct weir_family *weir_family_of(const struct weir_event *ev);

WEIR_C_END

#endif
