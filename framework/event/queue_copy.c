/* SPDX-License-Identifier: MIT */
/*
 * Queues of stages in a core group with `replicas: R`: each of the R copies of the group has a
 * partition. Limit, admission and counters are those of the whole queue.
 *
 * What comes from outside the group is dealt round robin, in runs: of n events, each copy gets
 * n / R, and the next n % R copies in turn get one more. So after any number of pushes the numbers
 * of events that the copies have been given differ by at most one, and a run of a copy's events is
 * still pushed at once.
 */
#include "event/queue.h"

static int push_to(struct queue *q, struct weir_event **ev, int n, int copy, uint64_t *parts)
    WEIR_REQUIRES(&q->lock)
{
	q->to_copy = copy;
	int pushed = queue_push_locked(q, ev, n);
	atomic_store(&q->part[copy].shown, q->part[copy].n); /* seq_cst: see queue_copy_length */
	*parts |= 1ULL << copy;
	return pushed;
}

int queue_push_copy_locked(
    struct queue *q, struct weir_event **ev, int n, int copy, uint64_t *parts)
{
	int each = n / q->n_parts, over = n % q->n_parts, first = q->next_copy, done = 0;

	lock_assert_held(&q->lock);
	if (copy != ANY_COPY)
		return push_to(q, ev, n, copy, parts);
	q->next_copy = (first + over) % q->n_parts;
	for (int k = 0; k < q->n_parts && done < n; k++) {
		int share = each + (k < over);
		int pushed = push_to(q, ev + done, share, (first + k) % q->n_parts, parts);
		done += pushed;
		if (pushed < share)
			break;
	}
	return done;
}
