/* SPDX-License-Identifier: MIT */
/*
 * The connections of the endpoint.
 *
 * Input is only peeked at until the whole request is there, so that libmicrohttpd finds it in the
 * socket. Bytes that stay in the socket would make a level-triggered epoll spin: connections are
 * watched edge-triggered, one look per arrival.
 */
#include "peers.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

/* From accept to the last byte of the request, and again for the answer (reliability: 10 s). */
#define PATIENCE_NS 10000000000LL
/* For a refused client to take its answer before the connection is cut. A guess. */
#define LEAVE_NS 1000000000LL
/* Between looks for a free descriptor. A guess: an operator does not notice it. */
#define PAUSE_MS 100
/* What a refused client may still send. A browser that posts a file has begun to by then. */
#define LEAVE_BYTES_MAX 65536

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static int watch(const struct peers *p, int op, int fd, uint32_t events, void *tag)
{
	struct epoll_event ev = {.events = events, .data.ptr = tag};

	return epoll_ctl(p->epoll_fd, op, fd, &ev);
}

/* ---- descriptors ---- */

/* Spares are duplicates of the epoll descriptor: any will do. */
static void refill_spares(struct peers *p)
{
	for (int i = 0; i < PEERS_SPARES; i++)
		if (p->spare[i] < 0)
			p->spare[i] = fcntl(p->epoll_fd, F_DUPFD_CLOEXEC, 0);
}

static bool give_spare(struct peers *p)
{
	for (int i = 0; i < PEERS_SPARES; i++) {
		if (p->spare[i] < 0)
			continue;
		close(p->spare[i]);
		p->spare[i] = -1;
		return true;
	}
	return false;
}

/* A listener that can not be emptied is always ready: look away for a while. */
static void pause_listener(struct peers *p)
{
	p->paused = watch(p, EPOLL_CTL_MOD, p->listen_fd, 0, &p->listen_fd) == 0;
}

static void resume_listener(struct peers *p)
{
	refill_spares(p);
	if (p->paused && p->spare[0] >= 0)
		p->paused = watch(p, EPOLL_CTL_MOD, p->listen_fd, EPOLLIN, &p->listen_fd) != 0;
}

int peers_init(struct peers *p, int epoll_fd, int listen_fd, const struct authority *address)
{
	p->epoll_fd = epoll_fd;
	p->listen_fd = listen_fd;
	p->address = address;
	for (int i = 0; i < PEERS_SPARES; i++)
		p->spare[i] = -1;
	refill_spares(p);
	return watch(p, EPOLL_CTL_ADD, listen_fd, EPOLLIN, &p->listen_fd) == 0 ? 0 : WEIR_ESYS;
}

static void peer_close(struct peer *peer)
{
	close(peer->fd);
	peer->state = PEER_FREE;
}

void peers_fini(struct peers *p)
{
	for (int i = 0; i < PEERS_MAX; i++)
		if (p->slot[i].state == PEER_ASKING || p->slot[i].state == PEER_LEAVING)
			peer_close(&p->slot[i]);
	while (give_spare(p))
		;
}

/* ---- refusing ---- */

static int print_head(char *buf, size_t size, const struct reply *r, int retry_after_s)
{
	int n = snprintf(buf, size, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n",
	    r->status, reply_reason(r->status), r->type, r->n);

	for (const struct reply_field *f = reply_fields; f->name; f++)
		n += snprintf(buf + n, size - (size_t)n, "%s: %s\r\n", f->name, f->value);
	if (r->status == 401)
		n += snprintf(
		    buf + n, size - (size_t)n, "WWW-Authenticate: Bearer realm=\"weir\"\r\n");
	if (retry_after_s > 0)
		n += snprintf(buf + n, size - (size_t)n, "Retry-After: %d\r\n", retry_after_s);
	return n + snprintf(buf + n, size - (size_t)n, "\r\n");
}

