/* SPDX-License-Identifier: MIT */
/*
 * Flights of file.cache: fetches in progress. A key is fetched only once, however many requests for
 * it arrive in the meantime. The key consists of the path and the codings that a client accepts,
 * since the response may depend on both.
 *
 *   flights_board(): no flight for the key -> the request LEADS a new one: it is emitted to `miss`
 *                                             with the flight's tap; or the object is FOUND in the
 *                                             table after all
 *                    a flight exists       -> the request is HELD on it, or the result is BUSY
 *   flights_land():  `miss` has finished the leader; the flight is removed, and the events that
 *                    waited for it are returned
 *
 * Between these two calls the flight belongs to the leader's request. The waiting events are held
 * in the stage (weir_hold) and linked by ev->next.
 *
 * | call                          | threads                                    |
 * |-------------------------------|--------------------------------------------|
 * | flights_init, _fini, _close   | main                                       |
 * | flights_board, _land          | any of the graph, concurrently             |
 * | flight_new, _free, _disguise, _reveal | the owner of the request           |
 */
#ifndef WEIR_STAGES_FILE_CACHE_FLIGHT_H
#define WEIR_STAGES_FILE_CACHE_FLIGHT_H

#include <pthread.h>

#include <weir/weir.h>

#include "cache_table.h"

/** Hash buckets for flights. 256 is a guess: each flight has an event in the next stage, so there
 * are rarely more. */
#define FLIGHT_BUCKETS 256

struct cache_flight {
	struct weir_http_tap tap; /* first: the tap is cast to the flight */
	struct weir_stage *st;
	struct cache_flight *next;                  /* in the same bucket; under flights.lock */
	struct weir_event *waiting, **waiting_tail; /* under flights.lock until landed */
	uint64_t hash;
	struct weir_slice key;    /* points into the leader's request */
	unsigned code;            /* encoding_code() of the leader and of all waiting requests */
	struct cache_object *old; /* the object to revalidate, with a reference, or NULL */
	struct cache_limits limits;
	uint32_t fields_start; /* bytes of response fields that stages before the cache added */

	/* The leader's original method and headers, stored while the leader is disguised as a plain
	 * GET. `disguises` is set if the request is not a plain GET or must carry the old object's
	 * ETag. */
	bool disguises;
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
	pthread_cond_t landed; /* signalled when the last flight has landed */
	unsigned n WEIR_GUARDED_BY(lock);
	bool closed WEIR_GUARDED_BY(lock);
	struct cache_flight *bucket[FLIGHT_BUCKETS] WEIR_GUARDED_BY(lock);
};

enum flight_boarding {
	FLIGHT_LEADS, /* the caller must emit the request with the flight's tap */
	/* the event waits for another flight, and *ev is NULL; the caller frees its own flight */
	FLIGHT_HELD,
	/* another request is fetching the object; the caller still owns the request and the
	 * flight */
	FLIGHT_BUSY,
	FLIGHT_FOUND, /* another flight has inserted the object; *found holds a reference */
};

void flights_init(struct cache_flights *fs, struct cache_table *table);
void flights_fini(struct cache_flights *fs);

/** Create a flight for `req` (GET or HEAD). `hash` is that of its path. Takes over the reference to
 * `old` (may be NULL). Returns NULL if out of memory; the caller then keeps the reference. */
struct cache_flight *flight_new(struct weir_stage *st, const struct weir_http_request *req,
    uint64_t hash, struct cache_object *old);
/** Free a flight that has not boarded or has landed, and drop its reference to `old`. */
void flight_free(struct cache_flight *f);

/** Register `f` as the flight for *ev, unless a flight with the same key exists. In that case *ev
 * is held on the existing flight if `wait` is set. The result tells the caller what to do next. */
enum flight_boarding flights_board(struct cache_flights *fs, struct cache_flight *f,
    struct weir_event **ev, bool wait, struct cache_object **found);

/** Remove `f`. Returns the events that waited for it, linked by next. */
struct weir_event *flights_land(struct cache_flights *fs, struct cache_flight *f);

/** Wait until all flights of `st` have landed, at most until `until_ns` (CLOCK_MONOTONIC). After
 * that, no event is held on a flight any more. Returns the events that are still waiting, linked by
 * next. */
struct weir_event *flights_close(
    struct cache_flights *fs, const struct weir_stage *st, int64_t until_ns);

/** Turn `req` into a plain GET, with If-None-Match if there is an old object with an ETag. Only for
 * a flight that `disguises`. */
void flight_disguise(struct cache_flight *f, struct weir_http_request *req);
/** Undo flight_disguise; does nothing if the request is not disguised. */
void flight_reveal(struct cache_flight *f, struct weir_http_request *req);

#endif
