/* SPDX-License-Identifier: MIT */
/*
 * Binds listening sockets; see bind.h.
 *
 * Passed sockets (weir/io.h). If a service manager has passed a socket of exactly this address, all
 * I/O threads use it. It gets no filter in a drain, because the filter would outlive this server: later
 * clients wait in its backlog for the next server.
 *
 * With `per_thread`, all I/O threads use all sockets of an address, which are usually one: a client in
 * the backlog of a socket that few threads watch would wait for these threads, while others have room.
 * So they do for a socket file, which has one socket.
 */
#include "net/bind.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/address.h"
#include "net/handover.h"
#include "net/socket_file.h"

static int bind_failed(struct weir_err *err, const char *text)
{
	int rc = errno == EADDRINUSE ? WEIR_EBUSY : WEIR_ESYS;

	if (err->text[0]) /* of a socket file */
		return err->code;
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

/* Take the passed sockets at `a` but the first, too. */
static void take_passed(const struct address *a, struct sockets *s)
{
	while (s->passed && !s->shared && s->n < NET_IO_MAX) {
		int fd = passed_socket(a, -1, 1);
		if (fd == -1)
			break;
		s->fd[s->n++] = fd;
	}
}

/* Close descriptors of sockets that have another one, as I/O threads share passed sockets. */
static void make_unique(struct sockets *s)
{
	ino_t inode[NET_IO_MAX];
	int n = 0;

	for (int i = 0; i < s->n; i++) {
		struct stat info = {0};
		int k = 0;
		fstat(s->fd[i], &info);
		while (k < n && inode[k] != info.st_ino)
			k++;
		if (k < n) {
			close(s->fd[i]);
			continue;
		}
		inode[n] = info.st_ino;
		s->fd[n++] = s->fd[i];
	}
	s->n = n;
}

/* Find the sockets at `a` for a server with `per_thread`; a new one if there are none. Returns 0, or -1
 * with errno. */
static int find_common(struct net_server *srv, const struct address *a, struct sockets *s)
{
	if (find_sockets(srv, a, s) == -1)
		return -1;
	take_passed(a, s);
	make_unique(s);
	if (s->n == 0)
		s->fd[s->n++] = open_socket(a, true);
	return s->fd[0] == -1 ? -1 : 0;
}

/* Find or create the socket at the file `a`. Returns 0, or -1 with errno, or with `err` filled. */
static int find_file(struct net_server *srv, const struct address *a, const struct net_conf *conf,
    struct sockets *s, struct weir_err *err)
{
	struct socket_file *f = &srv->file[srv->n_addresses];
	const struct socket_file *from = handover_file(srv, a);

	*f = (struct socket_file){0};
	*s = (struct sockets){0};
	s->n = handover_sockets(srv, a, s->fd, &s->passed);
	s->shared = s->n > 0;
	if (s->n < 0)
		return -1;
	if (s->shared)
		return !from || socket_file_share(from, conf, f, err) == 0 ? 0 : -1;
	s->fd[0] = weir_passed_socket((const struct sockaddr *)&a->addr);
	s->passed = s->fd[0] != -1;
	if (!s->passed)
		s->fd[0] = socket_file_open(a, conf, (int)conf->backlog, f, err);
	s->n = s->fd[0] != -1;
	return s->n ? 0 : -1;
}

/* Let every I/O thread listen at the socket `fd`, which the first one owns, the others by duplicates.
 * Returns false with errno on failure; listen_close closes what the threads have, but `fd` is closed
 * here if the first has none. */
static bool bind_common(struct net_server *srv, const struct sockets *s, int fd)
{
	for (int i = 0; i < srv->n_io; i++) {
		int own = i == 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 0);
		struct listener *l = own == -1 ? NULL : listen_add(srv->io[i], own);
		if (!l && own != -1)
			close(own);
		if (!l)
			return false;
		l->passed = s->passed;
		l->shared = s->shared;
		l->common = true;
		l->address = (uint8_t)srv->n_addresses;
	}
	return true;
}

/* Like bind_address, with `per_thread` or a socket file. */
static int bind_together(struct net_server *srv, const struct address *a, const char *text,
    const struct net_conf *conf, struct weir_err *err)
{
	struct sockets s;
	int i = 0;

	err->text[0] = '\0';
	if ((address_file(a) ? find_file(srv, a, conf, &s, err) : find_common(srv, a, &s)) == -1) {
		while (address_file(a) && s.n > 0)
			close(s.fd[--s.n]);
		return bind_failed(err, text);
	}
	while (i < s.n && listen(s.fd[i], (int)conf->backlog) == 0) {
		srv->port[srv->n_addresses] = address_file(a) ? 0 : port_of(s.fd[i]);
		if (!bind_common(srv, &s, s.fd[i++]))
			break;
		if (i == s.n) {
			srv->n_addresses++;
			return 0;
		}
	}
	bind_failed(err, text);
	for (; i < s.n; i++)
		close(s.fd[i]);
	return err->code;
}

/* Bind one address for every I/O thread. If its port is 0, the first bind determines the port. On
 * failure, sockets found but not used yet are closed here, the others by listen_close. */
static int bind_address(
    struct net_server *srv, const char *text, const struct net_conf *conf, struct weir_err *err)
{
	struct address a;
	struct sockets s;
	int rc = address_parse(text, &a, err), i;
	bool ok = true;

	if (rc != 0)
		return rc;
	if (srv->per_thread > 0 || address_file(&a))
		return bind_together(srv, &a, text, conf, err);
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
		ok = listen(fd, (int)conf->backlog) == 0;
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
	memset(srv->file, 0, sizeof(srv->file));
	for (int i = 0; i < conf->listen.n && rc == 0; i++) {
		rc = bind_address(srv, conf->listen.items[i], conf, err);
		if (rc != 0)
			listen_blame(srv->stage, i);
	}
	return rc;
}
