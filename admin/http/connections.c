/* SPDX-License-Identifier: MIT */
/*
 * Manages the connections of the endpoint; connections.h shows their states.
 *
 * While a request is incomplete, its bytes are only peeked at and stay in the socket, so that
 * libmicrohttpd can read the whole request later. With level-triggered epoll, these unread bytes
 * would cause a busy loop. Connections are therefore watched edge-triggered and checked each time
 * data arrives. While a slot is SERVED, libmicrohttpd owns its descriptor, until connections_gone
 * is called. Admin thread only.
 */
#include "connections.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <weir/clock.h>

/* Time limit from accept to the last byte of the request, and another such limit for the response.
 * 10 s is a guess: far longer than a head of 8 KiB takes on a slow link. */
#define PATIENCE_NS 10000000000LL
/* Time in which a refused client must read its response before the connection is closed. 1 s is a
 * guess. */
#define LEAVE_NS 1000000000LL
/* Interval of the checks for a free descriptor. 100 ms is a guess: too short for an operator to
 * notice. */
#define PAUSE_MS 100
/* Maximum number of bytes that a refused client may still send: a browser may already have begun to
 * upload a file. */
#define LEAVE_BYTES_MAX 65536

static int watch(const struct connections *p, int op, int fd, uint32_t events, void *tag)
{
	struct epoll_event ev = {.events = events, .data.ptr = tag};

	return epoll_ctl(p->epoll_fd, op, fd, &ev);
}

/* ---- descriptors ---- */

/* Replace spares that were used. They are duplicates of the epoll descriptor, but any open file
 * would serve. */
static void refill_spares(struct connections *p)
{
	for (int i = 0; i < CONNECTIONS_SPARES; i++)
		if (p->spare[i] < 0)
			p->spare[i] = fcntl(p->epoll_fd, F_DUPFD_CLOEXEC, 0);
}

static bool give_spare(struct connections *p)
{
	for (int i = 0; i < CONNECTIONS_SPARES; i++) {
		if (p->spare[i] < 0)
			continue;
		close(p->spare[i]);
		p->spare[i] = -1;
		return true;
	}
	return false;
}

/* Stop watching the listener for a while, since it stays ready while no connection can be
 * accepted. */
static void pause_listener(struct connections *p)
{
	p->paused = watch(p, EPOLL_CTL_MOD, p->listen_fd, 0, &p->listen_fd) == 0;
}

static void resume_listener(struct connections *p)
{
	refill_spares(p);
	if (p->paused && p->spare[0] >= 0)
		p->paused = watch(p, EPOLL_CTL_MOD, p->listen_fd, EPOLLIN, &p->listen_fd) != 0;
}

int connections_init(
    struct connections *p, int epoll_fd, int listen_fd, const struct authority *address)
{
	p->epoll_fd = epoll_fd;
	p->listen_fd = listen_fd;
	p->address = address;
	for (int i = 0; i < CONNECTIONS_SPARES; i++)
		p->spare[i] = -1;
	refill_spares(p);
	return watch(p, EPOLL_CTL_ADD, listen_fd, EPOLLIN, &p->listen_fd) == 0 ? 0 : WEIR_ESYS;
}

static void connection_close(struct connection *conn)
{
	close(conn->fd);
	conn->state = CONNECTION_FREE;
}

