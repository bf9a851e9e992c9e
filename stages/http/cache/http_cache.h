/* SPDX-License-Identifier: MIT */
/*
 * Shared by the parts of http.cache.
 *
 *   http_cache.c   life of the stage, its tables
 *   lookup.c       requests: hits, and what else becomes of them
 *   fetch.c        requests to the origin
 *   learn.c        what an answer says, and storing it
 *   capture.c      answers in parts
 *   wait.c         requests that wait for others
 *   background.c   requests to the origin without a client
 *   invalidate.c   requests that change things
 *   purge.c        purges by an operator
 *
 * Functions take over events and references only where their comment says so.
 */
#ifndef WEIR_STAGES_HTTP_CACHE_HTTP_CACHE_H
#define WEIR_STAGES_HTTP_CACHE_HTTP_CACHE_H

#include <weir/http.h>
#include <weir/io.h>
#include <weir/weir.h>

#include "http/cache/flight.h"
#include "http/cache/store.h"

/* outlets */
enum { HCACHE_MISS };

#define HCACHE_METRICS(X)                                                                          \
	X(HITS, "http_cache_hits_total", COUNTER, "requests",                                      \
	    "Requests answered from memory, fresh")                                                \
	X(STALE, "http_cache_stale_total", COUNTER, "requests",                                    \
	    "Requests answered from memory with an answer that was no longer fresh")               \
	X(MISSES, "http_cache_misses_total", COUNTER, "requests",                                  \
	    "Requests sent to the origin, whose answers may be stored")                            \
	X(COLLAPSED, "http_cache_collapsed_total", COUNTER, "requests",                            \
	    "Requests that waited for the answer to an equal one")                                 \
	X(ALONE, "http_cache_collapsed_gone_total", COUNTER, "requests",                           \
	    "Requests that waited in vain and went to the origin themselves")                      \
	X(BYPASS, "http_cache_bypass_total", COUNTER, "requests",                                  \
	    "Requests passed on whose answers may not be stored")                                  \
	X(ASKED, "http_cache_revalidations_total", COUNTER, "requests",                            \
	    "Requests sent to the origin to check a stored answer")                                \
	X(REVALIDATED, "http_cache_revalidated_total", COUNTER, "requests",                        \
	    "Stored answers that the origin has confirmed with 304")                               \
	X(BACKGROUND, "http_cache_background_total", COUNTER, "requests",                          \
	    "Of the revalidations, those without a client that waits")                             \
	X(STORES, "http_cache_stores_total", COUNTER, "answers", "Answers stored")                 \
	X(INVALIDATED, "http_cache_invalidated_total", COUNTER, "objects",                         \
	    "Objects removed by a purge or because a request has changed their resource")          \
	X(EVICTIONS, "http_cache_evictions_total", COUNTER, "objects",                             \
	    "Objects evicted to make room")                                                        \
	X(BYTES, "http_cache_bytes", GAUGE, "bytes", "Memory of the stored objects")               \
	X(OBJECTS, "http_cache_objects", GAUGE, "objects", "Objects stored")

enum hcache_metric {
#define HCACHE_METRIC_ID(id, name, kind, unit, help) HCACHE_##id,
	HCACHE_METRICS(HCACHE_METRIC_ID)
#undef HCACHE_METRIC_ID
};

struct hcache_conf {
	int64_t memory_bytes, max_object_bytes;
	int64_t variants;
	double heuristic;
	int64_t heuristic_max_ns;
	int64_t stale_while_ns, stale_error_ns;
	int64_t pass_ns; /* how long a key is remembered as not to be stored */
	int64_t wait_ns; /* how long a request waits for an equal one */
	bool client_control;
	bool cache_status;
	struct weir_strings key_fields;
};

struct hcache_state {
	struct weir_stage *st;
	struct hcache_store *store; /* one reference; set before the first event */
	struct hcache_flights flights;
	struct weir_loop *loop;  /* wait.c */
	struct weir_timer timer; /* of `loop` */
	/* what the gauges of this stage show */
	_Atomic int64_t capturing_bytes; /* of answers in parts that arrive */
	_Atomic int64_t shown_bytes, shown_objects, shown_evicted;
};

/** What has become of a request before it is looked up. */
struct hcache_try {
	bool alone;       /* do not wait for others, and do not let others wait */
	bool waited;      /* for another request */
	uint8_t failures; /* of flights that it has waited for */
	uint8_t turns;    /* times that it was looked up in vain */
};

/* ---- lookup.c ---- */

void hcache_handle(struct weir_stage *st, struct weir_event **ev, int n);

/** Look *ev up again, in any thread of the graph, and answer it or pass it on. Takes it over. */
void hcache_again(struct weir_stage *st, struct weir_event **ev, const struct hcache_try *t);

