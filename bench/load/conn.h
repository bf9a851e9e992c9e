/* SPDX-License-Identifier: MIT */
/*
 * Connections of a worker and the requests under way on them.
 *
 *   CLOSED -> CONNECTING -> (HANDSHAKE) -> OPEN -> CLOSED
 *
 * A connection is in exactly one list of its worker, by what it could do for the next request: FREE
 * (closed), IDLE (open, nothing under way), ROOM (fewer under way than may be), FULL. It is
 * registered with epoll once, edge-triggered, for its whole life; events carry the number of that
 * life, so that one that belongs to its predecessor in the slot is recognised.
 *
 * Sent twice: a server may close a kept connection at any time, and a request that crosses with
 * that is nobody's failure (RFC 9112, 9.3.1 and 9.5). So a request of which no byte of an answer
 * came, on a connection that had served another, is sent once more on a new connection, whatever
 * its method: this is a generator of load, not of orders. The second sending counts as attempt, not
 * as error. Requests pipelined behind one after whose answer or time-out the connection ended go
 * elsewhere, too, as often as that happens: each time one of them has ended.
 *
 * One thread: all of it belongs to its worker.
 */
#ifndef WEIR_LOAD_CONN_H
#define WEIR_LOAD_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "load/reply.h"
#include "load/result.h"
#include "load/tickets.h"
#include "load/tls.h"
#include "load/wheel.h"

struct worker;

enum conn_state { CONN_CLOSED, CONN_CONNECTING, CONN_HANDSHAKE, CONN_OPEN };
enum conn_list { CONN_FREE, CONN_IDLE, CONN_ROOM, CONN_FULL, CONN_N_LISTS };

/** A request under way. */
struct flight {
	struct ticket ticket;
	struct wheel_item deadline;
	struct conn *conn;
};

struct conn {
	int fd;
	uint32_t life; /* counts the connections that this slot has been */
	uint8_t state, list;
	bool served;   /* has brought a whole answer */
	bool kicked;   /* is in the worker's list of those with work (conn_kick) */
	bool readable; /* the socket may have bytes that were not read */
	bool ended;    /* the peer will send no more than what is there */
	bool slow_read, slow_write;
	struct conn *next, *prev; /* in its list */
	struct conn *next_kicked;
	struct tls_session *tls;

	/* ring of the worker's depth: [head, head + n), of which the first n_written are written
	 * and the next one up to written_bytes */
	struct flight *flight;
	int head, n, n_written;
	size_t written_bytes;
	char fields[96]; /* of the request being written; empty: to be made, or it has none */
	int n_fields;

	struct reply reply; /* to the request at head */
	/* slow ones: bytes they may read and write now, and when more are due (pace.h) */
	double may_read_bytes, may_write_bytes;
	int64_t paced_ns;
	struct wheel_item pace;
};

/** Put `t` on the connection `c`, which must be IDLE or ROOM. */
void conn_add(struct worker *w, struct conn *c, const struct ticket *t);

/** Make a connection in a free slot for `t`. The ticket is the connection's then, or failed, when
 *  the system says so at once. */
void conn_open_for(struct worker *w, const struct ticket *t);

/** Something happened to the socket (events of epoll). */
void conn_event(struct worker *w, struct conn *c, uint32_t events);

/** Have conn_work called in the next turn. */
void conn_kick(struct worker *w, struct conn *c);

/** Write and read what can be. */
void conn_work(struct worker *w, struct conn *c);

/** The time-out of `f` has come: it ends, and its connection with it, since its state is
 *  unknown. */
void conn_timed_out(struct worker *w, struct flight *f);

/** Close; requests under way on it end as GONE. */
void conn_abandon(struct worker *w, struct conn *c);

#endif
