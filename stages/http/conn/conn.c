/* SPDX-License-Identifier: MIT */
/*
 * Opens, watches and closes connections; see conn.h.
 *
 * Time-outs. A connection has one lazy timer, and a deadline that depends on what it waits for. The
 * timer only triggers a check: when it fires before the deadline it is set again. Bodies and
 * responses must make progress within body_timeout or write_timeout and, after RATE_GRACE_NS, at
 * min_..._rate on average. The deadline "since + grace + moved / rate" expresses that without a
 * periodic check.
 *
 * Lists. Waiting connections are in one list per kind of wait (enum net_list_id), longest-waiting
 * first. Only the list of connections with a body or a response in progress is not in this order,
 * because it is rotated. When the server is full, some of these connections are closed, so that
 * slow or idle clients cannot keep others out (net/slot.c).
 */
#include "http/conn/conn.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "http/conn/conn_tls.h"
#include "http/conn/limit.h"
#include "net/tls/tls_conn.h"
#include "http/request/sent.h"
#include "net/clients.h"

#define NS_PER_S 1000000000LL

/* Time before rates are enforced, since a slow start is not an attack (reliability.md, slow
 * bodies). */
#define RATE_GRACE_NS (5 * NS_PER_S)
/* How long the client may take to read the last response, before bytes that it still sends cause a
 * reset. 2 s is a guess, similar to other servers (Apache 2 s, nginx 5 s). */
#define LINGER_NS (2 * NS_PER_S)
/* Delay before a time-out that occurs between reading and parsing is checked again. It is one timer
 * tick, so the check is in the next iteration. */
#define LOOK_AGAIN_NS 1000000LL

#define CONN_EVENTS ((uint32_t)EPOLLIN | EPOLLRDHUP | EPOLLET)

void conn_make_ready(struct conn *c)
{
	if (c->net.ready)
		return;
	c->net.ready = true;
	c->ready_next = NULL;
	*c->io->ready_tail = c;
	c->io->ready_tail = &c->ready_next;
}

/* ---- time-outs ---- */

static int64_t at_pause(const struct conn *c, int64_t timeout_ns)
{
	return c->net.wait.progress_ns + memory_timeout_ns(c->io, timeout_ns);
}

static int64_t at_rate(const struct conn *c, int64_t timeout_ns, double rate)
{
	int64_t stall = at_pause(c, timeout_ns);

	if (rate <= 0)
		return stall;
	double slow = (double)(c->net.wait.since_ns + RATE_GRACE_NS) +
		      (double)c->net.wait.moved_bytes / rate * 1e9;
	return slow < (double)stall ? (int64_t)slow : stall;
}

static int64_t deadline(const struct conn *c)
{
	const struct http_conf *conf = &c->io->conf;

	switch (c->net.wait.kind) {
	case WAIT_IDLE:
		return c->net.wait.since_ns + memory_timeout_ns(c->io, c->requests == 0
									   ? conf->header_timeout_ns
									   : conf->idle_timeout_ns);
	case WAIT_HEAD:
		return c->net.wait.since_ns + memory_timeout_ns(c->io, conf->header_timeout_ns);
	case WAIT_BODY:
		return at_rate(c, conf->body_timeout_ns, conf->min_body_rate);
	case WAIT_WRITE:
		return at_rate(c, conf->write_timeout_ns, conf->min_send_rate);
	case WAIT_LINGER:
		return c->net.wait.since_ns + LINGER_NS;
	default:
		return INT64_MAX;
	}
}

static void body_timed_out(struct conn *c, enum limit l)
{
	if (stream_in_parts(&c->stream)) { /* the stage that has the request answers */
		limit_count(c->io, l);
		conn_tear_part(c, WEIR_EGONE, 408);
		/* the response to this request has been sent already */
	} else if (c->stream.phase == STREAM_SKIP) {
		limit_count(c->io, l);
		conn_close(c);
	} else {
		limit_refuse(c, l);
	}
}

static void timed_out(struct conn *c)
{
	struct http_io *io = c->io;
	int64_t now_ns = weir_loop_now_ns(io->net.loop);

	switch (c->net.wait.kind) {
	case WAIT_HEAD:
		limit_refuse(c, LIMIT_HEADER_TIME);
		conn_settle(c); /* memory.c must not find it in LIST_HALF */
		return;
	case WAIT_BODY:
		body_timed_out(c, at_pause(c, io->conf.body_timeout_ns) <= now_ns
				      ? LIMIT_BODY_TIME
				      : LIMIT_BODY_RATE);
		return;
	case WAIT_WRITE:
		io->count[at_pause(c, io->conf.write_timeout_ns) <= now_ns ? SERVER_TIMEOUTS_WRITE
									   : SERVER_SLOW_READERS]++;
		if (c->phase == CONN_ENDING)
			conn_end_mute(c);
		else
			conn_abort(c);
		return;
	case WAIT_IDLE:
		if (c->net.tls && tls_is_shaking(c->net.tls))
			conn_tls_timed_out(c);
		else
			io->count[SERVER_TIMEOUTS_IDLE]++;
		conn_end(c, true);
		return;
	default:
		conn_close(c);
	}
}

