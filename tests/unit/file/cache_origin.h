/* SPDX-License-Identifier: MIT */
/*
 * file.cache in front of an origin that the test controls: it answers from a script, counts its
 * requests, and can be blocked by a gate. To let objects age, tests send requests until the origin
 * gets one; they never sleep.
 */
#ifndef WEIR_TESTS_FILE_CACHE_ORIGIN_H
#define WEIR_TESTS_FILE_CACHE_ORIGIN_H

#include "cunit_main.h"
#include "file/cache.h"
#include "file/http_call.h"

/* ---- the origin ---- */

struct origin {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool shut;     /* the gate: handlers block at it */
	int at_gate;   /* handlers that block now */
	int asked;     /* requests so far */
	int validated; /* requests with If-None-Match */
	int etag;      /* number of the current version */
	int status;    /* the response: 200, 404, 503; negative: the outcome */
	bool no_store;
	const char *modified; /* Last-Modified, when not NULL */
	size_t bytes;         /* length of the body, when not 0 */
	/* before each response is sent the file is written, so that the next one has another tag */
	bool written;
	int file; /* the body is all of this file, when not -1 */
};

extern struct origin origin;

void origin_set(int *member, int value);
int origin_get(const int *member);
void origin_gate(bool shut);

/* ---- the graph ---- */

extern struct weir_graph *graph;
extern struct weir_stage *cache;
extern struct call **calls; /* all calls of the test, freed after the drain */
extern int n_calls, calls_room;

/* A cache with up to four knobs set, as "name", "value", ..., NULL. */
void set_up(const char *const *knobs);

#define SET_UP(...) set_up((const char *const[]){__VA_ARGS__, NULL})

/* Drain with this grace time. Afterwards the counters of every stage must balance exactly. */
void check_books(int64_t grace_ns);
void free_all(void);
void tear_down(void);
int64_t metric(int row);
struct call *make(const char *path);

/* Send a GET without waiting. */
struct call *start(const char *path);

struct call *get_with(
    enum weir_http_method method, const char *path, const char *name, const char *value);

struct call *get(const char *path);

/* Request `path` until the origin has got `asked` requests. Returns the last call. */
struct call *get_until_asked(const char *path, int asked);

/* Start requests for `path`, whose object is in the cache, until one of them waits at the shut
 * gate. Returns that one. Each of the others ends before the next starts, so the cache is not
 * overloaded and refuses none. */
struct call *start_at_gate(const char *path);

/* Start `n` requests for `path` while the gate is shut. Returns when all but the leader are
 * held. */
void start_held(const char *path, int n);
void await_all(void);

/* Length of the origin's queue. */
uint64_t queued(void);
void test_register(void);

#endif
