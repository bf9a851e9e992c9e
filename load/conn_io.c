/* SPDX-License-Identifier: MIT */
/* Reads and writes on a connection, plain or TLS, fast or slow; see conn_io.h. */
#include "load/conn_io.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "load/worker.h"

/* Maximum number of pieces of pipelined requests that are written with one system call. 64 is a
 * guess. */
#define WRITE_PIECES 64

/* Maximum payload of one TLS record. */
#define TLS_RECORD_BYTES 16384

/* Maximum number of writes on one connection before other connections are served, in case a peer
 * accepts a large body at full speed. 16 is a guess. */
#define WRITE_ROUNDS 16

/* Receive buffer of a slow reader, small enough that the server is slowed down. The kernel doubles
 * the value. */
#define SLOW_RECEIVE_BYTES 4096

struct flight *conn_flight(const struct worker *w, const struct conn *c, int i)
{
	i += c->head;
	return &c->flight[i < w->depth ? i : i - w->depth];
}

int conn_io_connect(struct worker *w, struct conn *c)
{
	const struct sockaddr *address = (const struct sockaddr *)&w->run->address;
	const int one = 1, small = SLOW_RECEIVE_BYTES;

	c->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd == -1)
		return -1;
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (c->slow_read)
		setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
	    .data.u64 = (uint64_t)c->life << 32 | (uint32_t)(c - w->conn)};
	if ((connect(c->fd, address, w->run->n_address) == 0 || errno == EINPROGRESS) &&
	    epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, c->fd, &event) == 0)
		return 0;
	int why = errno;
	close(c->fd);
	errno = why;
	return -1;
}

void conn_io_close(struct worker *w, struct conn *c)
{
	timer_wheel_cancel(&w->paces, &c->pace);
	if (c->tls)
		tls_close(c->tls);
	c->tls = NULL;
	close(c->fd);
}

/* ---- slow connections ---- */

/* Return the number of bytes that a slow connection may move now: the unused part of its last
 * allowance plus the allowance for the elapsed time, but at most that of one tick. */
static double refilled(double had, double bytes_per_s, double elapsed_s)
{
	double most = bytes_per_s * PACE_TICK_NS / 1e9;
	double have = had + bytes_per_s * elapsed_s;

	if (most < 1)
		most = 1;
	return have < most ? have : most;
}

static void refill(struct worker *w, struct conn *c)
{
	double elapsed_s = (double)(w->now_ns - c->paced_ns) / 1e9;

	c->paced_ns = w->now_ns;
	c->may_read_bytes = refilled(c->may_read_bytes, w->plan->slow_read_bytes_per_s, elapsed_s);
	c->may_write_bytes =
	    refilled(c->may_write_bytes, w->plan->slow_write_bytes_per_s, elapsed_s);
}

/* Set a timer for the next tick; no byte may be moved before it. */
static int wait_for_tick(struct worker *w, struct conn *c)
{
	if (!c->pace.prev)
		timer_wheel_set(&w->paces, &c->pace, w->now_ns + PACE_TICK_NS);
	return IO_AGAIN;
}

/* ---- writing ---- */

/* Whether the request has fields whose values are known only when it is written. */
static bool has_fields(const struct worker *w, const struct ticket *t)
{
	return w->plan->send_deadline || t->attempt > 0;
}

/* Format the fields whose values are known only when the request is written. The text ends with an
 * empty line and is written in place of the empty line at the end of the head. */
static void make_fields(const struct worker *w, struct conn *c, const struct ticket *t)
{
	int64_t left_ns = t->attempt_ns + w->plan->timeout_ns - w->now_ns;
	size_t size = sizeof(c->fields), n = 0;

	if (c->n_fields > 0)
		return;
	if (t->attempt > 0)
		n += (size_t)snprintf(c->fields, size, "x-retry-attempt: %d\r\n", t->attempt);
	if (w->plan->send_deadline)
		n += (size_t)snprintf(c->fields + n, size - n, "x-deadline-ms: %lld\r\n",
		    left_ns > 0 ? (long long)(left_ns / 1000000) : 0LL);
	memcpy(c->fields + n, "\r\n", 2);
	c->n_fields = (int)n + 2;
}

/* Append p[0..n) to the pieces, except for its first *skip bytes. */
static int add_piece(struct iovec *iov, int at, char *p, size_t n, size_t *skip)
{
	if (*skip >= n) {
		*skip -= n;
		return at;
	}
	iov[at] = (struct iovec){p + *skip, n - *skip};
	*skip = 0;
	return at + 1;
}

/* Collect the pieces to be written next. A request with extra fields is written alone, since the
 * values of these fields depend on the time of the write. */
