/* SPDX-License-Identifier: MIT */
/*
 * Upgraded connections, such as those of WebSocket: two sockets joined both ways.
 *
 *   request with Upgrade --> exchange --101 of the origin--> tunnel: client <--> origin
 *                                '------another status----> an answer like any other
 *
 * With the 101, the client's connection is taken from http.server (conn/take.h), the event is finished, so
 * that its width is free, and the connection to the origin leaves the pool. From then on no byte is
 * looked at. Each direction has one buffer: what the receiver does not take is not read from the sender.
 * The end of one side is passed on as soon as the bytes before it are, and the other direction goes on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/client/client_calls.h"
#include "http/conn/take.h"
#include "http/message/put.h"
#include "net/tls/tls_conn.h"

/* The buffer from the client to the origin. */
#define BUFFER_BYTES 16384

struct tunnel {
	struct weir_watch watch; /* first member: the client's socket */
	struct weir_timer timer;
	struct client_loop *cl;
	struct upstream *up;
	struct tls_conn *tls;        /* of the client; NULL without TLS */
	int64_t held_bytes;          /* of `tls` */
	struct tunnel *next, **prev; /* in cl->tunnels */
	char *head;                  /* of the answer, until it is sent; owned */
	size_t head_n, head_at;
	char *buffer; /* from the client: [start, end) is not sent yet */
	size_t start, end, size;
	bool readable, writable;       /* the client's socket, as in struct upstream */
	bool peer_done;                /* the client has shut its side down (epoll) */
	bool client_end, origin_end;   /* nothing more comes from it */
	bool client_shut, origin_shut; /* the end has been passed on to it */
	int64_t moved_ns;              /* when bytes have moved last */
};

/* ---- end ---- */

static void end(struct tunnel *t)
{
	struct client_loop *cl = t->cl;

	*t->prev = t->next;
	if (t->next)
		t->next->prev = t->prev;
	weir_timer_cancel(cl->loop, &t->timer);
	weir_loop_del(cl->loop, &t->watch);
	if (t->tls)
		tls_conn_close(t->tls, t->watch.fd);
	else
		close(t->watch.fd);
	tls_conn_free(t->tls);
	upstream_close(t->up);
	free(t->head);
	free(t->buffer);
	free(t);
	client_count(cl, CLIENT_UPGRADES, -1);
	atomic_fetch_sub(&cl->client->upgrades, 1);
	client_released(cl);
}

void tunnel_end_all(struct client_loop *cl)
{
	for (struct tunnel *t = cl->tunnels, *next; t; t = next) {
		next = t->next;
		end(t);
	}
}

static void timed(struct weir_loop *loop, struct weir_timer *timer)
{
	struct tunnel *t = (struct tunnel *)((char *)timer - offsetof(struct tunnel, timer));
	int64_t due_ns = t->moved_ns + client_conf(t->cl)->upgrade_idle_ns;

	if (weir_loop_now_ns(loop) >= due_ns)
		end(t);
	else
		weir_timer_set(loop, timer, due_ns);
}

/* ---- the client's socket: the number of bytes, 0 if there are none now, -1 at the end or on an error ---- */

static int64_t client_read(struct tunnel *t)
{
	ssize_t n;

	if (!t->readable)
		return 0;
	do
		n = t->tls ? tls_recv(t->tls, t->buffer, t->size)
			   : recv(t->watch.fd, t->buffer, t->size, 0);
	while (n == -1 && errno == EINTR);
	if (n == -1 && errno == EAGAIN) {
		t->readable = false;
		return 0;
	}
	return n > 0 ? n : -1;
}

static int64_t client_send(struct tunnel *t, const char *p, size_t n)
{
	struct iovec iov = {(char *)(uintptr_t)p, n};
	ssize_t sent;

	if (!t->writable)
		return 0;
	do
		sent = t->tls ? tls_send(t->tls, &iov, 1, false)
			      : send(t->watch.fd, p, n, MSG_NOSIGNAL);
	while (sent == -1 && errno == EINTR);
	if (sent == -1 && errno != EAGAIN)
		return -1;
	t->writable = sent == (ssize_t)n;
	return sent > 0 ? sent : 0;
}

/* ---- moving bytes: each returns whether it could go on, and sets *broken on an error ---- */

static bool moved(struct tunnel *t, int64_t n)
{
	t->moved_ns = client_now_ns(t->cl);
	client_count(t->cl, CLIENT_UPGRADE_BYTES, n);
	return true;
}

