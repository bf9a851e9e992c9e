/* SPDX-License-Identifier: MIT */
/*
 * A server with a plain fixed thread pool and a bounded queue, as a baseline.
 *
 *   IDLE --readable--> QUEUED --worker--> SERVED --nothing more has arrived--> IDLE
 *          '--queue full--> refused with 503 by the watching thread --> IDLE
 *
 * One thread accepts connections and watches idle ones. It uses one-shot epoll, so that only one
 * thread at a time uses a connection. A connection on which a request has arrived is queued, and a
 * worker takes it from the queue. The number of workers and the length of the queue are configured
 * and fixed: there are no controllers, classes or deadlines.
 */
#include "threaded.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Maximum number of ready connections fetched from the kernel in one call. 64 is a guess. */
#define READY_MAX 64

struct client {
	struct talk talk;
	struct client *next, **prev; /* links of pool->first */
	struct client *queue_next;
};

struct worker_pool {
	struct threaded *server;
	int epoll_fd;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct client *first WEIR_GUARDED_BY(lock); /* all connected clients */
	struct client *queue WEIR_GUARDED_BY(lock), **queue_tail WEIR_GUARDED_BY(lock);
	int queued WEIR_GUARDED_BY(lock);
	bool stopping WEIR_GUARDED_BY(lock);
};

/* ---- clients ---- */

static bool watch(const struct worker_pool *p, struct client *c, int op)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = c};

	return epoll_ctl(p->epoll_fd, op, c->talk.fd, &e) == 0;
}

static void client_free(struct worker_pool *p, struct client *c)
{
	pthread_mutex_lock(&p->lock);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	pthread_mutex_unlock(&p->lock);
	talk_fini(&c->talk);
	free(c);
}

static void client_new(struct worker_pool *p, int fd)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return;
	}
	talk_init(&c->talk, fd);
	pthread_mutex_lock(&p->lock);
	c->next = p->first;
	c->prev = &p->first;
	if (c->next)
		c->next->prev = &c->next;
	p->first = c;
	pthread_mutex_unlock(&p->lock);
	if (!watch(p, c, EPOLL_CTL_ADD))
		client_free(p, c);
}

/* Serve `c` once, then return it to the watching thread or free it. */
static void client_turn(struct worker_pool *p, struct client *c, enum talk_mode mode)
{
	if (!talk_turn(&c->talk, &p->server->work, mode) || !watch(p, c, EPOLL_CTL_MOD))
		client_free(p, c);
}

/* ---- the queue and its workers ---- */

static bool queue_push(struct worker_pool *p, struct client *c)
{
	pthread_mutex_lock(&p->lock);
	bool room = p->queued < p->server->queue;
	if (room) {
		c->queue_next = NULL;
		*p->queue_tail = c;
		p->queue_tail = &c->queue_next;
		p->queued++;
		pthread_cond_signal(&p->more);
	}
	pthread_mutex_unlock(&p->lock);
	return room;
}

/* Take the client that has waited longest. Returns NULL if the server is stopping. */
static struct client *queue_pop(struct worker_pool *p)
{
	struct client *c = NULL;

	pthread_mutex_lock(&p->lock);
	while (!p->queue && !p->stopping)
		pthread_cond_wait(&p->more, &p->lock);
	if (!p->stopping) {
		c = p->queue;
		p->queue = c->queue_next;
		if (!p->queue)
			p->queue_tail = &p->queue;
		p->queued--;
	}
	pthread_mutex_unlock(&p->lock);
	return c;
}

static void *worker_main(void *arg)
{
	struct worker_pool *p = arg;
	struct client *c;

	if (weir_thread_attach(p->server->work.graph, "worker") != 0)
		return NULL;
	while ((c = queue_pop(p)) != NULL)
		client_turn(p, c, TALK_READY);
	weir_thread_detach();
	return NULL;
}

/* ---- the watching thread ---- */

static void accept_clients(struct worker_pool *p)
{
	int fd;

	while ((fd = accept4(p->server->listen_fd, NULL, NULL, SOCK_CLOEXEC)) != -1)
		client_new(p, fd);
}

static void serve(struct worker_pool *p)
{
	struct epoll_event ready[READY_MAX];

	for (;;) {
		int n = epoll_wait(p->epoll_fd, ready, READY_MAX, -1);
		if (n == -1 && errno != EINTR)
			return;
		for (int i = 0; i < n; i++) {
			struct client *c = ready[i].data.ptr;
			if (ready[i].data.ptr == &p->server->stop_fd)
				return;
			if (ready[i].data.ptr == &p->server->listen_fd)
				accept_clients(p);
			else if (!queue_push(p, c))
				client_turn(p, c, TALK_REFUSE);
		}
	}
}

static int watch_doors(const struct worker_pool *p)
{
	struct epoll_event stop = {.events = EPOLLIN, .data.ptr = &p->server->stop_fd};
	struct epoll_event door = {.events = EPOLLIN, .data.ptr = &p->server->listen_fd};

	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->server->stop_fd, &stop) != 0 ||
	    epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->server->listen_fd, &door) != 0)
		return WEIR_ESYS;
	return 0;
}

static void stop(struct worker_pool *p, pthread_t *thread, int n)
{
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	/* A worker may be blocked on a client that reads its response slowly. */
	for (struct client *c = p->first; c; c = c->next)
		shutdown(c->talk.fd, SHUT_RDWR);
	pthread_cond_broadcast(&p->more);
	pthread_mutex_unlock(&p->lock);
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	while (p->first)
		client_free(p, p->first);
}

int serve_by_pool(struct threaded *s)
{
	struct worker_pool p = {.server = s,
	    .lock = PTHREAD_MUTEX_INITIALIZER,
	    .more = PTHREAD_COND_INITIALIZER,
	    .queue_tail = &p.queue};
	pthread_t *thread = calloc((size_t)s->threads, sizeof(*thread));
	int rc = thread ? 0 : WEIR_ENOMEM, n = 0;

	p.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (rc == 0 && p.epoll_fd == -1)
		rc = WEIR_ESYS;
	if (rc == 0)
		rc = watch_doors(&p);
	while (rc == 0 && n < s->threads) {
		if (pthread_create(&thread[n], NULL, worker_main, &p) != 0)
			rc = WEIR_ESYS;
		else
			n++;
	}
	if (rc == 0)
		serve(&p);
	stop(&p, thread, n);
	if (p.epoll_fd != -1)
		close(p.epoll_fd);
	free(thread);
	return rc;
}
