/* SPDX-License-Identifier: MIT */
/*
 * Shows the minimum cost of refusing requests while others are served: one thread does all I/O, and
 * another burns CPU time for each request that it receives. While ROOM requests wait, further
 * requests are answered immediately with 503. Responses are constant and as long as those of weir.
 * A connection has one request at a time, and nothing is parsed.
 *
 *   bare_refuse PORT US ROOM      uses US microseconds of CPU time for each request that it serves
 */
#include "bare.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define IN_BYTES 4096
#define READY    256

/* The same responses as those of weir, except for names and numbers. */
static const char served[] =
    "HTTP/1.1 200 OK\r\nServer: bare\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
    "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n\r\ndone\n";
static const char refused[] =
    "HTTP/1.1 503 Service Unavailable\r\nServer: bare\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
    "Content-Type: text/plain; charset=utf-8\r\nRetry-After: 2\r\n"
    "X-Bare-Shed: stage=work; reason=priority; class=c0\r\nX-Bare-Shed-Id: 0123456789ABC\r\n"
    "Content-Length: 24\r\n\r\n503 Service Unavailable\n";

/* Requests passed between the two threads, identified by their descriptors. */
struct ring {
	pthread_mutex_t lock;
	pthread_cond_t some;
	int *fd;
	unsigned head, n, size;
};

static struct ring todo = {.lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};
static struct ring done = {.lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};
static int done_fd;
static int64_t work_ns;

static int put(struct ring *r, int fd)
{
	pthread_mutex_lock(&r->lock);
	int fits = r->n < r->size;
	if (fits)
		r->fd[(r->head + r->n++) % r->size] = fd;
	pthread_cond_signal(&r->some);
	pthread_mutex_unlock(&r->lock);
	return fits;
}

/* Take a descriptor. Returns -1 if the ring is empty and `waits` is 0. */
static int take(struct ring *r, int waits)
{
	int fd = -1;

	pthread_mutex_lock(&r->lock);
	while (waits && r->n == 0)
		pthread_cond_wait(&r->some, &r->lock);
	if (r->n > 0) {
		fd = r->fd[r->head];
		r->head = (r->head + 1) % r->size;
		r->n--;
	}
	pthread_mutex_unlock(&r->lock);
	return fd;
}

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void *work(void *arg)
{
	uint64_t one = 1;

	pthread_setname_np(pthread_self(), "work");
	for (;;) {
		int fd = take(&todo, 1);
		int64_t until_ns = cpu_ns() + work_ns;
		while (cpu_ns() < until_ns)
			for (volatile int i = 0; i < 2000; i++)
				continue;
		put(&done, fd);
		if (write(done_fd, &one, sizeof(one)) == -1)
			bare_die("write");
	}
	return arg;
}

static void answer(int fd, const char *text, size_t n)
{
	if (send(fd, text, n, MSG_NOSIGNAL) == -1 && errno != EPIPE && errno != ECONNRESET)
		bare_die("send");
}

static void serve(int fd)
{
	char in[IN_BYTES];
	ssize_t n = recv(fd, in, sizeof(in), 0);

	if (n == 0 || (n == -1 && errno != EAGAIN))
		close(fd);
	else if (n > 0 && !put(&todo, fd))
		answer(fd, refused, sizeof(refused) - 1);
}

static void answer_done(void)
{
	uint64_t n;
	int fd;

	if (read(done_fd, &n, sizeof(n)) == -1 && errno != EAGAIN)
		bare_die("read");
	while ((fd = take(&done, 0)) != -1)
		answer(fd, served, sizeof(served) - 1);
}

static int add(int epoll, int fd, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.fd = fd};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == -1 ? bare_die("epoll_ctl") : 0;
}

static int run(int fd)
{
	struct epoll_event ready[READY];
	int epoll = epoll_create1(EPOLL_CLOEXEC), client;

	if (epoll == -1 || add(epoll, fd, EPOLLIN) != 0 || add(epoll, done_fd, EPOLLIN) != 0)
		return -1;
	for (;;) {
		int n = epoll_wait(epoll, ready, READY, -1);
		for (int i = 0; i < n; i++) {
			if (ready[i].data.fd == done_fd)
				answer_done();
			else if (ready[i].data.fd != fd)
				serve(ready[i].data.fd);
			else
				while ((client = accept4(
					    fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) != -1)
					if (add(epoll, client, EPOLLIN | EPOLLET) != 0)
						return -1;
		}
	}
}

int main(int argc, char **argv)
{
	pthread_t worker;
	int fd;

	if (argc != 4)
		return 2;
	work_ns = 1000 * strtoll(argv[2], NULL, 10);
	todo.size = (unsigned)strtoul(argv[3], NULL, 10);
	done.size = todo.size + 1;
	todo.fd = calloc(todo.size, sizeof(int));
	done.fd = calloc(done.size, sizeof(int));
	done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fd = bare_listen((unsigned short)strtoul(argv[1], NULL, 10));
	if (!todo.fd || !done.fd || done_fd == -1 || fd == -1)
		return 1;
	if (pthread_create(&worker, NULL, work, NULL) != 0)
		return 1;
	return run(fd) != 0;
}
