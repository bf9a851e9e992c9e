/* SPDX-License-Identifier: MIT */
/*
 * Computes which share of a queue's limit each class may fill.
 *
 * If the limit is small or service times are short, the queue is full before any policy sees a long
 * wait. Queued events are never evicted, so slots must be reserved for the higher classes. Let K be
 * the number of priorities, of which 0 is the highest, and d the predicted wait. All classes of
 * priority k or lower together may fill
 *
 *   k = 0   limit
 *   k > 0   limit (K - k) / (2 (K - 1)) (1 - d / SLO), at least 1
 *
 * So while d is 0, all priorities below the highest together may fill half of the limit, and the
 * shares of successive priorities differ by equal steps. An event must fit into the share of its
 * own priority and of every higher one, so no class is ever refused while a lower one is admitted.
 * If all classes have the same priority, they share the whole limit.
 */
#ifndef WEIR_ADMISSION_ROOM_H
#define WEIR_ADMISSION_ROOM_H

#include <stdint.h>

/** Share of the limit for all priorities but the highest. One half is a choice: the largest share
 *  that leaves the highest priority as much as all others together. */
#define ROOM_LOWER 0.5

struct room {
	uint32_t limit;
	int n_classes, n_ranks;
	const uint8_t *rank;     /* by class, as set by room_ranks */
	int64_t wait_ns, slo_ns; /* predicted wait; objective, 0 if unknown */
};

/** Return how many events of rank `rank` and of all lower priorities together may be queued. */
static inline int64_t room_share(const struct room *r, int rank)
{
	if (rank == 0)
		return r->limit;
	int64_t share = (int64_t)(ROOM_LOWER * (r->n_ranks - rank) / (r->n_ranks - 1) * r->limit);
	/* Whole slots are subtracted, so that a wait of a few nanoseconds costs none. */
	if (r->slo_ns > 0 && r->wait_ns > 0) {
		double less = (double)share * (double)r->wait_ns / (double)r->slo_ns;
		share -= less < (double)share ? (int64_t)less : share;
	}
	return share < 1 ? 1 : share;
}

/** Return how many more events of the class may enter. in[c] is the number of events of class c
 *  that count against the limit. */
static inline int64_t room_left(const struct room *r, int class_id, const uint32_t *in)
{
	int64_t below = 0, left = INT64_MAX;

	for (int c = r->n_classes - 1; c >= 0; c--) {
		below += in[c];
		if (r->rank[c] > r->rank[class_id] || (c > 0 && r->rank[c - 1] == r->rank[c]))
			continue;
		int64_t share = room_share(r, r->rank[c]);
		left = share - below < left ? share - below : left;
	}
	return left > 0 ? left : 0;
}

/** Return how full the queue is. For each priority, the events of this and all lower priorities are
 *  divided by their share of the limit; the result is the largest ratio. It may exceed 1 after the
 *  limit was lowered. */
static inline double room_full(const struct room *r, const uint32_t *in)
{
	int64_t below = 0;
	double full = 0;

	for (int c = r->n_classes - 1; c >= 0; c--) {
		below += in[c];
		if (c > 0 && r->rank[c - 1] == r->rank[c])
			continue;
		double part = (double)below / (double)room_share(r, r->rank[c]);
		full = part > full ? part : full;
	}
	return full;
}

/** Set the rank of each class: its priority, renumbered from 0 without gaps. Priorities never
 *  decrease with the class number. Returns the number of ranks. */
static inline int room_ranks(const int *priority, int n_classes, uint8_t *rank)
{
	for (int c = 0; c < n_classes; c++)
		rank[c] = (uint8_t)(c == 0 ? 0 : rank[c - 1] + (priority[c] != priority[c - 1]));
	return rank[n_classes - 1] + 1;
}

#endif
