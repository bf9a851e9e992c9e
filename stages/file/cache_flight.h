/* SPDX-License-Identifier: MIT */
/*
 * Flights of file.cache: misses under way, so that a key is fetched once however many ask for it. The
 * key is the path and what codings a client takes, since the answer may depend on them.
 *
 *   board: no flight for the key -> the request LEADS, and is emitted to `miss` with the flight's
 * tap there is one          -> it is HELD on that flight, or told that the flight is BUSY land: the
 * leader was finished; the flight leaves the table and gives back who waited
 *
 * A flight belongs to its leader's request from board to land. Requests on it are held in the stage
 * (weir_hold), linked by ev->next.
 *
 * | call                          | threads                                    |
 * |-------------------------------|--------------------------------------------|
 * | flights_init, _fini, _close   | main                                       |
 * | flights_board, _land          | any of the graph, at once                  |
 * | flight_new, _free, _disguise, _reveal | who owns the request               |
 */
#ifndef WEIR_STAGES_FILE_CACHE_FLIGHT_H
#define WEIR_STAGES_FILE_CACHE_FLIGHT_H

#include <pthread.h>

#include <weir/weir.h>

#include "cache_table.h"

/** Buckets of keys; flights at one moment are as many as the next stage has events: guess. */
#define FLIGHT_BUCKETS 256

struct cache_flight {
	struct weir_http_tap tap; /* first: the tap is the flight */
	struct weir_stage *st;
	struct cache_flight *next;                  /* same bucket; under the table's lock */
	struct weir_event *waiting, **waiting_tail; /* under the table's lock until landed */
	uint64_t hash;
	struct weir_slice key;    /* in the leader's request */
	unsigned code;            /* of the leader and all that wait: encoding_code() */
	struct cache_object *old; /* what is to be revalidated, with a reference; NULL: nothing */
	struct cache_limits limits;
	uint32_t fields_start; /* response fields that the request had before */

	/* the leader's request as it came, while it is disguised */
	bool
	    disguises; /* it is asked as a plain GET, which it is not, or with the old object's ETag */
	bool disguised;
	enum weir_http_method method;
	uint8_t n_headers;
	struct weir_slice method_text;
	const struct weir_http_header *headers;
	struct weir_http_header disguise[];
};

struct cache_flights {
	struct cache_table *table;
	pthread_mutex_t lock;
	pthread_cond_t landed; /* the last flight has landed */
	unsigned n WEIR_GUARDED_BY(lock);
	bool closed WEIR_GUARDED_BY(lock);
	struct cache_flight *bucket[FLIGHT_BUCKETS] WEIR_GUARDED_BY(lock);
};

enum flight_boarding {
	FLIGHT_LEADS, /* the request is the caller's to emit with the flight's tap */
	FLIGHT_HELD,  /* the request was taken; the flight is the caller's to free */
	FLIGHT_BUSY,  /* somebody else fetches it; request and flight are the caller's */
	FLIGHT_FOUND, /* meanwhile it is in the table: *found has a reference */
};

void flights_init(struct cache_flights *fs, struct cache_table *table);
void flights_fini(struct cache_flights *fs);

/** A flight for `req`, GET or HEAD, whose path has `hash`, with `old` (may be NULL), whose reference it takes. NULL:
 *  no memory, and the reference is still the caller's. */
struct cache_flight *flight_new(struct weir_stage *st, const struct weir_http_request *req,
    uint64_t hash, struct cache_object *old);
/** Free a flight that is not in the table, and its reference to `old`. */
void flight_free(struct cache_flight *f);

/** Board flight `f` for *ev; `wait`: it may be held. Takes *ev (stores NULL) when it was HELD. */
enum flight_boarding flights_board(struct cache_flights *fs, struct cache_flight *f,
    struct weir_event **ev, bool wait, struct cache_object **found);

/** Take `f` out; returns the events that waited for it, linked by next. */
struct weir_event *flights_land(struct cache_flights *fs, struct cache_flight *f);

/** Wait until all flights of `st` have landed, at most until `until_ns` (CLOCK_MONOTONIC), and let
 *  none hold events any more. Returns the events that still wait, linked by next. */
struct weir_event *flights_close(
    struct cache_flights *fs, const struct weir_stage *st, int64_t until_ns);

/** Make `req` a plain GET, that asks whether the old object's ETag is still right if there is one. For a flight that `disguises`. */
void flight_disguise(struct cache_flight *f, struct weir_http_request *req);
/** Undo it; legal when it was not done. */
void flight_reveal(struct cache_flight *f, struct weir_http_request *req);

#endif
