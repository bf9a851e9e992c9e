/* SPDX-License-Identifier: MIT */
/*
 * A client connection: one socket, requests in order, one timer.
 *
 *   OPEN --last response written--> (LINGERING) --> closed --requests returned--> reaped
 *     '------ error, time-out, client gone --------^
 *
 * While a connection lingers, our side is shut down, and what the client still sends is read and
 * discarded for a short time, since a reset could destroy the last response. A closed connection
 * (descriptor -1) stays in memory while its requests are in the graph. They are dropped when they
 * return. Connections are freed only in turn_end, by conn_reap, so a pointer to a connection is
 * valid until then. The event loop calls turn_end after each run, a group of callbacks.
 *
 * A connection belongs to its I/O thread. `net.client` and `io` are constant, so field getters may
 * read them from any thread. weir_http_family reads `gone` in the thread that owns a request.
 */
#ifndef WEIR_HTTP_CONN_H
#define WEIR_HTTP_CONN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "http/conn/io.h"
#include "http/request/stream.h"
#include "net/net_conn.h"

/** What a connection waits for; this determines its time-out. */
enum wait_kind { WAIT_NONE, WAIT_IDLE, WAIT_HEAD, WAIT_BODY, WAIT_WRITE, WAIT_LINGER };

/** The life of a connection. The value only changes to one further down this list; see
 *  conn_enter. */
enum conn_phase {
	CONN_OPEN,
	CONN_ENDING,    /* no response follows; close_notify could not be sent yet */
	CONN_LINGERING, /* our side is shut down */
	CONN_CLOSED,    /* the descriptor is -1 */
};

/** Whether requests are read from a connection. The value only changes to one further down this
 *  list. */
enum conn_input {
	INPUT_OPEN,
	INPUT_STOPPED, /* no further request will be read */
	INPUT_ENDED,   /* the client has shut its side down, and all of its bytes have been read */
};

/** What a connection does now, derived from its members; conn_state.c has the transitions. A new
 * connection is SHAKING, even without TLS. */
enum conn_state {
	CONN_STATE_SHAKING, /* PROXY header, TLS handshake */
	CONN_STATE_IDLE,    /* no request */
	CONN_STATE_HEAD,    /* part of a head has arrived */
	CONN_STATE_BODY,    /* a body is arriving, or is skipped */
	CONN_STATE_GRAPH,   /* its requests are complete and in the graph */
	CONN_STATE_WRITING, /* the socket is full */
	CONN_STATE_ENDING,  /* this and the next two: the phase of the same name */
	CONN_STATE_LINGERING,
	CONN_STATE_CLOSED,
	CONN_STATES,
};

/** What is known of the socket of a connection. */
struct conn_socket {
	bool blocked; /* a write was short: waiting for EPOLLOUT */
	bool rearm;   /* conn_wait must arm epoll again */
	bool unread;  /* unread bytes may remain for which epoll reports no further edge */
	/* the client has shut its side down (EPOLLRDHUP), but the end of its bytes may not have
	 * been read yet */
	bool peer_done;
	/* the kernel accepted a large write, of which perhaps nothing has reached the client yet */
	bool swallowed;
	/* bytes of "100 Continue" that must be sent before any response */
	uint8_t continue_left;
	/* limit of unsent bytes in the kernel, in KiB; 0 is the kernel's default */
	uint8_t unsent_kib;
};

/** The first response, if it has begun to be sent. */
struct conn_part {
	char *head;       /* bytes of its head that are not sent yet, owned; may be NULL */
	uint32_t head_n;  /* size of `head` */
	bool begun;       /* the head is final; some of the response may have been sent */
	bool close;       /* its head contains "Connection: close" */
	int64_t body_off; /* sent bytes of its body */
};

/** What is to be done next with a connection. The functions that read, parse and write return it;
 * conn_act does it. */
enum conn_next {
	CONN_AS_IS,      /* nothing: the connection is in io->ready, or waits already */
	CONN_WAIT,       /* wait for what happens next */
	CONN_PARSE,      /* parse what has been read */
	CONN_PARSE_FULL, /* like CONN_PARSE, after there was no space to read into */
	CONN_PARSE_END,  /* like CONN_PARSE, after the client has shut its side down */
	CONN_END,        /* the last response was sent: end, and discard what the client sends */
	CONN_END_DONE,   /* like CONN_END, but the client sends nothing more */
	CONN_CLOSE,
	CONN_ABORT, /* close, and discard what the kernel still holds for the client */
};

