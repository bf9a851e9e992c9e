/* SPDX-License-Identifier: MIT */
/*
 * Reads bytes from the socket into the stream.
 *
 * There is one read each time epoll reports a connection as readable; epoll reports it again when
 * there is more. Idle connections that became readable in one run of the event loop are read
 * together (read_turn.c), and parsed once all of them have been read (conn_make_ready, conn_write).
 * Reading, parsing and answering are thus three loops. The code of each loop, including the code of
 * the kernel that it calls, stays in the processor's caches. Measured with
 * config/servers/hello.yaml at 64 connections: 12 % fewer cycles in user space, 2 % fewer in the
 * kernel (perf stat, 12 rounds).
 *
 * The rest of a request that has begun is parsed immediately, since until then its time-out
 * continues to run, and a connection with part of a request may be evicted.
 */
#include "http/conn/conn.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/conn/wire_io.h"

/* Discard what a client sends after the last response. */
static enum conn_next linger_read(struct conn *c)
{
	ssize_t n = TEMP_FAILURE_RETRY(
	    recv(c->net.watch.fd, c->io->scratch.out, sizeof(c->io->scratch.out), 0));

	if (n <= 0)
		return n == 0 || errno != EAGAIN ? CONN_CLOSE : CONN_WAIT;
	c->io->count[SERVER_BYTES_IN] += n;
	c->socket.unread = c->socket.peer_done || (size_t)n == sizeof(c->io->scratch.out);
	return CONN_WAIT;
}

/* Record `got` bytes, at most `n`, that were read into the space from stream_room. */
static void note(struct conn *c, size_t n, size_t got)
{
	c->io->count[SERVER_BYTES_IN] += (int64_t)got;
	/* while the client must read a response, bytes that it sends are not progress */
	if (c->net.wait.kind != WAIT_WRITE) {
		c->net.wait.progress_ns = weir_loop_now_ns(c->io->net.loop);
		c->net.wait.moved_bytes += (int64_t)got;
	}
	c->socket.unread = wire_left(c, n, got);
	stream_got(&c->stream, got);
}

/* Bytes of an idle connection are parsed with those of others, by turn_end. Until then the
 * connection must neither time out nor be evicted as idle. */
static enum conn_next parse_later(struct conn *c)
{
	c->net.wait.kind = WAIT_NONE;
	conn_list_leave(c);
	conn_make_ready(c);
	return CONN_AS_IS;
}

enum conn_next conn_took(struct conn *c, size_t n, ssize_t got)
{
	if (WEIR_UNLIKELY(n == 0))
		return CONN_PARSE_FULL;
	if (got > 0) {
		note(c, n, (size_t)got);
		return WEIR_LIKELY(c->net.wait.kind == WAIT_IDLE) ? parse_later(c) : CONN_PARSE;
	}
	if (got != -EAGAIN)
		return got == 0 ? CONN_PARSE_END : CONN_CLOSE;
	if (c->net.tls)
		c->socket.unread = tls_left(c->net.tls);
	return CONN_WAIT;
}

enum conn_next conn_read(struct conn *c)
{
	char *room;
	size_t n;
	ssize_t got = 0;

	if (c->phase == CONN_LINGERING)
		return linger_read(c);
	if (c->net.tls && tls_is_shaking(c->net.tls))
		return CONN_WAIT;
	n = stream_room(&c->stream, &c->io->pool, &room);
	if (n > 0)
		got = wire_recv(c, room, n);
	return conn_took(c, n, got == -1 ? -errno : got);
}
