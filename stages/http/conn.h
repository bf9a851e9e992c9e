/* SPDX-License-Identifier: MIT */
/*
 * A client connection: one socket, requests in order, one timer.
 *
 *   OPEN --last answer written--> (LINGERING) --> closed --requests home--> reaped
 *     '------ error, timeout, gone ----------------^
 *
 * Lingering: our side is shut down and what the client still sends is thrown away for a moment, so
 * that the last answer is not destroyed by a reset. A closed connection stays in memory (descriptor
 * -1) while requests of it are in the graph; each comes home to it and is dropped. Nothing is freed
 * but in turn_end, by conn_reap, so a pointer to a connection is good for the whole turn.
 *
 * All of it is its I/O thread's. `peer`, `id` and `io` are constant, so field getters may read
 * them.
 */
#ifndef WEIR_HTTP_CONN_H
#define WEIR_HTTP_CONN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "http/server.h"
#include "http/stream.h"

/** What a connection waits for, which decides its time-out. */
enum conn_wait { WAIT_NONE, WAIT_IDLE, WAIT_HEAD, WAIT_BODY, WAIT_WRITE, WAIT_LINGER };

struct tls_conn;

struct conn {
	struct weir_watch watch; /* first; fd -1: closed */
	struct tls_conn *tls;    /* NULL: plain; as long as there are requests */
	struct weir_timer timer;
	struct http_io *io;
	struct conn *next, **prev;           /* io->conns */
	struct conn *wait_next, **wait_prev; /* in `list`; wait_prev NULL: in none */
	struct conn *ready_next;             /* io->ready */
	struct http_req *first, **last;      /* requests in order of arrival, answered or not */
	struct stream stream;
	char *part_head;      /* head bytes of `first` that a short write left, owned */
	uint32_t part_head_n; /* how many */
	bool part;            /* some bytes of the answer of `first` are sent */
	bool part_close;      /* and it said "Connection: close" */
	bool ready;           /* in io->ready */
	bool no_more;         /* no further request will be read */
	bool eof;             /* the client has shut its side down */
	bool peer_done;       /* its end has been announced, and is to be read */
	bool unread;          /* bytes may wait that no edge will announce */
	bool rearm;           /* ask epoll again */
	bool swallowed;       /* the kernel took much at once: the client may have none of it */
	uint8_t unsent_kib;   /* most that the kernel keeps unsent; 0: as it likes */
	bool ending;          /* our last word waits for room: nothing leaves behind it */
	bool lingering;
	bool refused; /* when it came: it has no place of max_connections, and is of no address */
	bool blocked; /* a write was short: wait for EPOLLOUT */
	uint8_t continue_left; /* bytes of "100 Continue" that found no room; not 0: blocked */
	uint8_t wait;          /* enum conn_wait */
	uint8_t list;          /* enum conn_list_id, if in one */
	uint32_t in_flight;    /* requests in the list */
	uint32_t requests;     /* requests so far */
	int64_t since_ns;      /* when the present wait began */
	int64_t progress_ns;   /* last byte moved in it; WAIT_IDLE: the end of the handshake */
	int64_t moved_bytes;   /* in it; WAIT_WRITE: that the client is known to have */
	int64_t queued_bytes;  /* WAIT_WRITE: in the kernel at the last look, and sent since then */
	int64_t body_off;      /* bytes of the body of `first` that are sent */
	uint64_t wire_bytes;   /* that the client has sent for the requests in the list */
	uint64_t peer_key;     /* crowd.h; 0: not counted there */
	char id[8];
	uint8_t peer_n;
	char peer[INET6_ADDRSTRLEN];
};

/* ---- life: conn.c ---- */

/** Take over the accepted socket `fd` of a client with `key` (crowd.h), which has entered: it leaves with the connection.
 *  `refuse`: -1, or the limit (limit.h) that it is refused for. On failure closes it. */
void conn_open(
    struct http_io *io, int fd, const struct sockaddr_storage *addr, uint64_t key, int refuse);
/** What of a connection outlasts a reload. */
struct conn_past {
	struct tls_conn *tls; /* NULL: plain; the heir's */
	uint32_t requests;    /* so far */
	uint64_t peer_key;
	char id[8];
	uint8_t peer_n;
	char peer[INET6_ADDRSTRLEN];
};

/** Tell it of `c`. */
void conn_past(const struct conn *c, struct conn_past *past);
/** Take over `fd` with its past; NULL without memory, and the descriptor stays the caller's. The caller settles it. */
struct conn *conn_adopt(struct http_io *io, int fd, const struct conn_past *past);
/** As conn_close, but the descriptor becomes the caller's, who gets it. `c` must be open. */
int conn_detach(struct conn *c);
/** Close the socket; an answer that is broken off by that is seen to be. Legal twice; `c` is good until the end of the turn. */
void conn_close(struct conn *c);
/** As conn_close, but what the kernel still has for the client, who does not take it, is thrown away, too. */
void conn_abort(struct conn *c);
/** Free a closed connection whose requests are home. */
void conn_reap(struct conn *c);
/** Put `c` on the list of those to look at in turn_end. */
void conn_make_ready(struct conn *c);
/** An event of this connection came home: its answer may be written. The I/O thread. */
void conn_answered(struct http_req *r);
/** See what the connection waits for now: set the time-out, ask epoll again if need be. */
void conn_settle(struct conn *c);
/** Close the socket after the last answer, lingering if the client may still be sending. While our last word finds no room the
 *  connection waits as for an answer, and conn_write calls again. */