static void timer_fired(struct weir_loop *loop, struct weir_timer *t)
{
	struct conn *c = (struct conn *)((char *)t - offsetof(struct conn, net.wait.timer));
	int64_t at = deadline(c);

	if (at <= weir_loop_now_ns(loop) && c->net.wait.kind == WAIT_WRITE && conn_look(c))
		at = deadline(c);
	if (at == INT64_MAX)
		return;
	/* the bytes for which the connection waits may have been read but not parsed yet */
	if (c->net.ready && at <= weir_loop_now_ns(loop))
		at = weir_loop_now_ns(loop) + LOOK_AGAIN_NS;
	if (at > weir_loop_now_ns(loop))
		weir_timer_set(loop, t, at);
	else
		timed_out(c);
}

static enum wait_kind wait_of(const struct conn *c)
{
	if (c->phase == CONN_LINGERING)
		return WAIT_LINGER;
	if (c->socket.blocked)
		return WAIT_WRITE;
	if (c->io->net.pause.on) /* we read nothing now, so a pause may not be the client's fault */
		return WAIT_NONE;
	if (stream_in_parts(&c->stream))
		return conn_blames_part(c) ? WAIT_BODY : WAIT_NONE;
	if (c->input != INPUT_OPEN)
		return WAIT_NONE;
	if (c->stream.filling || c->stream.phase == STREAM_SKIP)
		return WAIT_BODY;
	if (stream_partial(&c->stream) && conn_wants_read(c))
		return WAIT_HEAD;
	return c->in_flight == 0 ? WAIT_IDLE : WAIT_NONE;
}

static void begin_wait(struct conn *c, enum wait_kind wait)
{
	struct weir_loop *loop = c->io->net.loop;

	c->net.wait.kind = (uint8_t)wait;
	c->net.wait.since_ns = c->net.wait.progress_ns = weir_loop_now_ns(loop);
	c->net.wait.moved_bytes = 0;
	if (wait == WAIT_WRITE)
		c->net.wait.queued_bytes = conn_untaken(c);
}

/* ---- epoll ---- */

/* Connections are watched edge-triggered: a level-triggered descriptor is polled once more per
 * request to find that nothing is left (measured: 3 % of the CPU time per request). Therefore code
 * that leaves bytes unread, or waits to write, arms the descriptor again; epoll then reports
 * immediately what is already there. */
static void rearm(struct conn *c)
{
	/* With TLS, EPOLLOUT is also needed: bytes that were read but not decrypted yet cause no
	 * edge, whereas a writable socket does. */
	uint32_t events = CONN_EVENTS | (c->socket.blocked || c->net.tls ? EPOLLOUT : 0);

	if (weir_loop_mod(c->io->net.loop, &c->net.watch, events) != 0)
		conn_close(c);
}

static void rearm_if_needed(struct conn *c)
{
	bool read = c->socket.unread && conn_wants_read(c);

	if (!read && !c->socket.rearm)
		return;
	c->socket.rearm = false;
	if (read)
		c->socket.unread = false;
	rearm(c);
}

void conn_settle(struct conn *c)
{
	enum wait_kind wait;

	if (!conn_is_open(c))
		return;
	conn_state_follow(c);
	wait = wait_of(c);
	if (wait != c->net.wait.kind)
		begin_wait(c, wait);
	if (wait == WAIT_IDLE)
		conn_list_join(c, c->net.tls && tls_is_away(c->net.tls) ? LIST_AWAY : LIST_IDLE);
	else if (wait == WAIT_HEAD)
		conn_list_join(c, c->in_flight == 0 ? LIST_HALF : LIST_BEHIND);
	else if (wait == WAIT_BODY || wait == WAIT_WRITE)
		conn_list_join(c, LIST_SLOW);
	else if (wait == WAIT_LINGER)
		conn_list_join(c, c->net.refused ? LIST_REFUSED : LIST_LINGER);
	else
		conn_list_leave(c);
	if (wait == WAIT_IDLE)
		stream_rest(&c->stream, &c->io->pool);
	if (wait != WAIT_NONE)
		weir_timer_set(c->io->net.loop, &c->net.wait.timer, deadline(c));
	rearm_if_needed(c);
}

static void on_ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct conn *c = (struct conn *)w;
	const uint32_t broken = EPOLLHUP | EPOLLERR;

	(void)loop;
	io_touch(c->io);
	c->socket.peer_done |= (events & EPOLLRDHUP) != 0;
	if (c->net.tls)
		events = conn_tls_ready(c, events);
	if (events & (EPOLLIN | EPOLLRDHUP | broken)) {
		if (WEIR_LIKELY(events == EPOLLIN) && conn_wants_read(c) && conn_read_later(c))
			return;
		if (conn_wants_read(c))
			conn_read(c);
		else if (events & broken)
			conn_close(c);
		else
			c->socket.unread = true;
	}
	if (c->socket.blocked && (events & EPOLLOUT) && conn_is_open(c)) {
		c->socket.blocked = false;
		if (WEIR_UNLIKELY(c->socket.continue_left > 0))
			conn_continue_more(c);
		conn_write(c);
	}
}

