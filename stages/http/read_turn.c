/* SPDX-License-Identifier: MIT */
/*
 * Reading from all connections that have become readable in a run of the loop, step by step, as write_turn.c writes: room for
 * all is found, then all are read, then what came is noted, each in a loop that finds its code in the processor's cache.
 *
 * Only who was idle waits for that, to the end of the run: who has begun something has a time-out that runs. From being put down
 * on, a connection is on no list, so it is neither timed out nor closed to make room for others. It may be closed all the same;
 * its memory stays until what is ready has been looked at, which is behind this.
 */
#include "http/conn.h"

#include <errno.h>

bool conn_read_later(struct conn *c)
{
	struct http_io *io = c->io;

	if (c->tls || c->wait != WAIT_IDLE || io->n_arrived == SERVER_ARRIVED)
		return false;
	c->wait = WAIT_NONE;
	conn_list_leave(c);
	io->arrived[io->n_arrived++] = c;
	return true;
}

/* Bytes of an idle connection are there: they are parsed with those of the others. */
static void note(struct conn *c, size_t n, size_t got)
{
	c->io->count[SERVER_BYTES_IN] += (int64_t)got;
	c->unread = c->peer_done || got == n;
	stream_got(&c->stream, got);
	conn_make_ready(c);
}

void conn_read_arrived(struct http_io *io)
{
	struct conn **c = io->arrived;
	char *room[SERVER_ARRIVED];
	size_t n[SERVER_ARRIVED];
	ssize_t got[SERVER_ARRIVED];
	const int all = io->n_arrived;

	for (int i = 0; i < all; i++)
		n[i] = conn_is_open(c[i]) ? stream_room(&c[i]->stream, &io->pool, &room[i]) : 0;
	for (int i = 0; i < all; i++) {
		got[i] = n[i] > 0 ? recv(c[i]->watch.fd, room[i], n[i], 0) : 0;
		if (WEIR_UNLIKELY(got[i] == -1))
			got[i] = -errno;
	}
	io->n_arrived = 0;
	for (int i = 0; i < all; i++) {
		if (WEIR_UNLIKELY(!conn_is_open(c[i])))
			continue;
		if (WEIR_LIKELY(got[i] > 0))
			note(c[i], n[i], (size_t)got[i]);
		else
			conn_took(c[i], n[i], got[i]);
	}
}
