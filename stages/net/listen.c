/* SPDX-License-Identifier: MIT */
/*
 * Binds, pauses, drains and closes listening sockets; see listen.h for their states.
 *
 * Pausing. A level-triggered listener from which nothing is accepted would spin. When accept.c
 * cannot accept a client, it therefore pauses all listeners of the thread. The close of a
 * connection, or a timer, resumes them.
 *
 * Draining without loss. Closing a listening socket resets the connections in its backlog, and one
 * may arrive between the last accept and the close. A socket filter therefore first drops every new
 * SYN; the client retries a second later and finds the port closed, or another server. Handshakes
 * in progress still complete and are accepted until the linger time is over. Only then is the
 * socket closed.
 *
 * Passed sockets (weir/io.h). If a service manager has passed a socket of exactly this address, all
 * I/O threads use it. It gets no filter, because the filter would outlive this server: later
 * clients wait in its backlog for the next server.
 */
#include "net/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "net/accept.h"
#include "net/address.h"
#include "net/evict.h"
#include "net/handover.h"
#include "net/stand_in.h"

/* Delay before accepting is retried when descriptors or slots were used up. 50 ms is a guess: a
 * client hardly notices it. */
#define ACCEPT_RETRY_NS 50000000LL

/* ---- binding ---- */

static int bind_failed(struct weir_err *err, const char *text)
{
	int rc = errno == EADDRINUSE ? WEIR_EBUSY : WEIR_ESYS;

	err->code = rc;
	switch (errno) {
	case EADDRINUSE:
		snprintf(err->text, sizeof(err->text), "%s is in use by another process", text);
		break;
	case EACCES:
		snprintf(err->text, sizeof(err->text), "%s: no permission to listen there", text);
		snprintf(err->hint, sizeof(err->hint),
		    "ports below 1024 need CAP_NET_BIND_SERVICE; a server with 'user:' binds them "
		    "when root starts it, not in a reload");
		break;
	case EADDRNOTAVAIL:
		snprintf(err->text, sizeof(err->text), "%s is not an address of this host", text);
		break;
	default:
		snprintf(
		    err->text, sizeof(err->text), "cannot listen on %s: %s", text, strerror(errno));
	}
	return rc;
}

/* Open a bound socket. Returns -1 with errno on failure. With `shared`, other sockets of ours may
 * be bound to the same address. Accepted connections inherit TCP_NODELAY. */
static int open_socket(const struct address *a, bool shared)
{
	int one = 1, fd = socket(a->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd == -1)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->addr.ss_family == AF_INET6) /* so that 0.0.0.0 and [::] can be listed together */
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if ((shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) == -1) ||
	    bind(fd, (const struct sockaddr *)&a->addr, a->n) == -1) {
		int saved = errno;
		close(fd);
		errno = saved;
		return -1;
	}
	return fd;
}

/* Check that no other process listens at `a`, by a bind without SO_REUSEPORT: with that option, a
 * second server of the same user could bind unnoticed. Returns 0, or -1 with errno. */
static int probe(const struct address *a)
{
	int fd = open_socket(a, false);

	if (fd == -1)
		return -1;
	close(fd);
	return 0;
}

static void set_port(struct address *a, uint16_t port)
{
	if (a->addr.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&a->addr)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&a->addr)->sin_port = htons(port);
}

_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
    "one struct serves to read the port of both families");

static uint16_t port_of(int fd)
{
	struct sockaddr_in6 addr = {0};
	socklen_t n = sizeof(addr);

	return getsockname(fd, (struct sockaddr *)&addr, &n) == 0 ? ntohs(addr.sin6_port) : 0;
}

/* Return the socket of I/O thread `i` for an address with passed sockets: another passed one if
 * there is one, else a duplicate of `first`. Returns -1 with errno on failure. */
