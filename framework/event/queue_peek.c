/* SPDX-License-Identifier: MIT */
/* Lists the events in a queue, oldest first, by merging its lanes; those of a queue that is `shortest`
 * are listed by queue_bins.c. */
#include "event/queue.h"

/* Largest number of lanes in a queue: 64 partitions (PARTITIONS_MAX in sink.h) of WEIR_CLASSES_MAX
 * classes. */
#define QUEUE_LANES_MAX (64 * WEIR_CLASSES_MAX)

/* A cursor into a lane: the index of the next event, and the time at which that event was
 * queued. */
struct peek {
	const struct lane *lane;
	uint32_t at;
	int64_t queued_ns;
};

static const struct weir_event *peek_event(const struct peek *p)
{
	return p->lane->slot[(p->lane->head + p->at) & (p->lane->capacity - 1)];
}

static int peek_lanes(struct queue *q, struct peek *peek, int max) WEIR_REQUIRES(&q->lock)
{
	int n = 0;

	for (int p = 0; p < q->n_parts; p++) {
		for (int c = 0; c < q->n_classes && n < max; c++) {
			if (q->part[p].lane[c].n == 0)
				continue;
			peek[n] = (struct peek){.lane = &q->part[p].lane[c]};
			peek[n].queued_ns = peek_event(&peek[n])->queued_ns;
			n++;
		}
	}
	return n;
}

/* Return the cursor, among `n` >= 1, whose next event has waited longest. */
static struct peek *peek_oldest(struct peek *peek, int n)
{
	struct peek *oldest = peek;

	for (int i = 1; i < n; i++)
		if (peek[i].queued_ns < oldest->queued_ns)
			oldest = &peek[i];
	return oldest;
}

struct weir_queued queue_describe(const struct weir_event *ev, int64_t now_ns)
{
	return (struct weir_queued){.class_id = ev->class_id,
	    .age_ns = now_ns > ev->queued_ns ? now_ns - ev->queued_ns : 0,
	    .left_ns = weir_event_left_ns(ev, now_ns),
	    .type = ev->type->name};
}

int queue_peek(struct queue *q, int64_t now_ns, struct weir_queued *out, int n)
{
	struct peek peek[QUEUE_LANES_MAX];
	int shown = 0;

	n = n < QUEUE_PEEK_MAX ? n : QUEUE_PEEK_MAX;
	lock_take(&q->lock);
	if (q->shortest)
		shown = queue_bins_peek(q, now_ns, out, n);
	int lanes = q->shortest ? 0 : peek_lanes(q, peek, QUEUE_LANES_MAX);
	while (shown < n && lanes > 0) {
		struct peek *p = peek_oldest(peek, lanes);
		out[shown++] = queue_describe(peek_event(p), now_ns);
		if (++p->at == p->lane->n)
			*p = peek[--lanes];
		else
			p->queued_ns = peek_event(p)->queued_ns;
	}
	lock_release(&q->lock);
	return shown;
}
