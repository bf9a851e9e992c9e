/* SPDX-License-Identifier: MIT */
/* The bytes of connections to origins. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "http/client/client.h"

int64_t upstream_send(struct upstream *u, struct iovec *iov, int n)
{
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)n};
	ssize_t sent;

	if (!u->writable)
		return 0;
	do
		sent = sendmsg(u->watch.fd, &m, MSG_NOSIGNAL);
	while (sent == -1 && errno == EINTR);
	if (sent == -1 && errno == EAGAIN) {
		u->writable = false;
		return 0;
	}
	return sent;
}

int64_t upstream_read(struct upstream *u)
{
	size_t room;
	ssize_t n;

	if (!u->readable)
		return 0;
	if (u->start == u->end)
		u->start = u->end = 0;
	room = CLIENT_BUFFER_BYTES - u->end;
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
