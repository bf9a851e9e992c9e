/* SPDX-License-Identifier: MIT */
/*
 * Writes to all ready connections, step by step: the responses of some connections are composed,
 * then all are sent, then all results are recorded. Only then is anything else done with the
 * connections. A send runs more kernel code than the processor's cache holds. Each step is a
 * separate loop, so that its code stays in the cache, which would not be the case if all steps were
 * run for one connection after the other.
 *
 * No connection is closed before the last step. Recording may run a stage's release function, which
 * may cause other requests to be answered, but it runs no handler of a stage. In the last step one
 * connection may close others, or make them ready again. These stay in memory until they are
 * removed from the ready list, which happens after the step.
 */
#include "http/conn/conn.h"

#include "http/conn/write.h"

/* Maximum number of connections that are processed together: as many as the event loop handles in a
 * row when events are handed to other threads (LOOP_RUN_HANDED). Measured with
 * config/servers/hello.yaml at 64 and 512 connections: compared with 32, a value of 16 takes 0.99
 * and 1.02 times the cycles per request, and 64 takes 1.02 times in both cases. */
#define TOGETHER 32

/** The ready connections of one pass through the steps, and the runs of those whose responses are
 * sent together. */
struct writers {
	int n, n_runs;
	struct conn *c[TOGETHER];
	/* run of each connection; NULL if the connection is handled alone */
	struct run *of[TOGETHER];
	struct run run[TOGETHER];
	struct conn *sender[TOGETHER]; /* connection of each run */
	enum conn_sent rc[TOGETHER];   /* result of each run */
};

/* Whether the next response of `c` can be sent together with those of other connections. */
static inline bool is_common(const struct conn *c)
{
	const struct http_req *r = c->first;

	return r && r->answered && !r->streams && c->phase == CONN_OPEN && !c->socket.blocked;
}

/* Whether the responses of `c`, if they are small, fit into the rest of the shared buffers from
 * `at` on. */
static inline bool has_room(const struct http_io *io, const struct run *at, const struct conn *c)
{
	return c->in_flight <= io->scratch.piece + SERVER_PIECES - at->piece &&
	       at->out_n <= sizeof(io->scratch.out) / 2;
}

/* Compose the responses of `c` behind those of other connections. `at` is the position in the
 * buffers, and is advanced. Returns NULL if not even one response fits. */
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

/* Remove up to TOGETHER connections from the ready list, and compose their responses. */
static void take(struct http_io *io, struct writers *w)
{
	struct run at = write_alone(io);
	struct conn *c = io->ready;
	int n = 0;

	for (; n < TOGETHER && c; n++) {
		w->c[n] = c;
		w->of[n] = is_common(c) && has_room(io, &at, c) ? compose(w, c, &at) : NULL;
		c->net.ready = false;
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

/* Complete each connection after its responses, or do all of its work if it is handled alone. */
static void go_on(struct writers *w)
{
	for (int i = 0; i < w->n; i++) {
		struct conn *c = w->c[i];
		struct run *g = w->of[i];
		if (!g)
			conn_act(c, conn_write(c));
		else if (WEIR_LIKELY(conn_is_open(c)))
			conn_act(c, write_done(c, g, w->rc[g - w->run]));
		if (WEIR_UNLIKELY(!conn_is_open(c)) && !c->net.ready)
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
