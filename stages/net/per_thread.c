/* SPDX-License-Identifier: MIT */
/*
 * Limits the connections of an I/O thread; see per_thread.h.
 *
 * No client is stranded. A thread stores `full` before it looks for what waits, and whoever adds to
 * what waits does so before it reads `full` (Dekker; both seq_cst). So either the thread sees what was
 * added, or it is told, and passes it on if it is full by then. A client in the backlog is one that was
 * added by the kernel: a thread with room is told of it by epoll, also when it begins to watch.
 *
 * If no thread has room for a connection that was handed over, one whose connection is between two
 * requests is told. The same holds for its `idle` as for `full`. That thread is `due`: it closes the
 * connection, and takes the next one, while it can. Before it begins a request it tells another thread.
 */
#include "net/per_thread.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/handover.h"
#include "net/listen.h"

/* Interval at which full threads look whether such a connection has waited for too long. 1 s is a
 * guess. */
#define LOOK_NS 1000000000LL

/* ---- telling others ---- */

static void tell_one(struct net_io *io)
{
	atomic_store(&io->share.look, true);
	weir_loop_wake(io->loop);
}

/* Tell thread `i` of `srv` or, if that has no room, the next one that has. With a limit above 1, a
 * thread that has room may be in a handler, so all are told. Returns false if no other thread than `but`
 * has room. Any thread. */
static bool tell(struct net_server *srv, int i, const struct net_io *but)
{
	/* pairs with start_loops */
	int n = atomic_load_explicit(&srv->n_loops, memory_order_acquire);
	bool told = false;

	for (int k = 0; k < n && !(told && srv->per_thread == 1); k++) {
		struct net_io *io = srv->io[(i + k) % n];
		if (io == but || atomic_load(&io->share.full))
			continue;
		tell_one(io);
		told = true;
	}
	return told;
}

/* The same for a connection that was handed over: if no thread has room, one that can make room is told.
 * If there is none either, the next thread is woken to watch the time. */
static bool tell_of_handed(struct net_server *srv, int i, const struct net_io *but)
{
	/* pairs with start_loops */
	int n = atomic_load_explicit(&srv->n_loops, memory_order_acquire);

	if (tell(srv, i, but))
		return true;
	for (int k = 0; k < n; k++) {
		struct net_io *io = srv->io[(i + k) % n];
		if (io == but || !atomic_load(&io->share.idle))
			continue;
		tell_one(io);
		return true;
	}
	weir_loop_wake(srv->io[i % srv->n_io]->loop);
	return false;
}

/* Whether a client waits at a listener. */
static bool is_client_there(const struct net_io *io)
{
	bool there = false;

	for (int i = 0; i < io->accept.n_listeners && !there; i++) {
		struct pollfd p = {.fd = io->listener[i].watch.fd, .events = POLLIN};
		there = p.fd != -1 && TEMP_FAILURE_RETRY(poll(&p, 1, 0)) == 1;
	}
	return there;
}

/* Tell another thread of what `io`, which is full, was perhaps told. With `accepted` it has just
 * accepted a client: with one listener, that is the one of which it was told. */
static void pass_on(struct net_io *io, bool accepted)
{
	bool sure = accepted && io->accept.n_listeners == 1;

	if (!io->share.due && atomic_load(&io->srv->n_waiting) > 0)
		tell_of_handed(io->srv, io->index + 1, io);
	else if (!sure && is_client_there(io))
		tell(io->srv, io->index + 1, io);
}

/* ---- connections of a predecessor ---- */

/* Returns how many there were before. */
static int append(struct net_server *srv, struct net_handed *h, bool first)
{
	int n;

	srv->calls->handed_waits(srv, 1); /* first, so that the number is never negative */
	pthread_mutex_lock(&srv->lock);
	struct net_handed **at = &srv->waiting;
	while (!first && *at)
		at = &(*at)->next;
	h->next = *at;
	*at = h;
	n = atomic_fetch_add(&srv->n_waiting, 1);
	pthread_mutex_unlock(&srv->lock);
	return n;
}

