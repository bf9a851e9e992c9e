/* SPDX-License-Identifier: MIT */
/*
 * Payloads: what stages make for one event and hand on with it, such as a decoded image, a parsed
 * query, or the parts of a mail.
 *
 * An event keeps its type while payloads are added to it and removed from it, so it keeps its
 * admission, its deadline and its class. A payload has a type of its own (struct weir_payload_type),
 * which the stages that use it share. An event has at most WEIR_PAYLOADS_MAX payloads, and at most
 * one of each type. They are in a table inside the event, at the offset `payloads` of the event's
 * type; events of types without a table have no payloads and pay nothing for them.
 *
 * A stage type lists in its ops table what it `needs`, `gives` and `takes`. `weir check` follows all
 * ways from the sources and refuses a graph in which an event may reach a stage without a payload
 * that the stage needs.
 *
 *   weir_payload_new --> on the event --weir_payload_take--> belongs to the caller
 *                        |     ^                              |             |
 *                        |     `-------- weir_payload_put ----'             |
 *       end of the event, or weir_payload_drop                     weir_payload_free
 *                        |                                                  |
 *                        `------------> the type's `drop` <-----------------'
 *
 * Payloads and the end of an event: the type's `finish` callback still finds the payloads of the
 * event, and may take them. Those that it leaves are dropped right after it has returned. A finish
 * callback that passes the event to another thread must take what that thread will read. The event
 * itself is not accessed after `finish`, so its memory may already be in use again.
 *
 * Memory budget: before a stage allocates much memory for a payload, it reserves that memory with
 * weir_payload_reserve. The sum of the reservations of a graph is at most `payloads.memory` of the
 * configuration. The payloads of an event in a family (weir/op.h) count against the memory of that
 * family, too.
 *
 * Unless stated otherwise, the owner of the event calls these functions, in a thread of the graph.
 */
#ifndef WEIR_PAYLOAD_H
#define WEIR_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/annotate.h>
#include <weir/event.h>

WEIR_C_BEGIN

struct weir_stage;

/** Largest number of payloads of an event. */
#define WEIR_PAYLOADS_MAX 4

/** Payload structs above this size count against the memory budget by themselves. 4096 is a choice:
 *  smaller ones are of the size of the event. */
#define WEIR_PAYLOAD_SMALL 4096

/**
 * A named property of a payload, for use in the configuration as TYPE.NAME, wherever fields of events
 * are allowed. Exactly one of `text` and `number` is set. Called by the thread that owns the event;
 * must not block.
 */
struct weir_payload_field {
	/* NULL ends the table. "" stands for any name, which the callbacks get as `arg`; otherwise
	 * `arg` is NULL. */
	const char *name;
	/** Return the value, which must stay valid as long as the payload, or {NULL, 0} if it has
	 *  none. */
	struct weir_slice (*text)(const void *payload, const char *arg);
	/** Store the value in *number, or return false if there is none. Where the configuration
	 *  compares it, the number counts as decimal digits. */
	bool (*number)(const void *payload, const char *arg, uint64_t *number);
	const char *help;
};

/** Why a payload, or a reservation of memory for one, was refused. */
enum weir_payload_refusal {
	WEIR_PAYLOAD_MEMORY, /* out of memory */
	WEIR_PAYLOAD_BUDGET, /* the memory budget had not enough left */
	WEIR_PAYLOAD_SLOTS,  /* the event cannot have this payload in addition to those it has */
	WEIR_PAYLOAD_FAMILY, /* a family of the event had not enough memory left */
	WEIR_PAYLOAD_REFUSALS,
};

/** A type of payloads. Static storage, immutable. Two types are the same if their addresses are. */
struct weir_payload_type {
	const char *name; /* "image": letters, digits, '_' and '-'; unique within a graph */
	size_t size;      /* bytes of a payload, without what it refers to */
	/** Release what the payload refers to, but not its struct. Runs in the thread that ended the
	 *  event or freed the payload, with no lock held; must not block. May be NULL. */
	void (*drop)(void *payload);
	const struct weir_payload_field *fields; /* may be NULL */
	const char *summary;                     /* one sentence without a full stop; may be NULL */
};

