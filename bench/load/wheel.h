/* SPDX-License-Identifier: MIT */
/*
 * A hashed timing wheel (Varghese, Lauck 1987, scheme 6): deadlines in any order, set and cleared
 * in constant time, which most of them are long before they fire.
 *
 * An item fires at most one tick late and never early. Items live inside of what they belong to.
 * One thread.
 */
#ifndef WEIR_LOAD_WHEEL_H
#define WEIR_LOAD_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHEEL_SLOTS 1024

struct wheel_item {
	struct wheel_item *next, **at; /* at: the pointer to this item; NULL: not set */
	int64_t at_ns;
};

struct wheel {
	int64_t tick_ns;
	int64_t swept; /* ticks up to this one have fired */
	size_t n;
	struct wheel_item *slot[WHEEL_SLOTS];
};

/** An empty wheel for deadlines at most `reach_ns` away (later ones work, but cost more). Ticks are
 *  reach / 512, at least `tick_min_ns`. */
void wheel_init(struct wheel *w, int64_t reach_ns, int64_t tick_min_ns, int64_t now_ns);

/** Set `item`, which must not be set, to fire at `at_ns`. */
void wheel_add(struct wheel *w, struct wheel_item *item, int64_t at_ns);

/** Clear `item` if it is set. */
void wheel_remove(struct wheel *w, struct wheel_item *item);

/** An item whose time has come, cleared, or NULL. Call until NULL. */
struct wheel_item *wheel_take(struct wheel *w, int64_t now_ns);

/** When wheel_take is worth a call again; INT64_MAX: nothing is set. */
static inline int64_t wheel_next_ns(const struct wheel *w)
{
	return w->n ? (w->swept + 1) * w->tick_ns : INT64_MAX;
}

#endif