/* Take the connection that has waited longest or, if `since_ns` is not 0, NULL if that has waited for
 * a shorter time. */
static struct net_handed *take(struct net_server *srv, int64_t since_ns)
{
	pthread_mutex_lock(&srv->lock);
	struct net_handed *h = srv->waiting;
	if (h && since_ns != 0 && h->since_ns > since_ns)
		h = NULL;
	if (h) {
		srv->waiting = h->next;
		atomic_fetch_sub(&srv->n_waiting, 1);
	}
	pthread_mutex_unlock(&srv->lock);
	if (h)
		srv->calls->handed_waits(srv, -1);
	return h;
}

void per_thread_give(struct net_server *to, struct net_handed *h, int64_t now_ns, int i)
{
	h->since_ns = now_ns;
	int before = append(to, h, false);
	if (!tell_of_handed(to, i, NULL) && before == 0)
		net_wake_all(to); /* each watches the time from now on, while it is in no handler */
}

/* Refuse connections that have waited for too long. */
static void drop_late(struct net_io *io)
{
	static bool logged;
	struct net_handed *h;

	while ((h = take(io->srv, weir_loop_now_ns(io->loop) - HANDOVER_WAIT_NS)))
		handover_refuse(io, h, &logged, "no I/O thread had room ('per_thread')");
	if (atomic_load(&io->srv->n_waiting) > 0)
		handover_look(io, LOOK_NS);
}

/* This server stops: pass on what waits, or close what is idle. */
static void give_back(struct net_io *io)
{
	bool closed = io->drain.phase == NET_CLOSED;

	for (int n = atomic_load(&io->srv->n_waiting); n > 0; n--) {
		struct net_handed *h = take(io->srv, 0);
		if (!h)
			break;
		if (net_is_leaving(io))
			handover_send(io, h);
		else if (closed || io->srv->calls->handed_is_idle(h))
			io->srv->calls->handed_drop(io, h, true);
		else
			append(io->srv, h, false);
	}
}

static void adopt(struct net_io *io)
{
	struct net_handed *h;

	net_touch(io);
	if (io->drain.phase != NET_RUNNING)
		give_back(io);
	while (!per_thread_full(io) && (h = take(io->srv, 0))) {
		if (io->srv->calls->adopt(io, h))
			continue;
		append(io->srv, h, true);
		handover_retry(io);
		return;
	}
	if (per_thread_full(io))
		drop_late(io);
}

/* ---- making room for them ---- */

/* Return a connection between two requests; NULL if there is none. */
static struct net_conn *find_between(const struct net_io *io)
{
	struct net_conn *c = io->list[LIST_IDLE].first;

	for (int i = 0; c && i < NET_EVICT_SCAN; i++, c = c->wait.next)
		if (!c->ready && io->srv->calls->is_between(c))
			return c;
	return NULL;
}

static bool has_sent(const struct net_conn *c)
{
	char byte;

	return TEMP_FAILURE_RETRY(recv(c->watch.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT)) == 1;
}

/* It is this thread's turn to make room for a connection that waits. */
static void make_way(struct net_io *io)
{
	struct net_conn *c = find_between(io);

	if (tell(io->srv, io->index + 1, io)) {
		io->share.due = false;
		return;
	}
	if (!c || has_sent(c)) /* then the next iteration reads it, and tells another thread */
		return;
	net_touch(io);
	io->share.due = false;
	io->share.made_way = true;
	io->srv->calls->evict(c);
	weir_loop_wake(io->loop);
}

/* ---- the I/O thread ---- */

/* Publish whether this thread can make room. */
static void update_idle(struct net_io *io, bool full)
{
	bool idle = full && find_between(io);

	if (idle == atomic_load_explicit(&io->share.idle, memory_order_relaxed))
		return;
	atomic_store(&io->share.idle, idle);
	if (idle && atomic_load(&io->srv->n_waiting) > 0)
		io->share.due = true;
}

