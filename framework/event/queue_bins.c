/* SPDX-License-Identifier: MIT */
/* Queues with `discipline: shortest`: their lanes are bins (bins.h) instead of rings. */
#include "event/bins.h"
#include "event/queue.h"

#include <stdlib.h>

int queue_set_shortest(struct queue *q, int64_t starve_ns, bool ordered)
{
	struct lane *l = &q->part[0].lane[q->n_classes - 1]; /* queue_init has made this one */

	free(l->slot);
	free(l->key);
	l->slot = NULL;
	l->key = NULL;
	l->capacity = 0;
	q->shortest = true;
	atomic_init(&q->starve_ns, starve_ns);
	q->ordered = ordered;
	l->bins = bins_new(q->limit, ordered);
	return l->bins ? 0 : WEIR_ENOMEM;
}

int queue_bins_append(struct queue *q, struct lane *l, struct weir_event **ev, uint32_t n)
{
	if (!l->bins)
		l->bins = bins_new(n, q->ordered);
	if (!l->bins || bins_reserve(l->bins, n) != 0)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		bins_put(l->bins, ev[i]);
	l->n += n;
	return (int)n;
}

/* Events that were queued before this time are starved. */
static int64_t starved_ns(const struct queue *q, int64_t now_ns)
{
	int64_t starve_ns = atomic_load_explicit(&q->starve_ns, memory_order_relaxed);

	return starve_ns > 0 ? now_ns - starve_ns : INT64_MIN;
}

int queue_bins_take(const struct queue *q, struct lane *l, const struct queue_take *take, int max,
    int window, struct weir_event **out)
{
	int64_t before_ns = starved_ns(q, take->now_ns);
	int n = 0;

	if (l->n > 0)
		n = take->by_key ? bins_take_key(l->bins, max, before_ns, window, out)
				 : bins_take(l->bins, max, before_ns, out);
	l->n -= (uint32_t)n;
	return n;
}

const struct weir_event *queue_bins_oldest(const struct lane *l)
{
	return bins_oldest(l->bins);
}

/* What queue_peek has described. */
struct shown {
	struct weir_queued *out;
	int n, max;
	int64_t now_ns;
};

static bool show(void *arg, const struct weir_event *ev)
{
	struct shown *s = arg;

	s->out[s->n++] = queue_describe(ev, s->now_ns);
	return s->n < s->max;
}

int queue_bins_peek(struct queue *q, int64_t now_ns, struct weir_queued *out, int n)
{
	struct shown s = {.out = out, .max = n, .now_ns = now_ns};

	for (int c = 0; c < q->n_classes; c++)
		for (int p = 0; p < q->n_parts && s.n < n; p++) {
			const struct lane *l = &q->part[p].lane[c];
			if (l->n > 0)
				bins_walk(l->bins, starved_ns(q, now_ns), show, &s);
		}
	return s.n;
}
