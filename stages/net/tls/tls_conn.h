/* SPDX-License-Identifier: MIT */
/*
 * The TLS side of a connection, of any protocol.
 *
 *   HELLO --a whole first record--> SHAKING <--flights, a step each--.
 *     |                               |--a step--> AWAY: the stage `tls.handshake` works on it
 *     |                               '--done--> OPEN --close_notify sent--> SHUT
 *     '--not TLS, time-out--> closed
 *
 * A step that needs asymmetric cryptography is an event for a stage `tls.handshake`. That stage has
 * its own threads, queue and admission. When there are many handshakes, they are therefore queued
 * or refused there, while open connections are still served. The last flight of a client (RFC 8446,
 * 4.4.4; also that of a resumed handshake in TLS 1.2) costs as much as a small request. The I/O
 * thread processes it itself, so that admission does not discard the work already spent on a
 * handshake.
 *
 * While AWAY, the SSL, its BIO and the socket belong to the stage. The I/O thread then only records
 * that more bytes have arrived, and closes when the event returns. At all other times everything
 * here belongs to the I/O thread. `user`, `version` and `sni` do not change while requests are in
 * the graph, so field getters may read them.
 *
 * Callers pass and get decrypted bytes; metrics count these, not the bytes of records. During the
 * handshake, the connection is called through struct tls_calls; afterwards, the connection calls
 * the functions below.
 */
#ifndef WEIR_NET_TLS_CONN_H
#define WEIR_NET_TLS_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <weir/event.h>

struct tls_conn;
struct tls_site;
struct weir_loop;

/** Memory that `memory` counts for each TLS connection. An idle connection was measured to take
 * 14.7 KB with OpenSSL 3.0 (VmRSS with 1,000 of them). */
#define TLS_CONN_BYTES 16384
/** Additional memory counted while a record is partly read: OpenSSL's buffer for a record with its
 * header, tag and alignment. */
#define TLS_READ_BYTES 16720

/** The result of a step. */
enum tls_verdict {
	TLS_DONE,
	TLS_WANT_READ,
	TLS_WANT_WRITE,
	/* Reasons for a failure. */
	TLS_FAILED_CLOSED,   /* the client disconnected */
	TLS_FAILED_VERSION,  /* no version, cipher or protocol in common */
	TLS_FAILED_ALERT,    /* the client sent an alert */
	TLS_FAILED_PROTOCOL, /* not TLS, or malformed */
	TLS_FAILED_PLAIN,    /* HTTP without TLS */
	TLS_FAILED_TIMEOUT,
	TLS_FAILED_SHED,     /* the handshake stage refused the step */
	TLS_FAILED_INTERNAL, /* a fault of the server, such as lack of memory */
};

/** Calls to the connection during its handshake; `conn` is that of struct tls_user. I/O thread
 * only. */
struct tls_calls {
	/* emit `step` to a stage `tls.handshake`; returns false if it cannot be emitted now */
	bool (*emit)(void *conn, struct weir_event *step);
	/* Wait for the socket, whose next event is passed to tls_shake. With `rearm`, epoll must
	 * report what is already there. */
	void (*wait)(void *conn, bool rearm);
	/* The handshake is done, and bytes may have arrived for which epoll reports no edge;
	 * `rearm` as above. */
	void (*opened)(void *conn, bool rearm);
	/* close a connection whose handshake has failed */
	void (*failed)(void *conn, enum tls_verdict why);
	/* the client speaks HTTP without TLS; the callee frees the TLS state */
	void (*plain)(void *conn);
	/* the event of a connection that was closed while AWAY has returned */
	void (*returned)(void *conn);
};

/** What TLS needs of the connection that uses it. */
struct tls_user {
	const struct tls_calls *calls;
	void *conn; /* the argument of `calls` */
	struct weir_loop *loop;
	/* the bytes that connections of the I/O thread hold; those of incomplete records are
	 * added */
	int64_t *held_bytes;
	struct weir_slice address; /* the client's, without its port */
};

