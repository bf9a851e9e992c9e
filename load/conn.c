/* SPDX-License-Identifier: MIT */
/* Moves connections between states and lists, and settles their requests; see conn.h for the
 * states.
 *
 * Everything here runs in the worker's thread. conn_event() and conn_work() advance a connection.
 * Only drop_for() and conn_abandon() close one, and both settle every request in flight. A request
 * is settled by exactly one call of worker_answered, _failed, _timed_out, _resend or _gone. */
#include "load/conn.h"

#include <errno.h>
#include <math.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "load/conn_io.h"
#include "load/worker.h"

/* Maximum number of reads from one connection before other connections are served. 16 is a guess: 1
 * MB of a large response. */
#define READ_ROUNDS 16

/* ---- lists ---- */

static enum conn_list list_for(const struct worker *w, const struct conn *c)
{
	if (c->state == CONN_CLOSED)
		return CONN_FREE;
	if (c->n == w->depth)
		return CONN_FULL;
	return c->n == 0 && c->state == CONN_OPEN ? CONN_IDLE : CONN_ROOM;
}

/* Move `c` to the front of the list for its current state. The most recently used connection is
 * used next, so no more connections are busy than the load requires. */
static void relist(struct worker *w, struct conn *c)
{
	enum conn_list to = list_for(w, c);

	if (to == c->list)
		return;
	if (c->prev)
		c->prev->next = c->next;
	else
		w->list[c->list] = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->list = to;
	c->prev = NULL;
	c->next = w->list[to];
	if (c->next)
		c->next->prev = c;
	w->list[to] = c;
}

void conn_kick(struct worker *w, struct conn *c)
{
	if (c->kicked)
		return;
	c->kicked = true;
	c->next_kicked = w->kicked;
	w->kicked = c;
}

/* ---- closing ---- */

static struct ticket take_first(struct worker *w, struct conn *c)
{
	struct flight *f = &c->flight[c->head];

	timer_wheel_cancel(&w->deadlines, &f->deadline);
	c->head = c->head + 1 < w->depth ? c->head + 1 : 0;
	c->n--;
	if (c->n_written > 0)
		c->n_written--;
	return f->ticket;
}

static void shut(struct worker *w, struct conn *c)
{
	if (c->state != CONN_OPEN)
		w->n_connecting--;
	conn_io_close(w, c);
	c->state = CONN_CLOSED;
	c->life++; /* pending events carry the old value and are ignored */
	w->n_open--;
}

/* Close the connection and settle its requests. The request `late`, if not NULL, has timed out. If
 * no byte of the response to a request has arrived, the request may be resent on another connection
 * (conn.h, "Sent twice"). It is resent in two cases: `excused` is set, because the generator closed
 * the connection or a response announced the close; or the connection has served a request before,
 * and this request has not been resent yet. All other requests fail with `error`. */
static void drop_for(struct worker *w, struct conn *c, enum load_error error, bool excused,
    const struct flight *late)
{
	bool cut = c->reply.started;

	shut(w, c);
	while (c->n > 0) {
		bool is_late = late && late == &c->flight[c->head];
		struct ticket t = take_first(w, c);
		if (is_late)
			worker_timed_out(w, &t);
		else if (!cut && (excused || (c->served && !t.resent)))
			worker_resend(w, &t, !excused);
		else
			worker_failed(w, &t, error);
		cut = false;
	}
	relist(w, c);
}

static void drop(struct worker *w, struct conn *c, enum load_error error, bool excused)
{
	drop_for(w, c, error, excused, NULL);
}

static enum load_error error_of(ssize_t io)
{
	if (io == IO_TLS)
		return LOAD_ETLS;
	return io == IO_RESET ? LOAD_ERESET : LOAD_ECLOSED;
}

/* Close a connection that could not be established. */
static void drop_unmade(struct worker *w, struct conn *c, enum load_error error)
{
	drop(w, c, error, false);
	worker_connect_failed(w, error);
}

void conn_timed_out(struct worker *w, struct flight *f)
{
	drop_for(w, f->conn, LOAD_ECLOSED, true, f);
}

void conn_abandon(struct worker *w, struct conn *c)
{
	if (c->state == CONN_CLOSED)
		return;
	shut(w, c);
	while (c->n > 0) {
		struct ticket t = take_first(w, c);
		worker_gone(w, &t);
	}
	relist(w, c);
}

/* ---- responses ---- */

static void begin_reply(const struct worker *w, struct conn *c, const struct ticket *t)
{
	const struct load_expect *e = &w->plan->class[t->class_id].expect;

	reply_init(&c->reply, worker_request(w, t)->no_body);
	if (e->status || e->type[0] || e->hashed)
		reply_expect(&c->reply, e, c->hash);
}

/* Handle the complete response to the first request in flight. Returns false if the connection was
 * then closed. */
static bool answered(struct worker *w, struct conn *c)
{
	/* whether the request was sent completely before the response arrived */
	bool whole = c->n_written > 0;
	struct ticket t = take_first(w, c);
	bool keep = c->reply.keep_alive && whole && !w->plan->fresh;

	c->served = true;
	c->reply.started = false;
	worker_answered(w, &t, &c->reply);
	if (!keep) {
		drop(w, c, LOAD_ECLOSED, true);
		return false;
	}
	relist(w, c);
	return true;
}

