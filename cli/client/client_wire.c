/* SPDX-License-Identifier: MIT */
/* Manages the connections of the admin client; see client_wire.h. Sockets are non-blocking, and
 * client_wire_wait does all waiting, except for connecting to a socket file and for name
 * resolution. */
#include "client_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "client_tls.h"

int client_wire_wait(int fd, short events, int64_t until_ns)
{
	struct pollfd p = {.fd = fd, .events = events};
	int64_t step_ns = clock_now_ns() + CLIENT_STEP_NS;
	int64_t end_ns = step_ns < until_ns ? step_ns : until_ns;

	for (;;) {
		int64_t left_ns = end_ns - clock_now_ns();
		int rc = poll(&p, 1, left_ns > 0 ? (int)((left_ns + 999999) / 1000000) : 0);
		if (rc > 0)
			return 0;
		if (rc < 0 && errno != EINTR)
			return -1;
		if (rc == 0 && clock_now_ns() >= end_ns) {
			errno = ETIMEDOUT;
			return -1;
		}
	}
}

/* ---- connecting ---- */

/* Wait for the result of a connect in progress. */
static int await_connect(int fd, int64_t until_ns)
{
	int error = 0;
	socklen_t n = sizeof(error);

	if (client_wire_wait(fd, POLLOUT, until_ns) != 0)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
		return -1;
	errno = error;
	return error == 0 ? 0 : -1;
}

static int try_one(int family, const struct sockaddr *address, socklen_t n, int64_t until_ns)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	int rc = connect(fd, address, n);
	if (rc != 0 && (errno == EINPROGRESS || errno == EINTR))
		rc = await_connect(fd, until_ns);
	if (rc == 0)
		return fd;
	int saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

/* Make a blocking connect time out at `until_ns`, or after CLIENT_STEP_NS. */
static int bound_connect(int fd, int64_t until_ns)
{
	int64_t left_ns = until_ns - clock_now_ns();
	struct timeval wait;

	if (left_ns <= 0) {
		errno = ETIMEDOUT;
		return -1;
	}
	left_ns = left_ns < CLIENT_STEP_NS ? left_ns : CLIENT_STEP_NS;
	wait.tv_sec = left_ns / NS_PER_S;
	wait.tv_usec = left_ns % NS_PER_S / 1000 + 1;
	return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

/* Connect to a socket file, whose listen queue may be full. In this case a non-blocking connect
 * would fail with EAGAIN, and poll cannot wait for free space, so a blocking connect is used. */
static int connect_queued(int fd, const struct sockaddr_un *address, int64_t until_ns)
{
	int rc;

	do {
		rc = bound_connect(fd, until_ns);
		if (rc == 0)
			rc = connect(fd, (const struct sockaddr *)address, sizeof(*address));
	} while (rc != 0 && errno == EINTR);
	if (rc != 0 && errno == EAGAIN)
		errno = ETIMEDOUT;
	return rc == 0 ? fcntl(fd, F_SETFL, O_NONBLOCK) : rc;
}

static int connect_unix(const char *path, int64_t until_ns)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect_queued(fd, &address, until_ns) == 0)
		return fd;
	int saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

static int connect_tcp(const struct client_address *at, int64_t until_ns)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list;
	int fd = -1;

	if (getaddrinfo(at->host, at->port, &hints, &list) != 0) {
		errno = EHOSTUNREACH;
		return -1;
	}
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		fd = try_one(a->ai_family, a->ai_addr, a->ai_addrlen, until_ns);
	freeaddrinfo(list);
	return fd;
}

int client_wire_open(struct client_wire *wire, const struct client_address *at, const char *ca,
    int64_t until_ns, struct weir_err *err)
{
	*wire = (struct client_wire){.until_ns = until_ns};
	wire->fd =
	    at->unix_path ? connect_unix(at->unix_path, until_ns) : connect_tcp(at, until_ns);
	if (wire->fd < 0)
		return WEIR_ESYS;
	int rc = at->tls ? client_tls_begin(wire->fd, at->host, ca, until_ns, &wire->tls, err) : 0;
	if (rc != 0)
		close(wire->fd);
	return rc;
}

void client_wire_close(struct client_wire *wire)
{
	client_tls_end(wire->tls);
	close(wire->fd);
}

/* ---- bytes ---- */

/* Whether a call must be repeated because it would have blocked or was interrupted. If it would
 * have blocked, first wait for `events`. */
static bool goes_on(const struct client_wire *wire, ssize_t rc, short events)
{
	if (rc >= 0 || (errno != EAGAIN && errno != EINTR))
		return false;
	if (errno == EAGAIN)
		return client_wire_wait(wire->fd, events, wire->until_ns) == 0;
	bool left = clock_now_ns() < wire->until_ns;
	errno = left ? errno : ETIMEDOUT;
	return left;
}

int client_wire_send(const struct client_wire *wire, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t sent = wire->tls ? client_tls_send(wire->tls, p, n)
					 : send(wire->fd, p, n, MSG_NOSIGNAL);
		if (sent < 0 && !goes_on(wire, sent, POLLOUT))
			return WEIR_ESYS;
		p += sent > 0 ? sent : 0;
		n -= sent > 0 ? (size_t)sent : 0;
	}
	return 0;
}

ssize_t client_wire_recv(const struct client_wire *wire, char *p, size_t n)
{
	ssize_t got;

	if (clock_now_ns() >= wire->until_ns) {
		errno = ETIMEDOUT;
		return -1;
	}
	do
		got = wire->tls ? client_tls_recv(wire->tls, p, n) : recv(wire->fd, p, n, 0);
	while (goes_on(wire, got, POLLIN));
	return got;
}
