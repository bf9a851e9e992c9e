/* SPDX-License-Identifier: MIT */
/*
 * Flights of http.cache: requests to the origin whose answers may be stored. Equal requests wait for one.
 *
 *   hcache_flights_board(): no flight with the key -> the request LEADS one: it is emitted to `miss`
 *                                                   -> or FOUND: another flight has stored an object meanwhile
 *                           there is one          -> the request is HELD with a ticket of that flight
 *   hcache_flights_land():  the leader has been answered; the flight is removed, and its tickets are returned
 *
 * Between these calls the flight belongs to the request of its leader. A request that waits may leave before:
 * hcache_flights_leave() returns those whose time is over and those whose client has gone.
 *
 * | call                                 | threads                        |
 * |--------------------------------------|--------------------------------|
 * | hcache_flights_init, _fini, _close   | main                           |
 * | hcache_flights_board, _land, _leave, _spoil | any of the graph, concurrently |
 * | the others                           | the owner of the request       |
 */
#ifndef WEIR_STAGES_HTTP_CACHE_FLIGHT_H
#define WEIR_STAGES_HTTP_CACHE_FLIGHT_H

#include <pthread.h>

#include <weir/weir.h>

#include "http/cache/store.h"
#include "http/request/filter.h"

/** 256 is a guess: each flight is a request under way at the origin. */
#define HCACHE_BUCKETS 256

/** A request that waits for a flight. */
struct hcache_waiter {
	struct weir_event *ev; /* held */
	int64_t until_ns;      /* its own deadline, or the end of `wait` */
};

struct hcache_waiting {
	struct hcache_waiter *one;
	int n, room;
};

struct hcache_capture;

struct hcache_flight {
	struct http_filter filter; /* first: the filter is cast to the flight */
	struct weir_stage *st;
	struct hcache_flight *next; /* in the same bucket; under the lock of flights */
	struct hcache_waiting waiting;
	bool boarded;        /* others may wait for it */
	atomic_bool spoiled; /* the key was purged meanwhile: the answer must not be stored */
	uint64_t purges;     /* hcache_flights.purges at the start */
	uint8_t failures;    /* of flights for the same requests that came before */
	bool background;     /* the request has no client */
	bool disguised;
	struct hcache_asker asker;
	uint64_t site_hash; /* of the key without the variant */
	uint64_t hash;      /* of the key */
	size_t site_n;      /* bytes of the key without the variant */
	struct weir_slice key;
	struct hcache_object *old;  /* to be revalidated, or NULL; a reference */
	struct hcache_object *fork; /* of the variant, or NULL; a reference */
	int64_t asked_ns;           /* CLOCK_MONOTONIC */
	bool landed;
	struct hcache_capture *capture; /* of an answer in parts, while it arrives; or NULL */
	struct hcache_object
	    *replaces; /* what is sent in place of an answer in parts, or NULL; a reference */
	uint32_t fields_start; /* bytes of fields that stages before the cache have added */
	/* what the disguise has replaced */
	enum weir_http_method method;
	struct weir_slice method_text;
	const struct weir_http_header *headers;
	uint8_t n_headers;
	struct weir_http_header disguise[]; /* then the key */
};

struct hcache_flights {
	struct hcache_store *store;
	pthread_mutex_t lock;
	pthread_cond_t landed; /* the last flight has ended */
	struct hcache_flight *bucket[HCACHE_BUCKETS];
	int n;       /* flights that have boarded */
	bool closed; /* nobody waits any more */
	atomic_int_fast64_t n_waiting;
	atomic_uint_fast64_t purges; /* purges of more than one key */
};

enum hcache_boarding {
	HCACHE_LEADS,
	HCACHE_HELD,  /* the event is gone; the caller frees its flight */
	HCACHE_FOUND, /* there is an object now; the caller looks it up, and frees its flight */
};

/** What is known of a request when its flight is made. */
struct hcache_lookup {
	struct hcache_key key;
	size_t site_n;
	uint64_t site_hash, hash;
	struct hcache_object *found; /* with the key; a reference, or NULL */
	struct hcache_object *fork;  /* a reference, or NULL */
};

void hcache_flights_init(struct hcache_flights *fs, struct hcache_store *store);
void hcache_flights_fini(struct hcache_flights *fs);

/** Make a flight for `req`, with references of its own to the fork and to `old` (may be NULL). Returns NULL
 * if memory is short. */
struct hcache_flight *hcache_flight_new(struct weir_stage *st, const struct weir_http_request *req,
    const struct hcache_lookup *k, struct hcache_object *old);
/** Free a flight that has landed or has not boarded. */
void hcache_flight_free(struct hcache_flight *f);

/** Let others wait for `f`, or hold *ev until the flight with its key lands, at most until `until_ns`. *first is
 * set if nobody waited before *ev. */
enum hcache_boarding hcache_flights_board(struct hcache_flights *fs, struct hcache_flight *f,
    struct weir_event **ev, int64_t until_ns, bool *first);

/** End the flight: nobody waits for it any more. Returns those that did; the caller frees waiting.one. */
struct hcache_waiting hcache_flights_land(struct hcache_flights *fs, struct hcache_flight *f);

/** Remove those whose time is over at `now_ns`, or whose client has gone. Returns them, linked by next. */
struct weir_event *hcache_flights_leave(struct hcache_flights *fs, int64_t now_ns);

/** Wait until all flights have landed, at most until `until_ns` or until the graph must stop at once. From then
 * on nobody waits. Returns those that still do, linked by next. */
struct weir_event *hcache_flights_close(
    struct hcache_flights *fs, const struct weir_stage *st, int64_t until_ns);

/** The answers of flights for `key` (without a variant) must not be stored; if `key` is empty, those of all. */
void hcache_flights_spoil(struct hcache_flights *fs, uint64_t site_hash, struct weir_slice key);

/** Whether the answer must not be stored, because its key was purged after the request was sent. */
bool hcache_flight_is_spoiled(const struct hcache_flights *fs, const struct hcache_flight *f);

/** Turn `req` into a plain GET without what the key leaves out, with the validators of the old object. */
void hcache_flight_disguise(struct hcache_flight *f, struct weir_http_request *req);
/** Undo it. */
void hcache_flight_reveal(struct hcache_flight *f, struct weir_http_request *req);

#endif
