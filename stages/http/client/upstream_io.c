/* SPDX-License-Identifier: MIT */
/* The bytes of connections to origins. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "http/client/client.h"

/* A record for each piece: the head and the body of a request are rarely both there. */
static int64_t send_tls(struct upstream *u, const struct iovec *iov, int n)
{
	int64_t all = 0;

	for (int i = 0; i < n; i++) {
		for (size_t at = 0; at < iov[i].iov_len;) {
			int64_t sent = tls_origin_write(
			    u->tls, (const char *)iov[i].iov_base + at, iov[i].iov_len - at);
			if (sent <= 0)
				return all > 0 ? all : sent;
			at += (size_t)sent;
			all += sent;
		}
	}
	return all;
}

int64_t upstream_send(struct upstream *u, struct iovec *iov, int n)
{
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)n};
	ssize_t sent;

	if (u->tls)
		return send_tls(u, iov, n);
	if (!u->writable)
		return 0;
	do
		sent = n == 1 ? send(u->watch.fd, iov[0].iov_base, iov[0].iov_len, MSG_NOSIGNAL)
			      : sendmsg(u->watch.fd, &m, MSG_NOSIGNAL);
	while (sent == -1 && errno == EINTR);
	if (sent == -1 && errno == EAGAIN) {
		u->writable = false;
		return 0;
	}
	return sent;
}

static int64_t read_tls(struct upstream *u, size_t room)
{
	int64_t n = tls_origin_read(u->tls, u->buffer + u->end, room);

	if (n <= 0) {
		u->readable = n != 0;
		return n;
	}
	u->end += (uint32_t)n;
	client_count(u->cl, CLIENT_BYTES, n);
	return n;
}

void upstream_ready_tls(struct upstream *u)
{
	if (u->readable)
		tls_origin_ready(u->tls, u->hung_up);
	if (u->writable)
		tls_origin_flush(u->tls);
}

/* Whether the kernel has neither bytes of the origin nor the end of the connection. */
static bool is_empty(const struct upstream *u)
{
	char none;
	ssize_t n;

	do
		n = recv(u->watch.fd, &none, 1, MSG_PEEK);
	while (n == -1 && errno == EINTR);
	return n == -1 && errno == EAGAIN;
}

bool upstream_still_good(struct upstream *u)
{
	char none;

	if (u->hung_up)
		return false;
	u->readable = false;
	if (is_empty(u))
		return true;
	if (!u->tls)
		return false;
	/* tickets of TLS 1.3 come after the handshake, also when nothing is asked */
	tls_origin_ready(u->tls, false);
	return tls_origin_read(u->tls, &none, 1) == 0;
}

bool upstream_is_used_up(struct upstream *u)
{
	return u->start == u->end && !u->hung_up && upstream_read(u) == 0;
}

int64_t upstream_read(struct upstream *u)
{
	size_t room;
	ssize_t n;

	if (!u->readable)
		return 0;
	if (u->start == u->end)
		u->start = u->end = 0;
	room = (u->end < u->fill ? u->fill : CLIENT_BUFFER_BYTES) - u->end;
	if (u->tls)
		return read_tls(u, room);
	do
		n = recv(u->watch.fd, u->buffer + u->end, room, 0);
	while (n == -1 && errno == EINTR);
	if (n == -1 && errno == EAGAIN) {
		u->readable = false;
		return 0;
	}
	if (n <= 0)
		return n == 0 ? -1 : -2;
	u->end += (uint32_t)n;
	/* the socket is empty, so epoll reports what arrives next, but not an end that it has reported */
	u->readable = (size_t)n == room || u->hung_up;
	client_count(u->cl, CLIENT_BYTES, n);
	return n;
}

void upstream_rearm(struct upstream *u)
{
	weir_loop_mod(u->cl->loop, &u->watch, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

void upstream_measure(struct upstream *u)
{
	struct tcp_info info = {0};
	socklen_t n = sizeof(info);

	if (getsockopt(u->watch.fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0)
		u->origin->rtt_ns = (int64_t)info.tcpi_rtt * 1000;
}
