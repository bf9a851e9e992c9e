/* SPDX-License-Identifier: MIT */
/*
 * Reads the PROXY header of a connection; see conn_proxy.h.
 *
 * The proxy's connections have no limit per address; those of the client that the header names do, as if
 * it had connected itself. A connection without a good header is closed, since nobody could tell whose it
 * is. Until the header is complete, the connection stays with this server in a reload.
 */
#include "http/conn/conn_proxy.h"

#include <stdlib.h>

#include "http/conn/conn.h"
#include "http/conn/conn_tls.h"
#include "http/conn/limit.h"
#include "net/clients.h"
#include "net/proxy_header.h"
#include "net/slot.h"

void conn_proxy_begin(struct conn *c)
{
	c->proxy = calloc(1, sizeof(*c->proxy));
	if (c->proxy)
		pool_hold(&c->io->pool, sizeof(*c->proxy));
}

void conn_proxy_drop(struct conn *c)
{
	if (!c->proxy)
		return;
	pool_hold(&c->io->pool, -(int64_t)sizeof(*c->proxy));
	free(c->proxy);
	c->proxy = NULL;
}

void conn_proxy_timed_out(struct conn *c)
{
	c->io->count[SERVER_PROXY_FAILED]++;
}

/* Count the connection for the client instead of the proxy. Returns the limit that the client exceeds
 * (enum net_limit), or -1. */
static int count_for(struct conn *c, const struct sockaddr_storage *client)
{
	struct net_io *io = &c->io->net;
	const uint64_t key = clients_key(client);
	const int64_t n = clients_enter(io->srv->clients, key);

	if (n == 0)
		return NET_LIMIT_MEMORY;
	if (c->net.client.key != 0)
		clients_leave(io->srv->clients, c->net.client.key);
	c->net.client.key = key;
	c->net.client.trusted = false;
	net_conn_name(&c->net, client);
	conn_list_leave(c); /* so that it is not the one that is closed for itself */
	return slot_check_address(io, key, n);
}

/* The header is complete: continue as conn_open does. */
static void open_for(struct conn *c, int over)
{
	const bool tls = c->io->srv->net.tls != NULL;

	if (over >= 0 && tls) {
		limit_count(c->io, (enum limit)over);
		conn_close(c);
		return;
	}
	if (tls)
		conn_tls_begin(c);
	c->stream.secure = c->net.tls != NULL;
	/* what follows the header may be there already, and epoll does not report it again */
	c->socket.unread = true;
	if (over >= 0)
		conn_act(c, limit_refuse(c, (enum limit)over));
	else
		conn_act(c, tls && !c->net.tls ? CONN_CLOSE : CONN_WAIT);
}

void conn_proxy_ready(struct conn *c)
{
	struct sockaddr_storage client;
	enum proxy_verdict verdict;

	if (c->io->net.pause.on) {
		c->socket.unread = true;
		conn_settle(c);
		return;
	}
	verdict = proxy_header_read(c->proxy, c->net.watch.fd, &client);
	if (verdict == PROXY_MORE) {
		conn_settle(c);
		return;
	}
	conn_proxy_drop(c);
	if (verdict == PROXY_NAMED || verdict == PROXY_SELF) {
		open_for(c, verdict == PROXY_NAMED ? count_for(c, &client) : -1);
		return;
	}
	c->io->count[SERVER_PROXY_FAILED]++;
	conn_act(c, CONN_CLOSE);
}
