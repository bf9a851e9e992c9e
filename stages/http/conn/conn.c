/* SPDX-License-Identifier: MIT */
/*
 * Opens connections, and handles what happens to them; see conn.h.
 *
 * Whatever happens to a connection arrives here: its socket is ready or has been read, its timer
 * fires, a stage signals, a request returns. The files that do the work (read.c, emit.c, limit.c,
 * wait.c and those for writing) close nothing, and do not decide what the connection waits for.
 * They return what is to be done next (enum conn_next), and conn_act does it.
 */
#include "http/conn/conn.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "http/conn/conn_proxy.h"
#include "http/conn/conn_tls.h"
#include "http/conn/limit.h"
#include "http/request/transfer.h"
#include "net/clients.h"
#include "net/tls/tls_conn.h"

/* ---- what is to be done ---- */

static enum conn_next parse(struct conn *c, enum conn_next next)
{
	switch (next) {
	case CONN_PARSE:
		return conn_parse(c);
	case CONN_PARSE_FULL:
		return conn_parse_full(c);
	case CONN_PARSE_END:
		return conn_parse_end(c);
	default:
		return next;
	}
}

void conn_act(struct conn *c, enum conn_next next)
{
	if (next == CONN_AS_IS || !conn_is_open(c))
		return;
	next = parse(c, next);
	if (next == CONN_END || next == CONN_END_DONE)
		next = conn_end(c, next == CONN_END_DONE) ? CONN_WAIT : CONN_CLOSE;
	if (next == CONN_WAIT) {
		bool left = WEIR_UNLIKELY(io_is_leaving(c->io)) && conn_hand_over(c);
		if (left || conn_wait(c))
			return;
	}
	if (next == CONN_ABORT)
		conn_abort(c);
	else
		conn_close(c);
}

void conn_settle(struct conn *c)
{
	conn_act(c, CONN_WAIT);
}

/* ---- what happens ---- */

void conn_readable(struct conn *c)
{
	conn_act(c, conn_read(c));
}

static void on_readable(struct conn *c, uint32_t events)
{
	if (!conn_wants_read(c)) {
		if (events & (EPOLLHUP | EPOLLERR))
			conn_act(c, CONN_CLOSE);
		else
			c->socket.unread = true;
		return;
	}
	if (WEIR_UNLIKELY(events != EPOLLIN) || !conn_read_later(c))
		conn_readable(c);
}

static void on_ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct conn *c = (struct conn *)w;

	(void)loop;
	io_touch(c->io);
	if (WEIR_UNLIKELY(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))) {
		c->socket.peer_done |= (events & EPOLLRDHUP) != 0;
		conn_gone(c);
	}
	if (WEIR_UNLIKELY(c->proxy != NULL) && conn_is_open(c)) {
		conn_proxy_ready(c);
		return;
	}
	if (c->net.tls)
		events = conn_tls_ready(c, events);
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		on_readable(c, events);
	if (c->socket.blocked && (events & EPOLLOUT) && conn_is_open(c)) {
		c->socket.blocked = false;
		conn_act(c, conn_write(c));
	}
}

static void timer_fired(struct weir_loop *loop, struct weir_timer *t)
{
	struct conn *c = (struct conn *)((char *)t - offsetof(struct conn, net.wait.timer));

	(void)loop;
	if (conn_is_due(c))
		conn_act(c, conn_time_out(c));
}

void conn_signalled(struct transfer *t)
{
	bool begun;

	if (!transfer_arrived(t, &begun))
		return;
	struct conn *c = t->r->conn;
	io_touch(c->io);
	conn_act(c, conn_parts_signalled(t, begun));
}

void conn_make_ready(struct conn *c)
{
	if (c->net.ready)
		return;
	c->net.ready = true;
	c->ready_next = NULL;
	*c->io->ready_tail = c;
	c->io->ready_tail = &c->ready_next;
}

void conn_not_awaited(struct http_req *r)
{
	r->conn->io->not_awaited += !r->not_awaited;
	r->not_awaited = true;
}

