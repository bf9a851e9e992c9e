/* SPDX-License-Identifier: MIT */
/*
 * Accepts clients; see accept.h.
 *
 * A new connection is accepted first, so that its address is known. It must then pass two checks,
 * in this order:
 *
 *   1. the limits per address: accept_rate, max_per_address. To meet max_per_address, only
 *      connections of the same address are closed (slot.c). A proxy in `trust` has no such limit,
 *      since its connections are those of many clients.
 *   2. the limits of the server: a slot of max_connections, and a descriptor.
 *
 * A client that check 1 refuses does not cause the eviction of other clients. To free a slot or a
 * descriptor for check 2, the connection that has waited longest without a request is closed
 * (slot.c). If this thread has none, it requests an eviction from another thread (evict.c);
 * meanwhile the new connection waits and the listeners are paused. If max_connections was lowered
 * below the number of connections, the excess is closed first (slot_make_free), and new
 * connections are refused until then.
 *
 * If descriptors have run out (EMFILE, ENFILE), accept fails before it removes a client from the
 * backlog. The reserve descriptor is therefore closed to accept the next client; descriptors are
 * available again once the reserve can be reopened. A level-triggered listener would spin in that
 * state, and also when memory is short, so the listeners are paused.
 *
 * When no slot or descriptor can be freed, the protocol refuses the client, as HTTP does with 503.
 * The number of connections being refused is also limited. Once there are ACCEPT_REFUSING of them,
 * the listeners are paused if the server is full, whereas clients that exceed a limit of their
 * address are closed without a response. Connections being refused do not count towards
 * max_connections, so they do not keep other clients out.
 *
 * A listener that is closed in a drain first accepts the clients in its backlog, even when the
 * server is full, because the close would reset them. A listener that is closed outside a drain
 * does not, since no client would be answered then, and the backlog may also belong to others: to
 * the server that a failed start should have replaced, or to a service manager that passed the
 * socket.
 */
#include "net/accept.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/clients.h"
#include "net/evict.h"
#include "net/listen.h"
#include "net/per_thread.h"
#include "net/slot.h"

/* Maximum number of accepts per iteration and listener, so that a flood does not delay open
 * connections. 64 is a guess. */
#define ACCEPT_RUN 64
/* Maximum number of connections that are being refused with a response at the same time, in all
 * I/O threads together. 64 is a guess. */
#define ACCEPT_REFUSING 64

/* ---- admitting a new connection ---- */

/* The reserve is an eventfd, because an eventfd counts as a file for ENFILE, too, and needs no
 * /dev. */
bool accept_reserve(struct net_io *io)
{
	if (io->accept.reserve_fd == -1)
		io->accept.reserve_fd = eventfd(0, EFD_CLOEXEC);
	return io->accept.reserve_fd != -1 || (errno != EMFILE && errno != ENFILE);
}

static unsigned missing(struct net_io *io)
{
	return (slot_is_free(io) ? 0 : EVICT_FOR_SLOT) |
	       (accept_reserve(io) ? 0 : EVICT_FOR_DESCRIPTOR);
}

/* Free a descriptor first, since closing a connection for its descriptor also frees its slot. With
 * `waiting`, only connections without a request are evicted. */
static bool make_room(struct net_io *io, bool waiting)
{
	if (!accept_reserve(io) && !(slot_evict(io) && accept_reserve(io)))
		return false;
	return slot_make_free(io, 1, waiting);
}

static bool has_somebody_who_waits(const struct net_io *io, unsigned wanted)
{
	int64_t since_ns = slot_idle_since_ns(io, wanted & EVICT_FOR_SLOT);

	return weir_loop_now_ns(io->loop) - since_ns >= NET_EVICT_AFTER_NS;
}

/* Whether the client has closed without sending anything. */
static bool has_gone(const struct newcomer *who)
{
	char byte;
	ssize_t n = TEMP_FAILURE_RETRY(recv(who->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT));

	return n == 0 || (n == -1 && errno != EAGAIN);
}

static void open_conn(struct net_io *io, const struct newcomer *who, int over)
{
	io->srv->calls->open(io, who->fd, &who->addr, who->key, over);
}

/* Refuse a client, usually with a connection that sends the response. No connection is created if
 * descriptors have run out, or if many clients are being refused already and the limit is one of
 * the address. */
static void refuse(struct net_io *io, const struct newcomer *who, enum net_limit over)
{
	bool many =
	    atomic_load_explicit(&io->srv->refusing, memory_order_relaxed) >= ACCEPT_REFUSING;
	bool full = over == NET_LIMIT_CONNECTIONS, bare = !accept_reserve(io);

	if (bare || (many && !full)) {
		clients_leave(io->srv->clients, who->key);
		io->srv->calls->turn_away(io, who->fd, over, !many || full);
		accept_reserve(io);
	} else {
		open_conn(io, who, (int)over);
	}
	if (full && (bare || many))
		listen_hold(io);
}

/* Admit `who`, whose address is within its limits, or store it until another thread has evicted a
 * connection, or refuse it because the server is full. */
static void let_in(struct net_io *io, const struct newcomer *who)
{
	unsigned wanted = missing(io);

	if (wanted != 0 && has_gone(who)) {
		clients_leave(io->srv->clients, who->key);
		close(who->fd);
		accept_reserve(io);
		return;
	}
	if (wanted == 0 || (has_somebody_who_waits(io, wanted) && make_room(io, true))) {
		open_conn(io, who, -1);
		return;
	}
	if (!io->accept.last_call && who->asks < io->srv->n_io &&
	    evict_ask(io, wanted, who->asks == 0)) {
		io->accept.newcomer = *who;
		io->accept.newcomer.asks++;
		listen_hold(io);
		return;
	}
	if (make_room(io, false))
		open_conn(io, who, -1);
	else
		refuse(io, who, NET_LIMIT_CONNECTIONS);
}

