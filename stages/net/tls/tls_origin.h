/* SPDX-License-Identifier: MIT */
/*
 * TLS to other servers, as their client: verified, with SNI and resumption.
 *
 * TLS 1.2 and 1.3. The server must have a certificate for the name that is asked for (or for the address),
 * signed by an authority of `ca` or of the system. A session is kept by the caller for each server, and
 * saves the next handshake its asymmetric cryptography. An end without close_notify is an error, so that
 * nobody on the path can cut off a body of unknown length. All calls are for one thread, but
 * tls_origins_new, which reads files: main thread.
 */
#ifndef WEIR_NET_TLS_ORIGIN_H
#define WEIR_NET_TLS_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/knob.h>

struct tls_origins;
struct tls_origin;

struct tls_origin_conf {
	char *ca, *cert, *key; /* PEM files; empty: the system's authorities, no certificate */
	char *name;            /* of the servers; empty: that of the address */
	bool verify;
};

extern const struct weir_knob tls_origin_knobs[]; /* of struct tls_origin_conf */

/** What connections to the servers of a configuration have in common. Returns 0, or a WEIR_E code with
 * `err` filled. Threads may share it. */
int tls_origins_new(
    const struct tls_origin_conf *conf, struct tls_origins **out, struct weir_err *err);
/** NULL is allowed. */
void tls_origins_free(struct tls_origins *all);

/** A session to resume: NULL at first, replaced by connections, freed with tls_origin_forget. */
struct tls_session;
void tls_origin_forget(struct tls_session **session);

/** Begin TLS on the connected, non-blocking socket `fd`, which the caller keeps. `host` is a name, or an
 * address without brackets. `session` must outlive the connection. NULL if out of memory. */
struct tls_origin *tls_origin_new(
    struct tls_origins *all, int fd, const char *host, struct tls_session **session);
/** End TLS, with close_notify if the socket takes it. */
void tls_origin_free(struct tls_origin *t);

/** The socket may be readable. `end_is_near`: the server has shut its side down. */
void tls_origin_ready(struct tls_origin *t, bool end_is_near);

/** Continue the handshake. Returns 1 if it is done, 0 if it waits for the socket, -1 if it has failed:
 * tls_origin_why then says why. */
int tls_origin_shake(struct tls_origin *t);
const char *tls_origin_why(const struct tls_origin *t);
/** Whether the handshake resumed an earlier session. */
bool tls_origin_resumed(const struct tls_origin *t);

/** Write or read up to `n` bytes. Return their number; 0 if the socket takes or has none now; -1 if the
 * server takes no more, or has ended the connection in order; -2 if reading failed, or the connection ended
 * without close_notify. After a 0, bytes that were written may still wait for tls_origin_flush. */
int64_t tls_origin_write(struct tls_origin *t, const void *p, size_t n);
int64_t tls_origin_read(struct tls_origin *t, void *p, size_t n);
/** Send what OpenSSL has written and the socket did not take. Call it when the socket is writable. */
void tls_origin_flush(struct tls_origin *t);

#endif
