/* SPDX-License-Identifier: MIT */
/*
 * TLS termination for the endpoint: everything behind it sees plain connections.
 *
 *   client --TLS-- [net | admin_tls.c | inner] --socketpair-- peers.h, then mhd.h or live.h
 *
 * This keeps the strict check of a request head (head.h), which peeks at the bytes in a socket, the
 * same for all connections. TLS 1.2 and 1.3 by GnuTLS, without session tickets. It has no thread:
 * the admin loop watches admin_tls_fd. All calls are made from the admin thread, except
 * admin_tls_check.
 */
#ifndef WEIR_ADMIN_ADMIN_TLS_H
#define WEIR_ADMIN_ADMIN_TLS_H

#include <stdint.h>

#include <weir/error.h>

struct admin_tls;
struct keys;

/** Check whether an endpoint could use these PEM files. 0, or an error code with the message in
 *  `err`. Any thread. */
int admin_tls_check(const char *cert, const char *key, struct weir_err *err);

/** Start TLS termination with these PEM files; the paths are copied. 0, or an error code with the
 *  message in `err`. */
int admin_tls_open(const char *cert, const char *key, struct admin_tls **tls, struct weir_err *err);

/** Close all connections and free. NULL is allowed. */
void admin_tls_close(struct admin_tls *tls);

/** Read the files again for connections accepted from now on. If they cannot be used, nothing
 *  changes and an error is logged. */
void admin_tls_reload(struct admin_tls *tls);

/** Connections accepted from now on use `keys` (admin_tls_keys.h); the reference is taken over. */
void admin_tls_use(struct admin_tls *tls, struct keys *keys);

/** Take over `fd`, a connection just accepted; this module closes it, also on failure. Returns a
 *  non-blocking descriptor for the decrypted side, which the caller closes, or -1 if the connection
 *  was refused. */
int admin_tls_wrap(struct admin_tls *tls, int fd);

/** The descriptor that is readable when admin_tls_run has something to do. */
int admin_tls_fd(const struct admin_tls *tls);

/** Do what can be done without waiting, and close connections that take too long to finish. Call it
 *  at least once a second. */
void admin_tls_run(struct admin_tls *tls, int64_t now_ns);

#endif
