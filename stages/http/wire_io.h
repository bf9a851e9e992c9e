/* SPDX-License-Identifier: MIT */
/*
 * Bytes between a connection and its client: the socket's own calls, or TLS. A plain connection pays for a load and a branch
 * that never changes. Results and errno are as those of the calls. The I/O thread.
 */
#ifndef WEIR_HTTP_WIRE_IO_H
#define WEIR_HTTP_WIRE_IO_H

#include <sys/sendfile.h>
#include <sys/socket.h>

#include "http/conn.h"
#include "http/tls_conn.h"

/** recv: up to `n` bytes. */
static inline ssize_t wire_recv(struct conn *c, char *p, size_t n)
{
	return c->tls ? tls_recv(c->tls, p, n) : recv(c->watch.fd, p, n, 0);
}

/** May more be there that no edge will announce, behind a wire_recv with room for `n` that got `got`? A short read has
 *  emptied the socket, unless the end is behind it. */
static inline bool wire_left(const struct conn *c, size_t n, size_t got)
{
	return c->peer_done || got == n || (c->tls && tls_left(c->tls));
}

/** sendmsg: `iov[n]`, n >= 1. `more`: a file follows. */
static inline ssize_t wire_send(struct conn *c, struct iovec *iov, int n, bool more)
{
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};

	if (c->tls)
		return tls_send(c->tls, iov, n, more);
	if (n == 1 && !more)
		return send(c->watch.fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL);
	return sendmsg(c->watch.fd, &msg, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
}

/** sendfile: up to `n` bytes of `fd` from `*offset` on. */
static inline ssize_t wire_sendfile(struct conn *c, int fd, off_t *offset, size_t n)
{
	return c->tls ? tls_sendfile(c->tls, fd, offset, n) : sendfile(c->watch.fd, fd, offset, n);
}

#endif
