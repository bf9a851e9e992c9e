/* SPDX-License-Identifier: MIT */
/*
 * The requests of a worker, and the two containers in which they wait. A queue holds requests that
 * are due but have no connection. A heap holds requests that are due later: retries, and the next
 * requests of sessions after the think time.
 *
 * Both are bounded, so the memory of a run is bounded, too. One thread.
 */
#ifndef WEIR_LOAD_TICKETS_H
#define WEIR_LOAD_TICKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Maximum number of tickets in a queue or heap (32 MB). 2^20 is a guess: ten seconds of requests
 * at the rate of one thread. */
#define TICKETS_MAX ((size_t)1 << 20)

/** One request. Kept small, since a million of them may be waiting. */
struct ticket {
	int64_t due_ns; /* intended time (CLOCK_MONOTONIC), from which latency is measured */
	/* intended time of this attempt, from which the time-out is measured */
	int64_t attempt_ns;
	uint32_t random;       /* state of ticket_uniform */
	uint32_t request;      /* index in its class */
	uint32_t session_left; /* number of requests that the user will send after this one */
	uint8_t phase, class_id;
	uint8_t attempt; /* retries made before this attempt */
	bool resent;     /* in this attempt, after an unexpected close (conn.h, "Sent twice") */
};

/** Return the next random number of a ticket, in (0, 1). The generator is PCG-RXS-M-XS 32 (O'Neill
 * 2014). */
static inline double ticket_uniform(struct ticket *t)
{
	uint32_t x = t->random;

	t->random = x * 747796405u + 2891336453u;
	x = ((x >> ((x >> 28) + 4)) ^ x) * 277803737u;
	x ^= x >> 22;
	return ((double)x + 0.5) / 4294967296.0;
}

/** A first-in, first-out queue. A zeroed one is empty. */
struct ticket_queue {
	struct ticket *at; /* ring of `room` entries; `room` is a power of two */
	size_t head, n, room;
};

/** Append a ticket, or insert it at the front. Returns false if the queue is full or out of
 * memory. */
bool ticket_queue_push(struct ticket_queue *q, const struct ticket *t);
bool ticket_queue_push_front(struct ticket_queue *q, const struct ticket *t);

/** Remove and return the first ticket; `q` must not be empty. */
struct ticket ticket_queue_pop(struct ticket_queue *q);

/** Return the first ticket, valid until the next call; `q` must not be empty. */
const struct ticket *ticket_queue_first(const struct ticket_queue *q);
void ticket_queue_fini(struct ticket_queue *q);

/** A heap ordered by attempt_ns, earliest first. A zeroed one is empty. */
struct ticket_heap {
	struct ticket *at;
	size_t n, room;
};

/** Insert a ticket. Returns false if the heap is full or out of memory. */
bool ticket_heap_push(struct ticket_heap *h, const struct ticket *t);

/** Remove and return the earliest ticket; `h` must not be empty. */
struct ticket ticket_heap_pop(struct ticket_heap *h);

/** Return the time of the earliest ticket, or INT64_MAX if the heap is empty. */
static inline int64_t ticket_heap_next_ns(const struct ticket_heap *h)
{
	return h->n ? h->at[0].attempt_ns : INT64_MAX;
}
void ticket_heap_fini(struct ticket_heap *h);

#endif