/* Parse the received bytes p[0..n). Returns false if the connection was closed. */
static bool feed(struct worker *w, struct conn *c, const char *p, size_t n)
{
	while (n > 0) {
		size_t used;
		/* No response is expected: this is a 408 on an idle connection, or more bytes than
		 * the response announced. No request fails because of it. */
		if (c->n == 0) {
			drop(w, c, LOAD_EMALFORMED, true);
			return false;
		}
		const struct ticket *t = &c->flight[c->head].ticket;
		if (!c->reply.started)
			begin_reply(w, c, t);
		enum reply_verdict v = reply_feed(&c->reply, p, n, &used);
		tally_of(&w->tally, t)->bytes_in += used;
		if (v == REPLY_MALFORMED) {
			drop(w, c, LOAD_EMALFORMED, false);
			return false;
		}
		if (v == REPLY_DONE && !answered(w, c))
			return false;
		p += used;
		n -= used;
	}
	return true;
}

/* Close the connection after the end of the stream or an error; `io` is the result of the last
 * read. */
static void ended(struct worker *w, struct conn *c, ssize_t io)
{
	if (io == 0 && c->n > 0 && c->reply.started && reply_end(&c->reply) == REPLY_DONE) {
		c->reply.keep_alive = false;
		answered(w, c);
		return;
	}
	drop(w, c, error_of(io), false);
}

void conn_work(struct worker *w, struct conn *c)
{
	int round = 0;

	if (c->state != CONN_OPEN)
		return;
	int rc = conn_io_write(w, c);
	bool broken = rc < 0 && rc != IO_AGAIN;
	if (broken) /* the response may have arrived before the whole request was sent */
		c->readable = true;
	for (; c->readable && round < READ_ROUNDS; round++) {
		ssize_t n = conn_io_read(w, c);
		if (n == IO_AGAIN)
			break;
		if (n <= 0) {
			ended(w, c, n);
			return;
		}
		if (!feed(w, c, w->buffer, (size_t)n))
			return;
	}
	if (broken)
		drop(w, c, error_of(rc), false);
	else if (round == READ_ROUNDS)
		conn_kick(w, c);
}

/* ---- opening ---- */

static void handshake(struct worker *w, struct conn *c)
{
	if (c->state == CONN_HANDSHAKE) {
		int rc = tls_handshake(c->tls);
		if (rc == IO_AGAIN)
			return;
		if (rc < 0) {
			drop_unmade(w, c, LOAD_ETLS);
			return;
		}
	}
	c->state = CONN_OPEN;
	/* data that arrived together with the handshake is not reported by epoll again */
	c->readable |= c->tls != NULL;
	w->n_connecting--;
	w->tally.connects++;
	worker_connected(w);
	relist(w, c);
	conn_work(w, c);
}

static void connected(struct worker *w, struct conn *c)
{
	int why = 0;
	socklen_t n = sizeof(why);

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &why, &n) != 0 || why != 0) {
		drop_unmade(w, c, why == ECONNREFUSED ? LOAD_EREFUSED : LOAD_ECONNECT);
		return;
	}
	if (w->run->tls) {
		c->tls = tls_open(w->run->tls, c->fd);
		if (!c->tls) {
			drop_unmade(w, c, LOAD_ETLS);
			return;
		}
		c->state = CONN_HANDSHAKE;
	}
	handshake(w, c);
}

void conn_event(struct worker *w, struct conn *c, uint32_t events)
{
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		c->ended = true;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		c->readable = true;
	if (c->state == CONN_OPEN)
		conn_work(w, c);
	else if (c->state == CONN_HANDSHAKE)
		handshake(w, c);
	else if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		connected(w, c);
}

/* Whether item `n` is selected if a fraction `share` of all items is selected at even intervals. */
static bool in_share(uint64_t n, double share)
{
	return floor((double)(n + 1) * share) > floor((double)n * share);
}

void conn_open_for(struct worker *w, const struct ticket *t)
{
	struct conn *c = w->list[CONN_FREE];

	c->slow_read = in_share(w->n_opened, w->plan->slow_read_share);
	c->slow_write = in_share(w->n_opened, w->plan->slow_write_share);
	w->n_opened++;
	if (conn_io_connect(w, c) != 0) {
		enum load_error error = errno == ECONNREFUSED ? LOAD_EREFUSED : LOAD_ECONNECT;
		struct ticket failed = *t;
		worker_failed(w, &failed, error);
		worker_connect_failed(w, error);
		return;
	}
	c->state = CONN_CONNECTING;
	c->served = c->readable = c->ended = c->reply.started = false;
	c->head = c->n = c->n_written = c->n_fields = 0;
	c->written_bytes = 0;
	c->may_read_bytes = c->may_write_bytes = 0;
	c->paced_ns = w->now_ns;
	w->n_open++;
	w->n_connecting++;
	conn_add(w, c, t);
}

void conn_add(struct worker *w, struct conn *c, const struct ticket *t)
{
	struct flight *f = conn_flight(w, c, c->n);

	f->ticket = *t;
	timer_wheel_set(&w->deadlines, &f->deadline, t->attempt_ns + w->plan->timeout_ns);
	c->n++;
	relist(w, c);
	if (c->state != CONN_OPEN)
		return;
	/* pipelined requests are written together at the end of the iteration */
	if (w->depth > 1) {
		conn_kick(w, c);
		return;
	}
	int rc = conn_io_write(w, c);
	if (rc < 0 && rc != IO_AGAIN)
		conn_kick(w, c);
}
