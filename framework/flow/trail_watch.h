/* SPDX-License-Identifier: MIT */
/* The inside of struct taps, for trail_tap.c and trail_collect.c; see trail_tap.h. */
#ifndef WEIR_FLOW_TRAIL_WATCH_H
#define WEIR_FLOW_TRAIL_WATCH_H

#include "flow/trail_tap.h"

/* Atomic fields are read without the lock by who ends events; all are written with it but `dropped`. */
struct tap {
	atomic_bool open;
	atomic_int stage, class_id, outcome;
	_Atomic int64_t slow_ns;
	_Atomic uint64_t newest,
	    read;                 /* ids: the last one kept, and the last one that somebody has */
	_Atomic uint64_t dropped; /* since it was opened */
	uint64_t began;           /* id of which the first is one more */
	int64_t until_ns;         /* end of the lease */
	struct weir_slow *ring;   /* [TAP_EVENTS], by id */
};

struct taps {
	/* read by whoever ends an event */
	atomic_int n_open;
	atomic_bool collecting, slow, follow; /* as weir_collect says */
	_Atomic uint64_t below;
	atomic_int *looking; /* open taps and the collection */
	/* the rest */
	WEIR_ALIGNED struct lock lock; /* a leaf */
	struct tap tap[TAPS_MAX];
	struct weir_slow *queue WEIR_GUARDED_BY(lock); /* [COLLECT_EVENTS] */
	uint64_t put WEIR_GUARDED_BY(lock), taken WEIR_GUARDED_BY(lock);
	_Atomic uint64_t waiting; /* put - taken, a hint */
	_Atomic uint64_t collected, dropped, sent, failed;
};

/** The collection looks at an event that ended. */
void collect_offer(struct taps *taps, struct weir_event *ev, int status, bool kept, int64_t now_ns);

#endif