/** Answer or pass on *ev, whose time to wait is over at `now_ns`. Takes it over. */
void hcache_expired(struct weir_stage *st, struct weir_event **ev, int64_t now_ns);

/** Answer *ev from `o` and finish it, taking over both. `how` is for Cache-Status. */
void hcache_answer(
    struct weir_stage *st, struct weir_event **ev, struct hcache_object *o, const char *how);

/** Whether `o`, which is not fresh, may be served because the origin cannot answer. */
bool hcache_may_serve_on_error(
    const struct hcache_conf *conf, const struct hcache_object *o, int64_t now_ns);

/** Whether answers have the field Cache-Status: `text` if so, else NULL. */
static inline const char *hcache_tells(const struct hcache_conf *conf, const char *text)
{
	return conf->cache_status ? text : NULL;
}

/* ---- learn.c ---- */

/** What an answer has brought. */
enum hcache_brought {
	HCACHE_OBJECT,  /* stored, or an old object confirmed */
	HCACHE_NONE,    /* not to be stored */
	HCACHE_SPOILED, /* to be stored, but the key was purged meanwhile, or there was no room */
	HCACHE_ERROR,   /* nothing is known about the key */
};

/** The answer to a flight is processed. */
struct hcache_landing {
	struct hcache_flight *f;
	struct weir_stage *st;
	struct hcache_state *state;
	const struct hcache_conf *conf;
	struct weir_http_request *req;
	int64_t now_ns;
	struct hcache_object *o; /* with HCACHE_OBJECT; a reference */
};

/** Read the answer in l->req and compute its times. */
void hcache_learn_head(const struct hcache_landing *l, struct hcache_answer *a);

/** Learn from a whole answer. */
enum hcache_brought hcache_learn(struct hcache_landing *l);

/** Store the answer `a` with this body, under the key of the flight or as a variant. Sets l->o. */
enum hcache_brought hcache_store_answer(
    struct hcache_landing *l, const struct hcache_answer *a, struct weir_slice body);

/** Remember that answers for the key are not stored. */
void hcache_mark(struct hcache_landing *l);

/** Set the gauges to what the store holds. */
void hcache_show(struct weir_stage *st);

/* ---- capture.c ---- */

/** Begin to collect the answer in parts whose head is `a`; `length` is that of its body, or -1. Returns NULL if
 * memory is short. */
struct hcache_capture *hcache_capture_new(
    struct hcache_state *state, const struct hcache_answer *a, int64_t length);
void hcache_capture_free(struct hcache_capture *c);

/** Add bytes. Returns false if they are too many. */
bool hcache_capture_add(
    struct hcache_capture *c, const struct hcache_conf *conf, struct weir_slice data);

/** Store what was collected, if it is all of the answer. Sets l->o. */
enum hcache_brought hcache_capture_store(struct hcache_landing *l, struct hcache_capture *c);

/* ---- fetch.c ---- */

/** Send *ev to the origin, and keep nothing of its answer. Takes it over. */
void hcache_pass(struct weir_stage *st, struct weir_event **ev);

/** Send *ev to the origin and store the answer, or wait for an equal request. `old` is the object to be
 * revalidated, or NULL. Takes over *ev, no references. */
void hcache_fetch(struct weir_stage *st, struct weir_event **ev, const struct hcache_lookup *k,
    struct hcache_object *old, const struct hcache_try *t);

/** Begin the flight `f`, which leads or is alone, with `req`. Takes over `f`. The caller emits or sends the
 * event. */
void hcache_take_off(struct hcache_flight *f, struct weir_http_request *req);

/** Events that the stage behind `miss` has refused. Those that a stale object answers are answered. */
void hcache_refused(struct weir_stage *st, int outlet, struct weir_event **ev, int n, int reason);

/* ---- wait.c ---- */

/** Start the thread that lets requests leave whose time to wait is over. Returns 0 or a WEIR_E code. */
int hcache_wait_start(struct weir_stage *st);

/** A request waits, and none has before. */
void hcache_wait_begins(struct hcache_state *state);

/** Wait for the flights, at most until `until_ns`, and end the requests that still wait. */
void hcache_wait_stop(struct weir_stage *st, int64_t until_ns);

/** End the thread, if it was started. */
void hcache_wait_fini(struct hcache_state *state);

/* ---- background.c ---- */

/** Ask the origin whether `o` is current, with a request for *ev's target that nobody waits for. It is sent
 * when *ev is finished. Takes over nothing. */
void hcache_refresh(struct weir_stage *st, struct weir_event *ev, const struct hcache_lookup *k,
    struct hcache_object *o);

/* ---- invalidate.c ---- */

/** Send *ev, a request with an unsafe method, to the origin. If it succeeds, what is stored of its target,
 * and of those that its answer names, is removed. Takes it over. */
void hcache_change(struct weir_stage *st, struct weir_event **ev);

#endif
