/* SPDX-License-Identifier: MIT */
/*
 * Writing to all connections that are ready, step by step: the answers of some are composed, then all are sent, then all are
 * booked, and only then is anything else done with any of them. The kernel's way of a send is longer than what the processor
 * keeps of code close by, so a step in a loop of its own finds its code there, where taking all steps with one connection behind
 * the other does not.
 *
 * Nothing that is done before the last step closes a connection; booking may run a stage's release, which may have other requests
 * answered, but not run a stage. In the last step one connection may close others, or make them ready again: they stay in memory until they are taken from the list, which is behind it.
 */
#include "http/conn.h"

#include "http/write.h"

/* Connections that go through the steps together: as many as one run of the loop has where events are handed over
 * (LOOP_RUN_HANDED). hello inline at 64 and 512 connections, cycles a request beside those of 32: 0.99 and 1.02 with 16, 1.02
 * and 1.02 with 64. */
#define TOGETHER 32

/** Connections that were ready, and the answers of some. */
struct writers {
	int n, n_runs;
	struct conn *c[TOGETHER];
	struct run *of[TOGETHER]; /* by connection; NULL: it goes its way alone */
	struct run run[TOGETHER];
	struct conn *sender[TOGETHER]; /* by run, and likewise */
	enum conn_sent rc[TOGETHER];
};

/* Has it an answer that can be sent like all others? */
static inline bool is_common(const struct conn *c)
{
	const struct http_req *r = c->first;

	return r && r->answered && !r->streams && conn_is_open(c) && !c->lingering && !c->blocked &&
	       !c->ending;
}

/* Is there room for as many answers as it has, if they are small? */
static inline bool has_room(const struct http_io *io, const struct run *at, const struct conn *c)
{
	return c->in_flight <= io->piece + SERVER_PIECES - at->piece &&
	       at->out_n <= sizeof(io->out) / 2;
}

/* Compose what `c` has to say behind what others have; `at` is where, and becomes where the next one's goes. */
static struct run *compose(struct writers *w, struct conn *c, struct run *at)
{
	struct run *g = &w->run[w->n_runs];

	*g = *at;
	write_gather(c, g);
	if (WEIR_UNLIKELY(g->n_pieces == 0))
		return NULL;
	w->sender[w->n_runs++] = c;
	at->piece += g->n_pieces;
	at->iov += g->n_iov;
	at->out_n = g->out_n;
	at->shares = true;
	return g;
}

/* Take some from the list, and compose their answers. */
static void take(struct http_io *io, struct writers *w)
{
	struct run at = write_alone(io);
	struct conn *c = io->ready;
	int n = 0;

	for (; n < TOGETHER && c; n++) {
		w->c[n] = c;
		w->of[n] = is_common(c) && has_room(io, &at, c) ? compose(w, c, &at) : NULL;
		c->ready = false;
		c = c->ready_next;
	}
	w->n = n;
	io->ready = c;
	if (!c)
		io->ready_tail = &io->ready;
}

static void send_all(struct writers *w)
{
	for (int i = 0; i < w->n_runs; i++)
		write_send(w->sender[i], &w->run[i]);
	for (int i = 0; i < w->n_runs; i++)
		w->rc[i] = write_book(w->sender[i], &w->run[i]);
}

/* What comes behind the answers of each, or is all there is to do. */
static void go_on(struct writers *w)
{
	for (int i = 0; i < w->n; i++) {
		struct conn *c = w->c[i];
		struct run *g = w->of[i];
		if (!g)
			conn_write(c);
		else if (WEIR_LIKELY(conn_is_open(c)))
			write_done(c, g, w->rc[g - w->run]);
		if (WEIR_UNLIKELY(!conn_is_open(c)) && !c->ready)
			conn_reap(c);
	}
}

void conn_write_ready(struct http_io *io)
{
	struct writers w;

	while (io->ready) {
		w.n_runs = 0;
		take(io, &w);
		if (w.n_runs > 0)
			send_all(&w);
		go_on(&w);
	}
}
