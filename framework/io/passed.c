/* SPDX-License-Identifier: MIT */
/*
 * Stores the sockets that a service manager passed to the server; see weir/io.h. The protocol is
 * that of sd_listen_fds(3) and needs no library: environment variables contain the number of
 * sockets, a process id and the names of the sockets. The descriptors start at 3.
 *
 *   passed by the manager --weir_passed_take--> stored --weir_passed_socket--> owned by a stage
 *   opened by the server  --weir_passed_add---> stored --weir_passed_report--> logged, left open
 *
 * The list is global, like the descriptors and the environment. Main thread only.
 */
#include <weir/io.h>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <weir/log.h>

#include "base/text.h"

/* The first passed descriptor, fixed by the protocol. */
#define PASSED_FIRST 3
/* Maximum number of sockets stored. 64 is a guess, more than a systemd unit lists. */
#define PASSED_MAX 64

struct passed {
	int fd; /* -1 after a stage has taken it */
	char name[64];
};

static struct passed passed[PASSED_MAX];
static int n_passed;

/* Copy entry `i` of a list such as "web:admin" to `out`, or "" past the end. */
static void name_of(const char *names, int i, char *out, size_t size)
{
	for (; names && i > 0; i--) {
		names = strchr(names, ':');
		if (names)
			names++;
	}
	snprintf(out, size, "%.*s", names ? (int)strcspn(names, ":") : 0, names ? names : "");
}

static void take_one(int i, const char *names)
{
	struct passed *p = &passed[n_passed];

	p->fd = PASSED_FIRST + i;
	name_of(names, i, p->name, sizeof(p->name));
	if (fcntl(p->fd, F_SETFD, FD_CLOEXEC) == -1)
		weir_log(
		    WEIR_LOG_WARN, "LISTEN_FDS includes descriptor %d, which is not open", p->fd);
	else
		n_passed++;
}

int weir_passed_take(void)
{
	bool ours = text_env_number("LISTEN_PID") == getpid();
	int64_t n = ours ? text_env_number("LISTEN_FDS") : 0;
	const char *names = getenv("LISTEN_FDNAMES");

	n_passed = 0;
	for (int i = 0; i < n && i < PASSED_MAX; i++)
		take_one(i, names);
	if (n > PASSED_MAX)
		weir_log(WEIR_LOG_WARN,
		    "%lld sockets were passed; those after the first %d are ignored", (long long)n,
		    PASSED_MAX);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return n_passed;
}

int weir_passed_add(int fd, const char *name)
{
	if (n_passed == PASSED_MAX)
		return WEIR_ENOMEM;
	struct passed *p = &passed[n_passed++];
	p->fd = fd;
	snprintf(p->name, sizeof(p->name), "%s", name);
	return 0;
}

/* ---- finding a socket ---- */

static int socket_option(int fd, int option)
{
	int value = -1;
	socklen_t n = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &n) == 0 ? value : -1;
}

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET) {
		const struct sockaddr_in *x = (const struct sockaddr_in *)a,
					 *y = (const struct sockaddr_in *)b;
		return x->sin_port == y->sin_port && x->sin_addr.s_addr == y->sin_addr.s_addr;
	}
	if (a->sa_family == AF_INET6) {
		const struct sockaddr_in6 *x = (const struct sockaddr_in6 *)a;
		const struct sockaddr_in6 *y = (const struct sockaddr_in6 *)b;
		return x->sin6_port == y->sin6_port && x->sin6_scope_id == y->sin6_scope_id &&
		       memcmp(&x->sin6_addr, &y->sin6_addr, sizeof(x->sin6_addr)) == 0;
	}
	if (a->sa_family == AF_UNIX)
		return strncmp(((const struct sockaddr_un *)a)->sun_path,
			   ((const struct sockaddr_un *)b)->sun_path,
			   sizeof(((const struct sockaddr_un *)a)->sun_path)) == 0;
	return false;
}

static bool listens_at(int fd, const struct sockaddr *addr)
{
	struct sockaddr_storage bound = {0};
	socklen_t n = sizeof(bound);

	return socket_option(fd, SO_TYPE) == SOCK_STREAM && socket_option(fd, SO_ACCEPTCONN) == 1 &&
	       getsockname(fd, (struct sockaddr *)&bound, &n) == 0 &&
	       same_address((const struct sockaddr *)&bound, addr);
}

int weir_passed_socket(const struct sockaddr *addr)
{
	for (int i = 0; i < n_passed; i++) {
		struct passed *p = &passed[i];
		if (p->fd == -1 || !listens_at(p->fd, addr))
			continue;
		int fd = p->fd, flags = fcntl(fd, F_GETFL);
		if (flags == -1 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1)
			continue;
		p->fd = -1;
		return fd;
	}
	return -1;
}

/* ---- sockets not taken ---- */

/* Describe the socket by its address or, if the address cannot be printed, by its family. */
static void describe(int fd, char *out, size_t size)
{
	struct sockaddr_storage at = {0};
	socklen_t n = sizeof(at);
	char host[64], port[16];

	if (getsockname(fd, (struct sockaddr *)&at, &n) == -1)
		snprintf(out, size, "not a socket");
	else if (at.ss_family == AF_UNIX)
		snprintf(out, size, "unix:%s", ((const struct sockaddr_un *)&at)->sun_path);
	else if (getnameinfo((const struct sockaddr *)&at, n, host, sizeof(host), port,
		     sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(out, size, at.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	else
		snprintf(out, size, "address family %d", at.ss_family);
}

int weir_passed_report(void)
{
	int left = 0;

	for (int i = 0; i < n_passed; i++) {
		const struct passed *p = &passed[i];
		char at[160];
		if (p->fd == -1)
			continue;
		describe(p->fd, at, sizeof(at));
		weir_log(WEIR_LOG_WARN,
		    "no stage listens on the socket '%s' passed as descriptor %d (%s): it is "
		    "ignored",
		    p->name, p->fd, at);
		left++;
	}
	return left;
}
