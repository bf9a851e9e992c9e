/* SPDX-License-Identifier: MIT */
/*
 * What a connection waits for, and for how long; see conn.h.
 *
 * Time-outs. A connection has one lazy timer, and a deadline that depends on what it waits for. The
 * timer only triggers a check: when it fires before the deadline it is set again. Bodies and
 * responses must make progress within body_timeout or write_timeout and, after RATE_GRACE_NS, at
 * min_..._rate on average. The deadline "since + grace + moved / rate" expresses that without a
 * periodic check.
 *
 * Lists. Waiting connections are in one list per kind of wait (enum conn_list_id), longest-waiting
 * first. Only the list of connections with a body or a response in progress is not in this order,
 * because it is rotated. When the server is full, some of these connections are closed, so that
 * slow or idle clients cannot keep others out (slot.c).
 *
 * Progress of responses is measured by what the client has acknowledged. The number of bytes that
 * the kernel has accepted shows little: its buffer holds megabytes, and it reports writability only
 * when a third of the buffer is free, which takes half a minute with a client of 30 KB/s. So the
 * socket is queried before a connection is closed because its client does not read its response.
 */
#include "http/conn/conn.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "http/conn/limit.h"
#include "http/conn/tls_conn.h"

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

/* Limit of a client's lead over min_send_rate; at most twice this can accumulate. A client's kernel
 * accepts megabytes before the client reads any, and then acknowledges a 16th of its buffer (128
 * KiB) at a time. Without the limit a client could accumulate such a lead, and then read almost
 * nothing. */
#define LEAD_BYTES 16384

/* ---- lists ---- */

void conn_list_leave(struct conn *c)
{
	struct conn_list *list = &c->io->list[c->wait.list];

	if (!c->wait.prev)
		return;
	*c->wait.prev = c->wait.next;
	if (c->wait.next)
		c->wait.next->wait.prev = c->wait.prev;
	else
		list->tail = c->wait.prev;
	c->wait.prev = NULL;
	list->n--;
}

void conn_list_join(struct conn *c, enum conn_list_id id)
{
	struct conn_list *list = &c->io->list[id];

	if (c->wait.prev && c->wait.list == id)
		return;
	conn_list_leave(c);
	c->wait.list = (uint8_t)id;
	c->wait.prev = list->tail;
	c->wait.next = NULL;
	*list->tail = c;
	list->tail = &c->wait.next;
	list->n++;
}

void conn_list_rotate(struct conn *c)
{
	conn_list_leave(c);
	conn_list_join(c, (enum conn_list_id)c->wait.list);
}

/* ---- progress of a response ---- */

/* Return the number of bytes in the kernel that the client has not acknowledged. Costs one system
 * call. */
static int64_t untaken(const struct conn *c)
{
	int n;

	return ioctl(c->watch.fd, SIOCOUTQ, &n) == 0 ? n : 0;
}

bool conn_look(struct conn *c)
{
	int64_t now = untaken(c), taken = c->wait.queued_bytes - now;
	double due;

	c->wait.queued_bytes = now;
	if (taken <= 0)
		return false;
	c->wait.progress_ns = weir_loop_now_ns(c->io->loop);
	due = c->io->conf.min_send_rate * (double)(c->wait.progress_ns - c->wait.since_ns) / 1e9;
	c->wait.moved_bytes += taken;
	if ((double)c->wait.moved_bytes > due + LEAD_BYTES)
		c->wait.moved_bytes = (int64_t)due + LEAD_BYTES;
	return true;
}

/* ---- deadlines ---- */

static int64_t at_pause(const struct conn *c, int64_t timeout_ns)
{
	return c->wait.progress_ns + memory_timeout_ns(c->io, timeout_ns);
}

static int64_t at_rate(const struct conn *c, int64_t timeout_ns, double rate)
{
	int64_t stall = at_pause(c, timeout_ns);

	if (rate <= 0)
		return stall;
	double slow =
	    (double)(c->wait.since_ns + RATE_GRACE_NS) + (double)c->wait.moved_bytes / rate * 1e9;
	return slow < (double)stall ? (int64_t)slow : stall;
}

static int64_t deadline(const struct conn *c)
{
	const struct http_conf *conf = &c->io->conf;

	switch (c->wait.kind) {
	case WAIT_IDLE:
		return c->wait.since_ns + memory_timeout_ns(c->io, c->requests == 0
								       ? conf->header_timeout_ns
								       : conf->idle_timeout_ns);
	case WAIT_HEAD:
		return c->wait.since_ns + memory_timeout_ns(c->io, conf->header_timeout_ns);
	case WAIT_BODY:
		return at_rate(c, conf->body_timeout_ns, conf->min_body_rate);
	case WAIT_WRITE:
		return at_rate(c, conf->write_timeout_ns, conf->min_send_rate);
	case WAIT_LINGER:
		return c->wait.since_ns + LINGER_NS;
	default:
		return INT64_MAX;
	}
}

bool conn_is_due(struct conn *c)
{
	struct weir_loop *loop = c->io->loop;
	int64_t at = deadline(c);

	if (at <= weir_loop_now_ns(loop) && c->wait.kind == WAIT_WRITE && conn_look(c))
		at = deadline(c);
	if (at == INT64_MAX)
		return false;
	/* the bytes for which the connection waits may have been read but not parsed yet */
	if (c->ready && at <= weir_loop_now_ns(loop))
		at = weir_loop_now_ns(loop) + LOOK_AGAIN_NS;
	if (at <= weir_loop_now_ns(loop))
		return true;
	weir_timer_set(loop, &c->wait.timer, at);
	return false;
}