static bool from_client(struct tunnel *t, bool *broken)
{
	int64_t n;

	if (t->start < t->end) {
		struct iovec iov = {t->buffer + t->start, t->end - t->start};
		n = upstream_send(t->up, &iov, 1);
		*broken |= n < 0;
		if (n <= 0)
			return false;
		t->start += (size_t)n;
		return moved(t, n);
	}
	if (t->client_end) {
		if (!t->origin_shut)
			*broken |= t->up->tls || shutdown(t->up->watch.fd, SHUT_WR) == -1;
		t->origin_shut = true;
		return false;
	}
	n = client_read(t);
	t->start = 0;
	t->end = n > 0 ? (size_t)n : 0;
	t->client_end = n < 0;
	return n != 0;
}

static bool to_client_head(struct tunnel *t, bool *broken)
{
	int64_t n = client_send(t, t->head + t->head_at, t->head_n - t->head_at);

	*broken |= n < 0;
	if (n <= 0)
		return false;
	t->head_at += (size_t)n;
	if (t->head_at == t->head_n) {
		free(t->head);
		t->head = NULL;
	}
	return true;
}

static bool from_origin(struct tunnel *t, bool *broken)
{
	struct upstream *u = t->up;
	int64_t n;

	if (t->head)
		return to_client_head(t, broken);
	if (u->start < u->end) {
		n = client_send(t, u->buffer + u->start, u->end - u->start);
		*broken |= n < 0;
		if (n <= 0)
			return false;
		u->start += (uint32_t)n;
		return moved(t, n);
	}
	if (t->origin_end) {
		if (!t->client_shut)
			*broken |= t->tls || shutdown(t->watch.fd, SHUT_WR) == -1;
		t->client_shut = true;
		return false;
	}
	n = upstream_read(u);
	t->origin_end = n < 0;
	return n != 0;
}

