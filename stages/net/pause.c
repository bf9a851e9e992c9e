/* SPDX-License-Identifier: MIT */
/*
 * Pauses and resumes the source for an operator. A paused source accepts and reads nothing;
 * requests that were read before are answered. What clients send in the meantime waits in the
 * sockets and the kernel's backlog. Of the clients' time-outs, only those for writing and for
 * lingering run.
 *
 * Each I/O thread reads the flag at the end of an iteration, so a thread in the middle of an
 * iteration may read once more. The pausing thread therefore waits until all threads have seen the
 * flag.
 */
#include "net/pause.h"

#include <time.h>

#include "net/listen.h"

/* How long the operator waits for I/O threads. These run inline stages, and one that blocks must
 * not delay the operator. 1 s is a guess. */
#define PATIENCE_S 1

static void say_seen(struct net_io *io, bool paused)
{
	pthread_mutex_lock(&io->srv->lock);
	io->pause.seen = paused;
	pthread_cond_broadcast(&io->srv->reported);
	pthread_mutex_unlock(&io->srv->lock);
}

void pause_begin(struct net_io *io)
{
	io->pause.on = atomic_load_explicit(&io->srv->paused, memory_order_acquire);
	if (io->pause.on)
		say_seen(io, true);
}

static void turn(struct net_io *io, bool paused)
{
	struct net_conn *next;

	io->pause.on = false; /* process what has been read, both before and after a pause */
	net_touch(io);
	for (struct net_conn *c = io->conns; c; c = next) {
		next = c->next;
		io->srv->calls->resume(c);
	}
	io->pause.on = paused;
	listen_pause(io);
	for (struct net_conn *c = io->conns; c; c = next) {
		next = c->next;
		io->srv->calls->settle(c);
	}
}

void pause_check(struct net_io *io)
{
	/* pairs with pause_server */
	bool paused = atomic_load_explicit(&io->srv->paused, memory_order_acquire);

	if (WEIR_LIKELY(paused == io->pause.on) || net_is_leaving(io))
		return;
	/* Before turn(): a pause that begins during the turn must wait for this thread again. */
	if (!paused)
		say_seen(io, false);
	turn(io, paused);
	if (paused)
		say_seen(io, true);
}

void pause_leave(struct net_io *io)
{
	if (io->pause.on)
		turn(io, false);
}

/* The caller holds srv->lock. */
static bool all_seen(const struct net_server *srv)
{
	for (int i = 0; i < srv->n_io; i++)
		if (!srv->io[i]->pause.seen)
			return false;
	return true;
}

void pause_server(struct weir_stage *st, bool paused)
{
	struct net_server *srv = weir_state(st);
	struct timespec until;
	int rc = 0;

	/* pairs with pause_check */
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