/** The events for which the socket of a connection is watched; EPOLLOUT may be added. */
#define CONN_EVENTS ((uint32_t)EPOLLIN | EPOLLRDHUP | EPOLLET)

struct proxy_header;

struct conn {
	struct net_conn net; /* first member */
	struct http_io *io;
	struct conn *ready_next; /* link of io->ready, if net.ready is set */
	uint8_t phase;           /* enum conn_phase */
	uint8_t input;           /* enum conn_input */
	uint8_t state;           /* enum conn_state, recorded by conn_state_follow */
	struct conn_socket socket;
	/* the client has shut its side down, or the connection is closed; see conn_gone */
	atomic_bool gone;
	uint32_t in_flight;             /* requests in the list from `first` */
	uint32_t requests;              /* requests read so far */
	bool upgrade;                   /* the last request asks for another protocol */
	struct http_req *first, **last; /* requests in order of arrival, whether answered or not */
	uint64_t wire_bytes;            /* received for the requests in the list from `first` */
	struct stream stream;
	struct conn_part part;
	struct proxy_header *proxy; /* until it has arrived; else NULL */
};

/** Return the connection of which `c` is the first member. NULL is allowed. */
static inline struct conn *conn_of_net(struct net_conn *c)
{
	return (struct conn *)c;
}

/* ---- opening, and what happens: conn.c ---- */

struct transfer;

/** Take over the accepted socket `fd` of a client with `key` (clients.h), which clients_enter has
 * counted. The count is undone here if the client is refused, else when the connection closes.
 * `refuse` is the limit (limit.h) that the client has exceeded, so that it must be refused, or -1.
 * Closes `fd` on failure. */
void conn_open(
    struct http_io *io, int fd, const struct sockaddr_storage *addr, uint64_t key, int refuse);
/** The state of a connection that survives a reload. */
struct conn_past {
	struct tls_conn *tls; /* NULL without TLS; the new server owns it after the handover */
	uint32_t requests;    /* read so far */
	uint8_t input;        /* enum conn_input */
	struct net_client client;
};

/** Copy the state of `c` that survives a reload into `past`. */
void conn_past(const struct conn *c, struct conn_past *past);
/** Open a connection for `fd` that continues `past`. Returns NULL if out of memory; the caller then
 * still owns the descriptor. The caller must call conn_settle. */
struct conn *conn_adopt(struct http_io *io, int fd, const struct conn_past *past);
/** Do `next` with the connection. This is where connections are closed, ended, handed over and made
 * to wait, except for those that the server closes for its own reasons (server/calls.c,
 * server/memory.c) and those whose handshake fails (conn_tls.c). A closed connection is ignored. */
void conn_act(struct conn *c, enum conn_next next);
/** conn_act with CONN_WAIT. */
void conn_settle(struct conn *c);
/** Read once from the readable socket, and act on what was read. Every complete request is emitted
 * before this run of the event loop ends. */
void conn_readable(struct conn *c);
/** Handle the signal of `t`, which a stage has sent because it needs the body, has freed space, or
 * has begun or continued a response. */
void conn_signalled(struct transfer *t);
/** Handle the return of `r` from the graph: its response may be written now. I/O thread only. */
void conn_answered(struct http_req *r);
/** `r`, which is in the graph, is with no other thread that would soon return it: the loop does not spin
 * for it. I/O thread only. */
void conn_not_awaited(struct http_req *r);
/** Append `c` to the list of connections to process in turn_end. */
void conn_make_ready(struct conn *c);
/** Return the configured seconds for Retry-After. */
int conn_retry_after_s(const struct conn *c);
/** Hand `c` over to another server if it is between two requests, or only sends a response. Returns
 * whether it has left; it is then closed here. Only while io_is_leaving. */
static inline bool conn_hand_over(struct conn *c)
{
	return c->io->srv->net.calls->hand_over(&c->net);
}

/* ---- ending: conn_end.c ---- */

/** Note that nobody waits for the responses of `c` any more: end the families of its requests
 * (weir_http_family). A client that has only shut its side down counts, too, since the kernel reports a
 * client that was killed in the same way. Costs nothing before that. */
void conn_gone(struct conn *c);

