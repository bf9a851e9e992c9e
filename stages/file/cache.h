/* SPDX-License-Identifier: MIT */
/*
 * What the two halves of file.cache share: cache.c decides what a request gets, cache_fetch.c
 * brings in what is not there. Calls of cache_fetch.c take events and references over as they say.
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
	int64_t file_charge_bytes; /* see cache_limits; constant */
	_Atomic int64_t shown_bytes, shown_objects,
	    shown_files;          /* what the gauges of this stage say */
	_Atomic int64_t sweep_ns; /* when to look for files to close; moved by who does */
	struct cache_flights flights;
};

/** Answer ev[0..n) from o[0..n), taking over the references, and finish them: hits. n >= 0. What ends together is counted, and
 *  timed, once. */
void cache_hits(struct weir_stage *st, struct weir_event **ev, struct cache_object **o, int n);

/** Answer *ev from `o`, taking over the reference, and finish it: a hit. */
void cache_hit(struct weir_stage *st, struct weir_event **ev, struct cache_object *o);

/** Let `miss` answer *ev alone. */
void cache_pass(struct weir_stage *st, struct weir_event **ev);

/** Fetch what *ev asks for, whose path has `hash`, unless somebody does: then it is held when `wait`,
 *  else answered from `old`. Takes over *ev and the reference to `old` (may be NULL when `wait`). */
void cache_fetch(struct weir_stage *st, struct weir_event **ev, uint64_t hash,
    struct cache_object *old, bool wait);

/** `miss` refused *ev: if it led a flight with an old object younger than `age_ns`, answer from
 * that and take the event. */
void cache_fetch_refused(struct weir_stage *st, struct weir_event **ev, int64_t age_ns, int reason);

/** Wait for flights under way, at most until `until_ns`, and end what is then still held. */
void cache_fetch_stop(struct weir_stage *st, int64_t until_ns);

#endif
