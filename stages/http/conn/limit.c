/* SPDX-License-Identifier: MIT */
/* Counts the limits that clients exceed, and refuses with their texts; see limit.h. */
#include "http/conn/limit.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/conn/conn.h"

static const struct row {
	int metric, status;
	const char *code, *text;
} rows[] = {
#define LIMIT_ROW(id, metric, status, code, text) {SERVER_##metric, status, code, text},
    LIMITS(LIMIT_ROW)
#undef LIMIT_ROW
};

void limit_count(struct http_io *io, enum limit l)
{
	io->count[rows[l].metric]++;
}

static void refuse(struct conn *c, enum limit l, const char *why)
{
	struct http_req **last;

	limit_count(c->io, l);
	conn_refuse(c, rows[l].status, why);
	last = c->last;
	if (conn_is_open(c) && c->first) /* otherwise there was no memory for the response */
		weir_http_add_field(
		    &((struct http_req *)((char *)last - offsetof(struct http_req, next)))->pub,
		    "X-Weir-Limit", rows[l].code);
}

void limit_refuse(struct conn *c, enum limit l)
{
	refuse(c, l, rows[l].text);
}

void limit_refuse_parsed(struct conn *c, int status, const char *why)
{
	switch (status) {
	case 413:
		refuse(c, LIMIT_BODY, why);
		return;
	case 414:
		refuse(c, LIMIT_TARGET, why);
		return;
	case 431:
		refuse(c, LIMIT_HEAD, why);
		return;
	case 503:
		refuse(c, LIMIT_MEMORY, why);
		return;
	default:
		conn_refuse(c, status, why);
	}
}

void limit_tell(struct http_io *io, int fd)
{
	static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
				   "Content-Length: 0\r\nConnection: close\r\n\r\n";

	if (!io->srv->net.tls)
		(void)!TEMP_FAILURE_RETRY(send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL));
	shutdown(fd, SHUT_WR);
	/* Read what has arrived, since unread data would turn the close into a reset. */
	(void)!TEMP_FAILURE_RETRY(recv(fd, io->scratch.out, sizeof(io->scratch.out), MSG_DONTWAIT));
	close(fd);
}
