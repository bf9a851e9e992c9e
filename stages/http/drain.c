/* SPDX-License-Identifier: MIT */
/*
 * The drain: nothing new, a last request for idle connections, what is in flight ends.
 *
 *   main: drain_start -> `draining` -> every I/O thread, at the end of a turn:
 *     1. listeners ignore new clients; those already there are accepted
 *     2. until linger is over idle connections may send one more request; every last answer says
 *        "Connection: close"
 *     3. listeners and idle connections are closed; what has begun goes on
 *     4. no connection left: main is told
 *
 * main waits in drain_wait until all have told, or the time is over.
 */
#include "http/drain.h"

#include <errno.h>
#include <time.h>

#include "http/conn.h"
#include "http/listen.h"

#define NS_PER_S 1000000000LL

/* ---- main ---- */

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

void drain_start(struct http_server *srv, int64_t linger_ns)
{
	atomic_store(&srv->linger_until_ns, now_ns() + linger_ns);
	atomic_store_explicit(&srv->draining, true, memory_order_release); /* io_check_drain */
	for (int i = 0; i < srv->n_io; i++)
		weir_loop_wake(srv->io[i]->loop);
}

void drain_wait(struct http_server *srv, int64_t until_ns)
{
	struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
	int rc = 0;

	pthread_mutex_lock(&srv->lock);
	while (srv->n_drained < srv->n_io && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&srv->drained, &srv->lock, &until);
	pthread_mutex_unlock(&srv->lock);
}

/* ---- an I/O thread ---- */

static void end_linger(struct http_io *io)
{
	struct conn *next;

	listen_close(io);
	for (struct conn *c = io->conns; c; c = next) {
		next = c->next;
		if (c->wait == WAIT_IDLE && !c->eof)
			conn_close(c);
	}
}

static void linger_over(struct weir_loop *loop, struct weir_timer *t)
{
	(void)t;
	end_linger(weir_loop_data(loop));
}

static void begin(struct http_io *io)
{
	io->draining = true;
	io->linger_until_ns = atomic_load(&io->srv->linger_until_ns);
	listen_drain(io);
	io->linger_timer.fire = linger_over;
	weir_timer_set(io->loop, &io->linger_timer, io->linger_until_ns);
}

static void tell(struct http_io *io)
{
	struct http_server *srv = io->srv;

	io->drained = true;
	pthread_mutex_lock(&srv->lock);
	srv->n_drained++;
	pthread_cond_signal(&srv->drained);
	pthread_mutex_unlock(&srv->lock);
}

void io_check_drain(struct http_io *io)
{
	/* Partner: drain_start. */
	if (!io->draining && atomic_load_explicit(&io->srv->draining, memory_order_acquire))
		begin(io);
	if (!io->draining || io->drained || io->n_conns > 0)
		return;
	/* Nobody is here: who is still in the backlog is the only one to wait for. */
	listen_close(io);
	if (io->n_conns == 0)
		tell(io);
}
