/* SPDX-License-Identifier: MIT */
/* Counts the connections of a server; see net_conn.h. */
#include "net/net_conn.h"

#include <stdio.h>

#include "net/clients.h"
#include "net/listen.h"

/* Return the counter that includes `c`: a connection being refused does not count towards
 * max_connections. */
static atomic_int *slot_counter(const struct net_io *io, const struct net_conn *c)
{
	return c->refused ? &io->srv->refusing : &io->srv->connections;
}

void net_conn_enter(struct net_io *io, struct net_conn *c)
{
	c->next = io->conns;
	c->prev = &io->conns;
	if (c->next)
		c->next->prev = &c->next;
	io->conns = c;
	io->n_conns++;
	net_count(io, NET_CONNECTIONS, 1);
	atomic_fetch_add_explicit(slot_counter(io, c), 1, memory_order_relaxed);
}

int net_conn_detach(struct net_io *io, struct net_conn *c)
{
	int fd = c->watch.fd;

	weir_loop_del(io->loop, &c->watch);
	c->watch.fd = -1;
	weir_timer_cancel(io->loop, &c->wait.timer);
	net_list_leave(io, c);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	if (c->client.key != 0)
		clients_leave(io->srv->clients, c->client.key);
	net_count(io, NET_CONNECTIONS, -1);
	atomic_fetch_sub_explicit(slot_counter(io, c), 1, memory_order_relaxed);
	listen_recheck(io);
	return fd;
}

void net_conn_name(struct net_conn *c, const struct sockaddr_storage *addr)
{
	struct net_address a;

	c->client.address_n = 0;
	if (addr->ss_family == AF_UNIX)
		c->client.address_n = (uint8_t)snprintf(
		    c->client.address, sizeof(c->client.address), "%s", NET_UNIX_NAME);
	else if (net_address_of(addr, &a))
		c->client.address_n = (uint8_t)net_address_text(&a, c->client.address);
	c->client.address[c->client.address_n] = '\0';
}