void conn_answered(struct http_req *r)
{
	struct conn *c = r->conn;

	r->answered = true;
	if (WEIR_UNLIKELY(r->pub.res.standard))
		pages_apply(c->io, r);
	pool_hold_answer(&c->io->pool, r);
	c->io->in_graph--;
	if (WEIR_UNLIKELY(r->transfer != NULL))
		conn_parts_returned(r);
	c->io->not_awaited -= r->not_awaited;
	r->not_awaited = false;
	if (r == c->first)
		conn_make_ready(c);
}

/* ---- lifecycle ---- */

/* Create a connection, watched and idle. Returns NULL if out of memory; the caller then still owns
 * `fd`. */
static struct conn *conn_new(struct http_io *io, int fd, bool refused)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->io = io;
	c->net.refused = refused;
	c->net.watch = (struct weir_watch){.ready = on_ready, .fd = fd};
	c->net.wait.timer.fire = timer_fired;
	c->last = &c->first;
	if (weir_loop_add(io->net.loop, &c->net.watch, CONN_EVENTS) != 0) {
		free(c);
		return NULL;
	}
	pool_hold(&io->pool, sizeof(*c));
	net_conn_enter(&io->net, &c->net);
	conn_wait_begin(c, WAIT_IDLE);
	return c;
}

void conn_open(
    struct http_io *io, int fd, const struct sockaddr_storage *addr, uint64_t key, int refuse)
{
	struct conn *c = conn_new(io, fd, refuse >= 0);
	enum conn_next next = CONN_WAIT;

	if (!c || refuse >= 0)
		clients_leave(io->srv->net.clients, key);
	else
		c->net.client.key = key;
	if (!c) {
		limit_count(io, LIMIT_MEMORY);
		limit_tell(io, fd);
		return;
	}
	io->count[SERVER_ACCEPTED]++;
	memcpy(c->net.client.id, &io->next_id, sizeof(c->net.client.id));
	io->next_id++;
	net_conn_name(&c->net, addr);
	c->net.client.trusted = net_trusts(&io->srv->net, addr);
	if (c->net.client.trusted && io->conf.client_from == FORWARDED_PROXY && refuse < 0) {
		conn_proxy_begin(c);
		conn_act(c, c->proxy ? CONN_WAIT : CONN_CLOSE);
		return;
	}
	if (io->srv->net.tls)
		conn_tls_begin(c);
	c->stream.secure = c->net.tls != NULL;
	if (refuse >= 0)
		next = limit_refuse(c, (enum limit)refuse);
	conn_act(c, io->srv->net.tls && !c->net.tls ? CONN_CLOSE : next);
}

/* Whether the new configuration trusts the proxy from which the connection comes. */
static bool still_trusted(const struct http_io *io, const struct net_client *client)
{
	const struct networks *trust = &io->srv->net.trust;
	struct net_address a;

	if (strcmp(client->address, NET_UNIX_NAME) == 0)
		return io->srv->net.trusts_unix;
	return trust->n > 0 &&
	       net_address_read((struct weir_slice){client->address, client->address_n}, &a) &&
	       networks_have(trust, &a);
}

void conn_past(const struct conn *c, struct conn_past *past)
{
	past->requests = c->requests;
	past->input = c->input;
	past->client = c->net.client;
	past->tls = c->net.tls;
}

struct conn *conn_adopt(struct http_io *io, int fd, const struct conn_past *past)
{
	struct conn *c = conn_new(io, fd, false);

	if (!c)
		return NULL;
	c->requests = past->requests;
	c->input = past->input;
	c->net.client = past->client;
	c->net.client.trusted = still_trusted(io, &past->client);
	if (c->net.client.key != 0 && clients_enter(io->srv->net.clients, c->net.client.key) <= 0)
		c->net.client.key = 0;
	if (past->tls)
		conn_tls_adopt(c, past->tls);
	c->stream.secure = c->net.tls != NULL;
	/* With TLS, decrypted bytes, and bytes that the socket did not accept, may have been handed
	 * over with the connection. epoll reports neither. */
	c->socket.unread = c->socket.rearm = c->net.tls != NULL;
	io->count[SERVER_TLS_CONNECTIONS] += c->net.tls && tls_is_open(c->net.tls);
	return c;
}

int conn_retry_after_s(const struct conn *c)
{
	return c->io->srv->retry_after_s;
}