/** End the connection after the last response. It then lingers if the client may still be sending.
 * If close_notify cannot be sent because the socket is full, the connection waits as for a
 * response, and conn_write returns CONN_END again. Returns false if it must be closed now. */
bool conn_end(struct conn *c, bool client_done);
/** Like conn_close, but leaves the descriptor open and returns it; the caller then owns it. `c`
 * must be open. */
int conn_detach(struct conn *c);
/** Close the socket. If this truncates a response, the client can tell that the response is
 * incomplete. May be called twice; `c` stays valid until turn_end. */
void conn_close(struct conn *c);
/** Like conn_close, but also discards what the kernel still holds for a client that does not read
 * it. */
void conn_abort(struct conn *c);
/** Free a closed connection whose requests have all returned. */
void conn_reap(struct conn *c);

/* ---- waiting: wait.c ---- */

/** Determine what the connection waits for now, set its time-out, and arm epoll again if needed.
 * Returns false if epoll has no memory for that. */
bool conn_wait(struct conn *c);
/** Begin to wait for `wait` now. */
void conn_wait_begin(struct conn *c, enum wait_kind wait);
/** The timer has fired: return whether the connection has waited for too long. If it has not, the
 * timer is set again. */
bool conn_is_due(struct conn *c);
/** Count the time-out of what the connection waits for, and queue a response if one is due. */
enum conn_next conn_time_out(struct conn *c);
/** Append `c` to the list `id`, unless it is in that list already. */
static inline void conn_list_join(struct conn *c, enum net_list_id id)
{
	net_list_join(&c->io->net, &c->net, id);
}

/** Remove `c` from the list it is in, if any. */
static inline void conn_list_leave(struct conn *c)
{
	net_list_leave(&c->io->net, &c->net);
}

/** Whether the body or response in progress moves more slowly than min_body_rate or min_send_rate
 * requires, without the initial grace of those knobs. A response is also slow if the client has
 * acknowledged none of it for a second: otherwise the bytes that its kernel accepted at first would
 * make it appear fast for a long time. May cost one system call. */
bool conn_is_slow(struct conn *c);

/* ---- states: conn_state.c ---- */

/** Begin `phase`, which must be a successor of the current one. CONN_ENDING may be begun twice. */
void conn_enter(struct conn *c, enum conn_phase phase);
/** What the connection does now. */
enum conn_state conn_state(const struct conn *c);
/** Whether a connection in the state `from` may reach `to`, directly or through other states. */
bool conn_state_may(enum conn_state from, enum conn_state to);
/** Record what the connection does now, and assert that it may follow what was recorded before. */
void conn_state_follow(struct conn *c);

static inline bool conn_is_open(const struct conn *c)
{
	return c->phase != CONN_CLOSED;
}

/** Read no further request. */
static inline void conn_stop_input(struct conn *c)
{
	if (c->input == INPUT_OPEN)
		c->input = INPUT_STOPPED;
}

/** How the connection ends after its last response. */
static inline enum conn_next conn_last(const struct conn *c)
{
	return c->input == INPUT_ENDED ? CONN_END_DONE : CONN_END;
}

/** Wait until the socket is writable. */
static inline void conn_block(struct conn *c)
{
	c->socket.blocked = c->socket.rearm = true;
}

/* ---- reading: read.c, read_turn.c ---- */

/** Read once from the readable socket into the stream. */
enum conn_next conn_read(struct conn *c);
/** Record the result of a read of up to `n` bytes: `got` is the number of bytes read, 0 if the
 * client has shut its side down, or -errno. `n` is 0 if there was no free space to read into. */
enum conn_next conn_took(struct conn *c, size_t n, ssize_t got);
/** Defer reading from `c`, which is readable, so that it is read together with all other
 * connections that become readable in this run of the event loop. Returns false if `c` cannot be
 * deferred. */
bool conn_read_later(struct conn *c);
/** Read from the deferred connections at the end of a run of the event loop, and put them on the
 * ready list. */
void conn_read_arrived(struct http_io *io);

/* ---- requests: emit.c, limit.c ---- */

/** Parse the buffered bytes and emit the requests, as far as the pipeline limit allows. */
enum conn_next conn_parse(struct conn *c);
/** Like conn_parse, after stream_room has returned 0. */
enum conn_next conn_parse_full(struct conn *c);
/** Like conn_parse, after the last byte of the client: complete requests are answered, a partial
 * one is not. */
