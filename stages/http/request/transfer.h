/* SPDX-License-Identifier: MIT */
/*
 * Moves a streamed body between a connection (I/O thread) and the stage that has the event.
 *
 *   upload:    socket -> I/O thread -> ring `in`  -> owner of the event (weir_http_body_next)
 *   response:  owner of the event (weir_http_stream_write) -> ring `out` -> I/O thread -> socket
 *
 * Both rings are bounded. A side that finds its ring full or empty does not block: the I/O thread
 * stops using the socket, and a stage releases the event (weir_http_wait). The event returns to the
 * stage's own queue (weir_requeue) when there is something to do.
 *
 *   body:      OPEN --last byte--> WHOLE
 *                '---client gone, too slow, bad--> TORN
 *   response:  not begun --begin--> BEGUN --finish OK--> DONE
 *                                     '---finish else--> ABORTED
 *
 * Ownership:
 *   under `lock`              the fields of the first group: both sides
 *   owner of the event        its group. Ownership passes on with the event; queues, weir_requeue
 *                             and the return of the event are memory barriers.
 *   I/O thread                its group
 *   the struct                the I/O thread frees it with the request, after the request has
 *                             returned. If `signal` is in a mailbox then (`signalled`), the struct
 *                             is freed when the signal arrives.
 *   the event while waiting   the I/O thread, from when `waiter` is set until it is cleared
 *
 * A stage notifies the I/O thread by mail: `signal` is an event of its own type that is sent to the
 * loop and never enters the graph. At most one is in flight. The I/O thread notifies a stage with
 * weir_requeue.
 */
#ifndef WEIR_HTTP_TRANSFER_H
#define WEIR_HTTP_TRANSFER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

#include "http/request/request.h"
#include "http/request/ring.h"

enum transfer_in { TRANSFER_NONE, TRANSFER_OPEN, TRANSFER_WHOLE, TRANSFER_TORN };
enum transfer_out { TRANSFER_SILENT, TRANSFER_BEGUN, TRANSFER_DONE, TRANSFER_ABORTED };

/** What the I/O thread must still send of the response: `text`, then `edge`, then `left` bytes of
 * the ring, then the CRLF. */
struct transfer_frame {
	char *text; /* the head, or the last chunk with trailers; owned */
	uint32_t text_n, text_at;
	char edge[20]; /* the size line of a chunk */
	uint8_t edge_n, edge_at;
	uint8_t tail;  /* unsent bytes of the CRLF after the chunk */
	uint64_t left; /* unsent bytes of the ring in this chunk */
};

struct transfer {
	struct weir_event signal; /* first: weir_event_cast(ev, &transfer_signal_type) */
	pthread_mutex_t lock;
	/* For both sides, under `lock` */
	/* the stage that waits for `waits_for` with its event; NULL if none does */
	struct weir_stage *waiter;
	uint8_t waits_for; /* WEIR_HTTP_BODY | WEIR_HTTP_ROOM */
	uint8_t awaits;    /* the same, of the owner of the event, which has a waker (waker.h) */
	uint8_t in_state;  /* enum transfer_in */
	uint8_t out_state; /* enum transfer_out */
	bool signalled;    /* `signal` is in flight */
	bool orphan;       /* the request is gone: free the transfer when the signal arrives */
	bool gone;         /* the response is no longer wanted */
	bool starved;      /* the I/O thread needs a signal when `in` has free space */
	bool idle;         /* the I/O thread needs a signal when `out` has bytes */
	bool asked;        /* the stage has requested the body */
	int16_t in_error;  /* for a torn body: a WEIR_E code, and its HTTP status */
	uint16_t in_status;
	const char *in_limit; /* the limit because of which the body is torn, or NULL */
	struct ring in, out;
	/* What the owner of the event wrote in a flush or at the end, and the ring had no room for: bytes
	 * tail[tail_at..n_tail) follow those of `out`. Owned. */
	char *tail;
	size_t tail_at, n_tail;
	bool
	    tail_lost; /* there was no memory for bytes of the tail: the response will be aborted */
	/* For the owner of the event */
	bool keeps_all;  /* what the ring has no room for goes to the tail */
	size_t lent;     /* bytes of `in` that the stage may be reading */
	int64_t written; /* bytes of the response written so far */
	int64_t length;  /* bytes of the response, -1 if unknown; constant once it has begun */
	char *trailers;  /* "Name: value\r\n" lines, owned; may be NULL */
	size_t n_trailers;
	/* For the I/O thread. r, meter and budget are constant; so are chunked and bodiless, once
	 * the owner of the event has begun the response. */
	struct http_req *r;
	struct part_meter *meter; /* NULL in tests */
	_Atomic int64_t *budget;
	struct transfer_frame frame;
	bool head_made, last_made, chunked, bodiless, close;
};