void connections_fini(struct connections *p)
{
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (p->slot[i].state == CONNECTION_READING ||
		    p->slot[i].state == CONNECTION_CLOSING)
			connection_close(&p->slot[i]);
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

/* Send a response. The socket buffer is empty, so both sends normally fit; a short send is not
 * continued. */
static void send_reply(int fd, const struct reply *r, int retry_after_s)
{
	char head[1536];
	int n = print_head(head, sizeof(head), r, retry_after_s);

	if (send(fd, head, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE) == n)
		send(fd, r->body, r->n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Discard input. Closing a socket with unread bytes would reset the connection and lose the
 * response. Returns false if the client has disconnected or sends too much. */
static bool drain(struct connections *p, struct connection *conn)
{
	ssize_t n = 0;

	while (conn->drained < LEAVE_BYTES_MAX &&
	       (n = recv(conn->fd, p->peek, sizeof(p->peek), MSG_DONTWAIT)) > 0)
		conn->drained += (size_t)n;
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void refuse(
    struct connections *p, struct connection *conn, const struct head_problem *problem)
{
	struct reply reply = {0};

	reply_problem(&reply, problem->status, "%s", problem->why);
	send_reply(conn->fd, &reply, problem->retry_after_s);
	reply_fini(&reply);
	shutdown(conn->fd, SHUT_WR);
	conn->state = CONNECTION_CLOSING;
	conn->until_ns = weir_clock_ns(CLOCK_MONOTONIC) + LEAVE_NS;
	if (!drain(p, conn))
		connection_close(conn);
}

/* ---- requests ---- */

static void serve(struct connections *p, struct connection *conn)
{
	watch(p, EPOLL_CTL_DEL, conn->fd, 0, NULL);
	conn->state = CONNECTION_SERVED;
	conn->until_ns = weir_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
	if (mhd_add(p->mhd, conn->fd, &conn->pass) != 0)
		conn->state = CONNECTION_FREE; /* mhd_add has closed the descriptor */
}

/* Hand over a stream watcher after reading its request from the socket. */
static void give_to_live(struct connections *p, struct connection *conn, size_t n)
{
	struct head_problem problem;

	if (sse_refuses(p->sse, p->peek, n, &conn->pass, &problem)) {
		refuse(p, conn, &problem);
		return;
	}
	watch(p, EPOLL_CTL_DEL, conn->fd, 0, NULL);
	conn->state = CONNECTION_FREE;
	if (recv(conn->fd, p->peek, n, MSG_DONTWAIT) == (ssize_t)n)
		sse_add(p->sse, conn->fd, p->peek, n, &conn->pass, weir_clock_ns(CLOCK_MONOTONIC));
	else
		close(conn->fd);
}

/* Authenticate a complete request and hand it over. */
static void judge(struct connections *p, struct connection *conn, size_t n)
{
	struct head_problem problem;

	if (!auth_judge(p->auth, &conn->from, p->peek, n, weir_clock_ns(CLOCK_MONOTONIC),
		&conn->pass, &problem))
		refuse(p, conn, &problem);
	else if (p->sse && sse_wants(p->peek, n))
		give_to_live(p, conn, n);
	else
		serve(p, conn);
}

static void look(struct connections *p, struct connection *conn, uint32_t events)
{
	struct head_problem problem;
	ssize_t n = recv(conn->fd, p->peek, sizeof(p->peek), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		connection_close(conn);
		return;
	}
	enum head_verdict verdict = head_check(p->address, p->peek, (size_t)n, &problem);
	if (verdict == HEAD_WHOLE)
		judge(p, conn, (size_t)n);
	else if (verdict == HEAD_BAD)
		refuse(p, conn, &problem);
	else if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		connection_close(conn);     /* the rest will never arrive */
	explicit_bzero(p->peek, (size_t)n); /* may contain tokens */
}

void connections_ready(struct connections *p, struct connection *conn, uint32_t events)
{
	if (conn->state == CONNECTION_READING)
		look(p, conn, events);
	else if (conn->state == CONNECTION_CLOSING && !drain(p, conn))
		connection_close(conn);
}

void connections_gone(struct auth_pass *pass)
{
	struct connection *conn =
	    (struct connection *)((char *)pass - offsetof(struct connection, pass));

	conn->state = CONNECTION_FREE;
}

/* ---- accepting ---- */

/* Count the slots held by the address of `conn`. Call it only when all slots are in use. */
static int connections_from(const struct connections *p, const struct connection *conn)
{
	int n = 0;

	for (int i = 0; i < CONNECTIONS_MAX; i++)
		n += memcmp(&p->slot[i].network, &conn->network, sizeof(conn->network)) == 0;
	return n;
}

/* Return the key under which the slots of a client are counted: its address or, on a socket file,
 * its user. */
static struct failures_key place_of(const struct auth_from *from)
{
	struct failures_key key = failures_key(&from->address);

	if (from->by_file)
		memcpy(key.bytes + 1, &from->uid, sizeof(from->uid));
	return key;
}

/* Select the connection to evict, by three criteria in this order: libmicrohttpd does not own it,
 * its address holds the most slots, its deadline is nearest. */
static struct connection *next_to_go(struct connections *p)
{
	struct connection *best = NULL;
	int best_crowd = 0;

	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *conn = &p->slot[i];
		bool ours = conn->state != CONNECTION_SERVED;
		bool best_ours = best && best->state != CONNECTION_SERVED;
		int n = connections_from(p, conn);
		if (!best || (ours && !best_ours) ||
		    (ours == best_ours &&
			(n > best_crowd || (n == best_crowd && conn->until_ns < best->until_ns)))) {
			best = conn;
			best_crowd = n;
		}
	}
	return best;
}

static struct connection *free_slot(struct connections *p)
{
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (p->slot[i].state == CONNECTION_FREE)
			return &p->slot[i];
	struct connection *conn = next_to_go(p);
	if (conn->state == CONNECTION_SERVED) {
		/* libmicrohttpd notices the end of the connection on its next run and frees the
		 * slot. */
		shutdown(conn->fd, SHUT_RDWR);
		return NULL;
	}
	connection_close(conn);
	return conn;
}

/* Get the user of the client on a socket file from the kernel. */
static bool learn_user(int fd, struct auth_from *from)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	from->by_file = true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return false;
	from->uid = cred.uid;
	return true;
}

static void begin(
    struct connections *p, struct connection *conn, int fd, const struct auth_from *from)
{
	*conn = (struct connection){.from = *from,
	    .fd = fd,
	    .state = CONNECTION_READING,
	    .until_ns = weir_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS};
	if (p->address->sa.any.sa_family == AF_UNIX && !learn_user(fd, &conn->from)) {
		connection_close(conn);
		return;
	}
	conn->network = place_of(&conn->from);
	if (p->tls) {
		conn->fd = admin_tls_wrap(p->tls, fd);
		if (conn->fd < 0) {
			conn->state = CONNECTION_FREE;
			return;
		}
	}
	if (watch(p, EPOLL_CTL_ADD, conn->fd, EPOLLIN | EPOLLRDHUP | EPOLLET, conn) != 0)
		connection_close(conn);
}

/* Accept a connection and return its descriptor. Returns -1 if no connection is waiting or no
 * descriptor is free. */
static int accept_one(struct connections *p, struct auth_from *from)
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

/* Accept one connection per iteration of the admin loop. That is enough, since the listener stays
 * ready while more are waiting. An older connection is evicted only if a new one is waiting. */
void connections_accept(struct connections *p)
{
	struct connection *slot = free_slot(p);
	struct auth_from from = {0};
	int fd = slot ? accept_one(p, &from) : -1;

	if (fd >= 0)
		begin(p, slot, fd, &from);
}

/* ---- deadlines ---- */

/* Handle a deadline that has passed. A connection on which nothing was received (browsers open
 * spare ones) is closed without a response. */
static void lose_patience(struct connections *p, struct connection *conn)
{
	static const struct head_problem late = {
	    .status = 408, .why = "the request did not arrive in 10 seconds"};

	if (conn->state == CONNECTION_SERVED) {
		shutdown(conn->fd, SHUT_RDWR); /* libmicrohttpd notices and closes */
		conn->until_ns = weir_clock_ns(CLOCK_MONOTONIC) + LEAVE_NS;
	} else if (conn->state == CONNECTION_READING &&
		   recv(conn->fd, p->peek, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
		refuse(p, conn, &late);
	} else {
		connection_close(conn);
	}
}

void connections_expire(struct connections *p)
{
	int64_t now = weir_clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (p->slot[i].state != CONNECTION_FREE && p->slot[i].until_ns <= now)
			lose_patience(p, &p->slot[i]);
	resume_listener(p);
}

int connections_timeout_ms(const struct connections *p)
{
	int64_t first = INT64_MAX;

	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (p->slot[i].state != CONNECTION_FREE && p->slot[i].until_ns < first)
			first = p->slot[i].until_ns;
	if (first == INT64_MAX)
		return p->paused ? PAUSE_MS : -1;
	int64_t left =
	    /* rounded up, so that the deadline has passed when the wait ends */
	    (first - weir_clock_ns(CLOCK_MONOTONIC)) / 1000000 + 1;
	if (p->paused && left > PAUSE_MS)
		return PAUSE_MS;
	return left < 0 ? 0 : (int)left;
}
