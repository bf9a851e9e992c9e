/* SPDX-License-Identifier: MIT */
/*
 * The part of a connection that does not depend on its protocol: its counts and its lists. I/O
 * thread only.
 *
 * A connection is in at most one list, by what it waits for (enum net_list_id). The lists are in
 * the order in which connections joined them, so the longest wait is the first; only LIST_SLOW is
 * rotated. Joining and leaving are done for each request, so they are inline.
 */
#ifndef WEIR_NET_CONN_H
#define WEIR_NET_CONN_H

#include "net/net.h"

/** Add `c` to net_io.conns and count it. The protocol has already set `refused`, and watches the
 * descriptor. */
void net_conn_enter(struct net_io *io, struct net_conn *c);

/** Undo net_conn_enter: end the watch, the timer and all counts of `c`, which must be open. Returns
 * its descriptor, which the caller then owns; accepting resumes if it was held up. */
int net_conn_detach(struct net_io *io, struct net_conn *c);

/** Store the client's address as text; NET_UNIX_NAME for a client of a socket file. */
void net_conn_name(struct net_conn *c, const struct sockaddr_storage *addr);

/** Remove `c` from the list it is in, if any. */
static inline void net_list_leave(struct net_io *io, struct net_conn *c)
{
	struct net_list *list = &io->list[c->wait.list];

	if (!c->wait.prev)
		return;
	*c->wait.prev = c->wait.next;
	if (c->wait.next)
		c->wait.next->wait.prev = c->wait.prev;
	else
		list->tail = c->wait.prev;
	c->wait.prev = NULL;
	list->n--;
}

/** Append `c` to the list `id`, unless it is in that list already. */
static inline void net_list_join(struct net_io *io, struct net_conn *c, enum net_list_id id)
{
	struct net_list *list = &io->list[id];

	if (c->wait.prev && c->wait.list == id)
		return;
	net_list_leave(io, c);
	c->wait.list = (uint8_t)id;
	c->wait.prev = list->tail;
	c->wait.next = NULL;
	*list->tail = c;
	list->tail = &c->wait.next;
	list->n++;
}

/** Move `c`, which is in a list, to the end of that list. */
static inline void net_list_rotate(struct net_io *io, struct net_conn *c)
{
	net_list_leave(io, c);
	net_list_join(io, c, (enum net_list_id)c->wait.list);
}

#endif
