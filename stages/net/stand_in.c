/* SPDX-License-Identifier: MIT */
/* Accepts clients on behalf of a blocked I/O thread; see stand_in.h. */
#include "net/stand_in.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/listen.h"

static bool has_bit(const uint64_t *map, int i)
{
	return map[i / 64] >> i % 64 & 1;
}

static void set_bit(uint64_t *map, int i)
{
	map[i / 64] |= 1ULL << i % 64;
}

/* Set the bits in `mask` of the other threads that are blocked. Returns whether there are any. */
static bool find_held(const struct net_io *io, uint64_t mask[NET_IO_WORDS])
{
	const struct net_server *srv = io->srv;
	/* pairs with start_loops */
	int n = atomic_load_explicit(&srv->n_loops, memory_order_acquire);
	bool any = false;

	memset(mask, 0, NET_IO_WORDS * sizeof(*mask));
	for (int i = 0; i < n; i++) {
		if (srv->io[i] == io || !weir_loop_held(srv->io[i]->loop))
			continue;
		set_bit(mask, i);
		any = true;
	}
	return any;
}

/* Duplicate the listeners of `from`. Common sockets are skipped, since all threads watch them in
 * any case. The caller holds the lock, under which the owner closes its sockets. */
static bool take(struct net_io *io, const struct net_io *from)
{
	bool ok = true;

	for (int i = 0; ok && i < from->accept.n_listeners; i++) {
		const struct listener *l = &from->listener[i];
		struct listener *mine = &io->accept.stand_in[io->accept.n_stand_in];
		if (l->passed || l->common || l->watch.fd == -1)
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

static int listeners_of(const struct net_io *io, const uint64_t *mask)
{
	int n = 0;

	for (int i = 0; i < io->srv->n_io; i++)
		n += has_bit(mask, i) ? io->srv->io[i]->accept.n_listeners : 0;
	return n;
}

/* Stand in for the threads in `mask`. If this fails for a thread, for lack of memory or
 * descriptors, it is retried in the next iteration. */
static void begin(struct net_io *io, const uint64_t *mask)
{
	struct net_server *srv = io->srv;

	io->accept.stand_in =
	    calloc((size_t)listeners_of(io, mask) + 1, sizeof(*io->accept.stand_in));
	if (!io->accept.stand_in)
		return;
	pthread_mutex_lock(&srv->lock);
	for (int i = 0; i < srv->n_io; i++)
		if (has_bit(mask, i) && take(io, srv->io[i])) {
			set_bit(io->accept.stood, i);
			io->accept.stands = true;
		}
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
	memset(io->accept.stood, 0, sizeof(io->accept.stood));
	io->accept.stands = false;
}

void stand_in_follow(struct net_io *io)
{
	uint64_t mask[NET_IO_WORDS];
	bool any;

	if (WEIR_LIKELY(weir_loops_held(io->stage) == 0 && !io->accept.stands))
		return;
	if (io->srv->per_thread > 0) /* all threads watch the same sockets */
		return;
	if (io->drain.phase != NET_RUNNING)
		return;
	any = find_held(io, mask);
	if (memcmp(mask, io->accept.stood, sizeof(mask)) == 0)
		return;
	stand_in_end(io);
	if (any)
		begin(io, mask);
}
