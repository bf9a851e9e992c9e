/* SPDX-License-Identifier: MIT */
/*
 * Pauses, drains and closes listening sockets; see listen.h for their states.
 *
 * Pausing. A level-triggered listener from which nothing is accepted would spin. When accept.c
 * cannot accept a client, it therefore pauses all listeners of the thread. The close of a
 * connection, or a timer, resumes them.
 *
 * Draining without loss. Closing a listening socket resets the connections in its backlog, and one
 * may arrive between the last accept and the close. A socket filter therefore first drops every new
 * SYN; the client retries a second later and finds the port closed, or another server. Handshakes
 * in progress still complete and are accepted until the linger time is over. Only then is the
 * socket closed.
 * With `per_thread`, the threads share a backlog, which they empty as they have room, until the server
 * accepts nothing more.
 *
 * A socket file is removed instead, after which no client finds the socket. The last thread that closes it
 * shuts it down first, so that a client that has just found it is refused instead of reset.
 */
#include "net/listen.h"

#include <linux/filter.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/accept.h"
#include "net/evict.h"
#include "net/per_thread.h"
#include "net/socket_file.h"
#include "net/stand_in.h"

/* Delay before accepting is retried when descriptors or slots were used up. 50 ms is a guess: a
 * client hardly notices it. */
#define ACCEPT_RETRY_NS 50000000LL

/* ---- pausing ---- */

/* Return listener `i` of `io`. Its own listeners come first, then those of the threads for which it
 * stands in. */
static struct listener *nth(struct net_io *io, int i)
{
	return i < io->accept.n_listeners ? &io->listener[i]
					  : &io->accept.stand_in[i - io->accept.n_listeners];
}

static int count(const struct net_io *io)
{
	return io->accept.n_listeners + io->accept.n_stand_in;
}

static bool is_stand_in(const struct net_io *io, const struct listener *l)
{
	return io->accept.n_stand_in > 0 && l >= io->accept.stand_in &&
	       l < io->accept.stand_in + io->accept.n_stand_in;
}

/* Watch `l`. With EPOLLEXCLUSIVE, a client wakes only one of the I/O threads that watch the same
 * socket. */
static bool watch_one(struct net_io *io, struct listener *l)
{
	bool common = l->passed || l->common || is_stand_in(io, l);

	l->watched =
	    weir_loop_add(io->loop, &l->watch, EPOLLIN | (common ? EPOLLEXCLUSIVE : 0)) == 0;
	return l->watched;
}

/* Start or stop watching all listeners. If some cannot be watched for lack of memory, the timer
 * retries them, since nothing else would. */
static void watch_all(struct net_io *io, bool on)
{
	bool ok = true;

	for (int i = 0; i < count(io); i++) {
		struct listener *l = nth(io, i);
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
		    io->loop, &io->accept.timer, weir_loop_now_ns(io->loop) + ACCEPT_RETRY_NS);
}

void listen_hold(struct net_io *io)
{
	if (io->accept.last_call)
		return;
	io->accept.paused = true;
	watch_all(io, false);
	weir_timer_set(io->loop, &io->accept.timer, weir_loop_now_ns(io->loop) + ACCEPT_RETRY_NS);
}

void listen_resume(struct net_io *io)
{
	if (!io->accept.paused || io->accept.newcomer.fd != -1 || io->deaf)
		return;
	io->accept.paused = false;
	accept_reserve(io);
	listen_pause(io);
}

void listen_pause(struct net_io *io)
{
	watch_all(io, !io->pause.on && !io->accept.paused && !per_thread_full(io));
}

void listen_again(struct net_io *io)
{
	watch_all(io, false);
	listen_pause(io);
}

void listen_recheck(struct net_io *io)
{
	if (WEIR_UNLIKELY(io->accept.newcomer.fd != -1))
		evict_retry(io);
	listen_resume(io);
}

static void retry(struct weir_loop *loop, struct weir_timer *t)
{
	struct net_io *io = weir_loop_data(loop);

	net_touch(io); /* the knob `memory` may have changed */
	if (io->accept.newcomer.fd != -1)
		accept_newcomer(io, true);
	else
		listen_resume(io);
	listen_pause(io);
	/* Still paused: memory is short, or the server is full. Continue to retry, because this
	 * thread may not be woken when another thread finds that there is memory again. */
	if (io->accept.paused)
		weir_timer_set(loop, t, weir_loop_now_ns(loop) + ACCEPT_RETRY_NS);
}

