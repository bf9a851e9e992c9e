/* SPDX-License-Identifier: MIT */
/*
 * Sends "100 Continue"; see conn.h. The client may not have read earlier responses, so the socket
 * may be full and accept only part of the text, or nothing. Until all of it is sent, the connection
 * is blocked, and conn_write sends nothing.
 */
#include "http/conn/conn.h"

#include <errno.h>

#include "http/conn/wire_io.h"

static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
#define TEXT_BYTES (sizeof(text) - 1)

enum conn_next conn_continue_more(struct conn *c)
{
	struct iovec iov = {(void *)(uintptr_t)(text + TEXT_BYTES - c->socket.continue_left),
	    c->socket.continue_left};
	ssize_t n = wire_send(c, &iov, 1, false);

	if (n == -1 && errno != EAGAIN)
		return CONN_CLOSE;
	if (n > 0) {
		conn_moved(c, n);
		c->socket.continue_left -= (uint8_t)n;
	}
	if (c->socket.continue_left > 0)
		conn_block(c);
	return CONN_WAIT;
}

enum conn_next conn_continue(struct conn *c)
{
	c->stream.filling->expect_continue = false;
	c->socket.continue_left = TEXT_BYTES;
	return conn_continue_more(c);
}