static void update(struct net_io *io, bool accepted)
{
	bool full = per_thread_full(io);
	bool changes = full != atomic_load_explicit(&io->share.full, memory_order_relaxed);

	if (changes)
		atomic_store(&io->share.full, full);
	update_idle(io, full);
	listen_pause(io); /* even if nothing changes: a new connection that waited may have begun */
	if (changes && full && io->share.opened)
		pass_on(io, accepted);
}

void per_thread_accepted(struct net_io *io)
{
	update(io, true);
}

/* Another thread has found that something waits. */
static void look(struct net_io *io)
{
	atomic_store(&io->share.look, false);
	if (!per_thread_full(io))
		listen_again(io);
	else if (atomic_load_explicit(&io->share.idle, memory_order_relaxed))
		io->share.due = true;
	else if (!io->share.made_way)
		pass_on(io, false);
}

/* This thread was to make room, but its connection has sent a request, or something else has become of
 * it. */
static void pass_turn(struct net_io *io)
{
	if (atomic_load_explicit(&io->share.idle, memory_order_relaxed))
		return;
	io->share.due = false;
	if (per_thread_full(io) && !io->share.made_way)
		pass_on(io, false);
}

/* All threads have started: wake two others, which do the same. The main thread would take long to wake
 * all, while clients are accepted already. */
static void open_up(struct net_io *io)
{
	const struct net_server *srv = io->srv;

	/* pairs with start_loops */
	if (atomic_load_explicit(&srv->n_loops, memory_order_acquire) < srv->n_io)
		return;
	io->share.opened = true;
	for (int i = 2 * io->index + 1; i <= 2 * io->index + 2 && i < srv->n_io; i++)
		weir_loop_wake(srv->io[i]->loop);
}

void per_thread_follow(struct net_io *io)
{
	if (!per_thread_on(io))
		return;
	if (WEIR_UNLIKELY(!io->share.opened))
		open_up(io);
	update(io, false);
	if (atomic_load(&io->share.look))
		look(io);
	if (io->share.due)
		pass_turn(io);
	if (atomic_load(&io->srv->n_waiting) > 0) {
		adopt(io);
		update(io, false);
	}
}

void per_thread_report(struct net_io *io)
{
	if (!per_thread_on(io))
		return;
	io->share.made_way = false;
	per_thread_follow(io);
	if (!io->share.due)
		return;
	if (io->drain.phase == NET_RUNNING && atomic_load(&io->srv->n_waiting) > 0)
		make_way(io);
	else
		io->share.due = false;
}

/* ---- for operators ---- */

/* Clients in the backlogs, whose handshakes are complete. All threads have the same sockets. */
static int64_t count_backlog(struct net_server *srv)
{
	const struct net_io *io = srv->io[0];
	int64_t n = 0;

	pthread_mutex_lock(&srv->lock);
	for (int i = 0; i < io->accept.n_listeners; i++) {
		struct tcp_info info;
		socklen_t size = sizeof(info);
		int fd = io->listener[i].watch.fd;
		/* of a listening socket, tcpi_unacked is the length of the backlog */
		if (fd != -1 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
			n += info.tcpi_unacked;
	}
	pthread_mutex_unlock(&srv->lock);
	return n;
}

void per_thread_clients(struct net_server *srv, struct weir_clients *clients)
{
	*clients = (struct weir_clients){.per_loop = srv->per_thread};
	if (srv->per_thread == 0)
		return;
	clients->loops = srv->n_io;
	for (int i = 0; i < srv->n_io; i++) {
		clients->full += atomic_load(&srv->io[i]->share.full);
		clients->idle += atomic_load(&srv->io[i]->share.idle);
	}
	clients->waiting = count_backlog(srv) + atomic_load(&srv->n_waiting);
}

void per_thread_fini(struct net_io *io)
{
	struct net_handed *h;

	while (io->srv->per_thread > 0 && (h = take(io->srv, 0)))
		io->srv->calls->handed_drop(io, h, true);
}
