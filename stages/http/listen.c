/* SPDX-License-Identifier: MIT */
/*
 * Listening and accepting; see listen.h for the states.
 *
 * Pausing. A level-triggered listener that nobody accepts from would spin: what accept.c finds it can not take pauses all
 * of them; a closing connection or a timer resumes them.
 *
 * Draining without loss. Closing a listening socket resets the connections in its backlog, and one
 * may arrive between the last accept and the close. So a socket filter first drops every new SYN
 * (its client tries again a second later and finds the port closed, or another server); handshakes
 * under way still complete and are accepted until the linger time is over, and only then is it
 * closed.
 *
 * Passed sockets (weir/io.h). Where a service manager has passed a socket of the very address, that
 * one is used, by all I/O threads. It gets no filter, which would outlive us: who comes later waits
 * in its backlog for the next server.
 */
#include "http/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "http/accept.h"
#include "http/address.h"
#include "http/heir.h"
#include "http/limit.h"
#include "http/memory.h"
#include "http/room.h"

/* Paused for want of descriptors: try again after this. Half of the 0.1 s that recovery may take.
 */
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
		snprintf(
		    err->hint, sizeof(err->hint), "ports below 1024 need CAP_NET_BIND_SERVICE");
		break;
	case EADDRNOTAVAIL:
		snprintf(err->text, sizeof(err->text), "%s is no address of this machine", text);
		break;
	default:
		snprintf(
		    err->text, sizeof(err->text), "cannot listen on %s: %s", text, strerror(errno));
	}
	return rc;
}

/* A bound socket, -1 with errno. `shared`: others of ours are bound to the same address.
 * TCP_NODELAY is inherited by accepted connections. */
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

/* SO_REUSEPORT lets a second server of the same user in unnoticed; a bind without it does not. */
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

/* The socket of I/O thread `i` of those that share one: one that was passed, while there are more of that address, else
 * another descriptor of `first`, the first one of them. -1 with errno. */
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

/* Sockets at one address, some of which are there already. */
struct sockets {
	int fd[SERVER_IO_MAX];
	int n;       /* so many are there */
	bool shared; /* with the server that this one follows */
	bool passed; /* of a service manager */
};

/* Those that the server has which this one follows, else one that was passed. 0, or -1 with errno. */
static int find_sockets(struct http_server *srv, const struct address *a, struct sockets *s)
{
	*s = (struct sockets){0};
	s->n = heir_sockets(srv, a, s->fd, &s->passed);
	s->shared = s->n > 0;
	if (s->n != 0)
		return s->n < 0 ? -1 : 0;
	s->fd[0] = passed_socket(a, weir_passed_socket((const struct sockaddr *)&a->addr), 0);
	s->passed = s->fd[0] != -1;
	s->n = s->passed;
	return s->passed ? 0 : probe(a);
}

/* The socket of I/O thread `i`. SO_REUSEPORT even for one: a reload may add threads. */
static int nth_socket(const struct address *a, const struct sockets *s, int i)
{
	if (i < s->n)
		return s->fd[i];
	return s->passed ? passed_socket(a, s->fd[0], i) : open_socket(a, true);
}

/* Bind one address for every I/O thread; port 0 is settled by the first. What was found and not used yet is closed on
 * failure, the rest by listen_close. */
static int bind_address(
    struct http_server *srv, const char *text, int backlog, struct weir_err *err)
{
	struct address a;
	struct sockets s;
	int rc = http_address_parse(text, &a, err), i;
	bool ok = true;

