/* SPDX-License-Identifier: MIT */
/*
 * Ends connections; see conn.h.
 *
 * After the last response over TLS, conn_end sends close_notify, without which a client may believe
 * that the response was truncated. If the socket is full, close_notify waits like a response,
 * within the limits of write_timeout and min_send_rate, and conn_write calls conn_end again. When
 * the time limit expires, the connection is closed without close_notify. conn_close sends only what
 * can be sent immediately.
 */
#include "http/conn/conn.h"

#include <sys/socket.h>
#include <unistd.h>

#include "net/tls/tls_conn.h"

/* Arrange that closing the socket sends a reset and discards its unsent bytes. */
static void throw_away(const struct conn *c)
{
	struct linger none = {.l_onoff = 1};

	setsockopt(c->net.watch.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

void conn_close(struct conn *c)
{
	if (!conn_is_open(c))
		return;
	if (WEIR_UNLIKELY(c->first && c->first->streams) && conn_would_look_whole(c)) {
		throw_away(c);
		if (c->net.tls)
			tls_conn_break(c->net.tls);
	}
	int fd = conn_detach(c);
	if (c->net.tls)
		tls_conn_close(c->net.tls, fd);
	else
		close(fd);
}

void conn_abort(struct conn *c)
{
	if (conn_is_open(c))
		throw_away(c);
	conn_close(c);
}

/* Wait until close_notify can be sent. */
static void wait_to_end(struct conn *c)
{
	conn_enter(c, CONN_ENDING);
	conn_block(c);
	c->socket.continue_left = 0; /* nothing is sent after close_notify */
	conn_settle(c);
}

void conn_end(struct conn *c, bool client_done)
{
	if (c->net.tls && !tls_bye(c->net.tls)) {
		wait_to_end(c);
		return;
	}
	if (client_done || shutdown(c->net.watch.fd, SHUT_WR) == -1) {
		conn_close(c);
		return;
	}
	conn_enter(c, CONN_LINGERING);
	c->socket.unread = true;
	stream_fini(&c->stream, &c->io->pool);
	conn_settle(c);
}

void conn_end_mute(struct conn *c)
{
	tls_conn_break(c->net.tls);
	c->socket.blocked = false;
	conn_end(c, c->input == INPUT_ENDED);
}