static int gather(struct worker *w, struct conn *c, struct iovec *iov)
{
	size_t skip = c->written_bytes;
	int n = 0;

	for (int i = c->n_written; i < c->n && n + 3 <= WRITE_PIECES; i++) {
		const struct ticket *t = &conn_flight(w, c, i)->ticket;
		const struct load_request *r = worker_request(w, t);
		if (!has_fields(w, t)) {
			n = add_piece(iov, n, r->bytes, r->n_bytes, &skip);
			continue;
		}
		if (i > c->n_written)
			break;
		make_fields(w, c, t);
		n = add_piece(iov, n, r->bytes, r->n_head - 2, &skip);
		n = add_piece(iov, n, c->fields, (size_t)c->n_fields, &skip);
		n = add_piece(iov, n, r->bytes + r->n_head, r->n_bytes - r->n_head, &skip);
		break;
	}
	return n;
}

/* Truncate the list of pieces to `most` bytes in total. Returns the number of pieces left. */
static int cut(struct iovec *iov, int n, size_t most)
{
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len >= most) {
			iov[i].iov_len = most;
			return i + 1;
		}
		most -= iov[i].iov_len;
	}
	return n;
}

static ssize_t transmit_tls(struct worker *w, struct conn *c, struct iovec *iov, int n)
{
	size_t total = 0;

	n = cut(iov, n, TLS_RECORD_BYTES);
	for (int i = 0; i < n; i++) {
		memcpy(w->buffer + total, iov[i].iov_base, iov[i].iov_len);
		total += iov[i].iov_len;
	}
	return tls_write(c->tls, w->buffer, total);
}

static ssize_t transmit(struct worker *w, struct conn *c, struct iovec *iov, int n)
{
	ssize_t rc;

	if (c->tls)
		return transmit_tls(w, c, iov, n);
	if (n == 1) {
		rc = send(c->fd, iov[0].iov_base, iov[0].iov_len, MSG_NOSIGNAL);
	} else {
		struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)n};
		rc = sendmsg(c->fd, &message, MSG_NOSIGNAL);
	}
	if (rc >= 0)
		return rc;
	return errno == EAGAIN || errno == EINTR ? IO_AGAIN : IO_RESET;
}

/* Record that `n` pending bytes were written. */
static void wrote(struct worker *w, struct conn *c, size_t n)
{
	while (n > 0) {
		const struct ticket *t = &conn_flight(w, c, c->n_written)->ticket;
		struct load_class_result *count = tally_of(&w->tally, t);
		size_t whole = worker_request(w, t)->n_bytes;
		if (c->n_fields > 0)
			whole += (size_t)c->n_fields - 2;
		size_t part = whole - c->written_bytes < n ? whole - c->written_bytes : n;
		count->attempts += c->written_bytes == 0;
		count->bytes_out += part;
		c->written_bytes += part;
		n -= part;
		if (c->written_bytes == whole) {
			c->n_written++;
			c->written_bytes = 0;
			c->n_fields = 0;
		}
	}
}

int conn_io_write(struct worker *w, struct conn *c)
{
	struct iovec iov[WRITE_PIECES];

	for (int round = 0; c->n_written < c->n; round++) {
		if (round == WRITE_ROUNDS) {
			conn_kick(w, c);
			return IO_AGAIN;
		}
		int n = gather(w, c, iov);
		if (c->slow_write) {
			refill(w, c);
			if (c->may_write_bytes < 1)
				return wait_for_tick(w, c);
			n = cut(iov, n, (size_t)c->may_write_bytes);
		}
		ssize_t rc = transmit(w, c, iov, n);
		if (rc < 0)
			return (int)rc;
		c->may_write_bytes -= (double)rc;
		wrote(w, c, (size_t)rc);
	}
	return 0;
}

/* ---- reading ---- */

/* Read up to `want` bytes. After a short read the socket is empty, and epoll will report new data.
 * epoll reports the end of the stream only once, however, so c->readable then stays set until the
 * end has been read. */
static ssize_t receive(struct worker *w, struct conn *c, size_t want)
{
	ssize_t rc = recv(c->fd, w->buffer, want, 0);

	if (rc >= 0) {
		c->readable = (size_t)rc == want || c->ended;
		return rc;
	}
	if (errno == EINTR)
		return IO_AGAIN;
	c->readable = false;
	return errno == EAGAIN ? IO_AGAIN : IO_RESET;
}

ssize_t conn_io_read(struct worker *w, struct conn *c)
{
	size_t want = WORKER_BUFFER_BYTES;
	ssize_t rc;

	if (c->slow_read) {
		refill(w, c);
		if (c->may_read_bytes < 1)
			return wait_for_tick(w, c);
		if (c->may_read_bytes < (double)want)
			want = (size_t)c->may_read_bytes;
	}
	if (c->tls) {
		rc = tls_read(c->tls, w->buffer, want);
		c->readable = rc > 0;
	} else {
		rc = receive(w, c, want);
	}
	if (rc > 0)
		c->may_read_bytes -= (double)rc;
	return rc;
}