static int passed_socket(const struct address *a, int first, int i)
{
	int one = 1;
	int fd = i == 0 ? first : weir_passed_socket((const struct sockaddr *)&a->addr);

	if (fd == -1 && first != -1)
		fd = fcntl(first, F_DUPFD_CLOEXEC, 0);
	if (fd != -1)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* Sockets at one address, some of which exist already. */
struct sockets {
	int fd[NET_IO_MAX];
	int n;       /* number of sockets in `fd` */
	bool shared; /* the sockets in `fd` are shared with the server that this one replaces */
	bool passed; /* the sockets in `fd` were passed by a service manager */
};

/* Find the existing sockets at `a`: those of the server that this one replaces, else one that was
 * passed. Returns 0, or -1 with errno. */
static int find_sockets(struct net_server *srv, const struct address *a, struct sockets *s)
{
	*s = (struct sockets){0};
	s->n = handover_sockets(srv, a, s->fd, &s->passed);
	s->shared = s->n > 0;
	if (s->n != 0)
		return s->n < 0 ? -1 : 0;
	s->fd[0] = passed_socket(a, weir_passed_socket((const struct sockaddr *)&a->addr), 0);
	s->passed = s->fd[0] != -1;
	s->n = s->passed;
	return s->passed ? 0 : probe(a);
}

/* Return the socket of I/O thread `i`. A new socket gets SO_REUSEPORT even if there is only one
 * thread, since a reload may add threads. */
static int nth_socket(const struct address *a, const struct sockets *s, int i)
{
	if (i < s->n)
		return s->fd[i];
	return s->passed ? passed_socket(a, s->fd[0], i) : open_socket(a, true);
}

struct listener *listen_add(struct net_io *io, int fd)
{
	int n = io->accept.n_listeners, room = io->accept.listener_room;

	if (n == room) {
		room = room ? 2 * room : 1;
		struct listener *wider = realloc(io->listener, (size_t)room * sizeof(*wider));
		if (!wider)
			return NULL;
		io->listener = wider;
		io->accept.listener_room = room;
	}
	io->listener[n] = (struct listener){.io = io, .watch.fd = fd};
	io->accept.n_listeners++;
	return &io->listener[n];
}

/* Bind one address for every I/O thread. If its port is 0, the first bind determines the port. On
 * failure, sockets found but not used yet are closed here, the others by listen_close. */
static int bind_address(struct net_server *srv, const char *text, int backlog, struct weir_err *err)
{
	struct address a;
	struct sockets s;
	int rc = address_parse(text, &a, err), i;
	bool ok = true;

	if (rc != 0)
		return rc;
	if (find_sockets(srv, &a, &s) == -1)
		return bind_failed(err, text);
	for (i = 0; (i < srv->n_io || i < s.n) && ok; i++) {
		struct net_io *io = srv->io[i % srv->n_io];
		int fd = nth_socket(&a, &s, i);
		struct listener *l = fd == -1 ? NULL : listen_add(io, fd);
		if (!l) {
			if (fd != -1 && i >= s.n)
				close(fd);
			ok = false;
			break;
		}
		l->passed = s.passed;
		l->shared = s.shared && i < s.n;
		l->address = (uint8_t)srv->n_addresses;
		ok = listen(fd, backlog) == 0;
		srv->port[srv->n_addresses] = port_of(fd);
		set_port(&a, srv->port[srv->n_addresses]);
	}
	if (ok) {
		srv->n_addresses++;
		return 0;
	}
	bind_failed(err, text);
	for (; i < s.n; i++)
		close(s.fd[i]);
	return err->code;
}

void listen_blame(struct weir_stage *st, int i)
{
	char at[32];

	snprintf(at, sizeof(at), "listen.%d", i + 1);
	weir_blame(st, at);
}

int listen_bind(struct net_server *srv, const struct net_conf *conf, struct weir_err *err)
{
	int rc = 0;

	handover_begin(srv);
	for (int i = 0; i < conf->listen.n && rc == 0; i++) {
		rc = bind_address(srv, conf->listen.items[i], (int)conf->backlog, err);
		if (rc != 0)
			listen_blame(srv->stage, i);
	}
	return rc;
}

/* ---- pausing ---- */

/* Return listener `i` of `io`. Its own listeners come first, then those of the threads for which it
 * stands in. */
static struct listener *nth(struct net_io *io, int i)
{
	return i < io->accept.n_listeners ? &io->listener[i]
					  : &io->accept.stand_in[i - io->accept.n_listeners];
}

static int count(const struct net_io *io)
{
	return io->accept.n_listeners + io->accept.n_stand_in;
}

static bool is_stand_in(const struct net_io *io, const struct listener *l)
{
	return io->accept.n_stand_in > 0 && l >= io->accept.stand_in &&
	       l < io->accept.stand_in + io->accept.n_stand_in;
}

/* Watch `l`. With EPOLLEXCLUSIVE, a client wakes only one of the I/O threads that watch the same
 * socket. */
static bool watch_one(struct net_io *io, struct listener *l)
{
	uint32_t exclusive = l->passed || is_stand_in(io, l) ? EPOLLEXCLUSIVE : 0;

	l->watched = weir_loop_add(io->loop, &l->watch, EPOLLIN | exclusive) == 0;
	return l->watched;
}

/* Start or stop watching all listeners. If some cannot be watched for lack of memory, the timer
 * retries them, since nothing else would. */
static void watch_all(struct net_io *io, bool on)
{
	bool ok = true;

	for (int i = 0; i < count(io); i++) {
		struct listener *l = nth(io, i);
		if (on == l->watched || l->watch.fd == -1)
			continue;
		if (on)
			ok &= watch_one(io, l);
		else
			weir_loop_del(io->loop, &l->watch);
		if (!on)
			l->watched = false;
	}
	if (!ok)
		weir_timer_set(
		    io->loop, &io->accept.timer, weir_loop_now_ns(io->loop) + ACCEPT_RETRY_NS);
}

void listen_hold(struct net_io *io)
{
	if (io->accept.last_call)
		return;
	io->accept.paused = true;
	watch_all(io, false);
	weir_timer_set(io->loop, &io->accept.timer, weir_loop_now_ns(io->loop) + ACCEPT_RETRY_NS);
}

void listen_resume(struct net_io *io)
{
	if (!io->accept.paused || io->accept.newcomer.fd != -1 || io->deaf)
		return;
	io->accept.paused = false;
	accept_reserve(io);
	watch_all(io, !io->pause.on);
}

void listen_pause(struct net_io *io)
{
	watch_all(io, !io->pause.on && !io->accept.paused);
}

void listen_recheck(struct net_io *io)
{
	if (WEIR_UNLIKELY(io->accept.newcomer.fd != -1))
		evict_retry(io);
	listen_resume(io);
}

static void retry(struct weir_loop *loop, struct weir_timer *t)
{
	struct net_io *io = weir_loop_data(loop);

	net_touch(io); /* the knob `memory` may have changed */
	if (io->accept.newcomer.fd != -1)
		accept_newcomer(io, true);
	else
		listen_resume(io);
	listen_pause(io);
	/* Still paused: memory is short, or the server is full. Continue to retry, because this
	 * thread may not be woken when another thread finds that there is memory again. */
	if (io->accept.paused)
		weir_timer_set(loop, t, weir_loop_now_ns(loop) + ACCEPT_RETRY_NS);
}

/* ---- accepting ---- */

static void on_ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct net_io *io = weir_loop_data(loop);

	(void)events;
	net_touch(io);
	if (io->deaf)
		listen_hold(io); /* until the protocol has memory again */
	else
		accept_some(io, w->fd);
}

