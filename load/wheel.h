/* SPDX-License-Identifier: MIT */
/*
 * A hashed timing wheel (Varghese, Lauck 1987, scheme 6). Deadlines may be set in any order, and
 * setting or clearing one takes constant time. Most are cleared long before they expire.
 *
 * An item expires at most one tick late and never early. Items are embedded in the objects that
 * they belong to. One thread.
 */
#ifndef WEIR_LOAD_WHEEL_H
#define WEIR_LOAD_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHEEL_SLOTS 1024

struct wheel_item {
	/* at: the pointer that points to this item; NULL if the item is not set */
	struct wheel_item *next, **at;
	int64_t at_ns;
};

struct wheel {
	int64_t tick_ns;
	int64_t swept; /* all items of the ticks up to this one have expired */
	size_t n;
	struct wheel_item *slot[WHEEL_SLOTS];
};

/** Initialise an empty wheel for deadlines at most `reach_ns` away; later ones are possible, but
 * cost more. A tick is reach_ns / 512, but at least tick_min_ns. */
void wheel_init(struct wheel *w, int64_t reach_ns, int64_t tick_min_ns, int64_t now_ns);

/** Set `item`, which must not be set, to expire at `at_ns`. */
void wheel_add(struct wheel *w, struct wheel_item *item, int64_t at_ns);

/** Clear `item` if it is set. */
void wheel_remove(struct wheel *w, struct wheel_item *item);

/** Clear and return an item that is due, or return NULL if there is none. Call it repeatedly until
 * it returns NULL. */
struct wheel_item *wheel_take(struct wheel *w, int64_t now_ns);

/** Return the next time at which wheel_take can return an item; INT64_MAX if no item is set. */
static inline int64_t wheel_next_ns(const struct wheel *w)
{
	return w->n ? (w->swept + 1) * w->tick_ns : INT64_MAX;
}

#endif