/** A payload type at an outlet of a stage type, for `gives` and `takes` of the ops table. */
struct weir_payload_at {
	const struct weir_payload_type *type; /* NULL ends the table */
	const char *outlet;                   /* name of the outlet; NULL stands for all outlets */
};

/** The table of an event. Constant while `type->payloads` of the event's type is 0. For the functions
 *  below only. */
struct weir_payloads {
	uint32_t n; /* the first `n` elements are in use; set to 0 by weir_event_init */
	const struct weir_payload_type *type[WEIR_PAYLOADS_MAX];
	void *payload[WEIR_PAYLOADS_MAX];
};

/**
 * Make a payload of `type` for `ev`, with zeroed memory of type->size bytes, aligned to 16 bytes. The
 * event owns the payload. Returns NULL if out of memory, if the memory budget is used up (only for
 * types larger than WEIR_PAYLOAD_SMALL), if a family of the event has no memory left for it
 * (weir_family_set_memory), or if the event has WEIR_PAYLOADS_MAX payloads, has one of
 * this type, is of a type without a table, or has ended. The refusal is counted at stage `st`, and the event
 * should end as WEIR_EPRESSURE. Costs an allocation and about 10 ns.
 */
WEIR_API void *weir_payload_new(
    struct weir_stage *st, struct weir_event *ev, const struct weir_payload_type *type);

/** The payload of `type` that `ev` has, or NULL. Valid until it is taken or dropped. Also allowed in
 *  the `finish` and `describe` callbacks of event types. Costs 1 to 3 ns. */
static inline void *weir_payload(const struct weir_event *ev, const struct weir_payload_type *type)
{
	if (!ev->type->payloads)
		return NULL;
	const struct weir_payloads *p =
	    (const struct weir_payloads *)((const char *)ev + ev->type->payloads);
	for (uint32_t i = 0; i < p->n; i++)
		if (p->type[i] == type)
			return p->payload[i];
	return NULL;
}

/** Remove the payload of `type` from `ev` and return it, or NULL if there is none. The caller owns it
 *  and must call weir_payload_put or weir_payload_free. Its reserved memory stays reserved. */
WEIR_API void *weir_payload_take(struct weir_event *ev, const struct weir_payload_type *type);

/** Give *payload, which the caller owns, to `ev` and set *payload to NULL. Returns 0, or, with
 *  *payload unchanged, WEIR_EBUSY if the event has WEIR_PAYLOADS_MAX payloads or one of this type,
 *  WEIR_ETYPE if events of its type have no payloads, WEIR_ECLOSED if the event has ended, and
 *  WEIR_ELIMIT if a family of the event has no memory left for it. */
WEIR_API int weir_payload_put(struct weir_event *ev, void **payload);

/** Drop the payload of `type` that `ev` has before the event ends. Does nothing if there is none. */
WEIR_API void weir_payload_drop(struct weir_event *ev, const struct weir_payload_type *type);

/** Drop a payload that was taken. NULL is allowed. Any thread, also after the graph has been freed. */
WEIR_API void weir_payload_free(void *payload);

/**
 * Set the memory for which `payload` counts in the budget of the graph of `st` to `bytes`, which
 * replaces the number of an earlier call; its struct counts in addition if it is larger than
 * WEIR_PAYLOAD_SMALL. To be called before the memory is allocated, as soon as its
 * size is known, and again if it turns out to be smaller. The reservation ends when the payload is
 * dropped. Returns 0; WEIR_EPRESSURE if the budget has not enough left now; WEIR_ENOMEM if `bytes` is
 * larger than the whole budget; or WEIR_ELIMIT if a family of the payload's event has not enough left. After an error the former reservation remains; the refusal is
 * counted at stage `st`, and the event should end with this code. The owner of the payload calls
 * this, in any thread. Costs an atomic addition, about 10 ns.
 */
WEIR_API int weir_payload_reserve(struct weir_stage *st, void *payload, size_t bytes);

WEIR_C_END

#endif
