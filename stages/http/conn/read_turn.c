/* SPDX-License-Identifier: MIT */
/*
 * Reads from all connections that became readable in one run of the event loop, step by step, like
 * write_turn.c: first free space is found for all, then all are read, then the results are
 * recorded. Each step is a loop whose code stays in the processor's cache.
 *
 * The reads happen at the end of the run. Only connections that wait for a request are deferred. In
 * other states a read must not be late, because body and rate limits are running. A deferred
 * connection is in no list, so it is neither timed out nor evicted. If it is closed meanwhile, its
 * memory stays valid, because closed connections are freed only after the deferred reads.
 */
#include "http/conn/conn.h"

#include <errno.h>
#include <unistd.h>

bool conn_read_later(struct conn *c)
{
	struct http_io *io = c->io;

	if (c->net.tls || c->net.wait.kind != WAIT_IDLE || io->n_arrived == SERVER_ARRIVED)
		return false;
	c->net.wait.kind = WAIT_NONE;
	conn_list_leave(c);
	io->arrived[io->n_arrived++] = c;
	return true;
}

/* Record bytes that were read from an idle connection; they are parsed later, together with those
 * of other connections. */
static void note(struct conn *c, size_t n, size_t got)
{
	c->io->count[SERVER_BYTES_IN] += (int64_t)got;
	c->socket.unread = c->socket.peer_done || got == n;
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
		got[i] =
		    n[i] > 0 ? TEMP_FAILURE_RETRY(recv(c[i]->net.watch.fd, room[i], n[i], 0)) : 0;
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
			conn_act(c[i], conn_took(c[i], n[i], got[i]));
	}
}