/* ---- accepting ---- */

static void on_ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct net_io *io = weir_loop_data(loop);

	(void)events;
	net_touch(io);
	if (io->deaf)
		listen_hold(io); /* until the protocol has memory again */
	else
		accept_some(io, w->fd);
}

int listen_watch(struct net_io *io)
{
	io->accept.timer.fire = retry;
	for (int i = 0; i < io->accept.n_listeners; i++) {
		struct listener *l = &io->listener[i];
		l->watch.ready = on_ready;
		if (!io->pause.on && !per_thread_full(io) && !watch_one(io, l))
			return WEIR_ESYS;
	}
	accept_reserve(io);
	return 0;
}

/* ---- draining ---- */

void listen_drain(struct net_io *io)
{
	/* Load the TCP flags, mask out all but SYN and ACK, and drop the packet if only SYN is set.
	 * For a TCP socket, the data that the filter sees begins at the TCP header. */
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
	    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, 0),
	    BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	for (int i = 0; i < count(io); i++) {
		const struct listener *l = nth(io, i);
		if (l->passed || l->watch.fd == -1)
			continue;
		if (io->srv->file[l->address].inode != 0)
			socket_file_remove(io->srv, l->address);
		else /* if attaching fails, the race described above remains; it is rare */
			setsockopt(
			    l->watch.fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
	}
}

/* Close `l`, under the lock because a thread that stands in for this one, or a new server in a
 * reload, may be about to duplicate the descriptor. */
static void close_listener(struct net_io *io, struct listener *l)
{
	if (l->watched)
		weir_loop_del(io->loop, &l->watch);
	l->watched = false;
	pthread_mutex_lock(&io->srv->lock);
	close(l->watch.fd);
	l->watch.fd = -1;
	pthread_mutex_unlock(&io->srv->lock);
}

void listen_leave(struct net_io *io)
{
	stand_in_end(io);
	for (int i = 0; i < io->accept.n_listeners; i++)
		if (io->listener[i].shared && io->listener[i].watch.fd != -1)
			close_listener(io, &io->listener[i]);
}

/* Accept the clients in the backlog of `l`. With `per_thread`, as many as there is room for or, when
 * nothing may enter the graph any more, all, since they are only refused then (clients of a passed
 * socket wait for the next server). */
static void accept_last(struct net_io *io, const struct listener *l)
{
	bool refuses = per_thread_on(io) && io->drain.phase == NET_CLOSED && !l->passed;

	if (io->loop && (io->drain.phase == NET_DRAINING || refuses))
		accept_rest(io, l->watch.fd);
}

/* Whether `l` is at a file that was removed, and no other thread has its socket any more. */
static bool is_last(struct net_server *srv, const struct listener *l)
{
	const struct socket_file *f = &srv->file[l->address];
	int n = 0;

	if (f->inode == 0)
		return false;
	pthread_mutex_lock(&srv->lock);
	for (int i = 0; i < srv->n_io && f->path[0] == '\0'; i++)
		for (int k = 0; k < srv->io[i]->accept.n_listeners; k++)
			n += srv->io[i]->listener[k].address == l->address &&
			     srv->io[i]->listener[k].watch.fd != -1;
	pthread_mutex_unlock(&srv->lock);
	return n == 1;
}

void listen_close(struct net_io *io)
{
	if (io->loop)
		accept_end(io);
	for (int i = 0; i < count(io); i++) {
		struct listener *l = nth(io, i);
		if (l->watch.fd == -1)
			continue;
		if (is_last(io->srv, l))
			shutdown(l->watch.fd, SHUT_RDWR);
		accept_last(io, l);
		if (io->loop && io->drain.phase == NET_DRAINING && per_thread_full(io)) {
			per_thread_accepted(io);
			return; /* the backlog may not be empty */
		}
		close_listener(io, l);
	}
	if (io->loop)
		weir_timer_cancel(io->loop, &io->accept.timer);
	stand_in_end(io);
	if (io->accept.reserve_fd != -1)
		close(io->accept.reserve_fd);
	io->accept.reserve_fd = -1;
}
