/* SPDX-License-Identifier: MIT */
/*
 * The ceiling: what a server costs that does nothing but HTTP's bytes. One thread, edge-triggered epoll, one read and one send
 * a run of requests, an answer made at start for every request that ends, no parsing, no time-outs.
 *
 *   bare_epoll PORT BYTES [close]      answers with BYTES bytes, on 127.0.0.1; closes behind each if told
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define IN_BYTES 16384
#define MOST     64 /* answers in one send */

static char *answer;
static size_t answer_n;
static int closes;

/* What of a short write is left: offset in a run of answers. NULL-free, by descriptor. */
struct client {
	int fd;
	unsigned tail;     /* the last four bytes read */
	size_t owed, done; /* answers asked for and not sent; bytes of the first that are */
};

static int die(const char *what)
{
	perror(what);
	return 1;
}

static int make_answer(size_t bytes)
{
	char head[256];
	int n = snprintf(head, sizeof(head),
	    "HTTP/1.1 200 OK\r\nServer: bare\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
	    "Content-Type: text/plain\r\nContent-Length: %zu\r\n%s\r\n",
	    bytes, closes ? "Connection: close\r\n" : "");

	answer_n = (size_t)n + bytes;
	answer = malloc(answer_n * MOST);
	if (!answer)
		return die("malloc");
	memcpy(answer, head, (size_t)n);
	memset(answer + n, 'x', bytes);
	for (size_t i = 1; i < MOST; i++)
		memcpy(answer + i * answer_n, answer, answer_n);
	return 0;
}

/* Requests end with an empty line: four bytes of the stream. */
static void count(struct client *c, const char *p, ssize_t n)
{
	for (ssize_t i = 0; i < n; i++) {
		c->tail = c->tail << 8 | (unsigned char)p[i];
		c->owed += c->tail == 0x0d0a0d0a;
	}
}

/* Returns 0 when the client is gone. */
static int pay(struct client *c)
{
	while (c->owed > 0) {
		size_t n = (c->owed < MOST ? c->owed : MOST) * answer_n - c->done;
		ssize_t sent = send(c->fd, answer + c->done, n, MSG_NOSIGNAL);
		if (sent == -1)
			return errno == EAGAIN;
		c->done += (size_t)sent;
		c->owed -= c->done / answer_n;
		c->done %= answer_n;
	}
	return 1;
}

static int serve(struct client *c)
{
	static char in[IN_BYTES];
	ssize_t n;

	do {
		n = recv(c->fd, in, sizeof(in), 0);
		if (n > 0)
			count(c, in, n);
	} while (n == (ssize_t)sizeof(in));
	return pay(c) && !(closes && n > 0) && (n > 0 || (n == -1 && errno == EAGAIN));
}

static int take(int epoll, int fd)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET};
	int client;

	while ((client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) != -1) {
		struct client *c = calloc(1, sizeof(*c));
		if (!c)
			return die("calloc");
		c->fd = client;
		e.data.ptr = c;
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, client, &e) == -1)
			return die("epoll_ctl");
	}
	return 0;
}

static int run(int fd)
{
	struct epoll_event e = {.events = EPOLLIN}, ready[512];
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll == -1 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == -1)
		return die("epoll");
	for (;;) {
		int n = epoll_wait(epoll, ready, 512, -1);
		for (int i = 0; i < n; i++) {
			struct client *c = ready[i].data.ptr;
			if (!c && take(epoll, fd) != 0)
				return 1;
			if (c && !serve(c)) {
				close(c->fd);
				free(c);
			}
		}
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rlimit r;
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	closes = argc == 4 && strcmp(argv[3], "close") == 0;
	if (argc != 3 + closes || make_answer(strtoul(argv[2], NULL, 10)) != 0)
		return 2;
	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
	a.sin_port = htons((unsigned short)strtoul(argv[1], NULL, 10));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == -1 || listen(fd, 4096) == -1)
		return die("listen");
	return run(fd);
}