void conn_end(struct conn *c, bool client_done);
/** Our last word has found no room for too long: end without it. The answers before it are the kernel's to send, as without TLS. */
void conn_end_mute(struct conn *c);
/** Append `r` to the requests in order. */
void conn_append(struct conn *c, struct http_req *r);
/** Put `c` at the end of this list, unless it is in it. */
void conn_list_join(struct conn *c, enum conn_list_id id);
/** Take `c` out of the list that it is in, if any. */
void conn_list_leave(struct conn *c);
/** Move `c`, which is in a list, to the end of it. */
void conn_list_rotate(struct conn *c);
/** Bytes that the kernel has and the client has not acknowledged; one system call. taken.c, and so is: */
int64_t conn_untaken(const struct conn *c);
/** WAIT_WRITE: ask the kernel how much the client has acknowledged, which is progress. Returns whether there was any; one
 *  system call. */
bool conn_look(struct conn *c);
/** Seconds for Retry-After. */
int conn_retry_after_s(const struct conn *c);

static inline bool conn_is_open(const struct conn *c)
{
	return c->watch.fd != -1;
}

/* ---- reading: read.c ---- */

/** The socket is readable: one read. Everything complete becomes requests, before this run of the turn ends. */
void conn_read(struct conn *c);
/** A read with room for `n` bytes has got `got`, 0 at the end, or -errno; n == 0: there was no room. */
void conn_took(struct conn *c, size_t n, ssize_t got);
/** Read from `c`, which is readable, with all others that have become so in this run; false: not this one. read_turn.c, as is: */
bool conn_read_later(struct conn *c);
/** The run is over: read from them. They are ready then. */
void conn_read_arrived(struct http_io *io);
/** Parse what is buffered, as far as the pipeline allows. */
void conn_parse(struct conn *c);
/** Answer `status` in turn, then close: nothing more is parsed. `why` is static. */
void conn_refuse(struct conn *c, int status, const char *why);
/** Does the connection want to read? */
bool conn_wants_read(const struct conn *c);

/* ---- bodies in parts: conn_parts.c ---- */

struct transfer;

/** A stage has something to say about a transfer: it wants the body, there is room, an answer has begun or goes on. */
void conn_signalled(struct transfer *t);
/** `r`, which has a transfer, is home. */
void conn_parts_home(struct http_req *r);
/** Is there room for the body that arrives in parts? */
bool conn_wants_part(const struct conn *c);
/** Is it the client who keeps it waiting? */
bool conn_blames_part(const struct conn *c);
/** The body that arrives in parts will not be complete: `status` says why. The connection ends behind its answer. */
void conn_tear_part(struct conn *c, int error, int status);
/** The connection is closed: all its transfers learn it. */
void conn_parts_gone(struct conn *c);
/** The graph is closed: bodies that arrive are torn, answers in parts are broken off. */
void conn_parts_end(struct conn *c);
/** Is it time to tell the client to send the body in parts that it holds back? */
bool conn_continue_due(const struct conn *c);
/** Would the answer in parts of `first`, if the connection ended here in good order, seem to be complete? */
bool conn_would_look_whole(const struct conn *c);
/** `first`, which arrives in parts, leaves: is the connection of use behind it? */
bool conn_part_kept(const struct conn *c);

/* ---- writing: write.c, write_parts.c, write_pieces.c, compose.c ---- */

/** How a write went. */
enum conn_sent {
	SENT,
	SENT_BLOCKED, /* the socket is full */
	SENT_BROKEN,  /* the connection is */
	SENT_WAITS,   /* the stage has not said more */
};

/** Send what there is of the answer in parts of `first`; *close: it is complete, and the connection ends behind it. */
enum conn_sent conn_write_parts(struct conn *c, bool *close);
/** Send what is left of the body in pieces of `first`, whose head is sent, and drop the answer when that was all. */
enum conn_sent conn_send_pieces(struct conn *c);
/** The answer of `first` is sent: drop it. */
void conn_pop(struct conn *c);
/** `n` bytes were sent. */
void conn_moved(struct conn *c, ssize_t n);
/** Must the connection end behind the answer of `r`, whatever becomes of its own body? */
bool conn_closes_behind(const struct conn *c, const struct http_req *r);

/** Tell the client to send the body that it holds back (RFC 9110, 10.1.1): it is its turn, nothing is queued in front. What
 *  finds no room blocks the connection, and leaves before any answer. write_continue.c */
void conn_continue(struct conn *c);
/** There is room for the rest of it. */
void conn_continue_more(struct conn *c);

/** Write every answer whose turn it is; then go on with what has been read, or end. */
void conn_write(struct conn *c);
/** The same for all connections that are ready, until none is; closed ones are reaped. write_turn.c */
void conn_write_ready(struct http_io *io);
/** Compose the head of the answer of `r` into `out[room]`. Returns its length, 0 when it does not
 *  fit. `close`: the connection ends behind it. */
size_t compose_head(struct http_io *io, struct http_req *r, bool close, char *out, size_t room);
/** Does the answer of `r` carry body bytes? */
bool compose_has_body(const struct http_req *r);

#endif
