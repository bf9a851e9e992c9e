/* SPDX-License-Identifier: MIT */
/*
 * The events of one class in a queue with `discipline: shortest`, the ones with the least expected
 * work first.
 *
 * An event waits in the bin of its cost. A bin is a quarter of a power of two, so the costs in it
 * differ by less than 25 %, and the events of a bin are first in, first out. Compared with a heap,
 * put and take cost O(1), and events whose costs hardly differ keep their order. The oldest event
 * of all is always the first one of its bin, so that a take can also be by age: a second list has
 * all events by arrival.
 *
 *   filled  ...0110  a bit for each bin that has events
 *   bin 1   e4 -> e7            costs 1
 *   bin 2   e1 -> e2 -> e6      costs 2
 *   by arrival  e1 <-> e2 <-> e4 <-> e6 <-> e7
 *
 * With `ordered`, events of one key leave in the order in which they came: an event gets no lower
 * bin than any waiting event of its key. Keys are told apart by a hash, so this may also delay an
 * event of another key.
 *
 * All calls are for the holder of the queue's lock. No call but bins_put touches an event.
 */
#ifndef WEIR_EVENT_BINS_H
#define WEIR_EVENT_BINS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/event.h>

/** Number of bins. */
#define BINS 256

/** The bin of an event whose cost is unknown: the last one. So a sender gains nothing if it does not
 *  say what its events cost. */
#define BIN_UNKNOWN (BINS - 1)

struct bins;

/** The bin of a cost. */
static inline uint8_t bin_of(uint64_t cost)
{
	if (cost < 4)
		return (uint8_t)cost;
	int power = 63 - __builtin_clzll(cost); /* 2 to 63, so the last bin is 251 */
	return (uint8_t)((power - 1) * 4 + (int)(cost >> (power - 2) & 3));
}

/** An event on its way to the queue has its bin in `next`, since the cost must not be asked for
 *  under the lock. */
static inline void bin_note(struct weir_event *ev, uint8_t bin)
{
	ev->next = (struct weir_event *)(uintptr_t)bin; /* NOLINT(performance-no-int-to-ptr) */
}

static inline uint8_t bin_noted(const struct weir_event *ev)
{
	return (uint8_t)(uintptr_t)ev->next;
}

/** Create bins with room for `capacity` events. Returns NULL if out of memory. */
struct bins *bins_new(uint32_t capacity, bool ordered);
/** NULL is allowed. The bins are empty. */
void bins_free(struct bins *b);

/** Make room for `n` more events. Returns 0 or WEIR_ENOMEM. */
int bins_reserve(struct bins *b, uint32_t n);
/** Put an event, whose bin has been noted. There must be room. */
void bins_put(struct bins *b, struct weir_event *ev);

/** The event that came first; NULL: there is none. */
struct weir_event *bins_oldest(const struct bins *b);

/** Take at most `max` events: those that were queued before `starved_ns` in the order in which they
 *  came, then those in the lowest bins. Returns their number. */
int bins_take(struct bins *b, int max, int64_t starved_ns, struct weir_event **out);
/** The same, but only events with the key of the first. Looks at no more than `window` events. */
int bins_take_key(struct bins *b, int max, int64_t starved_ns, int window, struct weir_event **out);

/** Look at the events in the order in which bins_take would take them all, until `look` returns
 *  false. */
void bins_walk(const struct bins *b, int64_t starved_ns,
    bool (*look)(void *arg, const struct weir_event *ev), void *arg);

#endif
