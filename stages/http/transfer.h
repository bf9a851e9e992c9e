/* SPDX-License-Identifier: MIT */
/*
 * A body that moves in parts: between a connection (I/O thread) and the stage that has the event.
 *
 *   upload:  socket -> I/O thread -> ring `in`  -> owner of the event (weir_http_body_next)
 *   answer:  owner of the event (weir_http_stream_write) -> ring `out` -> I/O thread -> socket
 *
 * Both rings are bounded. Who finds its side full or empty does not block: the I/O thread leaves the socket alone, a stage
 * lets go of the event (weir_http_wait) and gets it back in its own queue (weir_requeue) when there is something to do.
 *
 *   body:    OPEN --last byte--> WHOLE                 answer:  not begun --begin--> BEGUN --finish OK--> DONE
 *              '---client gone, too slow, bad--> TORN                                  '---finish else--> ABORTED
 *
 * Who owns what:
 *   under `lock`              the fields of the first group: both sides
 *   owner of the event        its group; handed on with the event (queues, weir_requeue and the way home order that)
 *   I/O thread                its group
 *   the struct                the I/O thread frees it with its request, which is home then; while `signalled` it is in a
 *                             mailbox on its way, and is freed where it arrives
 *   the event while waiting   the I/O thread, from `waiter` being set until it takes it back
 *
 * From the stage's side the I/O thread is told by mail: `signal` is an event of a type of its own that is sent to the
 * loop and never enters the graph, at most one at a time. The other way it is weir_requeue.
 */
#ifndef WEIR_HTTP_TRANSFER_H
#define WEIR_HTTP_TRANSFER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

#include "http/request.h"
#include "http/ring.h"

enum transfer_in { TRANSFER_NONE, TRANSFER_OPEN, TRANSFER_WHOLE, TRANSFER_TORN };
enum transfer_out { TRANSFER_SILENT, TRANSFER_BEGUN, TRANSFER_DONE, TRANSFER_ABORTED };

/** What the I/O thread has yet to send of the answer, in this order. */
struct transfer_frame {
	char *text; /* head, or last chunk with trailers; owned */
	uint32_t text_n, text_at;
	char edge[20]; /* size line of a chunk */
	uint8_t edge_n, edge_at;
	uint8_t tail;  /* bytes of the CRLF behind the chunk */
	uint64_t left; /* bytes of the ring in this chunk */
};

struct transfer {
	struct weir_event signal; /* first: weir_event_cast(ev, &transfer_signal_type) */
	pthread_mutex_t lock;
	/* both sides, under lock */
	struct weir_stage *waiter; /* its event is held until `waits_for`; NULL: nobody waits */
	uint8_t waits_for;         /* WEIR_HTTP_BODY | WEIR_HTTP_ROOM */
	uint8_t in_state;          /* enum transfer_in */
	uint8_t out_state;         /* enum transfer_out */
	bool signalled;            /* `signal` is on its way */
	bool orphan;               /* the request is gone: free it when the signal arrives */
	bool gone;                 /* nobody takes the answer */
	bool starved;              /* the I/O thread wants to hear of room in `in` */
	bool idle;                 /* and of bytes in `out` */
	bool asked;                /* the stage wants the body */
	int16_t in_error;          /* of a torn body: a WEIR_E code, and the status that says so */
	uint16_t in_status;
	struct ring in, out;
	/* owner of the event */
	size_t lent;     /* bytes of `in` that the stage may be looking at */
	int64_t written; /* bytes of the answer so far */
	char *trailers;  /* "Name: value\r\n" lines, owned, NULL: none */
	size_t n_trailers;
	/* I/O thread; constant: r, srv, budget */
	struct http_req *r;
	struct http_server *srv; /* whose metrics count it; NULL in tests */
	_Atomic int64_t *budget;
	struct transfer_frame frame;
	bool head_made, last_made, chunked, bodiless, close;
};

extern const struct weir_event_type transfer_signal_type;

struct pool;

/** A transfer for `r` on its own. NULL: out of memory. The budget of `p` pays for the rings; only its constants are used. */
struct transfer *transfer_new(struct http_req *r, const struct pool *p);

/** Give a ring of `size` bytes to the body and open it. 0, WEIR_ENOMEM, WEIR_EPRESSURE (budget). */
int transfer_open_body(struct transfer *t, size_t size);

/** Give a ring of `size` bytes to `r`, one of its two. As transfer_open_body. The I/O thread, or the event's owner. */
int transfer_ring(struct transfer *t, struct ring *r, size_t size);

/** The I/O thread lets go of it: request home and dropped. */
void transfer_drop(struct transfer *t);

/* ---- body, the I/O thread's side ---- */

/** Where the next bytes go, in one piece; 0: no room, and a signal comes when there is. */
size_t transfer_room(struct transfer *t, char **room);
/** `n` bytes were put there. */
void transfer_put(struct transfer *t, size_t n);
/** Put as much of `data` as there is room for. Returns how much. */
size_t transfer_copy(struct transfer *t, struct weir_slice data);
/** The body is complete. */
void transfer_end(struct transfer *t);
/** It never will be. Legal twice and after the end: nothing happens. */
void transfer_tear(struct transfer *t, int error, int status);
/** Does the stage want the body? */
bool transfer_asked(struct transfer *t);

/* ---- answer, the I/O thread's side ---- */

/** What there is to send: seg[0..2) of the ring. Returns the state; with BEGUN and nothing in seg a signal comes when
 *  there is something. */
enum transfer_out transfer_look(struct transfer *t, struct weir_slice seg[2]);
/** `n` bytes of the ring are sent. */
void transfer_sent(struct transfer *t, size_t n);
/** The client is gone, or we have done with it: body torn, answer unwanted. */
void transfer_gone(struct transfer *t, int error);
/** The signal has arrived. Returns false when that was the last of it. */
bool transfer_arrived(struct transfer *t, bool *begun);

/* ---- the owner of the event ---- */

/** Is something of `what` here, WEIR_HTTP_BODY | WEIR_HTTP_ROOM? The lock is held. */
bool transfer_due_locked(const struct transfer *t, unsigned what);
/** The event is finished with `status`: what becomes of the answer. Returns true when one was begun. */
bool transfer_finished(struct transfer *t, int status);
/** Status that says why the body is torn, 0 when it is not. */
int transfer_torn_status(struct transfer *t);

#endif
