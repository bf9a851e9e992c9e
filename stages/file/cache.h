/* SPDX-License-Identifier: MIT */
/*
 * Shared by the two halves of file.cache: cache.c decides how a request is answered, cache_fetch.c
 * fetches missing objects. Functions take over events and references only where their comment says
 * so.
 */
#ifndef WEIR_STAGES_FILE_CACHE_H
#define WEIR_STAGES_FILE_CACHE_H

#include <weir/http.h>
#include <weir/weir.h>

#include "cache_flight.h"
#include "cache_table.h"

/* outlets */
enum { CACHE_MISS };

/* metrics */
enum {
	CACHE_HITS,
	CACHE_MISSES,
	CACHE_COALESCED,
	CACHE_REVALIDATED,
	CACHE_BYTES,
	CACHE_OBJECTS,
	CACHE_EVICTIONS,
	CACHE_NEGATIVE,
	CACHE_FILES,
};

struct cache_conf {
	char *root;
	int64_t size_bytes, max_object_bytes;
	int64_t open_files;
	int64_t revalidate_ns, stale_ns, negative_ns;
};

struct cache_state {
	struct cache_table *table; /* one reference; set before the first event */
	int64_t file_charge_bytes; /* charge for an open file, see cache_limits; constant */
	/* values last reported to this stage's gauges */
	_Atomic int64_t shown_bytes, shown_objects, shown_files;
	/* time of the next sweep of open files; the thread that advances it does the sweep */
	_Atomic int64_t sweep_ns;
	struct cache_flights flights;
};

/** Answer the hits ev[0..n) from o[0..n) and finish them, taking over the references; n >= 0. All
 * events with the same outcome are finished in one call, which reads the clock once. */
void cache_hits(struct weir_stage *st, struct weir_event **ev, struct cache_object **o, int n);

/** Answer the hit *ev from `o` and finish it, taking over the reference. */
void cache_hit(struct weir_stage *st, struct weir_event **ev, struct cache_object *o);

/** Send *ev to the outlet `miss`, without a flight. */
void cache_pass(struct weir_stage *st, struct weir_event **ev);

/** Fetch the object for *ev. `hash` is that of its path. If a flight for the object is already in
 * progress, *ev is held if `wait` is set, and otherwise answered from `old`. Takes over *ev and the
 * reference to `old`. `old` may be NULL only if `wait` is set. */
void cache_fetch(struct weir_stage *st, struct weir_event **ev, uint64_t hash,
    struct cache_object *old, bool wait);

/** Handle a refusal of *ev, with the status `reason`, by the stage behind the outlet `miss`. If *ev
 * led a flight with an old object younger than `age_ns`, answer it from that object and set *ev to
 * NULL; otherwise do nothing. */
void cache_fetch_refused(struct weir_stage *st, struct weir_event **ev, int64_t age_ns, int reason);

/** Wait until all flights in progress have landed, but not longer than until `until_ns`. Then
 * finish the events that are still held. */
void cache_fetch_stop(struct weir_stage *st, int64_t until_ns);

#endif