/* Two sends into an empty socket buffer: they fit, or the client is none. */
static void send_reply(int fd, const struct reply *r, int retry_after_s)
{
	char head[1536];
	int n = print_head(head, sizeof(head), r, retry_after_s);

	if (send(fd, head, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE) == n)
		send(fd, r->body, r->n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Throw input away. A close with bytes unread would reset the connection and take the answer from
 * the client. false: it has gone, or sends too much. */
static bool drain(struct peers *p, struct peer *peer)
{
	ssize_t n = 0;

	while (peer->drained < LEAVE_BYTES_MAX &&
	       (n = recv(peer->fd, p->peek, sizeof(p->peek), MSG_DONTWAIT)) > 0)
		peer->drained += (size_t)n;
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void refuse(struct peers *p, struct peer *peer, const struct head_problem *problem)
{
	struct reply reply = {0};

	reply_problem(&reply, problem->status, "%s", problem->why);
	send_reply(peer->fd, &reply, problem->retry_after_s);
	reply_fini(&reply);
	shutdown(peer->fd, SHUT_WR);
	peer->state = PEER_LEAVING;
	peer->until_ns = now_ns() + LEAVE_NS;
	if (!drain(p, peer))
		peer_close(peer);
}

/* ---- asking ---- */

static void serve(struct peers *p, struct peer *peer)
{
	watch(p, EPOLL_CTL_DEL, peer->fd, 0, NULL);
	peer->state = PEER_SERVED;
	peer->until_ns = now_ns() + PATIENCE_NS;
	if (door_add(p->door, peer->fd, &peer->pass) != 0)
		peer->state = PEER_FREE; /* and the door has closed it */
}

/* Give a watcher away: all that has arrived of it is read and done with. */
static void give_to_live(struct peers *p, struct peer *peer, size_t n)
{
	struct head_problem problem;

	if (live_refuses(p->live, p->peek, n, &peer->pass, &problem)) {
		refuse(p, peer, &problem);
		return;
	}
	watch(p, EPOLL_CTL_DEL, peer->fd, 0, NULL);
	peer->state = PEER_FREE;
	if (recv(peer->fd, p->peek, n, MSG_DONTWAIT) == (ssize_t)n)
		live_add(p->live, peer->fd, p->peek, n, &peer->pass, now_ns());
	else
		close(peer->fd);
}

/* All of it is there: is it from somebody who may ask? */
static void judge(struct peers *p, struct peer *peer, size_t n)
{
	struct head_problem problem;

	if (!gate_judge(p->gate, &peer->from, p->peek, n, now_ns(), &peer->pass, &problem))
		refuse(p, peer, &problem);
	else if (p->live && live_wants(p->peek, n))
		give_to_live(p, peer, n);
	else
		serve(p, peer);
}

static void look(struct peers *p, struct peer *peer, uint32_t events)
{
	struct head_problem problem;
	ssize_t n = recv(peer->fd, p->peek, sizeof(p->peek), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		peer_close(peer);
		return;
	}
	enum head_verdict verdict = head_check(p->address, p->peek, (size_t)n, &problem);
	if (verdict == HEAD_WHOLE)
		judge(p, peer, (size_t)n);
	else if (verdict == HEAD_BAD)
		refuse(p, peer, &problem);
	else if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		peer_close(peer);           /* no more will come */
	explicit_bzero(p->peek, (size_t)n); /* tokens come this way */
}

void peers_ready(struct peers *p, struct peer *peer, uint32_t events)
{
	if (peer->state == PEER_ASKING)
		look(p, peer, events);
	else if (peer->state == PEER_LEAVING && !drain(p, peer))
		peer_close(peer);
}

void peers_gone(struct gate_pass *pass)
{
	struct peer *peer = (struct peer *)((char *)pass - offsetof(struct peer, pass));

	peer->state = PEER_FREE;
}

/* ---- accepting ---- */

/* How many slots the place has that `peer` comes from; all of them are taken. */
static int crowd(const struct peers *p, const struct peer *peer)
{
	int n = 0;

	for (int i = 0; i < PEERS_MAX; i++)
		n += memcmp(&p->slot[i].place, &peer->place, sizeof(peer->place)) == 0;
	return n;
}

/* The address, or whose process it is. */
static struct failures_key place_of(const struct gate_from *from)
{
	struct failures_key key = failures_key(&from->address);

	if (from->by_file)
		memcpy(key.bytes + 1, &from->uid, sizeof(from->uid));
	return key;
}

/* Those the door does not own go before those that it owns; of these, those of the place that has
 * the most slots; of these, the one nearest to its deadline. */
static struct peer *next_to_go(struct peers *p)
{
	struct peer *best = NULL;
	int best_crowd = 0;

	for (int i = 0; i < PEERS_MAX; i++) {
		struct peer *peer = &p->slot[i];
		bool ours = peer->state != PEER_SERVED;
		bool best_ours = best && best->state != PEER_SERVED;
		int n = crowd(p, peer);
		if (!best || (ours && !best_ours) ||
		    (ours == best_ours &&
			(n > best_crowd || (n == best_crowd && peer->until_ns < best->until_ns)))) {
			best = peer;
			best_crowd = n;
		}
	}
	return best;
}

static struct peer *free_slot(struct peers *p)
{
	for (int i = 0; i < PEERS_MAX; i++)
		if (p->slot[i].state == PEER_FREE)
			return &p->slot[i];
	struct peer *peer = next_to_go(p);
	if (peer->state == PEER_SERVED) {
		/* The door sees the end of the connection on its next run and frees the slot. */
		shutdown(peer->fd, SHUT_RDWR);
		return NULL;
	}
	peer_close(peer);
	return peer;
}

/* Whose process connected to the socket file, as the kernel knows it. */
static bool learn_user(int fd, struct gate_from *from)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	from->by_file = true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return false;
	from->uid = cred.uid;
	return true;
}

static void begin(struct peers *p, struct peer *peer, int fd, const struct gate_from *from)
{
	*peer = (struct peer){
	    .from = *from, .fd = fd, .state = PEER_ASKING, .until_ns = now_ns() + PATIENCE_NS};
	if (p->address->sa.any.sa_family == AF_UNIX && !learn_user(fd, &peer->from)) {
		peer_close(peer);
		return;
	}
	peer->place = place_of(&peer->from);
	if (p->tls) {
		peer->fd = admin_tls_wrap(p->tls, fd);
		if (peer->fd < 0) {
			peer->state = PEER_FREE;
			return;
		}
	}
	if (watch(p, EPOLL_CTL_ADD, peer->fd, EPOLLIN | EPOLLRDHUP | EPOLLET, peer) != 0)
		peer_close(peer);
}

/* -1: nothing there, or nothing to take it with. */
static int accept_one(struct peers *p, struct gate_from *from)
{
	struct sockaddr *address = (struct sockaddr *)&from->address;
	socklen_t n = sizeof(from->address);
	int fd = accept4(p->listen_fd, address, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

	while (fd < 0 && (errno == EMFILE || errno == ENFILE) && give_spare(p))
		fd = accept4(p->listen_fd, address, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		pause_listener(p);
	return fd;
}

/* One a turn: the listener stays ready while more wait, and a slot is only freed for a client that
 * is there. */
void peers_accept(struct peers *p)
{
	struct peer *slot = free_slot(p);
	struct gate_from from = {0};
	int fd = slot ? accept_one(p, &from) : -1;

	if (fd >= 0)
		begin(p, slot, fd, &from);
}

/* ---- patience ---- */

/* Who sent nothing (a browser's spare connection) is closed without a word. */
static void lose_patience(struct peers *p, struct peer *peer)
{
	static const struct head_problem late = {
	    .status = 408, .why = "the request did not arrive in 10 seconds"};

	if (peer->state == PEER_SERVED) {
		shutdown(peer->fd, SHUT_RDWR); /* the door notices and closes */
		peer->until_ns = now_ns() + LEAVE_NS;
	} else if (peer->state == PEER_ASKING &&
		   recv(peer->fd, p->peek, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
		refuse(p, peer, &late);
	} else {
		peer_close(peer);
	}
}

void peers_expire(struct peers *p)
{
	int64_t now = now_ns();

	for (int i = 0; i < PEERS_MAX; i++)
		if (p->slot[i].state != PEER_FREE && p->slot[i].until_ns <= now)
			lose_patience(p, &p->slot[i]);
	resume_listener(p);
}

int peers_timeout_ms(const struct peers *p)
{
	int64_t first = INT64_MAX;

	for (int i = 0; i < PEERS_MAX; i++)
		if (p->slot[i].state != PEER_FREE && p->slot[i].until_ns < first)
			first = p->slot[i].until_ns;
	if (first == INT64_MAX)
		return p->paused ? PAUSE_MS : -1;
	int64_t left = (first - now_ns()) / 1000000 + 1; /* rounded up: never early */
	if (p->paused && left > PAUSE_MS)
		return PAUSE_MS;
	return left < 0 ? 0 : (int)left;
}