/* The key in the client table. */
static uint64_t key_of(const struct newcomer *who)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);

	if (WEIR_LIKELY(who->addr.ss_family != AF_UNIX))
		return clients_key(&who->addr);
	getsockopt(who->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	return clients_key_of_user(peer.uid);
}

static void take(struct net_io *io, struct newcomer *who)
{
	int64_t n;
	int over;

	who->asks = 0;
	who->key = key_of(who);
	n = clients_enter(io->srv->clients, who->key);
	if (n == 0) {
		io->srv->calls->turn_away(io, who->fd, NET_LIMIT_MEMORY, true);
		accept_reserve(io);
		return;
	}
	over = net_trusts(io->srv, &who->addr) ? -1 : slot_check_address(io, who->key, n);
	if (over >= 0)
		refuse(io, who, (enum net_limit)over);
	else
		let_in(io, who);
}

void accept_newcomer(struct net_io *io, bool answered)
{
	struct newcomer who = io->accept.newcomer;

	if (who.fd == -1)
		return;
	net_touch(io);
	if (!answered && missing(io) != 0)
		return;
	io->accept.newcomer.fd = -1;
	evict_unask(io);
	if (!io->accept.last_call)
		/* must precede let_in, which may pause the listeners again */
		listen_resume(io);
	let_in(io, &who);
}

void accept_end(struct net_io *io)
{
	struct newcomer who = io->accept.newcomer;

	if (who.fd == -1)
		return;
	net_touch(io);
	io->accept.last_call = true;
	if (io->drain.phase == NET_DRAINING) {
		accept_newcomer(io, true);
	} else {
		io->accept.newcomer.fd = -1;
		evict_unask(io);
		clients_leave(io->srv->clients, who.key);
		io->srv->calls->turn_away(io, who.fd, NET_LIMIT_CONNECTIONS, true);
	}
	io->accept.last_call = false;
}

/* ---- accepting ---- */

static bool accept_one(int fd, struct newcomer *who)
{
	socklen_t size = sizeof(who->addr);

	who->addr.ss_family = AF_UNSPEC;
	who->fd = (int)TEMP_FAILURE_RETRY(
	    accept4(fd, (struct sockaddr *)&who->addr, &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
	return who->fd != -1;
}

/* Whether accept failed because of a network error on one connection (accept(2)). The next
 * connection can then be tried. */
static bool is_transient(int error)
{
	switch (error) {
	case ECONNABORTED:
	case EPROTO:
	case ENETDOWN:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH:
	case EPERM:
		return true;
	default:
		return false;
	}
}

/* Accept the next client without a free descriptor: close the reserve, and use the descriptor that
 * this frees. If there is no reserve either, evict a connection, although the client's address is
 * not known yet. Returns whether to continue accepting. */
static bool out_of_descriptors(struct net_io *io, int fd)
{
	struct newcomer who;

	if (io->accept.reserve_fd == -1) {
		accept_reserve(io);
		if (io->accept.reserve_fd != -1 || slot_evict(io))
			return true;
	} else {
		close(io->accept.reserve_fd);
		io->accept.reserve_fd = -1;
		if (accept_one(fd, &who)) {
			take(io, &who);
			return true;
		}
		accept_reserve(io);
	}
	listen_hold(io);
	return false;
}

/* Whether a client is in the backlog. Without descriptors, accept fails even if the backlog is
 * empty. */
static bool is_somebody_there(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return TEMP_FAILURE_RETRY(poll(&p, 1, 0)) == 1;
}

/* Handle a failed accept. Returns whether to continue accepting. */
static bool accept_failed(struct net_io *io, int fd)
{
	static bool logged;
	int error = errno;
	bool descriptors = error == EMFILE || error == ENFILE;

	if (error == EAGAIN || (descriptors && !is_somebody_there(fd)))
		return false;
	if (is_transient(error))
		return true;
	net_count(io, NET_ACCEPT_FAILURES, 1);
	if (weir_log_first(&logged))
		weir_log(WEIR_LOG_WARN,
		    "%s: a connection cannot be accepted: %s; idle connections are closed to make "
		    "room, else clients wait (logged once)",
		    weir_stage_name(io->stage), strerror(error));
	if (descriptors)
		return out_of_descriptors(io, fd);
	listen_hold(io);
	return false;
}

/* Whether to stop accepting after a client. With `per_thread`, the other threads, which the kernel has
 * told, accept the next ones. */
static bool is_enough(struct net_io *io)
{
	if (!per_thread_on(io))
		return io->accept.paused;
	if (io->accept.last_call)
		return io->drain.phase == NET_DRAINING && per_thread_full(io);
	per_thread_accepted(io);
	return true;
}

/* Call accept at most `most` times. */
static void accept_run(struct net_io *io, int fd, int64_t most)
{
	for (int64_t n = 0; n < most; n++) {
		struct newcomer who;
		if (accept_one(fd, &who))
			take(io, &who);
		else if (!accept_failed(io, fd))
			return;
		if (is_enough(io))
			return;
	}
}

void accept_some(struct net_io *io, int fd)
{
	if (!per_thread_full(io))
		accept_run(io, fd, ACCEPT_RUN);
}

void accept_rest(struct net_io *io, int fd)
{
	net_touch(io);
	io->accept.last_call = true;
	io->accept.paused = false;
	/* One call for each client in the backlog, and as many again for calls that only free a
	 * descriptor or find that the client has disconnected. */
	accept_run(io, fd, 2 * (io->conf->backlog + 1));
	io->accept.last_call = false;
}
