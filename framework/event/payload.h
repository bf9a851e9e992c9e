/* SPDX-License-Identifier: MIT */
/*
 * Payloads within the framework: the table in an event, the budget of a graph, and the end of an
 * event. See weir/payload.h.
 *
 * Only the owner of an event accesses its table. The budget is shared by all threads and outlives its
 * graph while payloads that were taken have reservations.
 */
#ifndef WEIR_EVENT_PAYLOAD_H
#define WEIR_EVENT_PAYLOAD_H

#include <weir/payload.h>

#include <stdatomic.h>

struct weir_family;

/** The memory budget of the payloads of a graph. */
struct payload_budget {
	atomic_int refs;               /* the graph, and each payload with a reservation */
	_Atomic uint64_t limit, used;  /* bytes */
	_Atomic uint64_t family_limit; /* bytes of each family that has no bound of its own */
};

/** Add `bytes` to *used. Returns false if that would exceed `limit`. */
static inline bool budget_grow(_Atomic uint64_t *sum, uint64_t limit, uint64_t bytes)
{
	uint64_t used = atomic_load_explicit(sum, memory_order_relaxed);

	do {
		/* the limit may have been lowered below the sum */
		if (used > limit || bytes > limit - used)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
	    sum, &used, used + bytes, memory_order_relaxed, memory_order_relaxed));
	return true;
}

/** The memory before each payload. */
struct payload_head {
	_Alignas(16) const struct weir_payload_type *type;
	struct payload_budget *budget; /* NULL while nothing is reserved; holds a reference */
	uint64_t reserved;             /* bytes */
	/* in which the payload counts, or NULL: that of the event which has it or had it last; a
	 * reference */
	struct weir_family *family;
};

/** Payloads of an event whose `finish` callback is running: those that are dropped afterwards. */
struct payload_end {
	uint32_t n;
	void *payload[WEIR_PAYLOADS_MAX]; /* NULL if it was taken or dropped meanwhile */
	struct payload_end *outer;        /* that of an event whose `finish` has ended this one */
};

/** Return a budget of `limit` bytes, and `family_limit` bytes in each family, with one reference, or NULL
 *  if out of memory. */
struct payload_budget *payload_budget_new(uint64_t limit, uint64_t family_limit);
/** Release a reference. NULL is allowed. */
void payload_budget_put(struct payload_budget *budget);

/** Reserve `more` bytes in addition to the payload itself, which counts if its type is large. The codes
 *  are those of weir_payload_reserve. */
int payload_reserve(struct payload_budget *budget, void *payload, uint64_t more);
/** Return a payload of `type` without an owner, which counts in `family` if that is not NULL; or NULL
 *  and the reason in *why. */
void *payload_make(struct payload_budget *budget, struct weir_family *family,
    const struct weir_payload_type *type, enum weir_payload_refusal *why);
/** The bytes of the payloads of `ev`, whose type has a table, in a family. */
uint64_t payload_bytes(struct weir_event *ev);
/** Let the payloads of `ev` count in `family`, not NULL, where payload_bytes has been added already. */
void payload_follow(struct weir_event *ev, struct weir_family *family);
/** Whether `ev` can get a payload of `type`. Returns the codes of weir_payload_put. */
int payload_fits(const struct weir_event *ev, const struct weir_payload_type *type);
/** Add a payload that fits to the table of `ev`. */
void payload_add(struct weir_event *ev, void *payload);

/** Call ev->type->finish, then drop the payloads that it leaves. For events that have some. */
void payload_finish(struct weir_event *ev, int status);

static inline struct weir_payloads *payloads_of(struct weir_event *ev)
{
	return (struct weir_payloads *)((char *)ev + ev->type->payloads);
}

/** End `ev`: call its `finish` and drop its payloads. */
static inline void payload_end(struct weir_event *ev, int status)
{
	if (WEIR_LIKELY(!ev->type->payloads) || payloads_of(ev)->n == 0)
		ev->type->finish(ev, status);
	else
		payload_finish(ev, status);
}

#endif
