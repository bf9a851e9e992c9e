/* SPDX-License-Identifier: MIT */
/*
 * TLS termination for the endpoint. A connection copies bytes in both directions, with one buffer
 * for each direction. While one side does not accept bytes, nothing is read from the opposite side;
 * other connections are not affected.
 *
 * States of a connection: handshake (!shaken), copying, and flushing once the inner side has
 * closed. While flushing, the rest of the response is sent for at most FLUSH_NS, on at most
 * LEAVING_MAX connections at once. `dead` connections are freed at the end of admin_tls_run. Admin
 * thread only.
 */
#include "admin_tls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <weir/log.h>

#include "admin_tls_keys.h"
#include "admin/stream/sse.h"
#include "connections.h"

/* RFC 8996 forbids versions older than TLS 1.2. */
#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

/* Maximum number of connections being flushed. Each connection behind TLS can end up in this state,
 * if its client is slow to read the last bytes. */
#define LEAVING_MAX CONNECTIONS_MAX
/* Maximum number of connections: all that can be open behind TLS, plus those being flushed. */
#define TLS_CONNECTIONS_MAX (CONNECTIONS_MAX + SSE_WATCHERS_MAX + LEAVING_MAX)
/* Buffer sizes: a TLS record has at most 16 KiB, and requests are smaller. */
#define OUT_BYTES 16384
#define IN_BYTES  4096
/* Time limit for a client to read the end of a response. 10 s is a guess, equal to the limit for
 * the rest of the response. */
#define FLUSH_NS    10000000000LL
#define LOOK_NS     1000000000LL
#define TURN_EVENTS 64
struct tls_connection;

struct side {
	struct tls_connection *of;
	int fd;
	uint32_t events; /* events registered with epoll */
	bool watched;
};

struct tls_connection {
	struct side net, inner;
	gnutls_session_t session;
	struct keys *keys;
	bool shaken;               /* the handshake is done */
	bool net_over, inner_over; /* no more input from this side */
	bool dead;
	int64_t flush_ns; /* time at which the inner side was found closed; 0 while it is open */
	size_t in, in_sent, out, out_sent;
	struct tls_connection *next, *prev;
	char in_bytes[IN_BYTES], out_bytes[OUT_BYTES];
};

struct admin_tls {
	int epoll_fd, n;
	struct keys *keys;
	struct tls_connection *first;
	int64_t now_ns, looked_ns; /* time of this run, and of the last look_for_leavers */
};

/* ---- keys ---- */

static int fail(struct weir_err *err, int code, const char *cert, const char *why)
{
	err->code = code;
	snprintf(err->text, sizeof(err->text), "the certificate %s cannot be used: %s", cert, why);
	return code;
}

int admin_tls_check(const char *cert, const char *key, struct weir_err *err)
{
	struct keys *k = NULL;
	int rc = keys_new(cert, key, &k, err);

	keys_unref(k);
	return rc;
}

void admin_tls_reload(struct admin_tls *t)
{
	struct weir_err err = {0};
	struct keys *k;

	if (keys_new(t->keys->cert, t->keys->key, &k, &err) != 0) {
		weir_log(
		    WEIR_LOG_ERROR, "admin: TLS continues with the old certificate: %s", err.text);
		return;
	}
	admin_tls_use(t, k);
}

void admin_tls_use(struct admin_tls *t, struct keys *keys)
{
	keys_unref(t->keys);
	t->keys = keys;
}

/* ---- epoll interest ---- */

/* Watch a side for `events`, or stop watching it if there are none. epoll always reports a hangup,
 * so a peer that has hung up would otherwise make the side ready forever. */
static void watch(struct admin_tls *t, struct side *s, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = s};
	int op = !events ? EPOLL_CTL_DEL : s->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (s->events == events)
		return;
	if (epoll_ctl(t->epoll_fd, op, s->fd, &ev) != 0)
		s->of->dead = true;
	s->watched = events != 0;
	s->events = events;
}

static void watch_both(struct admin_tls *t, struct tls_connection *c)
{
	uint32_t net = 0, inner = 0;

	if (!c->shaken)
		net = gnutls_record_get_direction(c->session) ? EPOLLOUT : EPOLLIN;
	else
		net = (c->in == 0 && !c->net_over ? EPOLLIN : 0) | (c->out > 0 ? EPOLLOUT : 0);
	inner = (!c->shaken || c->out == 0 ? EPOLLIN : 0) | (c->in > 0 ? EPOLLOUT : 0);
	watch(t, &c->net, net);
	watch(t, &c->inner, c->inner_over ? 0 : inner);
}

