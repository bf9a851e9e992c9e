/* SPDX-License-Identifier: MIT */
/*
 * Accepting; see accept.h.
 *
 * Out of descriptors (EMFILE, ENFILE) the connection that has waited longest without a request makes room (limit.c). Where
 * there is none, and out of memory, a level-triggered listener would spin: accept fails and the listener stays ready. So
 * the descriptor kept in reserve is given up to answer one client 503, taken back, and the listeners are paused.
 *
 * Over max_connections or max_per_address another connection makes room, too. When there is none, the client is
 * answered 503. These are bounded, too: more than LIMIT_REFUSING of them at once pause the listeners, if it is the server
 * that is full; if it is the client's address, its next ones are closed without a word, and others do not notice.
 *
 * A listener that is to be closed in a drain takes the last clients whatever there is room for: closing resets those in its
 * backlog. Before and behind the drain nobody would be answered, and the backlog may be another's, too: that of the server
 * which a failed start should have followed, or of a service manager.
 */
#include "http/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
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

/* Use the descriptor kept in reserve to tell one client why. Returns whether there was one. */
static bool refuse_without_descriptor(struct http_io *io, int fd)
{
	int client;

	if (io->reserve_fd == -1)
		return false;
	close(io->reserve_fd);
	client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (client != -1) {
		io->count[SERVER_REFUSED]++;
		limit_tell(io, client);
	}
	io->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return client != -1;
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

/* No descriptor for the client who is next. Returns whether to go on accepting. */
static bool out_of_descriptors(struct http_io *io, int fd)
{
	bool told;

	if (limit_make_room(io))
		return true;
	if (!io->last_call && room_ask(io)) {
		listen_hold(io);
		return false;
	}
	told = refuse_without_descriptor(io, fd);
	listen_hold(io);
	return io->last_call && told;
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

/* Are so many being refused that the `n`-th connection of its address is not told? Those that are told stay for a moment, so
 * they count; `over`: connections beyond max_connections. If the server is full, who comes waits instead. */
static bool is_untold(const struct http_io *io, int limit, int64_t n, int over)
{
	switch (limit) {
	case LIMIT_RATE:
		return n > LIMIT_REFUSING || over >= LIMIT_REFUSING;
	case LIMIT_ADDRESS:
		return n - limit_per_address(&io->conf) > LIMIT_REFUSING || over >= LIMIT_REFUSING;
	default:
		return false;
	}
}

/* One more client. Beyond a limit it is told so, or the connection just closed when many are being told. */
static void take(struct http_io *io, int fd, const struct sockaddr_storage *addr)
{
	uint64_t key = crowd_key(addr);
	int64_t n = crowd_enter(io->srv->crowd, key);
	int limit = n > 0 ? limit_of_newcomer(io, key, n) : LIMIT_MEMORY;
	int over = atomic_load_explicit(&io->srv->connections, memory_order_relaxed) -
		   (int)io->conf.max_connections;

	if (n == 0 || is_untold(io, limit, n, over)) {
		if (n > 0)
			crowd_leave(io->srv->crowd, key);
		limit_count(io, (enum limit)limit);
		if (n == 0)
			limit_tell(io, fd);
		else
			close(fd);
		return;
	}
	conn_open(io, fd, addr, key, limit);
	if (limit == LIMIT_CONNECTIONS && over >= LIMIT_REFUSING)
		listen_hold(io);
}

/* Over max_connections, and nobody here whom the next client could replace: may it wait for another I/O thread to make room? */
static bool waits_for_room(struct http_io *io, int fd)
{
	int64_t waited_ns = weir_loop_now_ns(io->loop) - limit_idle_since_ns(io);

	if (WEIR_LIKELY(atomic_load_explicit(&io->srv->connections, memory_order_relaxed) <
			io->conf.max_connections))
		return false;
	return waited_ns < LIMIT_EVICT_AFTER_NS && !io->last_call && is_somebody_there(fd) &&
	       room_ask(io);
}

/* Accept, `most` tries at most. */
static void accept_run(struct http_io *io, int fd, int64_t most)
{
	for (int64_t n = 0; n < most; n++) {
		if (waits_for_room(io, fd)) {
			listen_hold(io);
			return;
		}
		struct sockaddr_storage addr;
		socklen_t size = sizeof(addr);
		int client =
		    accept4(fd, (struct sockaddr *)&addr, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (client != -1)
			take(io, client, &addr);
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
