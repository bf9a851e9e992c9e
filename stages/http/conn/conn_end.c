/* SPDX-License-Identifier: MIT */
/*
 * Ends, closes and frees connections; see conn.h.
 *
 * After the last response over TLS, conn_end sends close_notify, without which a client may believe
 * that the response was truncated. If the socket is full, close_notify waits like a response,
 * within the limits of write_timeout and min_send_rate, and conn_write returns CONN_END again. When
 * the time limit expires, the connection is closed without close_notify. conn_close sends only what
 * can be sent immediately.
 */
#include "http/conn/conn.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/conn/conn_proxy.h"
#include "http/conn/conn_tls.h"
#include "http/request/sent.h"
#include "http/request/waker.h"
#include "net/tls/tls_conn.h"

/* ---- after the last response ---- */

/* Wait until close_notify can be sent. */
static void wait_to_end(struct conn *c)
{
	conn_enter(c, CONN_ENDING);
	conn_block(c);
	c->socket.continue_left = 0; /* nothing is sent after close_notify */
}

bool conn_end(struct conn *c, bool client_done)
{
	if (c->net.tls && !tls_bye(c->net.tls)) {
		wait_to_end(c);
		return true;
	}
	if (client_done || shutdown(c->net.watch.fd, SHUT_WR) == -1)
		return false;
	conn_enter(c, CONN_LINGERING);
	c->socket.unread = true;
	stream_fini(&c->stream, &c->io->pool);
	return true;
}

/* ---- closing ---- */

void conn_gone(struct conn *c)
{
	if (atomic_load_explicit(&c->gone, memory_order_relaxed))
		return;
	atomic_store(&c->gone, true);
	for (struct http_req *r = c->first; r; r = r->next) {
		weir_family_end(atomic_load(&r->family));
		waker_wake(atomic_load(&r->waker));
	}
}

int conn_detach(struct conn *c)
{
	struct http_io *io = c->io;
	int fd;

	io->count[SERVER_TLS_CONNECTIONS] -= c->net.tls && tls_is_open(c->net.tls);
	conn_enter(c, CONN_CLOSED);
	fd = net_conn_detach(&io->net, &c->net);
	stream_fini(&c->stream, &io->pool);
	conn_parts_gone(c);
	conn_gone(c);
	io->memory.n_swallowed -= c->socket.swallowed;
	conn_make_ready(c);
	return fd;
}

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

void conn_reap(struct conn *c)
{
	while (c->first && c->first->answered) {
		struct http_req *r = c->first;
		c->first = r->next;
		c->in_flight--;
		c->io->count[SERVER_UNDELIVERED] += !r->refusal && !r->taken;
		if (r->sent)
			sent_tell(r, HTTP_SENT_TORN, c->part.begun ? c->part.body_off : 0);
		c->part.begun = false; /* nothing has been sent of the next response */
		pool_req_drop(&c->io->pool, r);
	}
	if (c->first || (c->net.tls && tls_is_away(c->net.tls)))
		return;
	conn_proxy_drop(c);
	tls_conn_free(conn_tls_set(c, NULL));
	free(c->part.head);
	pool_hold(&c->io->pool, -(int64_t)(sizeof(*c) + c->part.head_n));
	c->io->net.n_conns--;
	free(c);
}
