/* SPDX-License-Identifier: MIT */
/*
 * Connections to origins: opening, keeping, closing.
 *
 * A connection is watched edge-triggered from its start to its end, so that an exchange costs no call of
 * epoll_ctl. Idle connections are used last in, first out, so that those that are not needed reach
 * `idle` and are closed. An idle connection that becomes readable is closed: the origin has closed it, or
 * sends what nobody has asked for.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/log.h>

#include "http/client/client_calls.h"

/* Requests over a connection between two measurements of its round trip, each a system call. */
#define MEASURE_EVERY 64

static bool buffer_take(struct upstream *u)
{
	struct client_loop *cl = u->cl;
	struct buffer *b = cl->n_kept > 0 ? cl->kept[--cl->n_kept] : malloc(sizeof(*b));

	if (!b)
		return false;
	b->cl = cl;
	b->loop = cl->loop;
	u->mem = b;
	u->buffer = b->bytes;
	u->fill = CLIENT_BUFFER_BYTES;
	return true;
}

/* In the thread of the loop. */
static void buffer_keep(struct buffer *b)
{
	struct client_loop *cl = b->cl;

	if (cl->n_kept < CLIENT_BUFFERS_KEPT)
		cl->kept[cl->n_kept++] = b;
	else
		free(b);
}

static void buffer_give(struct upstream *u)
{
	if (u->mem)
		buffer_keep(u->mem);
	u->mem = NULL;
	u->buffer = NULL;
	u->start = u->end = 0;
}

struct buffer *upstream_lend(struct upstream *u)
{
	struct buffer *b = u->mem;

	if (u->start != u->end || u->readable)
		return NULL;
	u->mem = NULL;
	u->buffer = NULL;
	u->start = u->end = 0;
	return b;
}

void upstream_give_back(void *buffer)
{
	struct buffer *b = buffer;

	if (weir_loop_is_mine(b->loop))
		buffer_keep(b);
	else
		free(b);
}

static void leave_idle(struct upstream *u)
{
	*u->prev = u->next;
	if (u->next)
		u->next->prev = u->prev;
}

void upstream_close(struct upstream *u)
{
	struct client_loop *cl = u->cl;

	if (u->state == UPSTREAM_IDLE)
		leave_idle(u);
	if (u->x) {
		pick_end(u->x, u->origin);
		u->x->up = NULL;
	}
	weir_timer_cancel(cl->loop, &u->timer);
	weir_loop_del(cl->loop, &u->watch);
	tls_origin_free(u->tls);
	close(u->watch.fd);
	buffer_give(u);
	u->origin->open--;
	rows_open(u->origin, -1);
	client_loop_room(cl);
	client_count(cl, CLIENT_CONNECTIONS, -1);
	free(u);
}

void upstream_close_idle(struct client_loop *cl, struct origin *o)
{
	struct upstream *next;

	(void)cl;
	for (struct upstream *u = o->idle; u; u = next) {
		next = u->next;
		upstream_close(u);
	}
}

static void timed(struct weir_loop *loop, struct weir_timer *t)
{
	struct upstream *u = (struct upstream *)((char *)t - offsetof(struct upstream, timer));

	(void)loop;
	if (u->x)
		exchange_timed(u->x);
	else
		upstream_close(u);
}

void upstream_keep(struct upstream *u)
{
	struct client_loop *cl = u->cl;
	struct origin *o = u->origin;

	if (!o->live) { /* the name of the origin has other addresses now */
		upstream_close(u);
		return;
	}
	pick_end(u->x, o);
	u->x->up = NULL;
	u->x = NULL;
	u->state = UPSTREAM_IDLE;
	u->since_ns = client_now_ns(cl);
	buffer_give(u);
	u->next = o->idle;
	u->prev = &o->idle;
	if (u->next)
		u->next->prev = &u->next;
	o->idle = u;
	weir_timer_set(cl->loop, &u->timer, u->since_ns + client_conf(cl)->idle_ns);
	client_loop_room(cl);
}

static void shake(struct upstream *u)
{
	struct client_loop *cl = u->cl;
	struct origin *o = u->origin;
	int rc = tls_origin_shake(u->tls);

	if (rc == 0)
		return;
	if (rc < 0) {
		client_count(cl, CLIENT_TLS_FAILURES, 1);
		if (!o->said)
			weir_log(WEIR_LOG_WARN, "%s: origin %s: %s",
			    weir_stage_name(cl->client->st), o->spec->text, tls_origin_why(u->tls));
		o->said = true;
		exchange_failed(u->x, FAILURE_CONNECT);
		return;
	}
	client_count(cl, CLIENT_TLS_RESUMED, tls_origin_resumed(u->tls));
	o->said = false;
	u->state = UPSTREAM_BUSY;
	exchange_opened(u->x);
}

