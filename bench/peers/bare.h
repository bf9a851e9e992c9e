/* SPDX-License-Identifier: MIT */
/* Functions shared by the bare servers: open a listening socket and raise the limit of descriptors
 * to the maximum. */
#ifndef WEIR_BENCH_PEERS_BARE_H
#define WEIR_BENCH_PEERS_BARE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>

static inline int bare_die(const char *what)
{
	perror(what);
	return -1;
}

/* Open a non-blocking socket that listens on 127.0.0.1:port. Returns -1 on failure, with a message
 * on stderr. */
static inline int bare_listen(unsigned short port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	    .sin_port = htons(port)};
	struct rlimit r;
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
	if (fd == -1)
		return bare_die("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == -1 || listen(fd, 4096) == -1)
		return bare_die("listen");
	return fd;
}

#endif
