/* SPDX-License-Identifier: MIT */
/*
 * TLS for connections, over non-blocking sockets. No other module of the generator uses OpenSSL.
 *
 * After it has been created, a tls_context may be used by all threads; a session belongs to one
 * thread. Sessions are not resumed: every connection does a full handshake, as that of a new user
 * would.
 */
#ifndef WEIR_LOAD_TLS_H
#define WEIR_LOAD_TLS_H

#include <sys/types.h>

#include <weir/error.h>

#include "load/plan.h"

struct tls_context;
struct tls_session;

/* Negative results of reads and writes, with and without TLS. A read returns 0 at the end of the
 * stream. */
#define IO_AGAIN (-1) /* would block */
#define IO_RESET (-2) /* the connection is broken */
#define IO_TLS   (-3) /* the peer violates TLS, or its certificate was not accepted */
#define IO_CUT   (-4) /* the stream ended without close_notify */

/** Set up TLS with the server name and the certificate check of the plan. Returns 0, or WEIR_ENOMEM
 * or WEIR_ESYS with err filled in. */
int tls_new(const struct load_plan *plan, struct tls_context **out, struct weir_err *err);
void tls_free(struct tls_context *tls);

/** Open a session on the connected socket `fd`, which is still owned by the caller. Returns NULL if
 * out of memory. */
struct tls_session *tls_open(struct tls_context *tls, int fd);
void tls_close(struct tls_session *s);

/** Continue the handshake. Returns 1 when it is done, or IO_*. */
int tls_handshake(struct tls_session *s);

/** Like recv. Returns the number of bytes, 0 at the end of the stream, or IO_*. */
ssize_t tls_read(struct tls_session *s, void *p, size_t n);

/** Like send. After IO_AGAIN the next call must pass the same bytes again; more may follow them. */
ssize_t tls_write(struct tls_session *s, const void *p, size_t n);

#endif
