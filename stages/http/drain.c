/* SPDX-License-Identifier: MIT */
/*
 * The drain: nothing new, a last request for idle connections, what is in flight ends.
 *
 *   main: drain_start -> every I/O thread, at the end of a turn:
 *     1. listeners ignore new clients; those already there are accepted
 *     2. until linger is over idle connections may send one more request; every last answer says
 *        "Connection: close"
 *     3. listeners and idle connections are closed; what has begun goes on
 *     4. no connection left: the thread reports
 *   main waits for the reports, or until the time is over: drain_close -> every I/O thread:
 *     5. no request is made any more. Connections without one in the graph are closed, but who has begun one, which may be
 *        read and not parsed yet, or not read, is told 503 first; reports again
 *
 * After that nothing enters the graph from here, so its books can be closed exactly. Requests still
 * in it come home, are answered and end their connections while the threads live (until fini).
 */
#include "http/drain.h"

#include <errno.h>
#include <time.h>

#include "http/conn.h"
#include "http/heir.h"
#include "http/listen.h"
#include "http/pause.h"

#define NS_PER_S 1000000000LL

/* How often main looks whether it has been told to hurry, which a signal handler may do. */
#define LOOK_NS (20 * 1000000LL)
/* An I/O thread reports within a turn, unless an inline stage holds it up; a guess. */
#define CLOSE_WAIT_NS NS_PER_S

/* ---- main ---- */

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static void tell_threads(struct http_server *srv, enum server_phase phase)
{
	atomic_store_explicit(
	    &srv->phase, phase, memory_order_release); /* partner: io_follow_drain */
	for (int i = 0; i < srv->n_io; i++)
		weir_loop_wake(srv->io[i]->loop);
}

/* Wait for the reports of all threads about `phase`. False when the time was over first. */
static bool wait_reports(struct http_server *srv, enum server_phase phase, int64_t until_ns)
{
	int64_t now;
	bool all;

	pthread_mutex_lock(&srv->lock);
	while (!(all = srv->n_reports[phase] == srv->n_io) && (now = now_ns()) < until_ns) {
		int64_t look = now + LOOK_NS < until_ns ? now + LOOK_NS : until_ns;
		struct timespec ts = {.tv_sec = look / NS_PER_S, .tv_nsec = look % NS_PER_S};
		if (phase == SERVER_DRAINING && weir_hurried(srv->stage))
			break;
		pthread_cond_timedwait(&srv->reported, &srv->lock, &ts);
	}
	pthread_mutex_unlock(&srv->lock);
	return all;
}

void drain_run(struct http_server *srv, int64_t linger_ns, int64_t until_ns)
{
	atomic_store(&srv->linger_until_ns, now_ns() + linger_ns);
	tell_threads(srv, SERVER_DRAINING);
	wait_reports(srv, SERVER_DRAINING, until_ns);
	tell_threads(srv, SERVER_CLOSED);
	wait_reports(srv, SERVER_CLOSED, now_ns() + CLOSE_WAIT_NS);
}

void drain_wait_gone(struct http_server *srv)
{
	int n = atomic_load_explicit(&srv->n_loops, memory_order_relaxed); /* ours to write */

	pthread_mutex_lock(&srv->lock);
	while (srv->n_reports[SERVER_GONE] < n)
		pthread_cond_wait(&srv->reported, &srv->lock);
	srv->n_reports[SERVER_GONE] = 0; /* it may start again */
	pthread_mutex_unlock(&srv->lock);
	atomic_store_explicit(&srv->n_loops, 0, memory_order_relaxed);
}

/* ---- an I/O thread ---- */

static void report(struct http_io *io, enum server_phase phase)
{
	struct http_server *srv = io->srv;

	pthread_mutex_lock(&srv->lock);
	srv->n_reports[phase]++;
	pthread_cond_signal(&srv->reported);
	pthread_mutex_unlock(&srv->lock);
}

void drain_gone(struct http_io *io)
{
	report(io, SERVER_GONE);
}

static void end_linger(struct weir_loop *loop, struct weir_timer *t)
{
	struct http_io *io = weir_loop_data(loop);
	struct conn *next;

	(void)t;
	listen_close(io);
	for (struct conn *c = io->conns; c; c = next) {
		next = c->next;
		if (c->wait != WAIT_IDLE || (heir_leaving(io) && heir_take_leave(c)))
			continue;
		conn_read(c); /* it may have spoken at the last moment */
		if (conn_is_open(c) && c->wait == WAIT_IDLE)
			conn_end(c, true);
	}
}

static void begin_drain(struct http_io *io)
{
	struct weir_stage *heir = weir_successor(io->stage);

	if (!heir) /* a start that failed behind ours: what came meanwhile is the running server's */
		heir = weir_predecessor(io->stage, NULL);
	io->phase = SERVER_DRAINING;
	if (heir)
		listen_leave(io);
	listen_drain(io);
	if (heir) {
		heir_leave(io, weir_state(heir));
		pause_leave(io);
	}
	io->linger_timer.fire = end_linger;
	weir_timer_set(io->loop, &io->linger_timer, atomic_load(&io->srv->linger_until_ns));
}

/* Has the client begun a request of which nobody has heard? It may have done so at the last moment. */
static bool has_begun(struct conn *c)
{
	if (c->lingering || c->ending || c->stream.phase == STREAM_SKIP)
		return false;
	if (!stream_partial(&c->stream))
		conn_read(c); /* which makes no request of it any more */
	return conn_is_open(c) && c->in_flight == 0 && !c->lingering && stream_partial(&c->stream);
}

/* The time is over, and nothing of `c` is in the graph. Only what fits into its socket's buffer is said. */
static void end_late(struct conn *c)
{
	if (has_begun(c)) {
		c->io->count[SERVER_REFUSED_LATE]++;
		conn_refuse(c, 503, "the server stops");
		conn_settle(c);
	} else if (c->in_flight == 0) {
		conn_close(c);
	}
}

static void close_now(struct http_io *io)
{
	struct conn *next;

	io->phase = SERVER_CLOSED;
	weir_timer_cancel(io->loop, &io->linger_timer);
	listen_close(io);
	for (struct conn *c = io->conns; c; c = next) {
		next = c->next;
		if (heir_leaving(io) && heir_take_leave(c))
			continue;
		c->no_more = true;
		conn_parts_end(c);
		if (c->in_flight == 0)
			end_late(c);
	}
	heir_adopt(io); /* likewise those that could not be taken in */
	report(io, SERVER_CLOSED);
}

void io_follow_drain(struct http_io *io)
{
	/* Partner: tell_threads. */
	enum server_phase phase = atomic_load_explicit(&io->srv->phase, memory_order_acquire);

	if (WEIR_LIKELY(phase == SERVER_RUNNING))
		return;
	if (io->phase == SERVER_RUNNING)
		begin_drain(io);
	if (phase == SERVER_CLOSED && io->phase != SERVER_CLOSED)
		close_now(io);
}

void io_report_drained(struct http_io *io)
{
	if (WEIR_LIKELY(io->phase == SERVER_RUNNING) || io->drained || io->n_conns > 0 ||
	    heir_keeps(io))
		return;
	/* Nobody is here: who is still in the backlog is the only one to wait for. */
	listen_close(io);
	if (io->ready) /* refused, or handed over: those who are ready have had their turn */
		weir_loop_wake(io->loop);
	io->drained = io->n_conns == 0;
	if (io->drained)
		report(io, SERVER_DRAINING);
}
