/* SPDX-License-Identifier: MIT */
/*
 * A server with a thread per connection, the oldest kind of concurrent server, as a baseline.
 *
 * Each thread reads, works and writes with blocking calls. When the limit of threads is reached,
 * the server stops accepting, and connections wait in the kernel's backlog; there is no other
 * overload control. Only the accepting thread uses the list of clients. Before a client's thread
 * exits, it adds the client to the list `ended`, so that the accepting thread joins it.
 */
#include "threaded.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Stack size of a client's thread. Handlers of weir need little stack, and unused stack occupies no
 * memory. */
#define STACK_BYTES (256 * 1024)

struct clients;

struct client {
	struct talk talk;
	struct clients *all;
	pthread_t thread;
	struct client *next, **prev; /* links of all->first; used only by the accepting thread */
	struct client *ended_next;   /* link of all->ended */
};

struct clients {
	struct threaded *server;
	struct client *first;
	int n;
	int ended_fd; /* eventfd, readable if `ended` is not empty */
	pthread_mutex_t lock;
	struct client *ended WEIR_GUARDED_BY(lock);
};

static void *client_main(void *arg)
{
	struct client *c = arg;
	struct clients *all = c->all;

	if (weir_thread_attach(all->server->work.graph, "client") == 0) {
		talk_turn(&c->talk, &all->server->work, TALK_WAIT);
		weir_thread_detach();
	}
	/* Shut down the connection now, so that the client sees its end. The descriptor is closed
	 * only after the join. */
	shutdown(c->talk.fd, SHUT_RDWR);
	pthread_mutex_lock(&all->lock);
	c->ended_next = all->ended;
	all->ended = c;
	pthread_mutex_unlock(&all->lock);
	eventfd_write(all->ended_fd, 1);
	return NULL;
}

static void client_new(struct clients *all, int fd, const pthread_attr_t *attr)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return;
	}
	talk_init(&c->talk, fd);
	c->all = all;
	if (pthread_create(&c->thread, attr, client_main, c) != 0) {
		talk_fini(&c->talk);
		free(c);
		return;
	}
	c->next = all->first;
	c->prev = &all->first;
	if (c->next)
		c->next->prev = &c->next;
	all->first = c;
	all->n++;
}

/* Join the threads in `ended` and free their clients. */
static void reap(struct clients *all)
{
	eventfd_t ignored;

	eventfd_read(all->ended_fd, &ignored);
	pthread_mutex_lock(&all->lock);
	struct client *list = all->ended;
	all->ended = NULL;
	pthread_mutex_unlock(&all->lock);
	while (list) {
		struct client *c = list;
		list = c->ended_next;
		pthread_join(c->thread, NULL);
		*c->prev = c->next;
		if (c->next)
			c->next->prev = c->prev;
		all->n--;
		talk_fini(&c->talk);
		free(c);
	}
}

static void accept_clients(struct clients *all, const pthread_attr_t *attr)
{
	while (all->n < all->server->threads) {
		int fd = accept4(all->server->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd == -1)
			return;
		client_new(all, fd, attr);
	}
}

static void serve(struct clients *all, const pthread_attr_t *attr)
{
	struct pollfd at[] = {{.fd = all->server->stop_fd, .events = POLLIN},
	    {.fd = all->ended_fd, .events = POLLIN}, {.fd = all->server->listen_fd}};

	while (!(at[0].revents & POLLIN)) {
		at[2].events = all->n < all->server->threads ? POLLIN : 0;
		if (poll(at, 3, -1) == -1 && errno != EINTR)
			return;
		if (at[1].revents & POLLIN)
			reap(all);
		if (at[2].revents & POLLIN)
			accept_clients(all, attr);
	}
}

int serve_by_thread(struct threaded *s)
{
	struct clients all = {.server = s, .lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_attr_t attr;
	struct pollfd ended = {.events = POLLIN};

	all.ended_fd = ended.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (all.ended_fd == -1)
		return WEIR_ESYS;
	if (pthread_attr_init(&attr) != 0 || pthread_attr_setstacksize(&attr, STACK_BYTES) != 0) {
		close(all.ended_fd);
		return WEIR_ENOMEM;
	}
	serve(&all, &attr);
	for (struct client *c = all.first; c; c = c->next)
		shutdown(c->talk.fd, SHUT_RDWR);
	while (all.n > 0) {
		poll(&ended, 1, -1);
		reap(&all);
	}
	pthread_attr_destroy(&attr);
	close(all.ended_fd);
	return 0;
}
