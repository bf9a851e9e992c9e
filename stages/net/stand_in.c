/* SPDX-License-Identifier: MIT */
/* Accepts clients on behalf of a blocked I/O thread; see stand_in.h. */
#include "net/stand_in.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/listen.h"

_Static_assert(NET_IO_MAX <= 32, "stood has a bit for each I/O thread");

/* Return the other threads that are blocked, one bit each. */
static uint32_t held(const struct net_io *io)
{
	const struct net_server *srv = io->srv;
	/* pairs with start_loops */
	int n = atomic_load_explicit(&srv->n_loops, memory_order_acquire);
	uint32_t mask = 0;

	for (int i = 0; i < n; i++)
		if (srv->io[i] != io && weir_loop_held(srv->io[i]->loop))
			mask |= 1u << i;
	return mask;
}

/* Duplicate the listeners of `from`. Passed sockets are skipped, since all threads watch them in
 * any case. The caller holds the lock, under which the owner closes its sockets. */
static bool take(struct net_io *io, const struct net_io *from)
{
	bool ok = true;

	for (int i = 0; ok && i < from->accept.n_listeners; i++) {
		const struct listener *l = &from->listener[i];
		struct listener *mine = &io->accept.stand_in[io->accept.n_stand_in];
		if (l->passed || l->watch.fd == -1)
			continue;
		*mine = (struct listener){.io = io,
		    .address = l->address,
		    .watch = {.ready = io->listener[0].watch.ready,
			.fd = fcntl(l->watch.fd, F_DUPFD_CLOEXEC, 0)}};
		ok = mine->watch.fd != -1;
		io->accept.n_stand_in += ok;
	}
	return ok;
}

static int listeners_of(const struct net_io *io, uint32_t mask)
{
	int n = 0;

	for (int i = 0; i < io->srv->n_io; i++)
		n += mask >> i & 1 ? io->srv->io[i]->accept.n_listeners : 0;
	return n;
}

/* Stand in for the threads in `mask`. If this fails for a thread, for lack of memory or
 * descriptors, it is retried in the next iteration. */
static void begin(struct net_io *io, uint32_t mask)
{
	struct net_server *srv = io->srv;

	io->accept.stand_in =
	    calloc((size_t)listeners_of(io, mask) + 1, sizeof(*io->accept.stand_in));
	if (!io->accept.stand_in)
		return;
	pthread_mutex_lock(&srv->lock);
	for (int i = 0; i < srv->n_io; i++)
		if (mask >> i & 1 && take(io, srv->io[i]))
			io->accept.stood |= 1u << i;
	pthread_mutex_unlock(&srv->lock);
	listen_pause(io);
}

void stand_in_end(struct net_io *io)
{
	for (int i = 0; i < io->accept.n_stand_in; i++) {
		struct listener *l = &io->accept.stand_in[i];
		if (l->watch.fd == -1)
			continue;
		if (l->watched)
			weir_loop_del(io->loop, &l->watch);
		close(l->watch.fd);
	}
	free(io->accept.stand_in);
	io->accept.stand_in = NULL;
	io->accept.n_stand_in = 0;
	io->accept.stood = 0;
}

void stand_in_follow(struct net_io *io)
{
	uint32_t mask;

	if (WEIR_LIKELY(weir_loops_held(io->stage) == 0 && io->accept.stood == 0))
		return;
	if (io->drain.phase != NET_RUNNING)
		return;
	mask = held(io);
	if (mask == io->accept.stood)
		return;
	stand_in_end(io);
	if (mask)
		begin(io, mask);
}
