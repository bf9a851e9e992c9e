/* SPDX-License-Identifier: MIT */
/*
 * Tests of one stage type: a server in the test program with the stage, requests to it, what leaves by
 * its outlets, its metrics, and a clock that the test moves.
 *
 *   http.server "source" --request--> stage "test" --each outlet--> a stage that counts and finishes
 *
 * A test program has the sources of the stage and is linked with libweir-test.a and libweir: weir::test in
 * CMake, or `-lweir-test $(pkg-config --libs weir)`. docs/writing-a-stage.md has an example.
 *
 * Threads of the server run as they would in `weir run`: the calls below may be made by one thread at a
 * time, and wait for conditions, at most 60 s of the real time.
 */
#ifndef WEIR_TEST_H
#define WEIR_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/event.h>
#include <weir/graph.h>
#include <weir/stage.h>

WEIR_C_BEGIN

struct weir_test;

/**
 * Register `ops` and start a server with one stage of this type, called "test". `members` is written
 * beside `use:` in its YAML, "with: { limit: 2 }, threads: { max: 1 }" for instance; NULL for none. If the
 * type accepts HTTP requests or any events, an http.server sends its requests to the stage. If it is a
 * source, its events go to the stages of the outlets. A process has one such server at a time.
 *
 * Returns 0 and stores the test in *test, to be passed to weir_test_close. Otherwise returns a WEIR_E code
 * with `errs` filled in (weir_errs_format); so a test can check that `init` refuses a configuration.
 */
int weir_test_open(const struct weir_stage_ops *ops, const char *members, struct weir_test **test,
    struct weir_errs *errs);

/** Drain the server and free the test. Returns 0; WEIR_EFAILED if events were lost, were ended by the
 *  drain, or remain in handlers that have not returned. NULL is allowed. */
int weir_test_close(struct weir_test *test);

/** The graph and the stage, for the calls of weir/graph.h and weir/stage.h. They live until
 *  weir_test_close. */
struct weir_graph *weir_test_graph(struct weir_test *test);
struct weir_stage *weir_test_stage(struct weir_test *test);

/* ---- HTTP requests, over a connection each ---- */

/** A request that was sent. */
struct weir_test_call;

/** An answer. `text` is all of it, NUL-terminated and owned; `body` points into it. */
struct weir_test_answer {
	int status;
	char *text;
	const char *body; /* NUL-terminated; it may contain other NULs */
	size_t body_n;    /* bytes */
};

/**
 * Send a request: `method`, and `target` such as "/a?b=c". `fields` has further lines, each ended by
 * "\r\n", or is NULL. `body` has `n` bytes, 0 for none. Returns NULL if there is no http.server, or if the
 * system refuses a connection.
 */
struct weir_test_call *weir_test_send(struct weir_test *test, const char *method,
    const char *target, const char *fields, const void *body, size_t n);

/** Wait for the answer and free the call. Returns 0 with *answer filled in, to be passed to
 *  weir_test_answer_free, or WEIR_EFAILED if the server closed the connection without one. NULL as `call`
 *  gives WEIR_ESYS. */
int weir_test_receive(struct weir_test_call *call, struct weir_test_answer *answer);

/** weir_test_send of a GET, and weir_test_receive. */
int weir_test_get(struct weir_test *test, const char *target, struct weir_test_answer *answer);

/** The value of the first field `name` (ignoring case) of the answer, {NULL, 0} if there is none. */
struct weir_slice weir_test_field(const struct weir_test_answer *answer, const char *name);

/** Free the text of an answer. */
void weir_test_answer_free(struct weir_test_answer *answer);

/* ---- other events ---- */

/** Send ev[n], of the type that the stage accepts, to the stage. Each of them is finished as any event:
 *  the `finish` function of its type is called. Returns how many were admitted; the others are finished
 *  with the reason. Call it, and weir_test_close, in one thread, which is attached to the graph. */
int weir_test_offer(struct weir_test *test, struct weir_event **ev, int n);

/* ---- outlets, metrics ---- */

/** The number of events that have left by `outlet` so far, or -1 if the type has none of this name. They
 *  have been finished with WEIR_OK, so a request without a response is answered with 204. */
int64_t weir_test_left(struct weir_test *test, const char *outlet);

/** Wait until at least `n` events have left by `outlet`. Returns false after 60 s. */
bool weir_test_await(struct weir_test *test, const char *outlet, int64_t n);

/** Call fn(arg, outlet, ev) for each event that leaves, before it is finished, in a thread of the server.
 *  `fn` may read and change the event. Set it before the first event. */
void weir_test_on_left(struct weir_test *test,
    void (*fn)(void *arg, const char *outlet, struct weir_event *ev), void *arg);

/** The value of a metric in the table of the type, such as "page_sent_total"; -1 if there is none. What a
 *  handler has counted before it finished an event is included once the answer has come. */
int64_t weir_test_metric(struct weir_test *test, const char *name);

/* ---- the clock ---- */

/**
 * Move the clock of the process ahead by `ns`, at least 0: CLOCK_REALTIME, CLOCK_MONOTONIC and what derives
 * from them, in all threads. Timers of event loops that are due fire within some milliseconds, and
 * deadlines pass. Sleeps that have begun, and timers of timerfd, are not shortened.
 *
 * A program that calls this has its own clock_gettime, epoll_wait, pthread_cond_timedwait and
 * clock_nanosleep, which also the libraries use. They must be visible, as functions are by default.
 */
void weir_test_clock_advance(int64_t ns);

WEIR_C_END

#endif
