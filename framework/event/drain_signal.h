/* SPDX-License-Identifier: MIT */
/* Wakes the drain of a graph at the end of each batch, so that it checks again whether all events
 * have ended. */
#ifndef WEIR_EVENT_DRAIN_SIGNAL_H
#define WEIR_EVENT_DRAIN_SIGNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct drain_signal {
	atomic_bool draining; /* set by the drain */
	pthread_mutex_t mutex;
	pthread_cond_t cond; /* CLOCK_MONOTONIC */
};

/** Wake the drain, if one is in progress; otherwise the call costs one relaxed load. Any thread, at
 *  the end of a batch. */
static inline void drain_signal_wake(struct drain_signal *s)
{
	if (__builtin_expect(!atomic_load_explicit(&s->draining, memory_order_relaxed), 1))
		return;
	pthread_mutex_lock(&s->mutex);
	pthread_cond_signal(&s->cond);
	pthread_mutex_unlock(&s->mutex);
}

#endif
