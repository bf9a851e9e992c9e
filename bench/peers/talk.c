/* SPDX-License-Identifier: MIT */
/* Reads requests and writes responses; see talk.h. */
#include "talk.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Limits for one body and for the sum of all bodies, the same as the defaults of http.server. */
#define BODY_MAX_BYTES (1 << 20)
static _Atomic int64_t body_budget = 64 << 20;

void talk_init(struct talk *t, int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	*t = (struct talk){.fd = fd};
	pool_init(&t->pool, &body_budget);
}

void talk_fini(struct talk *t)
{
	stream_fini(&t->stream, &t->pool);
	pool_fini(&t->pool);
	close(t->fd);
	t->fd = -1;
}

static bool send_all(int fd, struct iovec *iov, size_t n)
{
	while (n > 0) {
		struct msghdr msg = {.msg_iov = iov, .msg_iovlen = n};
		ssize_t sent = sendmsg(fd, &msg, MSG_NOSIGNAL);
		if (sent == -1 && errno == EINTR)
			continue;
		if (sent == -1)
			return false;
		size_t left = (size_t)sent;
		while (n > 0 && left >= iov->iov_len) {
			left -= iov->iov_len;
			iov++;
			n--;
		}
		if (n > 0) {
			iov->iov_base = (char *)iov->iov_base + left;
			iov->iov_len -= left;
		}
	}
	return true;
}

static bool send_file(int fd, const struct weir_http_response *res)
{
	off_t offset = res->offset, end = res->offset + res->length;

	while (offset < end) {
		ssize_t sent = sendfile(fd, res->fd, &offset, (size_t)(end - offset));
		if (sent == 0 || (sent == -1 && errno != EINTR))
			return false;
	}
	return true;
}

/* sendmsg only reads the bytes, but struct iovec has no const. */
static struct iovec piece(const char *p, size_t n)
{
	union {
		const char *from;
		char *to;
	} u = {p};

	return (struct iovec){u.to, n};
}

static bool answer(struct talk *t, const struct http_req *r, bool last)
{
	const struct weir_http_response *res = &r->pub.res;
	bool body = r->pub.method != WEIR_HTTP_HEAD && !res->no_length;
	char line[96], end[96];
	int line_n = snprintf(
	    line, sizeof(line), "HTTP/1.1 %d %s\r\n", res->status, weir_http_reason(res->status));
	int end_n = 0;

	if (!res->no_length)
		end_n = snprintf(end, sizeof(end), "Content-Length: %lld\r\n",
		    res->fd >= 0 ? (long long)res->length : (long long)res->body.n);
	end_n += snprintf(end + end_n, sizeof(end) - (size_t)end_n, "%s\r\n",
	    last                ? "Connection: close\r\n"
	    : r->pub.minor == 0 ? "Connection: keep-alive\r\n"
				: "");
	struct iovec iov[] = {piece(line, (size_t)line_n), piece(res->fields.p, res->fields.n),
	    piece(r->pub.fields, r->pub.n_fields), piece(end, (size_t)end_n),
	    piece(res->body.p, body && res->fd < 0 ? res->body.n : 0)};
	if (!send_all(t->fd, iov, sizeof(iov) / sizeof(iov[0])))
		return false;
	return !body || res->fd < 0 || send_file(t->fd, res);
}

/* Respond to a complete request. Returns false if the connection must be closed. */
static bool serve(struct talk *t, struct http_req *r, const struct work *work, enum talk_mode mode)
{
	if (mode == TALK_REFUSE) {
		weir_http_respond_status(&r->pub, 503);
		weir_http_add_field(&r->pub, "Retry-After", "1");
	} else {
		work_run(work, &r->pub);
	}
	bool last = !r->keep_alive || r->pub.res.close;
	bool sent = answer(t, r, last);
	pool_req_drop(&t->pool, r);
	return sent && !last;
}

/* Send an error response after bytes that are not a request, or if out of memory. */
static void refuse_bytes(struct talk *t)
{
	struct http_req *r = pool_req(&t->pool);

	if (!r)
		return;
	r->pub.method = WEIR_HTTP_GET;
	r->pub.minor = 1;
	weir_http_respond_status(&r->pub, t->stream.status);
	answer(t, r, true);
	pool_req_drop(&t->pool, r);
}

/* Receive bytes. Returns their number, 0 if none have arrived, or -1 at the end of the
 * connection. */
static ssize_t receive(struct talk *t, bool wait)
{
	char *room;
	size_t n = stream_room(&t->stream, &t->pool, &room);
	ssize_t got = -1;

	if (n == 0)
		return -1;
	do
		got = recv(t->fd, room, n, wait ? 0 : MSG_DONTWAIT);
	while (got == -1 && errno == EINTR);
	if (got == -1 && errno == EAGAIN)
		return 0;
	if (got <= 0)
		return -1;
	stream_got(&t->stream, (size_t)got);
	return got;
}

bool talk_turn(struct talk *t, const struct work *work, enum talk_mode mode)
{
	struct weir_http_header headers[WEIR_HTTP_HEADERS_MAX];
	struct http_req *r;
	ssize_t got;

	for (;;) {
		switch (stream_next(&t->stream, &t->pool, BODY_MAX_BYTES, headers, &r)) {
		case STREAM_REQUEST:
			if (!serve(t, r, work, mode))
				return false;
			break;
		case STREAM_REFUSED:
			refuse_bytes(t);
			return false;
		default:
			got = receive(t, mode == TALK_WAIT);
			if (got <= 0)
				return got == 0;
		}
	}
}