static void pump(struct tunnel *t)
{
	bool broken = false, on = true;

	for (int turns = CLIENT_TURN_BYTES / BUFFER_BYTES; on && !broken && turns > 0; turns--) {
		on = from_client(t, &broken);
		if (!broken)
			on |= from_origin(t, &broken);
	}
	if (broken || (t->client_shut && t->origin_shut)) {
		end(t);
		return;
	}
	if (on || (t->tls && tls_left(t->tls))) { /* others get their turn first */
		upstream_rearm(t->up);
		weir_loop_mod(t->cl->loop, &t->watch, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	}
}

void tunnel_origin_ready(struct tunnel *t)
{
	pump(t);
}

static void ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct tunnel *t = (struct tunnel *)w;
	bool rearm = false;

	t->peer_done |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	if (t->tls)
		events = tls_on_ready(t->tls, events, t->peer_done, &rearm);
	t->readable |= (events & ~(uint32_t)EPOLLOUT) != 0;
	t->writable |= (events & EPOLLOUT) != 0;
	if (rearm)
		weir_loop_mod(loop, w, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	pump(t);
}

/* ---- begin ---- */

static struct weir_slice word(const char *text)
{
	return (struct weir_slice){text, strlen(text)};
}

bool tunnel_wanted(const struct exchange *x)
{
	return x->cl->client && client_conf(x->cl)->upgrades > 0 && http_asks_upgrade(x->req) &&
	       x->req->method == WEIR_HTTP_GET && x->req->minor == 1 && x->req->body.n == 0 &&
	       !weir_http_body_streamed(x->req) &&
	       weir_slice_is(weir_http_header(x->req, "upgrade"), "websocket") &&
	       http_may_take(x->req, x->cl->loop);
}

bool tunnel_reserve(struct client *c, int64_t most)
{
	if (atomic_fetch_add(&c->upgrades, 1) < most)
		return true;
	atomic_fetch_sub(&c->upgrades, 1);
	return false;
}

/* Whether the answer is a 101 to the request: it names the protocol, and has no body. */
static bool is_good(const struct http_head *h)
{
	bool upgrade = false, connection = false;

	for (int i = 0; i < h->n_headers; i++) {
		const struct weir_http_header *f = &h->headers[i];
		if (weir_slice_is(f->name, "upgrade")) {
			if (upgrade ||
			    !(f->value.n == 9 && strncasecmp(f->value.p, "websocket", 9) == 0))
				return false;
			upgrade = true;
		}
		if (weir_slice_is(f->name, "connection"))
			connection |= client_lists(f->value, word("upgrade"));
	}
	return upgrade && connection && h->minor == 1 && !h->has_length && !h->chunked;
}

/* The head for the client. The fields of the origin, but for those of one hop. */
static char *make_head(const struct client *c, const struct http_head *h, size_t *n)
{
	size_t room = 256 + strlen(c->via);
	char *head, *at;

	for (int i = 0; i < h->n_headers; i++)
		room += h->headers[i].name.n + h->headers[i].value.n + 4;
	head = at = malloc(room);
	if (!head)
		return NULL;
	at = PUT(at,
	    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n");
	for (int i = 0; i < h->n_headers; i++) {
		const struct weir_http_header *f = &h->headers[i];
		if (!answer_passes(h, f->name))
			continue;
		at = PUT(put(at, f->name.p, f->name.n), ": ");
		at = f->value.n > 0 ? put(at, f->value.p, f->value.n) : at;
		at = PUT(at, "\r\n");
	}
	at = put(PUT(at, "Via: "), c->via, strlen(c->via));
	*n = (size_t)(PUT(at, "\r\n\r\n") - head);
	return head;
}

/* Make a tunnel of what was taken, which it then owns. Returns NULL if out of memory. */
static struct tunnel *join(struct client_loop *cl, const struct http_taken *taken)
{
	struct tunnel *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->size = taken->n_early > BUFFER_BYTES ? taken->n_early : BUFFER_BYTES;
	t->buffer = malloc(t->size);
	t->watch = (struct weir_watch){.ready = ready, .fd = taken->fd};
	t->cl = cl;
	t->tls = taken->tls;
	t->readable = true; /* what epoll has told http.server is not told again */
	t->writable = true;
	t->timer.fire = timed;
	t->moved_ns = client_now_ns(cl);
	if (!t->buffer ||
	    weir_loop_add(cl->loop, &t->watch, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET) != 0) {
		free(t->buffer);
		free(t);
		return NULL;
	}
	if (taken->n_early > 0)
		memcpy(t->buffer, taken->early, taken->n_early);
	t->end = taken->n_early;
	if (t->tls) {
		struct tls_user user = {
		    .loop = cl->loop, .conn = t, .held_bytes = &t->held_bytes, .address = {"", 0}};
		tls_conn_move(t->tls, &user);
	}
	return t;
}

static void close_taken(struct http_taken *taken)
{
	if (taken->tls)
		tls_conn_close(taken->tls, taken->fd);
	else
		close(taken->fd);
	tls_conn_free(taken->tls);
}

/* The exchange ends, and its connection to the origin is that of `t`. */
static void begin(struct exchange *x, struct tunnel *t)
{
	struct client_loop *cl = x->cl;
	struct upstream *u = x->up;

	t->up = u;
	t->next = cl->tunnels;
	t->prev = &cl->tunnels;
	if (t->next)
		t->next->prev = &t->next;
	cl->tunnels = t;
	atomic_fetch_add(&cl->held, 1);
	client_count(cl, CLIENT_UPGRADES, 1);
	client_count(cl, CLIENT_UPGRADES_TOTAL, 1);
	pick_succeeded(cl, u->origin);
	pick_end(x, u->origin);
	u->tunnel = t;
	/* it is that of the exchange, and would take the connection for an idle one */
	weir_timer_cancel(cl->loop, &u->timer);
	u->x = NULL;
	x->up = NULL;
	x->upgrade = false; /* the tunnel counts now */
	x->req->res.status = 101;
	exchange_end(x, WEIR_OK, 0);
	weir_timer_set(cl->loop, &t->timer, t->moved_ns + client_conf(cl)->upgrade_idle_ns);
	pump(t);
}

enum step tunnel_begin(struct exchange *x, const struct http_head *h)
{
	struct http_taken taken;
	struct tunnel *t;
	size_t head_n = 0;
	char *head;
	int rc;

	if (!x->upgrade || !is_good(h))
		return exchange_failed(x, FAILURE_BAD);
	head = make_head(x->cl->client, h, &head_n);
	rc = head ? http_take(x->req, &taken) : WEIR_ENOMEM;
	if (rc != 0) {
		free(head);
		x->why = "busy";
		return rc == WEIR_EBUSY ? exchange_end(x, WEIR_EFAILED, 503)
					: exchange_end(x, rc, 0);
	}
	t = join(x->cl, &taken);
	free(taken.early);
	if (!t) {
		free(head);
		close_taken(&taken);
		return exchange_end(x, WEIR_ENOMEM, 0);
	}
	t->head = head;
	t->head_n = head_n;
	begin(x, t);
	return STEP_OVER;
}
