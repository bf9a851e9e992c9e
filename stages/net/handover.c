/* SPDX-License-Identifier: MIT */
/*
 * Hands connections over between servers; see handover.h.
 *
 * A connection is handed over as a struct net_handed, on a list per I/O thread of the new server.
 * Any thread of the old server pushes to the list; the owner removes the whole list at once
 * (Treiber 1986; this has no ABA problem). Only a push onto an empty list wakes the owner.
 */
#include "net/handover.h"

#include "net/per_thread.h"

/* Delay before the next attempt when memory was short, as in listen.c. 50 ms is a guess. */
#define AGAIN_NS 50000000LL

/* ---- handing over ---- */

static void push(struct net_io *to, struct net_handed *h)
{
	struct net_handed *head = atomic_load_explicit(&to->handover.handed, memory_order_relaxed);

	do
		h->next = head;
	while (!atomic_compare_exchange_weak_explicit(&to->handover.handed, &head, h,
	    memory_order_release, memory_order_relaxed)); /* pairs with handover_adopt */
	if (!head)
		weir_loop_wake(to->loop);
}

void handover_send(const struct net_io *from, struct net_handed *h)
{
	struct net_server *to = from->handover.to;

	h->since_ns = 0;
	from->srv->calls->handed_on(h, to);
	if (to->per_thread > 0)
		per_thread_give(to, h, weir_loop_now_ns(from->loop), from->index);
	else
		push(to->io[from->index % to->n_io], h);
}

static void hand_over_all(struct net_io *io)
{
	struct net_conn *next;

	for (struct net_conn *c = io->conns; c; c = next) {
		next = c->next;
		io->srv->calls->hand_over(c);
	}
}

/* Timer callback: repeat failed attempts to hand connections over. Attempts to take over those in
 * handover.kept are repeated at the end of the same iteration (handover_adopt). */
static void again(struct weir_loop *loop, struct weir_timer *t)
{
	struct net_io *io = weir_loop_data(loop);

	(void)t;
	net_touch(io);
	if (net_is_leaving(io))
		hand_over_all(io);
}

void handover_look(struct net_io *io, int64_t ns)
{
	io->handover.timer.fire = again;
	weir_timer_set(io->loop, &io->handover.timer, weir_loop_now_ns(io->loop) + ns);
}

void handover_retry(struct net_io *io)
{
	handover_look(io, AGAIN_NS);
}

bool handover_receiver_runs(const struct net_io *io)
{
	return atomic_load(&io->handover.to->phase) == NET_RUNNING;
}

void handover_leave(struct net_io *io, struct net_server *successor)
{
	io->handover.to = successor;
	hand_over_all(io);
}

/* ---- taking over ---- */

void handover_refuse(struct net_io *io, struct net_handed *h, bool *logged, const char *why)
{
	net_count(io, NET_REFUSED_HANDED, 1);
	if (weir_log_first(logged))
		weir_log(WEIR_LOG_WARN,
		    "%s: connections of the previous server could not be taken over within %lld s "
		    "and were refused: %s (logged once)",
		    weir_stage_name(io->stage), HANDOVER_WAIT_NS / 1000000000LL, why);
	io->srv->calls->handed_drop(io, h, false);
}

static void give_up(struct net_io *io, struct net_handed *h)
{
	static bool logged;

	handover_refuse(io, h, &logged, "memory or fs.epoll.max_user_watches is too small");
}

/* Whether it is too late to take the connection over. A server that is draining still answers a
 * request that has begun, but would have closed an idle connection by now. */
static bool is_late(const struct net_io *io, const struct net_handed *h)
{
	return io->drain.phase == NET_CLOSED || io->drain.done ||
	       (io->drain.phase == NET_DRAINING && io->srv->calls->handed_is_idle(h));
}

/* Arrange another attempt for the connections that could not be taken over, and record when each
 * first failed. */
static void keep(struct net_io *io)
{
	for (struct net_handed *h = io->handover.kept; h; h = h->next)
		if (h->since_ns == 0)
			h->since_ns = weir_loop_now_ns(io->loop);
	handover_retry(io);
}

/* Take `h` over, or close it if it is too late. Returns false if there is no memory for it now, so
 * that it must be stored. */
static bool adopt(struct net_io *io, struct net_handed *h)
{
	if (is_late(io, h)) {
		io->srv->calls->handed_drop(io, h, true);
		return true;
	}
	if (io->srv->calls->adopt(io, h))
		return true;
	if (h->since_ns == 0 || weir_loop_now_ns(io->loop) - h->since_ns < HANDOVER_WAIT_NS)
		return false;
	give_up(io, h);
	return true;
}

/* Take over the connections in the list, until memory runs out, or pass them on if this server is
 * itself handing over. Returns the remaining ones. */
static struct net_handed *take_in(struct net_io *io, struct net_handed *h)
{
	struct net_handed *next;

	for (; h; h = next) {
		next = h->next;
		if (net_is_leaving(io))
			handover_send(io, h);
		else if (!adopt(io, h))
			break;
	}
	return h;
}

void handover_adopt(struct net_io *io)
{
	if (WEIR_LIKELY(!atomic_load_explicit(&io->handover.handed, memory_order_relaxed) &&
			!io->handover.kept))
		return;
	net_touch(io);
	/* pairs with push */
	struct net_handed *h =
	    atomic_exchange_explicit(&io->handover.handed, NULL, memory_order_acquire);
	struct net_handed **tail = &io->handover.kept;
	while (*tail)
		tail = &(*tail)->next;
	*tail = h;
	io->handover.kept = take_in(io, io->handover.kept);
	if (io->handover.kept)
		keep(io);
}

static void end_all(struct net_io *io, struct net_handed *h)
{
	struct net_handed *next;

	for (; h; h = next) {
		next = h->next;
		io->srv->calls->handed_drop(io, h, true);
	}
}

void handover_fini(struct net_io *io)
{
	end_all(io, io->handover.kept);
	io->handover.kept = NULL;
	end_all(io, atomic_exchange(&io->handover.handed, NULL));
}