static enum conn_next body_timed_out(struct conn *c, enum limit l)
{
	if (stream_doing(&c->stream) == STREAM_IN_PARTS) { /* the stage responds */
		limit_count(c->io, l);
		conn_tear_part(c, WEIR_EGONE, 408);
		return CONN_WAIT;
	}
	if (c->stream.phase == STREAM_SKIP) { /* the response has been sent already */
		limit_count(c->io, l);
		return CONN_CLOSE;
	}
	return limit_refuse(c, l);
}

static enum conn_next write_timed_out(struct conn *c, bool paused)
{
	c->io->count[paused ? SERVER_TIMEOUTS_WRITE : SERVER_SLOW_READERS]++;
	if (c->phase != CONN_ENDING)
		return CONN_ABORT;
	/* without close_notify; the kernel still sends the responses before it, as without TLS */
	tls_conn_break(c->tls);
	c->socket.blocked = false;
	return conn_last(c);
}

enum conn_next conn_time_out(struct conn *c)
{
	const struct http_conf *conf = &c->io->conf;
	int64_t now_ns = weir_loop_now_ns(c->io->loop);

	switch (c->wait.kind) {
	case WAIT_HEAD:
		return limit_refuse(c, LIMIT_HEADER_TIME);
	case WAIT_BODY:
		return body_timed_out(c, at_pause(c, conf->body_timeout_ns) <= now_ns
					     ? LIMIT_BODY_TIME
					     : LIMIT_BODY_RATE);
	case WAIT_WRITE:
		return write_timed_out(c, at_pause(c, conf->write_timeout_ns) <= now_ns);
	case WAIT_IDLE:
		if (c->tls && tls_is_shaking(c->tls))
			tls_timed_out(c);
		else
			c->io->count[SERVER_TIMEOUTS_IDLE]++;
		return CONN_END_DONE;
	default:
		return CONN_CLOSE;
	}
}

/* ---- waiting ---- */

static enum wait_kind wait_of(const struct conn *c)
{
	if (c->phase == CONN_LINGERING)
		return WAIT_LINGER;
	if (c->socket.blocked)
		return WAIT_WRITE;
	if (c->io->pause.on) /* we read nothing now, so a pause may not be the client's fault */
		return WAIT_NONE;
	enum stream_doing doing = stream_doing(&c->stream);
	if (doing == STREAM_IN_PARTS)
		return conn_blames_part(c) ? WAIT_BODY : WAIT_NONE;
	if (c->input != INPUT_OPEN)
		return WAIT_NONE;
	if (doing == STREAM_IN_BODY)
		return WAIT_BODY;
	if (doing == STREAM_AT_HEAD && conn_wants_read(c))
		return WAIT_HEAD;
	return c->in_flight == 0 ? WAIT_IDLE : WAIT_NONE;
}

void conn_wait_begin(struct conn *c, enum wait_kind wait)
{
	struct weir_loop *loop = c->io->loop;

	c->wait.kind = (uint8_t)wait;
	c->wait.since_ns = c->wait.progress_ns = weir_loop_now_ns(loop);
	c->wait.moved_bytes = 0;
	if (wait == WAIT_WRITE)
		c->wait.queued_bytes = untaken(c);
}

/* Connections are watched edge-triggered: a level-triggered descriptor is polled once more per
 * request to find that nothing is left (measured: 3 % of the CPU time per request). Therefore code
 * that leaves bytes unread, or waits to write, arms the descriptor again; epoll then reports
 * immediately what is already there. */
static bool rearm(struct conn *c)
{
	bool read = c->socket.unread && conn_wants_read(c);

	if (!read && !c->socket.rearm)
		return true;
	c->socket.rearm = false;
	if (read)
		c->socket.unread = false;
	/* With TLS, EPOLLOUT is also needed: bytes that were read but not decrypted yet cause no
	 * edge, whereas a writable socket does. */
	return weir_loop_mod(c->io->loop, &c->watch,
		   CONN_EVENTS | (c->socket.blocked || c->tls ? EPOLLOUT : 0)) == 0;
}

/* Put the connection into the list for what it waits for. */
static void join_list(struct conn *c, enum wait_kind wait)
{
	switch (wait) {
	case WAIT_IDLE:
		conn_list_join(c, c->tls && tls_is_away(c->tls) ? CONN_AWAY : CONN_IDLE);
		return;
	case WAIT_HEAD:
		conn_list_join(c, c->in_flight == 0 ? CONN_HALF : CONN_BEHIND);
		return;
	case WAIT_BODY:
	case WAIT_WRITE:
		conn_list_join(c, CONN_SLOW);
		return;
	case WAIT_LINGER:
		conn_list_join(c, c->refused ? CONN_REFUSED : CONN_LINGER);
		return;
	default:
		conn_list_leave(c);
	}
}

bool conn_wait(struct conn *c)
{
	enum wait_kind wait = wait_of(c);

	conn_state_follow(c);
	if (wait != c->wait.kind)
		conn_wait_begin(c, wait);
	join_list(c, wait);
	if (wait == WAIT_IDLE)
		stream_rest(&c->stream, &c->io->pool);
	if (wait != WAIT_NONE)
		weir_timer_set(c->io->loop, &c->wait.timer, deadline(c));
	return rearm(c);
}
