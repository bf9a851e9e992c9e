/* SPDX-License-Identifier: MIT */
/*
 * The connections of a worker, and the requests in flight on them.
 *
 *   CLOSED -> CONNECTING -> (HANDSHAKE) -> OPEN -> CLOSED
 *
 * A connection is in exactly one list of its worker, depending on how many more requests it can
 * take: FREE (closed), IDLE (open, nothing in flight), ROOM (can take more requests) or FULL. It is
 * registered with epoll once, edge-triggered, and stays registered until it is closed. Each epoll
 * event carries the value of `life`, which identifies stale events of a previous connection in the
 * same slot.
 *
 * Sent twice: a server may close a persistent connection at any time, and a request that was sent
 * just before the close has not failed (RFC 9112, 9.3.1 and 9.5). If a connection has already
 * served a request and is closed before the first byte of the next response, that next request is
 * therefore sent once more on a new connection. Requests with any method are resent, since for
 * measurements it does not matter whether a request is idempotent. The resend counts as an attempt,
 * not as an error. If a response or a time-out ends a connection, the pipelined requests after it
 * are also resent on another connection. A request may be resent several times for this reason, but
 * each time the request ahead of it has finished.
 *
 * One thread: a connection belongs to its worker.
 */
#ifndef WEIR_LOAD_CONN_H
#define WEIR_LOAD_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/io.h>

#include "load/reply.h"
#include "load/result.h"
#include "load/tickets.h"
#include "load/tls.h"

struct worker;

enum conn_state { CONN_CLOSED, CONN_CONNECTING, CONN_HANDSHAKE, CONN_OPEN };
enum conn_list { CONN_FREE, CONN_IDLE, CONN_ROOM, CONN_FULL, CONN_N_LISTS };

/** A request in flight. */
struct flight {
	struct ticket ticket;
	struct weir_timer deadline;
	struct conn *conn;
};

struct conn {
	struct worker *worker; /* its owner */
	int fd;
	uint32_t life; /* number of connections that have used this slot */
	uint8_t state, list;
	bool served;   /* has delivered a complete response */
	bool kicked;   /* is in the worker's list of connections with work (conn_kick) */
	bool readable; /* the socket may have unread bytes */
	bool ended;    /* the peer will send no more; unread bytes may remain */
	bool slow_read, slow_write;
	struct conn *next, *prev; /* in its list */
	struct conn *next_kicked;
	struct tls_session *tls;

	/* Ring of `depth` entries (worker.h), of which [head, head + n) are in use. The first
	 * n_written requests are written completely, the next one up to written_bytes. */
	struct flight *flight;
	int head, n, n_written;
	size_t written_bytes;
	char fields[96]; /* extra fields of the request being written; "" if none */
	int n_fields;

	struct reply reply;                  /* the response to the request at head */
	uint64_t hash[REPLY_HASH_BYTES / 8]; /* of its body, if one is expected */
	/* for slow connections: bytes that may be moved now, the time of the last refill, and the
	 * timer for the next one (conn_io.h) */
	double may_read_bytes, may_write_bytes;
	int64_t paced_ns;
	struct weir_timer pace;
};

/** Sends `t` on the connection `c`, which must be in the list IDLE or ROOM. */
void conn_add(struct worker *w, struct conn *c, const struct ticket *t);

/** Opens a connection for `t` in a free slot. When the function returns, the ticket either belongs
 * to the connection or has failed because the connection was refused immediately. */
void conn_open_for(struct worker *w, const struct ticket *t);

/** Handles the `events` that epoll reported for the socket. */
void conn_event(struct worker *w, struct conn *c, uint32_t events);

/** Schedules conn_work for the next iteration of the event loop. */
void conn_kick(struct worker *w, struct conn *c);

/** Writes and reads as much as possible. */
void conn_work(struct worker *w, struct conn *c);

/** Handles an expired time-out: finishes the request `f` and closes its connection, since the
 * response may still arrive. */
void conn_timed_out(struct worker *w, struct flight *f);

/** Closes the connection. Its requests in flight finish as GONE. */
void conn_abandon(struct worker *w, struct conn *c);

#endif
