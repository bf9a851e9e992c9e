/* SPDX-License-Identifier: MIT */
/* Pushes events of a sink to its queue; a part of sink.c. */
#ifndef WEIR_STAGE_PUSH_H
#define WEIR_STAGE_PUSH_H

#include "stage/sink.h"

/** Push ev[0..n). In a core group with copies, events stay in the copy of the thread that sends them.
 * Returns the number of events pushed, and adds the bits of their copies to *parts;
 * with a map, *parts becomes those of their slots. */
static inline int sink_push(struct sink *s, struct weir_event **ev, int n, uint64_t *parts)
    WEIR_REQUIRES(&s->queue.lock)
{
	const struct thread *t = thread_current;

	if (WEIR_LIKELY(s->queue.copy_cores == 0)) {
		int pushed = queue_push_locked(&s->queue, ev, n);
		if (WEIR_UNLIKELY(s->queue.map != NULL)) /* it may have changed before the lock */
			*parts = queue_parts_locked(&s->queue, ev, pushed);
		return pushed;
	}
	bool ours = t && t->pool && t->pool == s->pool;
	return queue_push_copy_locked(&s->queue, ev, n, ours ? t->copy : ANY_COPY, parts);
}

#endif