/* ---- lifecycle ---- */

/* Create a connection, watched and idle. Returns NULL if out of memory; the caller then still owns
 * `fd`. */
static struct conn *conn_new(struct http_io *io, int fd, bool refused)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->io = io;
	c->net.refused = refused;
	c->net.watch = (struct weir_watch){.ready = on_ready, .fd = fd};
	c->net.wait.timer.fire = timer_fired;
	c->last = &c->first;
	if (weir_loop_add(io->net.loop, &c->net.watch, CONN_EVENTS) != 0) {
		free(c);
		return NULL;
	}
	pool_hold(&io->pool, sizeof(*c));
	net_conn_enter(&io->net, &c->net);
	begin_wait(c, WAIT_IDLE);
	return c;
}

void conn_open(
    struct http_io *io, int fd, const struct sockaddr_storage *addr, uint64_t key, int refuse)
{
	struct conn *c = conn_new(io, fd, refuse >= 0);

	if (!c || refuse >= 0)
		clients_leave(io->srv->net.clients, key);
	else
		c->net.client.key = key;
	if (!c) {
		limit_count(io, LIMIT_MEMORY);
		limit_tell(io, fd);
		return;
	}
	io->count[SERVER_ACCEPTED]++;
	memcpy(c->net.client.id, &io->next_id, sizeof(c->net.client.id));
	io->next_id++;
	net_conn_name(&c->net, addr);
	if (io->srv->net.tls)
		conn_tls_begin(c);
	c->stream.secure = c->net.tls != NULL;
	if (refuse >= 0)
		limit_refuse(c, (enum limit)refuse);
	if (io->srv->net.tls && !c->net.tls)
		conn_close(c);
	conn_settle(c);
	if (io_is_leaving(io))
		conn_hand_over(c);
}

void conn_past(const struct conn *c, struct conn_past *past)
{
	past->requests = c->requests;
	past->input = c->input;
	past->client = c->net.client;
	past->tls = c->net.tls;
}

struct conn *conn_adopt(struct http_io *io, int fd, const struct conn_past *past)
{
	struct conn *c = conn_new(io, fd, false);

	if (!c)
		return NULL;
	c->requests = past->requests;
	c->input = past->input;
	c->net.client = past->client;
	if (c->net.client.key != 0 && clients_enter(io->srv->net.clients, c->net.client.key) <= 0)
		c->net.client.key = 0;
	if (past->tls)
		conn_tls_adopt(c, past->tls);
	c->stream.secure = c->net.tls != NULL;
	/* With TLS, decrypted bytes, and bytes that the socket did not accept, may have been handed
	 * over with the connection. epoll reports neither. */
	c->socket.unread = c->socket.rearm = c->net.tls != NULL;
	io->count[SERVER_TLS_CONNECTIONS] += c->net.tls && tls_is_open(c->net.tls);
	return c;
}

int conn_detach(struct conn *c)
{
	struct http_io *io = c->io;
	int fd;

	io->count[SERVER_TLS_CONNECTIONS] -= c->net.tls && tls_is_open(c->net.tls);
	conn_enter(c, CONN_CLOSED);
	fd = net_conn_detach(&io->net, &c->net);
	stream_fini(&c->stream, &io->pool);
	conn_parts_gone(c);
	io->memory.n_swallowed -= c->socket.swallowed;
	conn_make_ready(c);
	return fd;
}

void conn_reap(struct conn *c)
{
	while (c->first && c->first->answered) {
		struct http_req *r = c->first;
		c->first = r->next;
		c->in_flight--;
		c->io->count[SERVER_UNDELIVERED] += !r->refusal;
		if (r->sent)
			sent_tell(r, HTTP_SENT_TORN, c->part.begun ? c->part.body_off : 0);
		c->part.begun = false; /* nothing has been sent of the next response */
		pool_req_drop(&c->io->pool, r);
	}
	if (c->first || (c->net.tls && tls_is_away(c->net.tls)))
		return;
	tls_conn_free(conn_tls_set(c, NULL));
	free(c->part.head);
	pool_hold(&c->io->pool, -(int64_t)(sizeof(*c) + c->part.head_n));
	c->io->net.n_conns--;
	free(c);
}

void conn_answered(struct http_req *r)
{
	struct conn *c = r->conn;

	r->answered = true;
	pool_hold_answer(&c->io->pool, r);
	c->io->in_graph--;
	if (WEIR_UNLIKELY(r->transfer != NULL))
		conn_parts_returned(r);
	if (r == c->first)
		conn_make_ready(c);
}

int conn_retry_after_s(const struct conn *c)
{
	return c->io->srv->retry_after_s;
}