enum conn_next conn_parse_end(struct conn *c);
/** Append `r` to the requests of `c`. */
void conn_append(struct conn *c, struct http_req *r);
/** Whether the connection may read now. */
bool conn_wants_read(const struct conn *c);
/** Queue a response with `status` behind the pending responses; the connection ends after it.
 * Nothing more is parsed. `why` is static. */
enum conn_next conn_refuse(struct conn *c, int status, const char *why);

/* ---- streamed bodies: conn_parts.c ---- */

/** Record the signal of `t`. `begun` means that its response has begun. */
enum conn_next conn_parts_signalled(struct transfer *t, bool begun);
/** Handle the return from the graph of `r`, which has a transfer. */
void conn_parts_returned(struct http_req *r);
/** Whether there is free space for the streamed body. */
bool conn_wants_part(const struct conn *c);
/** Whether the streamed body waits for the client rather than for us. */
bool conn_blames_part(const struct conn *c);
/** Mark the streamed body as torn: it will not be complete, for the reason in `error` and `status`.
 * `limit` is the value of X-Weir-Limit, or NULL. The connection is closed after the response to
 * that request. */
void conn_tear_part(struct conn *c, int error, int status, const char *limit);
/** Notify all transfers of `c` that the connection is closed. */
void conn_parts_gone(struct conn *c);
/** Abort the streamed bodies and responses in progress, because the graph is closed. */
enum conn_next conn_parts_end(struct conn *c);
/** Whether "100 Continue", for which the client waits, is due. */
bool conn_continue_due(const struct conn *c);
/** Whether the client would believe the streamed response of `first` to be complete if the
 * connection were closed normally now. */
bool conn_would_look_whole(const struct conn *c);
/** Whether the connection remains usable after the response of `first`. The request body is still
 * arriving in parts. Called when the response is composed. */
bool conn_part_kept(const struct conn *c);

/* ---- writing: write.c, write_parts.c, write_pieces.c, compose.c ---- */

/** Result of a write. */
enum conn_sent {
	SENT,
	SENT_BLOCKED, /* the socket is full */
	SENT_BROKEN,  /* the connection is broken */
	SENT_WAITS,   /* the stage has not provided more */
};

/** Send what is available of the streamed response of `first`. *close is set if the response is
 * complete and the caller must close the connection after it. */
enum conn_sent conn_write_parts(struct conn *c, bool *close);
/** Send the rest of the response body of `first`, which is in pieces, after its head has been sent.
 * Drops `first` once all of it is sent. */
enum conn_sent conn_send_pieces(struct conn *c);
/** Drop `first`, whose response has been sent. */
void conn_pop(struct conn *c);
/** Drop `first`. Another server sends the rest of its response, and counts the response. */
void conn_give_away(struct conn *c);
/** Record that `n` bytes were sent. */
void conn_moved(struct conn *c, ssize_t n);
/** Whether the connection must be closed after the response of `r` for reasons other than the
 * response body. */
bool conn_closes_behind(const struct conn *c, const struct http_req *r);

/** Send "100 Continue", so that the client sends the body that it holds back (RFC 9110, 10.1.1).
 * All earlier responses must have been sent. If the socket does not accept all of it, the
 * connection is blocked until the rest is sent; no response is sent before that. Defined in
 * write_continue.c. */
enum conn_next conn_continue(struct conn *c);
/** Send the rest of "100 Continue" when the socket is writable again. */
enum conn_next conn_continue_more(struct conn *c);

/** Write all responses that are next in order. */
enum conn_next conn_write(struct conn *c);
/** Call conn_write for the ready connections until none is left; reap closed ones. Defined in
 * write_turn.c. */
void conn_write_ready(struct http_io *io);
/** Compose the head of the response of `r` into `out[room]`. Returns its length, or 0 if it does
 * not fit. `close` means that the connection is closed after this response. */
size_t compose_head(struct http_io *io, struct http_req *r, bool close, char *out, size_t room);
/** Size of the longest head that compose_bare writes. */
#define COMPOSE_BARE_MAX 192
/** Compose a response without a body, after which the connection is closed, for a client for which
 * there is no memory or no connection. Retry-After is left out if `retry_after_s` is 0. Returns its
 * length. */
size_t compose_bare(int status, int retry_after_s, char out[COMPOSE_BARE_MAX]);
/** Whether the response of `r` has body bytes. */
bool compose_has_body(const struct http_req *r);

#endif
