/* SPDX-License-Identifier: MIT */
/*
 * Handles streamed bodies, except for reading and writing them: a connection receives signals from
 * stages, and notifies them when it is closed. I/O thread only; see transfer.h for ownership.
 *
 * A request whose body is streamed is in the list of the connection like any other, and is also
 * what the stream is filling (`filling`). The end of the body clears `filling`. If the response is
 * sent before the body has ended, the rest of the body is skipped if it is short (STREAM_SKIP_MAX);
 * otherwise the connection is closed.
 */
#include "http/conn/conn.h"

#include "http/request/transfer.h"

/* Record the transfer of `r`, so that it is notified when the connection is closed. */
static void know(struct http_req *r, struct transfer *t)
{
	if (r->known_transfer)
		return;
	r->known_transfer = t;
	conn_not_awaited(r);
}

/* Abort the body and the response of `r`. Returns CONN_CLOSE if part of the response may have been
 * sent. */
static enum conn_next end_request(struct http_req *r)
{
	struct conn *c = r->conn;

	if (c->stream.filling == r)
		stream_cut(&c->stream);
	transfer_gone(r->known_transfer, WEIR_ECLOSED);
	return r->streams ? CONN_CLOSE : CONN_AS_IS;
}

enum conn_next conn_parts_signalled(struct transfer *t, bool begun)
{
	struct http_req *r = t->r;
	struct conn *c = r->conn;

	know(r, t);
	r->streams |= begun;
	if (!conn_is_open(c)) {
		transfer_gone(t, WEIR_EGONE);
		return CONN_AS_IS;
	}
	if (c->io->net.drain.phase == NET_CLOSED)
		return end_request(r);
	if (r->streams && r == c->first)
		conn_make_ready(c);
	return c->stream.filling == r ? CONN_PARSE : CONN_AS_IS;
}

void conn_parts_returned(struct http_req *r)
{
	know(r, r->transfer);
	r->streams = r->pub.res.streamed;
}

bool conn_wants_part(const struct conn *c)
{
	char *room;

	return c->input != INPUT_ENDED && !c->io->net.pause.on &&
	       transfer_room(c->stream.filling->known_transfer, &room) > 0;
}

bool conn_blames_part(const struct conn *c)
{
	/* The client is not to blame while it waits for "100 Continue". Once a response has begun,
	 * no "100 Continue" will follow. */
	if (stream_wants_continue(&c->stream) && !c->stream.filling->streams)
		return false;
	return conn_wants_part(c);
}

void conn_tear_part(struct conn *c, int error, int status, const char *limit)
{
	struct http_req *r = c->stream.filling;

	stream_cut(&c->stream);
	r->last = true;
	conn_stop_input(c);
	transfer_tear(r->known_transfer, error, status, limit);
}

void conn_parts_gone(struct conn *c)
{
	for (struct http_req *r = c->first; r; r = r->next)
		if (r->known_transfer)
			transfer_gone(r->known_transfer, WEIR_EGONE);
}

enum conn_next conn_parts_end(struct conn *c)
{
	enum conn_next next = CONN_AS_IS;

	for (struct http_req *r = c->first; r && next == CONN_AS_IS; r = r->next)
		if (r->known_transfer && !r->answered)
			next = end_request(r);
	return next;
}

bool conn_continue_due(const struct conn *c)
{
	const struct http_req *r = c->stream.filling;

	if (stream_doing(&c->stream) != STREAM_IN_PARTS)
		return c->in_flight == 0;
	return r == c->first && !r->streams && !r->answered && !c->socket.blocked &&
	       transfer_asked(r->known_transfer);
}

bool conn_part_kept(const struct conn *c)
{
	/* A client that has received no "100 Continue" may send either the body or another request
	 * next, and we could not tell which. */
	return c->io->net.drain.phase == NET_RUNNING && !stream_wants_continue(&c->stream) &&
	       stream_can_skip(&c->stream);
}

bool conn_would_look_whole(const struct conn *c)
{
	const struct transfer *t = c->first->known_transfer;

	return t->head_made && !t->chunked && !t->bodiless && t->length < 0;
}
