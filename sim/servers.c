/* SPDX-License-Identifier: MIT */
/* The servers behind a stage (sim_stage.servers), each of which works on one event at a time: a heap of the
 * times at which they are free. */
#include "world.h"

int64_t servers_serve(struct sim *s, struct stage *st, int64_t work_ns)
{
	int64_t *heap = st->free_ns, free_ns = heap[0] > s->now_ns ? heap[0] : s->now_ns;
	int n = st->conf->servers, at = 0, child;

	free_ns += work_ns;
	st->served_ns += work_ns;
	while ((child = 2 * at + 1) < n) {
		child += child + 1 < n && heap[child + 1] < heap[child];
		if (heap[child] >= free_ns)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = free_ns;
	return free_ns - s->now_ns;
}

int64_t servers_busy_ns(const struct sim *s, const struct stage *st)
{
	int64_t ns = st->served_ns;

	for (int i = 0; i < st->conf->servers; i++)
		if (st->free_ns[i] > s->now_ns)
			ns -= st->free_ns[i] - s->now_ns;
	return ns;
}