	if (rc != 0)
		return rc;
	if (find_sockets(srv, &a, &s) == -1)
		return bind_failed(err, text);
	for (i = 0; (i < srv->n_io || i < s.n) && ok; i++) {
		struct http_io *io = srv->io[i % srv->n_io];
		int fd = nth_socket(&a, &s, i);
		if (fd == -1) {
			ok = false;
			break;
		}
		io->listener[io->n_listeners].passed = s.passed;
		io->listener[io->n_listeners].shared = s.shared && i < s.n;
		io->listener[io->n_listeners].address = (uint8_t)srv->n_addresses;
		io->listener[io->n_listeners++].watch.fd = fd;
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

int listen_bind(struct http_server *srv, const struct http_conf *conf, struct weir_err *err)
{
	int rc = 0;

	heir_begin(srv);
	for (int i = 0; i < conf->listen.n && rc == 0; i++) {
		rc = bind_address(srv, conf->listen.items[i], (int)conf->backlog, err);
		if (rc != 0)
			listen_blame(srv->stage, i);
	}
	return rc;
}

/* ---- pausing ---- */

/* Of the I/O threads that share a passed socket one is woken for a client, not all. */
static bool watch_one(struct http_io *io, struct listener *l)
{
	uint32_t exclusive = l->passed ? EPOLLEXCLUSIVE : 0;

	l->watched = weir_loop_add(io->loop, &l->watch, EPOLLIN | exclusive) == 0;
	return l->watched;
}

/* Those that can not be watched now, for want of memory, are tried again: nobody else would. */
static void watch_all(struct http_io *io, bool on)
{
	bool ok = true;

	for (int i = 0; i < io->n_listeners; i++) {
		struct listener *l = &io->listener[i];
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
		    io->loop, &io->accept_timer, weir_loop_now_ns(io->loop) + ACCEPT_RETRY_NS);
}

void listen_hold(struct http_io *io)
{
	if (io->last_call)
		return;
	io->accept_paused = true;
	watch_all(io, false);
	weir_timer_set(io->loop, &io->accept_timer, weir_loop_now_ns(io->loop) + ACCEPT_RETRY_NS);
}

void listen_resume(struct http_io *io)
{
	if (!io->accept_paused || io->newcomer.fd != -1 || io->memory_step >= MEMORY_DEAF)
		return;
	io->accept_paused = false;
	accept_reserve(io);
	watch_all(io, !io->paused);
}

void listen_pause(struct http_io *io)
{
	watch_all(io, !io->paused && !io->accept_paused);
}

void listen_room(struct http_io *io)
{
	if (WEIR_UNLIKELY(io->newcomer.fd != -1))
		room_retry(io);
	listen_resume(io);
}

static void retry(struct weir_loop *loop, struct weir_timer *t)
{
	struct http_io *io = weir_loop_data(loop);

	io_touch(io); /* `memory` may be another by now */
	if (io->newcomer.fd != -1)
		accept_newcomer(io, true);
	else
		listen_resume(io);
	listen_pause(io);
	/* Memory is short. Two threads that decide at once may leave a step that this one was not woken for. */
	if (io->accept_paused)
		weir_timer_set(loop, t, weir_loop_now_ns(loop) + ACCEPT_RETRY_NS);
}

/* ---- accepting ---- */

static void on_ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct http_io *io = weir_loop_data(loop);

	(void)events;
	io_touch(io);
	if (io->memory_step >= MEMORY_DEAF)
		listen_hold(io); /* until memory.c says that there is room */
	else
		accept_some(io, w->fd);
}

int listen_watch(struct http_io *io)
{
	io->accept_timer.fire = retry;
	for (int i = 0; i < io->n_listeners; i++) {
		struct listener *l = &io->listener[i];
		l->io = io;
		l->watch.ready = on_ready;
		if (!io->paused && !watch_one(io, l))
			return WEIR_ESYS;
	}
	accept_reserve(io);
	return 0;
}

/* ---- draining ---- */

void listen_drain(struct http_io *io)
{
	/* ld [tcp flags]; and SYN|ACK; drop if it is SYN alone. The data of a TCP socket's filter
	 * begins at the TCP header. */
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
	    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, 0),
	    BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	/* Where it is refused, the race described above stays, rarely hit. */
	for (int i = 0; i < io->n_listeners; i++)
		if (!io->listener[i].passed && io->listener[i].watch.fd != -1)
			setsockopt(io->listener[i].watch.fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
			    sizeof(filter));
}

static void close_listener(struct http_io *io, struct listener *l)
{
	if (l->watched)
		weir_loop_del(io->loop, &l->watch);
	l->watched = false;
	close(l->watch.fd);
	l->watch.fd = -1;
}

void listen_leave(struct http_io *io)
{
	for (int i = 0; i < io->n_listeners; i++)
		if (io->listener[i].shared && io->listener[i].watch.fd != -1)
			close_listener(io, &io->listener[i]);
}

void listen_close(struct http_io *io)
{
	if (io->loop)
		accept_end(io);
	for (int i = 0; i < io->n_listeners; i++) {
		struct listener *l = &io->listener[i];
		if (l->watch.fd == -1)
			continue;
		if (io->loop && io->phase == SERVER_DRAINING)
			accept_rest(io, l->watch.fd);
		close_listener(io, l);
	}
	if (io->loop)
		weir_timer_cancel(io->loop, &io->accept_timer);
	if (io->reserve_fd != -1)
		close(io->reserve_fd);
	io->reserve_fd = -1;
}
