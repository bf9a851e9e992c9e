/* SPDX-License-Identifier: MIT */
/*
 * Transfers bytes between a connection and its client, by socket calls or by TLS. Without TLS this
 * costs a load and a well-predicted branch. Results and errno are those of the socket calls. I/O
 * thread only.
 *
 * Every call goes through TEMP_FAILURE_RETRY, here and wherever else a socket is read or written.
 * Sockets are watched edge-triggered, so code that mistook EINTR for EAGAIN would wait for an edge
 * that has already passed.
 */
#ifndef WEIR_HTTP_WIRE_IO_H
#define WEIR_HTTP_WIRE_IO_H

#include <errno.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/conn/conn.h"
#include "net/tls/tls_conn.h"

/** Like recv: read up to `n` bytes. */
static inline ssize_t wire_recv(struct conn *c, char *p, size_t n)
{
	return c->net.tls ? tls_recv(c->net.tls, p, n)
			  : TEMP_FAILURE_RETRY(recv(c->net.watch.fd, p, n, 0));
}

/** Whether the socket may have more bytes for which epoll reports no edge, after a wire_recv of up
 * to `n` bytes that returned `got`. A short read has emptied the socket, unless the end of the
 * peer's bytes follows. */
static inline bool wire_left(const struct conn *c, size_t n, size_t got)
{
	return c->socket.peer_done || got == n || (c->net.tls && tls_left(c->net.tls));
}

/** Like sendmsg: send `iov[n]`, n >= 1. `more` means that a file follows. */
static inline ssize_t wire_send(struct conn *c, struct iovec *iov, int n, bool more)
{
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};

	c->io->sent_ns = 0;
	if (c->net.tls)
		return tls_send(c->net.tls, iov, n, more);
	if (n == 1 && !more)
		return TEMP_FAILURE_RETRY(
		    send(c->net.watch.fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL));
	return TEMP_FAILURE_RETRY(
	    sendmsg(c->net.watch.fd, &msg, MSG_NOSIGNAL | (more ? MSG_MORE : 0)));
}

/** Like sendfile: send up to `n` bytes of `fd` from `*offset` on. */
static inline ssize_t wire_sendfile(struct conn *c, int fd, off_t *offset, size_t n)
{
	c->io->sent_ns = 0;
	return c->net.tls ? tls_sendfile(c->net.tls, fd, offset, n)
			  : TEMP_FAILURE_RETRY(sendfile(c->net.watch.fd, fd, offset, n));
}

#endif