/* ---- copying ---- */

static bool would_wait(ssize_t n)
{
	return n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED;
}

static void shake(struct tls_connection *c)
{
	char byte;
	int rc = gnutls_handshake(c->session);

	c->shaken = rc == GNUTLS_E_SUCCESS;
	if (rc < 0 && gnutls_error_is_fatal(rc))
		c->dead = true;
	/* During the handshake, the inner side has received nothing. It can only close the
	 * connection, which it does after a timeout. */
	if (!c->shaken && recv(c->inner.fd, &byte, 1, MSG_DONTWAIT) == 0)
		c->dead = true;
}

/* Copy from the inner side to the client. Returns whether there may be more to copy. */
static bool carry_out(struct tls_connection *c)
{
	if (c->out == 0) {
		ssize_t n =
		    c->inner_over ? 0 : recv(c->inner.fd, c->out_bytes, OUT_BYTES, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		c->inner_over |= n <= 0;
		if (n <= 0)
			return false;
		c->out = (size_t)n;
		c->out_sent = 0;
	}
	ssize_t n =
	    gnutls_record_send(c->session, c->out_bytes + c->out_sent, c->out - c->out_sent);
	if (would_wait(n))
		return false;
	if (n < 0) {
		c->dead = true;
		return false;
	}
	c->out_sent += (size_t)n;
	if (c->out_sent == c->out)
		c->out = 0;
	return true;
}

static bool carry_in(struct tls_connection *c)
{
	if (c->in == 0) {
		ssize_t n = c->net_over ? 0 : gnutls_record_recv(c->session, c->in_bytes, IN_BYTES);
		if (would_wait(n) || c->net_over)
			return false;
		/* the connection was cut off, or the client sent a forbidden message such as a
		 * renegotiation */
		if (n < 0) {
			c->dead = true;
			return false;
		}
		c->net_over = n == 0;
		if (n == 0) {
			shutdown(c->inner.fd, SHUT_WR);
			return false;
		}
		c->in = (size_t)n;
		c->in_sent = 0;
	}
	ssize_t n = send(
	    c->inner.fd, c->in_bytes + c->in_sent, c->in - c->in_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0) { /* the inner side has closed, so nobody will read the remaining bytes */
		c->net_over = true;
		c->in = 0;
		return false;
	}
	c->in_sent += (size_t)n;
	if (c->in_sent == c->in) {
		explicit_bzero(c->in_bytes, c->in); /* may contain tokens */
		c->in = 0;
	}
	return true;
}

/* Copy in both directions as far as possible without waiting. The loops terminate: this same thread
 * serves the other end of the inner socket, and does so only after this function has returned. */
static void step(struct admin_tls *t, struct tls_connection *c)
{
	if (!c->shaken)
		shake(c);
	while (c->shaken && !c->dead && carry_in(c))
		;
	while (c->shaken && !c->dead && carry_out(c))
		;
	if (c->inner_over && c->out == 0) {
		if (!c->dead)
			gnutls_bye(c->session, GNUTLS_SHUT_WR);
		c->dead = true;
	}
	if (c->inner_over && c->flush_ns == 0)
		c->flush_ns = t->now_ns;
	if (!c->dead)
		watch_both(t, c);
}

/* ---- connections ---- */

static void tls_connection_free(struct admin_tls *t, struct tls_connection *c)
{
	if (t->first == c)
		t->first = c->next;
	else
		c->prev->next = c->next;
	if (c->next)
		c->next->prev = c->prev;
	t->n--;
	shutdown(c->net.fd, SHUT_WR);
	close(c->net.fd);
	close(c->inner.fd);
	gnutls_deinit(c->session);
	keys_unref(c->keys);
	explicit_bzero(c->in_bytes, sizeof(c->in_bytes));
	free(c);
}

static bool make_session(struct tls_connection *c)
{
	if (gnutls_init(&c->session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0)
		return false;
	if (gnutls_priority_set_direct(c->session, PRIORITIES, NULL) < 0 ||
	    gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, c->keys->credentials) < 0) {
		gnutls_deinit(c->session);
		return false;
	}
	gnutls_certificate_server_set_request(c->session, GNUTLS_CERT_IGNORE);
	gnutls_transport_set_int(c->session, c->net.fd);
	return true;
}

static struct tls_connection *tls_connection_new(struct admin_tls *t, int net, int inner)
{
	struct tls_connection *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->net = (struct side){.of = c, .fd = net};
	c->inner = (struct side){.of = c, .fd = inner};
	c->keys = t->keys;
	if (!make_session(c)) {
		free(c);
		return NULL;
	}
	c->keys->refs++;
	c->next = t->first;
	if (c->next)
		c->next->prev = c;
	t->first = c;
	t->n++;
	return c;
}

/* ---- connections that are being flushed ---- */

/* Return whether the inner side has closed. A read would first return the bytes that are still
 * unread, so this function uses poll. */
static bool hung_up(const struct tls_connection *c)
{
	struct pollfd p = {.fd = c->inner.fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

/* Set `flush_ns` of connections whose inner side has closed; return the number of connections being
 * flushed. Only connections whose client reads nothing are found here: step() finds all others. */
static int look_for_leavers(struct admin_tls *t)
{
	int n = 0;

	t->looked_ns = t->now_ns;
	for (struct tls_connection *c = t->first; c; c = c->next) {
		if (c->flush_ns == 0 && c->out > 0 && hung_up(c))
			c->flush_ns = t->now_ns;
		n += c->flush_ns != 0;
	}
	return n;
}

/* If too many connections are being flushed, close the one whose flush started first. Otherwise a
 * client that sends requests, reads nothing and reconnects could occupy all slots without a
 * token. */
static void make_room(struct admin_tls *t)
{
	struct tls_connection *best = NULL;
	bool many = look_for_leavers(t) >= LEAVING_MAX;

	for (struct tls_connection *c = many ? t->first : NULL; c; c = c->next)
		if (c->flush_ns != 0 && (!best || c->flush_ns <= best->flush_ns))
			/* on a tie, prefer the later entry, which is the older connection */
			best = c;
	if (best)
		tls_connection_free(t, best);
}

int admin_tls_wrap(struct admin_tls *t, int fd)
{
	int pair[2] = {-1, -1};
	struct tls_connection *c = NULL;

	make_room(t);
	if (t->n < TLS_CONNECTIONS_MAX &&
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0)
		c = tls_connection_new(t, fd, pair[0]);
	if (c) {
		step(t, c);
		if (!c->dead)
			return pair[1];
		tls_connection_free(t, c); /* closes fd and pair[0] */
		close(pair[1]);
		return -1;
	}
	close(fd);
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
	return -1;
}

/* ---- the loop ---- */

int admin_tls_fd(const struct admin_tls *t)
{
	return t->epoll_fd;
}

void admin_tls_run(struct admin_tls *t, int64_t now_ns)
{
	struct epoll_event ev[TURN_EVENTS];
	int n = epoll_wait(t->epoll_fd, ev, TURN_EVENTS, 0);

	t->now_ns = now_ns;
	for (int i = 0; i < n; i++) {
		struct tls_connection *c = ((struct side *)ev[i].data.ptr)->of;
		/* a dead connection stays allocated until the loop below, since another event
		 * may refer to it */
		if (!c->dead)
			step(t, c);
	}
	if (now_ns - t->looked_ns >= LOOK_NS)
		look_for_leavers(t);
	for (struct tls_connection *c = t->first, *next; c; c = next) {
		next = c->next;
		if (c->dead || (c->flush_ns != 0 && now_ns - c->flush_ns > FLUSH_NS))
			tls_connection_free(t, c);
	}
}

int admin_tls_open(const char *cert, const char *key, struct admin_tls **out, struct weir_err *err)
{
	struct admin_tls *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return fail(err, WEIR_ENOMEM, cert, "out of memory");
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (t->epoll_fd < 0)
		rc = fail(err, WEIR_ESYS, cert, strerror(errno));
	else
		rc = keys_new(cert, key, &t->keys, err);
	if (rc == 0)
		*out = t;
	else
		admin_tls_close(t);
	return rc;
}

void admin_tls_close(struct admin_tls *t)
{
	if (!t)
		return;
	while (t->first)
		tls_connection_free(t, t->first);
	keys_unref(t->keys);
	if (t->epoll_fd >= 0)
		close(t->epoll_fd);
	free(t);
}