int listen_watch(struct net_io *io)
{
	io->accept.timer.fire = retry;
	for (int i = 0; i < io->accept.n_listeners; i++) {
		struct listener *l = &io->listener[i];
		l->watch.ready = on_ready;
		if (!io->pause.on && !watch_one(io, l))
			return WEIR_ESYS;
	}
	accept_reserve(io);
	return 0;
}

/* ---- draining ---- */

void listen_drain(struct net_io *io)
{
	/* Load the TCP flags, mask out all but SYN and ACK, and drop the packet if only SYN is set.
	 * For a TCP socket, the data that the filter sees begins at the TCP header. */
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
	    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, 0),
	    BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	/* If attaching fails, the race described above remains; it is rare. */
	for (int i = 0; i < count(io); i++)
		if (!nth(io, i)->passed && nth(io, i)->watch.fd != -1)
			setsockopt(nth(io, i)->watch.fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
			    sizeof(filter));
}

/* Close `l`, under the lock because a thread that stands in for this one, or a new server in a
 * reload, may be about to duplicate the descriptor. */
static void close_listener(struct net_io *io, struct listener *l)
{
	if (l->watched)
		weir_loop_del(io->loop, &l->watch);
	l->watched = false;
	pthread_mutex_lock(&io->srv->lock);
	close(l->watch.fd);
	l->watch.fd = -1;
	pthread_mutex_unlock(&io->srv->lock);
}

void listen_leave(struct net_io *io)
{
	stand_in_end(io);
	for (int i = 0; i < io->accept.n_listeners; i++)
		if (io->listener[i].shared && io->listener[i].watch.fd != -1)
			close_listener(io, &io->listener[i]);
}

void listen_close(struct net_io *io)
{
	if (io->loop)
		accept_end(io);
	for (int i = 0; i < count(io); i++) {
		struct listener *l = nth(io, i);
		if (l->watch.fd == -1)
			continue;
		if (io->loop && io->drain.phase == NET_DRAINING)
			accept_rest(io, l->watch.fd);
		close_listener(io, l);
	}
	if (io->loop)
		weir_timer_cancel(io->loop, &io->accept.timer);
	stand_in_end(io);
	if (io->accept.reserve_fd != -1)
		close(io->accept.reserve_fd);
	io->accept.reserve_fd = -1;
}
