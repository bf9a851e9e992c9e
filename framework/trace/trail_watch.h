/* SPDX-License-Identifier: MIT */
/* Internals of struct taps, for trail_tap.c and trail_collect.c; see trail_tap.h. */
#ifndef WEIR_TRACE_TRAIL_WATCH_H
#define WEIR_TRACE_TRAIL_WATCH_H

#include "trace/trail_tap.h"

/* Threads that end events read the atomic members without the lock. All members but `dropped` are
 * written with the lock held. */
struct tap {
	atomic_bool open;
	atomic_int stage, class_id, outcome;
	_Atomic int64_t slow_ns;
	/* id of the newest event in the ring, and of the newest event that any reader has seen */
	_Atomic uint64_t newest, read;
	_Atomic uint64_t dropped; /* events not stored since the tap was opened */
	uint64_t began;           /* id of the first event, minus 1 */
	int64_t until_ns;         /* end of the lease */
	struct weir_slow *ring;   /* [TAP_EVENTS], by id */
};

struct taps {
	/* read by every thread that ends an event */
	atomic_int n_open;
	/* an export collects events; `slow` and `follow` are those of its struct weir_collect */
	atomic_bool collecting, slow, follow;
	_Atomic uint64_t below; /* see collect_below */
	atomic_int *looking;    /* number of open taps, plus one for the collection */
	/* not used while there are no observers */
	WEIR_ALIGNED struct lock lock; /* a leaf lock */
	struct tap tap[TAPS_MAX];
	struct weir_slow *queue WEIR_GUARDED_BY(lock); /* [COLLECT_EVENTS] */
	uint64_t put WEIR_GUARDED_BY(lock), taken WEIR_GUARDED_BY(lock);
	_Atomic uint64_t waiting; /* put - taken; read without the lock, so approximate */
	_Atomic uint64_t collected, dropped, sent, failed;
};

/** Offer an event that ends at `now_ns` to the collection (trail_tap.h). `kept` is true if the
 *  event is one of the slowest. */
void collect_offer(struct taps *taps, struct weir_event *ev, int status, bool kept, int64_t now_ns);

#endif
