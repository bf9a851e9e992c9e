/* SPDX-License-Identifier: MIT */
/*
 * TLS termination for the endpoint: all code behind it handles plain connections.
 *
 *   client --TLS-- [net | admin_tls.c | inner] --socketpair-- connections.h, then mhd.h or sse.h
 *
 * The strict check of a request head (head.h) peeks at the bytes in a socket. Thanks to the socket
 * pair it also works for TLS. GnuTLS provides TLS 1.2 and 1.3; session tickets are disabled. There
 * is no separate thread: the admin loop watches admin_tls_fd. All functions are called by the admin
 * thread, except that any thread may call admin_tls_check.
 */
#ifndef WEIR_ADMIN_ADMIN_TLS_H
#define WEIR_ADMIN_ADMIN_TLS_H

#include <stdint.h>

#include <weir/error.h>

struct admin_tls;
struct keys;

/** Check whether an endpoint could use these PEM files. Returns 0, or an error code with the
 *  message in `err`. */
int admin_tls_check(const char *cert, const char *key, struct weir_err *err);

/** Start TLS termination with these PEM files; the paths are copied. Returns 0, or an error code
 *  with the message in `err`. */
int admin_tls_open(const char *cert, const char *key, struct admin_tls **tls, struct weir_err *err);

/** Close all connections and free `tls`. NULL is allowed. */
void admin_tls_close(struct admin_tls *tls);

/** Read the files again and use them for connections accepted from now on. If they cannot be used,
 *  nothing changes and an error is logged. */
void admin_tls_reload(struct admin_tls *tls);

/** Use `keys` (admin_tls_keys.h) for connections accepted from now on. Takes over the caller's
 * reference. */
void admin_tls_use(struct admin_tls *tls, struct keys *keys);

/** Take over `fd`, a newly accepted connection; this module closes it, even on failure. Returns a
 *  non-blocking descriptor for the decrypted side, which the caller closes, or -1 if the connection
 *  was refused. */
int admin_tls_wrap(struct admin_tls *tls, int fd);

/** Return the descriptor that is readable when admin_tls_run has something to do. */
int admin_tls_fd(const struct admin_tls *tls);

/** Do all work that does not block. Close each connection whose inner side closed more than 10 s
 *  ago, even if the client has not read the rest. Call it at least once a second. */
void admin_tls_run(struct admin_tls *tls, int64_t now_ns);

#endif
