/* SPDX-License-Identifier: MIT */
/* Shares the listening sockets of a server with the one that replaces it; see handover.h. */
#include "net/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static struct net_server *predecessor(const struct net_server *srv)
{
	struct weir_stage *st = weir_predecessor(srv->stage, NULL);

	return st ? weir_state(st) : NULL;
}

struct tls_site *handover_site(const struct net_server *srv)
{
	const struct net_server *old = predecessor(srv);

	return old ? old->tls : NULL;
}

void handover_begin(const struct net_server *srv)
{
	const struct net_server *old = predecessor(srv);

	for (int i = 0; old && i < old->n_io; i++)
		for (int k = 0; k < old->io[i]->accept.n_listeners; k++)
			old->io[i]->listener[k].shared = false;
}

/* List up to `max` sockets of `old` at its address number `k`. Returns their number. */
static int sockets_at(const struct net_server *old, int k, struct listener **list, int max)
{
	int n = 0;

	for (int i = 0; i < old->n_io; i++)
		for (int m = 0; m < old->io[i]->accept.n_listeners && n < max; m++) {
			struct listener *l = &old->io[i]->listener[m];
			if (l->address == k && l->watch.fd != -1)
				list[n++] = l;
		}
	return n;
}

/* Find the sockets of `old` at `a` that are not shared yet. If the configuration names an address
 * twice, such as one with port 0, each entry gets different sockets. */
static int find_sockets(
    const struct net_server *old, const struct address *a, struct listener **list, int max)
{
	const struct net_conf *conf = weir_conf(old->stage);
	struct weir_err ignored;
	struct address b;

	for (int k = 0; k < old->n_addresses && k < conf->listen.n; k++) {
		bool same = address_parse(conf->listen.items[k], &b, &ignored) == 0 &&
			    a->n == b.n && memcmp(&a->addr, &b.addr, a->n) == 0;
		int n = same ? sockets_at(old, k, list, max) : 0;
		if (n > 0 && !list[0]->shared)
			return n;
	}
	return 0;
}

/* Mark all listeners of `old` at the address of `l` as shared. */
static void share_address(const struct net_server *old, const struct listener *l)
{
	for (int i = 0; i < old->n_io; i++)
		for (int m = 0; m < old->io[i]->accept.n_listeners; m++)
			if (old->io[i]->listener[m].address == l->address)
				old->io[i]->listener[m].shared = true;
}

/* The number of list[0..n) that belong to the first thread. */
static int of_first(struct listener *const *list, int n)
{
	int i = 0;

	while (i < n && list[i]->io == list[0]->io)
		i++;
	return i;
}

/* Like handover_sockets; the caller holds the lock of `old`. With `per_thread`, and at a socket file,
 * each thread of `old` has duplicates of the same sockets. */
static int share_sockets(
    const struct net_server *old, const struct address *a, int fd[NET_IO_MAX], bool *passed)
{
	struct listener *list[NET_IO_MAX];
	int n = find_sockets(old, a, list, NET_IO_MAX), i = 0;
	const bool common = n > 0 && list[0]->common;

	if (common)
		n = of_first(list, n);

	for (; i < n; i++) {
		fd[i] = fcntl(list[i]->watch.fd, F_DUPFD_CLOEXEC, 0);
		if (fd[i] == -1)
			break;
		*passed = list[i]->passed;
	}
	if (i < n) {
		while (i-- > 0)
			close(fd[i]);
		return WEIR_ESYS;
	}
	if (common)
		share_address(old, list[0]);
	while (i-- > 0)
		list[i]->shared = true; /* checked by the thread of the listener when it stops */
	return n;
}

const struct socket_file *handover_file(const struct net_server *srv, const struct address *a)
{
	const struct net_server *old = predecessor(srv);

	for (int k = 0; old && k < old->n_addresses; k++)
		if (strcmp(old->file[k].path, address_file(a)) == 0)
			return &old->file[k];
	return NULL;
}

int handover_sockets(
    const struct net_server *srv, const struct address *a, int fd[NET_IO_MAX], bool *passed)
{
	struct net_server *old = predecessor(srv);
	int n = 0;

	if (!old)
		return 0;
	/* The threads of `old` close the sockets under its lock when it stops, which may happen
	 * while we start (weir_graph_stay). */
	pthread_mutex_lock(&old->lock);
	n = share_sockets(old, a, fd, passed);
	pthread_mutex_unlock(&old->lock);
	return n;
}
