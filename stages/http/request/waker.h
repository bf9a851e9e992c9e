/* SPDX-License-Identifier: MIT */
/*
 * Tells a stage that holds a request in an event loop about the client: it has gone, or a streamed body
 * can go on. The waker is sent to that loop, which may also be the one of the client, and calls the stage
 * there. The stage keeps the event.
 *
 *   IDLE --wake--> SENT --arrived--> IDLE
 *     '--over--> OVER: the I/O thread frees the waker with the request
 *   SENT --over--> LEFT: it must arrive in the stage's loop and be dropped by the I/O thread, in any
 *     order. LEFT --arrived--> ARRIVED, LEFT --drop--> DROPPED; the second of the two frees it.
 *
 * The I/O thread of the client wakes, and drops the waker when the request has returned, so that it
 * never wakes one that has been freed. The stage's loop does the rest. conn/await.h has the calls of
 * the stage.
 */
#ifndef WEIR_HTTP_WAKER_H
#define WEIR_HTTP_WAKER_H

#include <stdatomic.h>
#include <stdbool.h>

#include <weir/event.h>
#include <weir/io.h>

struct http_req;

/** A waker has arrived. `owner` is NULL if it was over; it does not arrive again. */
typedef void (*http_woken)(void *owner, void *context);

enum waker_state { WAKER_IDLE, WAKER_SENT, WAKER_OVER, WAKER_LEFT, WAKER_ARRIVED, WAKER_DROPPED };

struct http_waker {
	struct weir_event ev; /* first: mail of type http_waker_type */
	atomic_int state;     /* enum waker_state */
	struct weir_loop *loop;
	/* for the loop's thread alone */
	void *owner; /* NULL once over */
	http_woken woken;
	void *context;
};

extern const struct weir_event_type http_waker_type;

/** Create a waker for `loop`, in whose thread `woken` is called with `owner` and `context`. NULL if out of
 * memory. */
struct http_waker *waker_new(struct weir_loop *loop, void *owner, http_woken woken, void *context);

/** Send the waker to its loop, unless it is on its way or over. NULL is allowed. The I/O thread, or
 * the owner of the event. */
void waker_wake(struct http_waker *w);

/** Take a waker that has arrived as mail. Returns its owner, or NULL if it was over: the caller must
 * not use it any more. The loop's thread. */
void *waker_arrived(struct http_waker *w);

/** The stage is about to finish the event: the waker does not wake any more. Returns whether it still
 * arrives once. The loop's thread. */
bool waker_over(struct http_waker *w);

/** Drop the waker of a request that has returned from the graph. The I/O thread. */
void waker_drop(struct http_req *r);

#endif