/** The event type of handshake steps. Fields: address. */
extern const struct weir_event_type tls_handshake_type;

/** Run a handshake step, and store the result in the event for its I/O thread. Called by the owner
 * of the SSL. Takes 0.02 to 2 ms. */
void tls_step(struct weir_event *ev);

/* ---- the I/O thread ---- */

/** Create the TLS state of a new connection with the socket `fd`. `user` is copied. Returns NULL if
 * out of memory. */
struct tls_conn *tls_conn_new(struct tls_site *site, int fd, const struct tls_user *user);

/** Free `t`, which must not be AWAY. NULL is allowed. */
void tls_conn_free(struct tls_conn *t);

/** The memory that `t`, which may be NULL, holds. The caller counts it when it takes or gives up
 * `t`; changes in between are added to `held_bytes` of struct tls_user. */
int64_t tls_conn_bytes(const struct tls_conn *t);
/** Attach `t` to `user`, a new connection in another I/O thread, to which the socket has been
 * handed over. */
void tls_conn_move(struct tls_conn *t, const struct tls_user *user);

/** Whether the handshake is not done yet. */
bool tls_is_shaking(const struct tls_conn *t);
/** Whether the handshake stage has `t`: AWAY. */
bool tls_is_away(const struct tls_conn *t);
/** Whether the handshake is done, so that the connection is counted as open. */
bool tls_is_open(const struct tls_conn *t);
/** Whether the handshake, which is done, resumed an earlier session with a ticket. */
bool tls_is_resumed(const struct tls_conn *t);

/** Continue the handshake, because the socket is ready. While AWAY, only record that the socket was
 * ready. `peer_done` means that the client has shut its side down. May close the connection. */
void tls_shake(struct tls_conn *t, bool peer_done);

/** Handle `events`, for which the socket is ready after the handshake. Sets *rearm if epoll must be
 * armed again. Returns the events that the caller must still handle, by reading and writing. */
uint32_t tls_on_ready(struct tls_conn *t, uint32_t events, bool peer_done, bool *rearm);

/** Handle the return of `ev`, the finished event of a handshake step. */
void tls_step_returned(struct weir_event *ev);

/** Send close_notify and close `fd`, the socket of the closed connection: immediately or, while
 * AWAY, when the event returns. */
void tls_conn_close(struct tls_conn *t, int fd);

/** End the connection abnormally: no close_notify will be sent. */
void tls_conn_break(struct tls_conn *t);

/** Send close_notify; nothing more will be sent. Data that the client still sends are no longer
 * decrypted. Returns false if the socket is full; call again when it is writable. */
bool tls_bye(struct tls_conn *t);

/** Return the TLS version, such as "TLSv1.3"; "" before the handshake is done. Static. */
const char *tls_version(const struct tls_conn *t);
/** Return the server name that the client requested; "" if it sent none. Valid while `t` exists. */
const char *tls_sni(const struct tls_conn *t);

/* ---- bytes: like the socket calls, with errno EAGAIN ---- */

/** Read up to `n` bytes into `p`. Afterwards tls_left reports whether another call may return bytes
 * without a new edge from epoll. */
ssize_t tls_recv(struct tls_conn *t, char *p, size_t n);
/** Whether reading can continue without a new edge from epoll, according to the last tls_recv. */
bool tls_left(const struct tls_conn *t);

/** Send `iov[n]`. If fewer bytes are sent, the socket is full, and the next call must begin with
 * exactly the bytes that were not sent. `more` means that a file follows. */
ssize_t tls_send(struct tls_conn *t, const struct iovec *iov, int n, bool more);

/** Send up to `n` bytes of the file `fd` from `*offset` on, and advance `*offset`. If fewer bytes
 * are sent, the socket is full. Returns 0 at the end of the file. */
ssize_t tls_sendfile(struct tls_conn *t, int fd, off_t *offset, size_t n);

#endif
