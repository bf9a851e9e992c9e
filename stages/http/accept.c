/* SPDX-License-Identifier: MIT */
/*
 * Accepting; see accept.h.
 *
 * Who comes is accepted first, so that it is known who it is; then it is asked, in this order,
 *
 *   1. what his address may (accept_rate, max_per_address), for which his own connections alone are closed (limit.c),
 *   2. whether there is room: a place of max_connections, and a descriptor.
 *
 * Nobody is closed for one whom 1. keeps out. For room the connection that has waited longest without a request is closed
 * (limit.c); where this thread has none it asks another one (room.c), and the newcomer waits meanwhile, and the
 * listeners with him. Over max_connections, which may have been lowered, connections are first brought down to it
 * (limit_make_places), and he is refused until that is done.
 *
 * Out of descriptors (EMFILE, ENFILE) accept fails before it looks. So the descriptor kept in reserve is given up for the next
 * client; room is there when it can be taken back. A level-triggered listener would spin then, and out of memory: the listeners are paused.
 *
 * When there is no room, the client is answered 503. These are bounded, too: more than LIMIT_REFUSING of them at once pause the
 * listeners, if it is the server that is full; if it is the client's address, further ones are closed without a word. While
 * they are told they have no place, so that they keep nobody else out.
 *
 * A listener that is to be closed in a drain takes the last clients whatever there is room for: closing resets those in its
 * backlog. Before and behind the drain nobody would be answered, and the backlog may be another's, too: that of the server
 * which a failed start should have followed, or of a service manager.
 */
#include "http/accept.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/conn.h"
#include "http/crowd.h"
#include "http/limit.h"
#include "http/listen.h"
#include "http/memory.h"
#include "http/room.h"

/* Accepts per turn and listener, so that a flood does not hold up open connections: a guess. */
#define ACCEPT_RUN 64

/* ---- who comes ---- */

/* An eventfd: it counts as a file for ENFILE, too, and needs no /dev. */
bool accept_reserve(struct http_io *io)
{
	if (io->reserve_fd == -1)
		io->reserve_fd = eventfd(0, EFD_CLOEXEC);
	return io->reserve_fd != -1 || (errno != EMFILE && errno != ENFILE);
}

static unsigned missing(struct http_io *io)
{
	return (limit_has_place(io) ? 0 : ROOM_PLACE) | (accept_reserve(io) ? 0 : ROOM_DESCRIPTOR);
}

/* The descriptor first: who waits and gives his up has a place as well. `waiting`: of those without a request alone. */
static bool make_room(struct http_io *io, bool waiting)
{
	if (!accept_reserve(io) && !(limit_make_room(io) && accept_reserve(io)))
		return false;
	return limit_make_places(io, 1, waiting);
}

static bool has_somebody_who_waits(const struct http_io *io, unsigned wanted)
{
	int64_t since_ns = limit_idle_since_ns(io, wanted & ROOM_PLACE);

	return weir_loop_now_ns(io->loop) - since_ns >= LIMIT_EVICT_AFTER_NS;
}

/* Has he hung up, and said nothing? */
static bool has_gone(const struct newcomer *who)
{
	char byte;
	ssize_t n = recv(who->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR);
}

/* There is not even a descriptor for him, or no memory to count him; or many are being told. */
static void send_away(struct http_io *io, const struct newcomer *who, int limit, bool tell)
{
	limit_count(io, (enum limit)limit);
	if (tell)
		limit_tell(io, who->fd);
	else
		close(who->fd);
}

static void refuse(struct http_io *io, const struct newcomer *who, int limit)
{
	bool many =
	    atomic_load_explicit(&io->srv->refusing, memory_order_relaxed) >= LIMIT_REFUSING;
	bool full = limit == LIMIT_CONNECTIONS, bare = !accept_reserve(io);

	if (bare || (many && !full)) {
		crowd_leave(io->srv->crowd, who->key);
		send_away(io, who, limit, !many || full);
		accept_reserve(io);
	} else {
		conn_open(io, who->fd, &who->addr, who->key, limit);
	}
	if (full && (bare || many))
		listen_hold(io);
}

