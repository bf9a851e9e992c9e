/* SPDX-License-Identifier: MIT */
/* Hands the connections of http.server over; see handed_conn.h. */
#include "http/server/handed_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/conn/conn.h"
#include "http/conn/conn_tls.h"
#include "http/conn/limit.h"
#include "http/server/handed.h"
#include "net/handover.h"
#include "net/tls/tls_conn.h"

struct handed_conn {
	struct net_handed net; /* first member */
	int fd;
	struct conn_past past;
	struct handed *answer; /* the unsent rest of a response; may be NULL */
	size_t n;              /* bytes read but not used yet */
	char data[];
};

static struct handed_conn *of(struct net_handed *h)
{
	return (struct handed_conn *)h;
}

/* ---- handing over ---- */

static bool between_requests(const struct conn *c)
{
	return c->phase == CONN_OPEN && c->in_flight == 0 && c->input == INPUT_OPEN &&
	       !c->socket.blocked && !c->part.begun && !c->stream.filling &&
	       c->stream.phase != STREAM_SKIP && !(c->net.tls && tls_is_away(c->net.tls)) &&
	       !c->proxy;
}

bool handed_conn_leave(struct net_conn *conn)
{
	struct conn *c = conn_of_net(conn);
	const struct stream *s = &c->stream;
	size_t n = s->in ? s->end - s->start : 0;
	bool sends = handed_fits(c) && handover_receiver_runs(&c->io->net);
	struct handed_conn *p;

	if (!sends && !between_requests(c))
		return false;
	p = malloc(sizeof(*p) + n);
	if (p)
		p->answer = sends ? handed_take(c) : NULL;
	if (!p || (sends && !p->answer)) {
		free(p);
		handover_retry(&c->io->net);
		return false;
	}
	p->n = n;
	if (n > 0)
		memcpy(p->data, s->in->data + s->start, n);
	conn_past(c, &p->past);
	p->fd = conn_detach(c);
	conn_tls_set(c, NULL); /* `p` owns the TLS state now */
	handover_send(&c->io->net, &p->net);
	return true;
}

void handed_conn_on(struct net_handed *h, struct net_server *to)
{
	handed_on(of(h)->answer, (struct http_server *)to);
}

/* ---- taking over ---- */

/* Put into the stream the bytes that the old server had read. They were in a buffer of the same
 * size, so what cannot be parsed yet fits. */
static enum conn_next refill(struct conn *c, const struct handed_conn *p)
{
	size_t at = 0;

	while (at < p->n && c->input == INPUT_OPEN) {
		char *room;
		size_t n = stream_room(&c->stream, &c->io->pool, &room);
		enum conn_next next;
		if (n == 0 && stream_full(&c->stream, &c->io->pool) == STREAM_TORN) {
			limit_tear(c, LIMIT_MEMORY);
			return CONN_WAIT;
		}
		if (n == 0)
			return conn_refuse(c, 503, "no memory for the request");
		n = n < p->n - at ? n : p->n - at;
		memcpy(room, p->data + at, n);
		stream_got(&c->stream, n);
		at += n;
		next = conn_parse(c);
		if (next != CONN_WAIT)
			return next;
	}
	return CONN_WAIT;
}

/* Open the connection of `p`, with the response that it was sending. Returns NULL, with nothing
 * changed, if out of memory. */
static struct conn *open_handed(struct http_io *io, struct handed_conn *p)
{
	struct http_req *r = p->answer ? handed_request(io) : NULL;
	struct conn *c = p->answer && !r ? NULL : conn_adopt(io, p->fd, &p->past);

	if (r && c)
		handed_begin(c, r, p->answer);
	else if (r)
		pool_req_drop(&io->pool, r);
	if (c)
		p->answer = NULL;
	return c;
}

bool handed_conn_adopt(struct net_io *io, struct net_handed *h)
{
	struct handed_conn *p = of(h);
	struct conn *c = open_handed((struct http_io *)io, p);

	if (!c)
		return false;
	conn_act(c, refill(c, p));
	free(p);
	return true;
}

/* ---- closing ---- */

/* Whether the client has sent something that is not answered yet, whether read or not. */
static bool has_begun(const struct handed_conn *p)
{
	char byte;

	return p->n > 0 || (!p->past.tls && TEMP_FAILURE_RETRY(recv(
						p->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT)) == 1);
}

bool handed_conn_is_idle(const struct net_handed *h)
{
	const struct handed_conn *p = (const struct handed_conn *)h;

	return !p->answer && !has_begun(p);
}

static void close_handed(const struct handed_conn *p)
{
	handed_free(p->answer);
	if (p->past.tls) {
		tls_conn_close(p->past.tls, p->fd);
		tls_conn_free(p->past.tls);
		return;
	}
	close(p->fd);
}

void handed_conn_drop(struct net_io *net, struct net_handed *h, bool late)
{
	struct http_io *io = (struct http_io *)net;
	struct handed_conn *p = of(h);
	bool begun = !p->answer && has_begun(p);

	if (late)
		io->count[SERVER_REFUSED_LATE] += begun;
	io->count[SERVER_UNDELIVERED] += p->answer != NULL;
	if (begun && !p->past.tls)
		limit_tell(io, p->fd);
	else
		close_handed(p);
	free(p);
}
