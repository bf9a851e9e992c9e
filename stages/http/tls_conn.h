/* SPDX-License-Identifier: MIT */
/*
 * TLS of a connection.
 *
 *   HELLO --a whole first record--> SHAKING <--flights, a step each--.
 *     |                               |--a step--> AWAY: the stage `tls.handshake` works on it
 *     |                               '--done--> OPEN --close_notify sent--> SHUT
 *     '--no TLS, too late--> closed
 *
 * A step that costs asymmetric cryptography is an event, for the stage behind the outlet `handshake`: it has threads, a queue and
 * a door of its own, so that many handshakes wait for each other or are refused there, while connections that are open are
 * served. The last flight of a client (RFC 8446, 4.4.4; of a resumed TLS 1.2 likewise) costs as much as a small request and is
 * done by the I/O thread, so that what was spent on a handshake is not thrown away by the door.
 *
 * While AWAY the SSL, its BIO and the socket are the stage's; the I/O thread only notes that more has come, and closes when it
 * is home. At all other times everything here is the I/O thread's. `conn`, `version` and `sni` do not change while
 * requests are in the graph, so field getters may read them.
 *
 * Bytes that callers see and that are counted are plain ones.
 */
#ifndef WEIR_HTTP_TLS_CONN_H
#define WEIR_HTTP_TLS_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <weir/event.h>

struct conn;
struct http_io;
struct tls_conn;
struct tls_site;

/** Memory that is counted for each in `memory`: measured, 14.7 KB of an idle one with OpenSSL 3.0 (1,000 of them, VmRSS). */
#define TLS_CONN_BYTES 16384
/** And for as long as a record is half read: what OpenSSL takes to read one, a record with its head, tag and alignment. */
#define TLS_READ_BYTES 16720

/** The type of steps of handshakes. Fields: address. */
extern const struct weir_event_type tls_handshake_type;

/** Do a step: the SSL's owner. What came of it is in the event, for its I/O thread. 0.02 to 2 ms. */
void tls_step(struct weir_event *ev);

/* ---- the I/O thread ---- */

/** TLS for the connection `c`, a new one. NULL without memory. */
struct tls_conn *tls_conn_new(struct tls_site *site, struct conn *c);

/** Give back all; not while AWAY. NULL is allowed. */
void tls_conn_free(struct tls_conn *t);

/** `t` (NULL: none) is the TLS of `c` from now on, and counted in its memory. Returns the one before, the caller's. */
struct tls_conn *tls_conn_set(struct conn *c, struct tls_conn *t);
/** It belongs to `c` of another I/O thread now, which has its socket. */
void tls_conn_move(struct tls_conn *t, struct conn *c);

/** Is the handshake not done? */
bool tls_is_shaking(const struct tls_conn *t);
/** Has the stage got it? */
bool tls_is_away(const struct tls_conn *t);
/** Is it counted as open? */
bool tls_is_open(const struct tls_conn *t);

/** The socket of `c` is ready for `events`. Returns those that are left for reading and writing requests. */
uint32_t tls_on_ready(struct conn *c, uint32_t events);

/** A step came home: event of the mail, finished with a status that it holds. */
void tls_came_home(struct weir_event *ev);

/** A handshake took too long: count it. */
void tls_timed_out(struct conn *c);

/** The connection is closed: say so to the client, close its socket `fd`, now or when it is home. */
void tls_conn_close(struct tls_conn *t, int fd);

/** It ends badly: no close_notify, whatever follows. */
void tls_conn_break(struct tls_conn *t);

/** Nothing more will be sent: close_notify. What the client still sends is not decrypted any more. False: the socket is full,
 *  call again when it has room. */
bool tls_bye(struct tls_conn *t);

/** "TLSv1.3"; "" before the handshake is done. Static. */
const char *tls_version(const struct tls_conn *t);
/** The name that the client asked for, "" without one. As long as `t`. */
const char *tls_sni(const struct tls_conn *t);

/* ---- bytes: as the calls for sockets, with errno EAGAIN ---- */

/** Up to `n` bytes into `p`. Afterwards tls_left says whether the next call has something without an edge. */
ssize_t tls_recv(struct tls_conn *t, char *p, size_t n);
/** Would reading go on, whatever epoll says? Of the last tls_recv. */
bool tls_left(const struct tls_conn *t);

/** Send `iov[n]`. Fewer bytes than there are: the socket is full, and the next call must begin with the very bytes that
 *  are left. `more`: a file follows. */
ssize_t tls_send(struct tls_conn *t, const struct iovec *iov, int n, bool more);

/** Up to `n` bytes of the file `fd` from `*offset` on, which moves. Likewise; 0: the file is shorter. */
ssize_t tls_sendfile(struct tls_conn *t, int fd, off_t *offset, size_t n);

#endif