extern const struct weir_event_type transfer_signal_type;

struct pool;

/** Create a transfer for `r`, without rings. Returns NULL if out of memory. Rings allocated later
 * are charged to the budget of `p`. Only members of `p` that never change are read, so the owner of
 * the event may call this from any thread. */
struct transfer *transfer_new(struct http_req *r, const struct pool *p);

/** Allocate a ring of `size` bytes for the body and open it. Returns 0, WEIR_ENOMEM, or
 * WEIR_EPRESSURE if the budget is used up. */
int transfer_open_body(struct transfer *t, size_t size);

/** Allocate `size` bytes for `r`, one of the two rings of `t`. Returns the same values as
 * transfer_open_body. Called by the I/O thread or the event's owner. */
int transfer_ring(struct transfer *t, struct ring *r, size_t size);

/** Release `t`. Its request must have returned from the graph. I/O thread only. */
void transfer_drop(struct transfer *t);

/* ---- body, the I/O thread's side ---- */

/** Set *room to where the next bytes go, and return how many fit there. If the ring is full, return
 * 0; a signal follows when there is free space. */
size_t transfer_room(struct transfer *t, char **room);
/** Record that `n` bytes were put where transfer_room pointed. */
void transfer_put(struct transfer *t, size_t n);
/** Copy as much of `data` as fits into the ring. Returns the number of bytes. */
size_t transfer_copy(struct transfer *t, struct weir_slice data);
/** Mark the body as complete. */
void transfer_end(struct transfer *t);
/** Mark the body as torn: it will not be complete. `limit` is the value of X-Weir-Limit, a static
 * text, or NULL. No effect if the body has ended already. */
void transfer_tear(struct transfer *t, int error, int status, const char *limit);
/** Whether the stage has requested the body. */
bool transfer_asked(struct transfer *t);

/* ---- response, the I/O thread's side ---- */

/** Set seg[0..2) to the bytes of the ring that can be sent, and return the state. If the state is
 * BEGUN and the ring is empty, a signal is sent to the I/O thread when bytes arrive. */
enum transfer_out transfer_look(struct transfer *t, struct weir_slice seg[2]);
/** Record that `n` bytes of the ring have been sent. */
void transfer_sent(struct transfer *t, size_t n);
/** Mark the body as torn and discard the response, because the client has disconnected or the graph
 * is closed. */
void transfer_gone(struct transfer *t, int error);
/** Handle the arrival of the signal. Returns false if the transfer was an orphan, which is now
 * freed. *begun is set if the response has begun. */
bool transfer_arrived(struct transfer *t, bool *begun);

/* ---- the owner of the event ---- */

/** Whether any of `what` (WEIR_HTTP_BODY | WEIR_HTTP_ROOM) is available. The lock must be held. */
bool transfer_due_locked(const struct transfer *t, unsigned what);
/** Append bytes behind those of the ring `out`, which had no room for them. The I/O thread moves them to
 * the ring as it empties. If there is no memory, the response will be aborted. The lock must be held. */
void transfer_keep_locked(struct transfer *t, struct weir_slice data);
/** Whether bytes are kept behind the ring, so that it takes no others. The lock must be held. */
static inline bool transfer_has_tail(const struct transfer *t)
{
	return t->tail_at < t->n_tail;
}
/** End the response, if it has begun, because the event is finished with `status`. Returns whether
 * it had begun. */
bool transfer_finished(struct transfer *t, int status);
/** Return the HTTP status for a torn body, and set *limit as in transfer_tear. Returns 0 if the
 * body is not torn. */
int transfer_torn_status(struct transfer *t, const char **limit);

#endif