/* Nothing but room may keep him out. */
static void let_in(struct http_io *io, const struct newcomer *who)
{
	unsigned wanted = missing(io);

	if (wanted != 0 && has_gone(who)) {
		crowd_leave(io->srv->crowd, who->key);
		close(who->fd);
		accept_reserve(io);
		return;
	}
	if (wanted == 0 || (has_somebody_who_waits(io, wanted) && make_room(io, true))) {
		conn_open(io, who->fd, &who->addr, who->key, -1);
		return;
	}
	if (!io->last_call && who->asks < io->srv->n_io && room_ask(io, wanted, who->asks == 0)) {
		io->newcomer = *who;
		io->newcomer.asks++;
		listen_hold(io);
		return;
	}
	if (make_room(io, false))
		conn_open(io, who->fd, &who->addr, who->key, -1);
	else
		refuse(io, who, LIMIT_CONNECTIONS);
}

static void take(struct http_io *io, struct newcomer *who)
{
	int64_t n;
	int limit;

	who->asks = 0;
	who->key = crowd_key(&who->addr);
	n = crowd_enter(io->srv->crowd, who->key);
	if (n == 0) {
		send_away(io, who, LIMIT_MEMORY, true);
		accept_reserve(io);
		return;
	}
	limit = limit_of_newcomer(io, who->key, n);
	if (limit >= 0)
		refuse(io, who, limit);
	else
		let_in(io, who);
}

void accept_newcomer(struct http_io *io, bool answered)
{
	struct newcomer who = io->newcomer;

	if (who.fd == -1)
		return;
	io_touch(io);
	if (!answered && missing(io) != 0)
		return;
	io->newcomer.fd = -1;
	room_unask(io);
	if (!io->last_call)
		listen_resume(io); /* first: when he is refused they may have to be held */
	let_in(io, &who);
}

void accept_end(struct http_io *io)
{
	struct newcomer who = io->newcomer;

	if (who.fd == -1)
		return;
	io_touch(io);
	io->last_call = true;
	if (io->phase == SERVER_DRAINING) {
		accept_newcomer(io, true);
	} else {
		io->newcomer.fd = -1;
		room_unask(io);
		crowd_leave(io->srv->crowd, who.key);
		send_away(io, &who, LIMIT_CONNECTIONS, true);
	}
	io->last_call = false;
}

/* ---- accepting ---- */

static bool accept_one(int fd, struct newcomer *who)
{
	socklen_t size = sizeof(who->addr);

	who->fd = accept4(fd, (struct sockaddr *)&who->addr, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
	return who->fd != -1;
}

/* The network failed before the connection was ours (accept(2)): take the next one. */
static bool is_transient(int error)
{
	switch (error) {
	case EINTR:
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

/* No descriptor for the client who is next: he gets the one in reserve. Without that somebody makes room unseen. Returns whether
 * to go on accepting. */
static bool out_of_descriptors(struct http_io *io, int fd)
{
	struct newcomer who;

	if (io->reserve_fd == -1) {
		accept_reserve(io);
		if (io->reserve_fd != -1 || limit_make_room(io))
			return true;
	} else {
		close(io->reserve_fd);
		io->reserve_fd = -1;
		if (accept_one(fd, &who)) {
			take(io, &who);
			return true;
		}
		accept_reserve(io);
	}
	listen_hold(io);
	return false;
}

/* Is there a client in the backlog? For want of a descriptor accept fails before it looks. */
static bool is_somebody_there(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* accept failed. Returns whether to go on accepting. */
static bool accept_failed(struct http_io *io, int fd)
{
	static atomic_bool logged;
	int error = errno;
	bool descriptors = error == EMFILE || error == ENFILE;

	if (error == EAGAIN || (descriptors && !is_somebody_there(fd)))
		return false;
	if (is_transient(error))
		return true;
	io->count[SERVER_ACCEPT_FAILURES]++;
	if (weir_log_first(&logged))
		weir_log(WEIR_LOG_WARN,
		    "%s: accept: %s; who is idle makes room, else clients wait (logged once)",
		    weir_stage_name(io->stage), strerror(error));
	if (descriptors)
		return out_of_descriptors(io, fd);
	listen_hold(io);
	return false;
}

/* Accept, `most` tries at most. */
static void accept_run(struct http_io *io, int fd, int64_t most)
{
	for (int64_t n = 0; n < most; n++) {
		struct newcomer who;
		if (accept_one(fd, &who))
			take(io, &who);
		else if (!accept_failed(io, fd))
			return;
		if (io->accept_paused)
			return;
	}
}

void accept_some(struct http_io *io, int fd)
{
	accept_run(io, fd, ACCEPT_RUN);
}

void accept_rest(struct http_io *io, int fd)
{
	io_touch(io);
	io->last_call = true;
	io->accept_paused = false;
	/* As many as may wait, and as many tries that free a descriptor or find that the client has gone. */
	accept_run(io, fd, 2 * (io->conf.backlog + 1));
	io->last_call = false;
}
