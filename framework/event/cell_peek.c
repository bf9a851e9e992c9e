/* SPDX-License-Identifier: MIT */
/* Lists the events in a cell, oldest first. */
#include "event/cell.h"

#include <string.h>

#include "event/queue.h"

/* Number of events of a lane that are looked at, so that the core is not kept from its work for long.
 * A guess. With `order: newest`, the oldest event may be behind them and is then not found. */
#define LOOK_MAX 1024

/* Insert `q` into out[0..n), which is sorted and has room for `max`. Returns the new number. */
static int insert(struct weir_queued *out, int n, int max, const struct weir_queued *q)
{
	int at = n;

	while (at > 0 && out[at - 1].age_ns < q->age_ns)
		at--;
	if (at == max)
		return n;
	n = n < max ? n + 1 : max;
	memmove(&out[at + 1], &out[at], (size_t)(n - 1 - at) * sizeof(*out));
	out[at] = *q;
	return n;
}

int cell_peek(const struct cell *cell, int64_t now_ns, struct weir_queued *out, int n, int max)
{
	for (unsigned left = cell->filled; left; left &= left - 1) {
		const struct weir_event *ev = cell->lane[__builtin_ctz(left)].head;
		for (int seen = 0; ev && seen < LOOK_MAX; seen++, ev = ev->next) {
			struct weir_queued q = queue_describe(ev, now_ns);
			n = insert(out, n, max, &q);
		}
	}
	return n;
}