/* The connection is open, or has failed. */
static void connected(struct upstream *u)
{
	struct exchange *x = u->x;
	int error = 0;
	socklen_t n = sizeof(error);

	if (getsockopt(u->watch.fd, SOL_SOCKET, SO_ERROR, &error, &n) == -1 || error != 0) {
		exchange_failed(x, FAILURE_CONNECT);
		return;
	}
	upstream_measure(u);
	if (!u->origin->spec->secure) {
		u->state = UPSTREAM_BUSY;
		exchange_opened(x);
		return;
	}
	u->state = UPSTREAM_SHAKING;
	u->tls = tls_origin_new(
	    u->cl->client->tls, u->watch.fd, u->origin->spec->host, &u->origin->session);
	if (u->tls)
		shake(u);
	else
		exchange_failed(x, FAILURE_CONNECT);
}

static void ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct upstream *u = (struct upstream *)w;

	(void)loop;
	u->readable |= (events & ~(uint32_t)EPOLLOUT) != 0;
	u->writable |= (events & EPOLLOUT) != 0;
	u->hung_up |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	if (u->tls)
		upstream_ready_tls(u);
	if (u->tunnel) {
		tunnel_origin_ready(u->tunnel);
		return;
	}
	switch ((enum upstream_state)u->state) {
	case UPSTREAM_CONNECTING:
		if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
			connected(u);
		return;
	case UPSTREAM_SHAKING:
		shake(u);
		return;
	case UPSTREAM_BUSY:
		exchange_run(u->x);
		return;
	case UPSTREAM_IDLE:
		if (u->readable && !upstream_still_good(u))
			upstream_close(u);
	}
}

int upstream_socket(const struct address *address)
{
	int fd = socket(address->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1;

	if (fd == -1)
		return -1;
	if (address->addr.ss_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)&address->addr, address->n) == 0 ||
	    errno == EINPROGRESS)
		return fd;
	close(fd);
	return -1;
}

bool upstream_lacks_descriptor(void)
{
	return errno == EMFILE || errno == ENFILE;
}

static bool open_new(struct exchange *x, struct origin *o)
{
	struct client_loop *cl = x->cl;
	struct upstream *u = calloc(1, sizeof(*u));

	if (!u)
		return false;
	u->cl = cl;
	u->timer.fire = timed;
	u->origin = o;
	u->watch = (struct weir_watch){
	    .ready = ready, .fd = buffer_take(u) ? upstream_socket(&o->address) : -1};
	if (u->watch.fd != -1 &&
	    weir_loop_add(cl->loop, &u->watch, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET) != 0) {
		close(u->watch.fd);
		u->watch.fd = -1;
	}
	if (u->watch.fd == -1) {
		buffer_give(u);
		free(u);
		return false;
	}
	u->since_ns = client_now_ns(cl);
	u->x = x;
	x->up = u;
	o->open++;
	rows_open(o, 1);
	client_count(cl, CLIENT_CONNECTIONS, 1);
	client_count(cl, CLIENT_CONNECTS, 1);
	return true;
}

/* Whether `x` may use an idle connection. */
static bool may_reuse(const struct exchange *x, const struct upstream *u)
{
	return !x->stale &&
	       (x->idempotent || client_now_ns(x->cl) - u->since_ns <= CLIENT_FRESH_NS);
}

/* The idle connection to `o` that `x` may use, or NULL; then *old is one that it may not use, or NULL. */
static struct upstream *find_idle(const struct exchange *x, struct origin *o, struct upstream **old)
{
	struct upstream *u, *next;

	*old = NULL;
	for (u = o->idle; u && may_reuse(x, u); u = next) {
		if (upstream_still_good(u))
			return u;
		next = u->next;
		upstream_close(u);
	}
	*old = u;
	return NULL;
}

static bool reuse(struct exchange *x, struct upstream *u)
{
	if (!buffer_take(u))
		return false;
	leave_idle(u);
	u->state = UPSTREAM_BUSY;
	u->x = x;
	x->up = u;
	if (u->requests % MEASURE_EVERY == 0)
		upstream_measure(u);
	client_count(x->cl, CLIENT_REUSES, 1);
	return true;
}

static int open_max(const struct client_loop *cl)
{
	int sharers = atomic_load_explicit(&cl->client->sharers, memory_order_relaxed);

	sharers = sharers > 0 ? sharers : 1;
	return (int)((client_conf(cl)->max_connections + sharers - 1) / sharers);
}

bool upstream_is_surplus(const struct upstream *u)
{
	return u->origin->open > open_max(u->cl);
}

bool upstream_has_room(const struct client_loop *cl, const struct origin *o)
{
	return o->idle || o->open < open_max(cl);
}

bool upstream_get(struct exchange *x, struct origin *o, bool *broken)
{
	struct upstream *old, *u = find_idle(x, o, &old);

	*broken = false;
	if (u && reuse(x, u)) {
		pick_begin(x, o);
		return true;
	}
	if (u)
		old = u; /* no memory */
	if (o->open >= open_max(x->cl) && old)
		upstream_close(old); /* too old for this request */
	if (o->open >= open_max(x->cl))
		return false;
	if (!open_new(x, o)) {
		*broken = true;
		return true;
	}
	pick_begin(x, o);
	return true;
}
