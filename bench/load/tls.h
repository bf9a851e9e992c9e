/* SPDX-License-Identifier: MIT */
/*
 * TLS for connections, over non-blocking sockets. The only place that knows OpenSSL.
 *
 * A tls_context may be used by all threads once made; a session belongs to one thread. Sessions are
 * not resumed: every connection pays a whole handshake, as a new user does.
 */
#ifndef WEIR_LOAD_TLS_H
#define WEIR_LOAD_TLS_H

#include <sys/types.h>

#include <weir/error.h>

#include "load/plan.h"

struct tls_context;
struct tls_session;

/* What reading and writing return below 0, with and without TLS. 0 from a read is the end of the
 * stream. */
#define IO_AGAIN (-1) /* not now */
#define IO_RESET (-2) /* the connection is gone */
#define IO_TLS   (-3) /* the peer does not keep to TLS, or is not who it should be */
#define IO_CUT   (-4) /* the stream ended without the end that TLS has */

/** What plan->tls asks for: server name and certificate check. 0, or WEIR_ENOMEM, WEIR_ESYS with
 *  err filled. */
int tls_new(const struct load_plan *plan, struct tls_context **out, struct weir_err *err);
void tls_free(struct tls_context *tls);

/** A session on the connected socket `fd`, which stays the caller's; NULL: no memory. */
struct tls_session *tls_open(struct tls_context *tls, int fd);
void tls_close(struct tls_session *s);

/** Go on with the handshake: 1 when it is done, or IO_*. */
int tls_handshake(struct tls_session *s);

/** As recv: more than 0 bytes, 0 at the end of the stream, or IO_*. */
ssize_t tls_read(struct tls_session *s, void *p, size_t n);

/** As send. After IO_AGAIN the same bytes, or more behind them, must be offered again. */
ssize_t tls_write(struct tls_session *s, const void *p, size_t n);

#endif
