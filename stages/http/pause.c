/* SPDX-License-Identifier: MIT */
/*
 * An operator pauses the source, or lets it go on. A paused one accepts and reads nothing; what was read is answered. Sockets
 * and the kernel's queue keep what clients send meanwhile, and no time-out of theirs runs.
 *
 * The flag is read by each I/O thread at the end of a turn, so one that is in the midst of a turn may read once more: whoever
 * pauses waits until all have seen it.
 */
#include "http/pause.h"

#include <time.h>

#include "http/conn.h"
#include "http/heir.h"
#include "http/listen.h"

/* An I/O thread runs inline stages: one that blocks there must not keep an operator. A guess. */
#define PATIENCE_S 1

static void say_seen(struct http_io *io, bool paused)
{
	pthread_mutex_lock(&io->srv->lock);
	io->pause_seen = paused;
	pthread_cond_broadcast(&io->srv->reported);
	pthread_mutex_unlock(&io->srv->lock);
}

void pause_begin(struct http_io *io)
{
	io->paused = atomic_load_explicit(&io->srv->paused, memory_order_acquire);
	if (io->paused)
		say_seen(io, true);
}

static void turn(struct http_io *io, bool paused)
{
	struct conn *next;

	io->paused = false; /* what has been read is parsed in front of a pause, as behind it */
	io_touch(io);
	for (struct conn *c = io->conns; c; c = next) {
		next = c->next;
		if (!c->blocked && !c->lingering)
			conn_parse(c);
	}
	io->paused = paused;
	listen_pause(io);
	for (struct conn *c = io->conns; c; c = next) {
		next = c->next;
		conn_settle(c);
	}
}

void pause_check(struct http_io *io)
{
	/* Partner: pause_server. */
	bool paused = atomic_load_explicit(&io->srv->paused, memory_order_acquire);

	if (WEIR_LIKELY(paused == io->paused) || heir_leaving(io))
		return;
	turn(io, paused);
	say_seen(io, paused);
}

void pause_leave(struct http_io *io)
{
	if (io->paused)
		turn(io, false);
}

/* The caller holds srv->lock. */
static bool all_seen(const struct http_server *srv)
{
	for (int i = 0; i < srv->n_io; i++)
		if (!srv->io[i]->pause_seen)
			return false;
	return true;
}

void pause_server(struct weir_stage *st, bool paused)
{
	struct http_server *srv = weir_state(st);
	struct timespec until;
	int rc = 0;

	/* Partner: pause_check. */
	atomic_store_explicit(&srv->paused, paused, memory_order_release);
	for (int i = 0; i < srv->n_io; i++)
		weir_loop_wake(srv->io[i]->loop);
	if (!paused)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&srv->lock);
	while (!all_seen(srv) && rc == 0)
		rc = pthread_cond_timedwait(&srv->reported, &srv->lock, &until);
	pthread_mutex_unlock(&srv->lock);
}
