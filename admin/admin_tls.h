/* SPDX-License-Identifier: MIT */
/*
 * TLS in front of the endpoint: it ends here, and everything behind it sees plain connections.
 *
 *   client --TLS-- [net | admin_tls.c | inner] --socketpair-- peers.h, and from there door.h or live.h
 *
 * That way the strict look at a request (head.h), which peeks at bytes in a socket, is the same for
 * all. TLS 1.2 and 1.3, GnuTLS, no session tickets of ours. It has no thread: the admin loop watches
 * admin_tls_fd. All calls from the admin thread but admin_tls_check.
 */
#ifndef WEIR_ADMIN_ADMIN_TLS_H
#define WEIR_ADMIN_ADMIN_TLS_H

#include <stdint.h>

#include <weir/error.h>

struct admin_tls;
struct keys;

/** Could an endpoint use these PEM files? 0, or a code with the sentence in `err`. Any thread. */
int admin_tls_check(const char *cert, const char *key, struct weir_err *err);

/** Read the files, whose paths are copied. 0, or a code with the sentence in `err`. */
int admin_tls_open(const char *cert, const char *key, struct admin_tls **tls, struct weir_err *err);

/** Close all connections and free. NULL is allowed. */
void admin_tls_close(struct admin_tls *tls);

/** Read the files again: connections that come later get what is in them now. When they can not be
 *  used everything stays, with a line in the log. */
void admin_tls_reload(struct admin_tls *tls);

/** Connections that come later get `keys` (admin_tls_keys.h), a reference that is taken over. */
void admin_tls_use(struct admin_tls *tls, struct keys *keys);

/** Take `fd`, a connection that was just accepted, which is closed here in any case. Returns a
 *  descriptor for what is said behind TLS, non-blocking, to be closed by the caller; -1: refused. */
int admin_tls_wrap(struct admin_tls *tls, int fd);

/** The descriptor that is readable when admin_tls_run has something to do. */
int admin_tls_fd(const struct admin_tls *tls);

/** Do what can be done without waiting, and end what takes too long to close; once a second anyway. */
void admin_tls_run(struct admin_tls *tls, int64_t now_ns);

#endif
