/* SPDX-License-Identifier: MIT */
/* The timing wheel; see wheel.h. A slot contains the items of one tick. An item may be due in the
 * current revolution of the wheel or in a later one. */
#include "load/wheel.h"

#include <string.h>

void wheel_init(struct wheel *w, int64_t reach_ns, int64_t tick_min_ns, int64_t now_ns)
{
	memset(w, 0, sizeof(*w));
	w->tick_ns = reach_ns / (WHEEL_SLOTS / 2);
	if (w->tick_ns < tick_min_ns)
		w->tick_ns = tick_min_ns;
	w->swept = now_ns / w->tick_ns;
}

void wheel_add(struct wheel *w, struct wheel_item *item, int64_t at_ns)
{
	int64_t tick = at_ns / w->tick_ns + 1; /* rounded up: never early */

	if (tick <= w->swept)
		tick = w->swept + 1;
	struct wheel_item **slot = &w->slot[tick % WHEEL_SLOTS];
	item->at_ns = at_ns;
	item->next = *slot;
	item->at = slot;
	if (item->next)
		item->next->at = &item->next;
	*slot = item;
	w->n++;
}

void wheel_remove(struct wheel *w, struct wheel_item *item)
{
	if (!item->at)
		return;
	*item->at = item->next;
	if (item->next)
		item->next->at = item->at;
	item->at = NULL;
	item->next = NULL;
	w->n--;
}

struct wheel_item *wheel_take(struct wheel *w, int64_t now_ns)
{
	int64_t tick = now_ns / w->tick_ns;

	if (w->n == 0 && w->swept < tick)
		w->swept = tick;
	while (w->swept < tick) {
		struct wheel_item *item = w->slot[(w->swept + 1) % WHEEL_SLOTS];
		while (item && item->at_ns > now_ns) /* due in a later revolution */
			item = item->next;
		if (item) {
			wheel_remove(w, item);
			return item;
		}
		w->swept++;
	}
	return NULL;
}
