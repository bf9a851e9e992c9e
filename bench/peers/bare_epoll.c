/* SPDX-License-Identifier: MIT */
/*
 * An upper bound for throughput: a server that only transfers the bytes of HTTP. It has one thread
 * with edge-triggered epoll, does one read and one send per run of requests, and sends the same
 * response, built at startup, to every request. It does not parse requests and has no timeouts.
 *
 *   bare_epoll PORT BYTES [close]      answers with BYTES bytes, on 127.0.0.1; close after each
 */
#include "bare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define IN_BYTES 16384
#define MOST     64 /* maximum number of responses per send */

static char *answer;
static size_t answer_n;
static int closes;

/* State of a connection. After a short send, `done` is the offset in the run of pending
 * responses. */
struct client {
	int fd;
	unsigned tail; /* the last four bytes read */
	int asked;     /* a request has arrived */
	/* owed: number of responses not yet sent completely; done: bytes of the first one that
	 * have been sent */
	size_t owed, done;
};

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
		return bare_die("malloc");
	memcpy(answer, head, (size_t)n);
	memset(answer + n, 'x', bytes);
	for (size_t i = 1; i < MOST; i++)
		memcpy(answer + i * answer_n, answer, answer_n);
	return 0;
}

/* Count the requests in p[0..n). A request ends with an empty line, which is detected as a sequence
 * of four bytes in the stream. */
static void count(struct client *c, const char *p, ssize_t n)
{
	for (ssize_t i = 0; i < n; i++) {
		c->tail = c->tail << 8 | (unsigned char)p[i];
		c->owed += c->tail == 0x0d0a0d0a;
		c->asked |= c->tail == 0x0d0a0d0a;
	}
}

/* Send the pending responses. Returns 0 if the client has disconnected. */
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
	int open = n > 0 || (n == -1 && errno == EAGAIN);
	return pay(c) && open && !(closes && c->asked && c->owed == 0);
}

static int take(int epoll, int fd)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET};
	int client;

	while ((client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) != -1) {
		struct client *c = calloc(1, sizeof(*c));
		if (!c)
			return bare_die("calloc");
		c->fd = client;
		e.data.ptr = c;
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, client, &e) == -1)
			return bare_die("epoll_ctl");
	}
	return 0;
}

static int run(int fd)
{
	struct epoll_event e = {.events = EPOLLIN}, ready[512];
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll == -1 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == -1)
		return bare_die("epoll");
	for (;;) {
		int n = epoll_wait(epoll, ready, 512, -1);
		for (int i = 0; i < n; i++) {
			struct client *c = ready[i].data.ptr;
			if (!c && take(epoll, fd) != 0)
				return -1;
			if (c && !serve(c)) {
				close(c->fd);
				free(c);
			}
		}
	}
}

int main(int argc, char **argv)
{
	int fd;

	closes = argc == 4 && strcmp(argv[3], "close") == 0;
	if (argc != 3 + closes || make_answer(strtoul(argv[2], NULL, 10)) != 0)
		return 2;
	fd = bare_listen((unsigned short)strtoul(argv[1], NULL, 10));
	return fd == -1 || run(fd) != 0;
}
