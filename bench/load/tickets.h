/* SPDX-License-Identifier: MIT */
/*
 * Requests on their way through a worker, and the two places where they wait: a queue for those
 * that are due and have no connection, a heap for those whose time is still to come (retries, users
 * who think).
 *
 * Both are bounded, so that a run needs no more memory than its connections and these. One thread.
 */
#ifndef WEIR_LOAD_TICKETS_H
#define WEIR_LOAD_TICKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Most tickets in a queue or heap: 32 MB. Guess: ten seconds of what one thread can send. */
#define TICKETS_MAX ((size_t)1 << 20)

/** One request that was due or will be. Small, since a million may wait. */
struct ticket {
	int64_t due_ns;        /* its intended time (CLOCK_MONOTONIC): latency counts from here */
	int64_t attempt_ns;    /* intended time of this attempt: the time-out counts from here */
	uint32_t random;       /* state of ticket_uniform */
	uint32_t request;      /* index in its class */
	uint32_t session_left; /* requests its user will send after this one */
	uint8_t phase, class_id;
	uint8_t attempt; /* retries made before this attempt */
	bool resent;     /* went to a second connection within this attempt (conn.h) */
};

/** The next random number of a ticket, in 0..1 without both. PCG-RXS-M-XS 32 (O'Neill 2014). */
static inline double ticket_uniform(struct ticket *t)
{
	uint32_t x = t->random;

	t->random = x * 747796405u + 2891336453u;
	x = ((x >> ((x >> 28) + 4)) ^ x) * 277803737u;
	x ^= x >> 22;
	return ((double)x + 0.5) / 4294967296.0;
}

/** First in, first out. Zero is empty. */
struct ticket_queue {
	struct ticket *at; /* ring of `room`, a power of two */
	size_t head, n, room;
};

/** Append, or put in front. False when it is full or there is no memory. */
bool ticket_queue_push(struct ticket_queue *q, const struct ticket *t);
bool ticket_queue_push_front(struct ticket_queue *q, const struct ticket *t);

/** Take the first; `q` must not be empty. */
struct ticket ticket_queue_pop(struct ticket_queue *q);

/** The first, valid until the next call; `q` must not be empty. */
const struct ticket *ticket_queue_first(const struct ticket_queue *q);
void ticket_queue_fini(struct ticket_queue *q);

/** By attempt_ns, the earliest first. Zero is empty. */
struct ticket_heap {
	struct ticket *at;
	size_t n, room;
};

/** Insert. False when it is full or there is no memory. */
bool ticket_heap_push(struct ticket_heap *h, const struct ticket *t);

/** Take the earliest; `h` must not be empty. */
struct ticket ticket_heap_pop(struct ticket_heap *h);

/** When the earliest is due; INT64_MAX when empty. */
static inline int64_t ticket_heap_next_ns(const struct ticket_heap *h)
{
	return h->n ? h->at[0].attempt_ns : INT64_MAX;
}
void ticket_heap_fini(struct ticket_heap *h);

#endif
