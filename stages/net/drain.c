/* SPDX-License-Identifier: MIT */
/*
 * Drains a server: nothing new is accepted, idle connections may send a last request, and requests
 * in flight finish.
 *
 *   main: NET_DRAINING -> every I/O thread, at the end of an iteration:
 *     1. listeners ignore new clients, and accept those that are already in the backlog
 *     2. until the linger time is over, idle connections may send one more request, after whose
 *        response they are closed
 *     3. listeners and idle connections are closed; requests that have begun are still served
 *     4. when no connection is left, the thread reports
 *   main waits for the reports, or until the time limit: NET_CLOSED -> every I/O thread:
 *     5. no more requests are emitted. Connections without a request in the graph are closed; the
 *        protocol first answers a request that has begun (perhaps read but not parsed, or not read
 *        yet). The thread reports again
 *
 * After that no event enters the graph from here, so the graph's counters can be closed exactly.
 * Requests that are still in the graph return and are answered, and their connections are closed,
 * while the threads run (until fini).
 */
#include "net/drain.h"

#include <errno.h>
#include <time.h>

#include <weir/clock.h>

#include "net/handover.h"
#include "net/listen.h"
#include "net/pause.h"
#include "net/per_thread.h"
#include "net/stand_in.h"

#define NS_PER_S 1000000000LL

/* Interval at which main checks whether the drain must be cut short (weir_hurried), which a signal
 * handler may request. */
#define LOOK_NS (20 * 1000000LL)
/* How long main waits for the reports of NET_CLOSED. An I/O thread reports within an iteration,
 * unless an inline stage blocks it. 1 s is a guess. */
#define CLOSE_WAIT_NS NS_PER_S

/* ---- main ---- */

static void tell_threads(struct net_server *srv, enum net_phase phase)
{
	/* pairs with drain_follow */
	atomic_store_explicit(&srv->phase, phase, memory_order_release);
	for (int i = 0; i < srv->n_io; i++)
		weir_loop_wake(srv->io[i]->loop);
}

/* Wait until all threads have reported `phase`. Returns false if they have not by `until_ns`. */
static bool wait_reports(struct net_server *srv, enum net_phase phase, int64_t until_ns)
{
	int64_t now;
	bool all;

	pthread_mutex_lock(&srv->lock);
	while (!(all = srv->n_reports[phase] == srv->n_io) &&
	       (now = weir_clock_ns(CLOCK_MONOTONIC)) < until_ns) {
		int64_t look = now + LOOK_NS < until_ns ? now + LOOK_NS : until_ns;
		struct timespec ts = {.tv_sec = look / NS_PER_S, .tv_nsec = look % NS_PER_S};
		if (phase == NET_DRAINING && weir_hurried(srv->stage))
			break;
		pthread_cond_timedwait(&srv->reported, &srv->lock, &ts);
	}
	pthread_mutex_unlock(&srv->lock);
	return all;
}

void drain_run(struct net_server *srv, int64_t linger_ns, int64_t until_ns)
{
	atomic_store(&srv->linger_until_ns, weir_clock_ns(CLOCK_MONOTONIC) + linger_ns);
	tell_threads(srv, NET_DRAINING);
	wait_reports(srv, NET_DRAINING, until_ns);
	tell_threads(srv, NET_CLOSED);
	wait_reports(srv, NET_CLOSED, weir_clock_ns(CLOCK_MONOTONIC) + CLOSE_WAIT_NS);
}

void drain_wait_gone(struct net_server *srv)
{
	int n = atomic_load_explicit(&srv->n_loops, memory_order_relaxed); /* only main writes it */

	pthread_mutex_lock(&srv->lock);
	while (srv->n_reports[NET_GONE] < n)
		pthread_cond_wait(&srv->reported, &srv->lock);
	srv->n_reports[NET_GONE] = 0; /* the server may be started again */
	pthread_mutex_unlock(&srv->lock);
	atomic_store_explicit(&srv->n_loops, 0, memory_order_relaxed);
}

/* ---- an I/O thread ---- */

static void report(struct net_io *io, enum net_phase phase)
{
	struct net_server *srv = io->srv;

	pthread_mutex_lock(&srv->lock);
	srv->n_reports[phase]++;
	pthread_cond_signal(&srv->reported);
	pthread_mutex_unlock(&srv->lock);
}

void drain_gone(struct net_io *io)
{
	report(io, NET_GONE);
}

static void end_linger(struct weir_loop *loop, struct weir_timer *t)
{
	struct net_io *io = weir_loop_data(loop);
	int64_t now_ns = weir_loop_now_ns(loop), linger_ns = io->conf->linger_ns;
	int64_t late_ns = now_ns - linger_ns;
	struct net_conn *next;

	if (!per_thread_on(io))
		listen_close(io);
	for (struct net_conn *c = io->conns; c; c = next) {
		next = c->next;
		if (!per_thread_on(io) || c->wait.since_ns <= late_ns)
			io->srv->calls->end_idle(c);
	}
	if (per_thread_on(io) &&
	    !io->drain.done) /* clients that are accepted later get as much time */
		weir_timer_set(loop, t, now_ns + (linger_ns > LOOK_NS ? linger_ns : LOOK_NS));
}

static void begin_drain(struct net_io *io)
{
	struct weir_stage *successor = weir_successor(io->stage);

	/* there is no successor if our graph failed to start after this stage had started: hand our
	 * connections back to the running server */
	if (!successor)
		successor = weir_predecessor(io->stage, NULL);
	/* Another thread may have been blocked since this thread looked. In a drain, no thread
	 * begins to stand in for another. */
	stand_in_follow(io);
	io->drain.phase = NET_DRAINING;
	if (successor)
		listen_leave(io);
	listen_drain(io);
	if (successor) {
		handover_leave(io, weir_state(successor));
		pause_leave(io);
	}
	io->drain.linger_timer.fire = end_linger;
	weir_timer_set(io->loop, &io->drain.linger_timer, atomic_load(&io->srv->linger_until_ns));
}

static void close_now(struct net_io *io)
{
	struct net_conn *next;

	io->drain.phase = NET_CLOSED;
	weir_timer_cancel(io->loop, &io->drain.linger_timer);
	listen_close(io);
	for (struct net_conn *c = io->conns; c; c = next) {
		next = c->next;
		if (!net_is_leaving(io) || !io->srv->calls->hand_over(c))
			io->srv->calls->end_late(c);
	}
	handover_adopt(io); /* this also closes the connections that could not be taken over */
	report(io, NET_CLOSED);
}

void drain_follow(struct net_io *io)
{
	/* pairs with tell_threads */
	enum net_phase phase = atomic_load_explicit(&io->srv->phase, memory_order_acquire);

	if (WEIR_LIKELY(phase == NET_RUNNING))
		return;
	if (io->drain.phase == NET_RUNNING)
		begin_drain(io);
	if (phase == NET_CLOSED && io->drain.phase != NET_CLOSED)
		close_now(io);
}

void drain_report(struct net_io *io)
{
	if (WEIR_LIKELY(io->drain.phase == NET_RUNNING) || io->drain.done || io->n_conns > 0 ||
	    handover_keeps(io))
		return;
	/* No connection is left: accept the clients in the backlog, then close the listeners. */
	listen_close(io);
	io->drain.done = io->n_conns == 0;
	if (io->drain.done)
		report(io, NET_DRAINING);
}
