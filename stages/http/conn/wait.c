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
 * Lists. Waiting connections are in one list per kind of wait (enum net_list_id), longest-waiting
 * first. Only the list of connections with a body or a response in progress is not in this order,
 * because it is rotated. When the server is full, some of these connections are closed, so that
 * slow or idle clients cannot keep others out (net/slot.c).
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

#include "http/conn/conn_proxy.h"
#include "http/conn/conn_tls.h"
#include "http/conn/limit.h"
#include "net/tls/tls_conn.h"

#define NS_PER_S 1000000000LL

/* Time before rates are enforced, since a slow start is not an attack. */
#define RATE_GRACE_NS (5 * NS_PER_S)
/* How long the client may take to read the last response, before bytes that it still sends cause a
 * reset. 2 s is a guess, similar to other servers (Apache 2 s, nginx 5 s). */
#define LINGER_NS (2 * NS_PER_S)
/* If a time-out occurs after bytes were read and before they are parsed, it is checked again after
 * this delay, which the timer wheel rounds up to its next tick (at most 4 ms). */
#define LOOK_AGAIN_NS 1000000LL
/* Maximum lead of a client over min_send_rate. A client's kernel accepts megabytes before the
 * client reads any of them, and then acknowledges 128 KiB at a time, a 16th of its buffer. Without
 * this limit a client would have a lead of megabytes, and could then read almost nothing for a long
 * time. */
#define LEAD_BYTES 16384

/* ---- progress of a response ---- */

/* Return the number of bytes in the kernel that the client has not acknowledged. Costs one system
 * call. */
static int64_t untaken(const struct conn *c)
{
	int n;

	return ioctl(c->net.watch.fd, SIOCOUTQ, &n) == 0 ? n : 0;
}

/* In WAIT_WRITE: query the kernel for the number of bytes that the client has acknowledged, and
 * record progress. Returns whether there was any. Costs one system call. */
static bool look(struct conn *c)
{
	int64_t now = untaken(c), taken = c->net.wait.queued_bytes - now;
	double due;

	c->net.wait.queued_bytes = now;
	if (taken <= 0)
		return false;
	c->net.wait.progress_ns = weir_loop_now_ns(c->io->net.loop);
	due = c->io->conf.min_send_rate * (double)(c->net.wait.progress_ns - c->net.wait.since_ns) /
	      1e9;
	c->net.wait.moved_bytes += taken;
	if ((double)c->net.wait.moved_bytes > due + LEAD_BYTES)
		c->net.wait.moved_bytes = (int64_t)due + LEAD_BYTES;
	return true;
}

bool conn_is_slow(struct conn *c)
{
	const struct http_conf *conf = &c->io->conf;
	int64_t now_ns = weir_loop_now_ns(c->io->net.loop);
	double rate = c->net.wait.kind == WAIT_BODY ? conf->min_body_rate : conf->min_send_rate;

	if (c->net.wait.kind == WAIT_WRITE && rate > 0 && !look(c) &&
	    now_ns - c->net.wait.progress_ns >= NET_EVICT_AFTER_NS)
		return true;
	return (double)c->net.wait.moved_bytes <
	       rate * (double)(now_ns - c->net.wait.since_ns) / 1e9;
}

/* ---- deadlines ---- */

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

bool conn_is_due(struct conn *c)
{
	struct weir_loop *loop = c->io->net.loop;
	int64_t at = deadline(c);

	if (at <= weir_loop_now_ns(loop) && c->net.wait.kind == WAIT_WRITE && look(c))
		at = deadline(c);
	if (at == INT64_MAX)
		return false;
	/* the bytes for which the connection waits may have been read but not parsed yet */
	if (c->net.ready && at <= weir_loop_now_ns(loop))
		at = weir_loop_now_ns(loop) + LOOK_AGAIN_NS;
	if (at <= weir_loop_now_ns(loop))
		return true;
	weir_timer_set(loop, &c->net.wait.timer, at);
	return false;
}

static enum conn_next body_timed_out(struct conn *c, enum limit l)
{
	if (stream_doing(&c->stream) == STREAM_IN_PARTS) { /* the stage responds */
		limit_tear(c, l);
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
	/* end without close_notify; the kernel still sends what it has of the responses */
	tls_conn_break(c->net.tls);
	c->socket.blocked = false;
	return conn_last(c);
}

enum conn_next conn_time_out(struct conn *c)
{
	const struct http_conf *conf = &c->io->conf;
	int64_t now_ns = weir_loop_now_ns(c->io->net.loop);

	switch (c->net.wait.kind) {
	case WAIT_HEAD:
		return limit_refuse(c, LIMIT_HEADER_TIME);
	case WAIT_BODY:
		return body_timed_out(c, at_pause(c, conf->body_timeout_ns) <= now_ns
					     ? LIMIT_BODY_TIME
					     : LIMIT_BODY_RATE);
	case WAIT_WRITE:
		return write_timed_out(c, at_pause(c, conf->write_timeout_ns) <= now_ns);
	case WAIT_IDLE:
		if (c->proxy)
			conn_proxy_timed_out(c);
		else if (c->net.tls && tls_is_shaking(c->net.tls))
			conn_tls_timed_out(c);
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
	if (c->io->net.pause.on) /* nothing is read, so the client is not to blame */
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
	struct weir_loop *loop = c->io->net.loop;

	c->net.wait.kind = (uint8_t)wait;
	c->net.wait.since_ns = c->net.wait.progress_ns = weir_loop_now_ns(loop);
	c->net.wait.moved_bytes = 0;
	if (wait == WAIT_WRITE)
		c->net.wait.queued_bytes = untaken(c);
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
	return weir_loop_mod(c->io->net.loop, &c->net.watch,
		   CONN_EVENTS | (c->socket.blocked || c->net.tls ? EPOLLOUT : 0)) == 0;
}

/* Put the connection into the list for what it waits for. */
static void join_list(struct conn *c, enum wait_kind wait)
{
	switch (wait) {
	case WAIT_IDLE:
		conn_list_join(c, c->net.tls && tls_is_away(c->net.tls) ? LIST_AWAY : LIST_IDLE);
		return;
	case WAIT_HEAD:
		conn_list_join(c, c->in_flight == 0 ? LIST_HALF : LIST_BEHIND);
		return;
	case WAIT_BODY:
	case WAIT_WRITE:
		conn_list_join(c, LIST_SLOW);
		return;
	case WAIT_LINGER:
		conn_list_join(c, c->net.refused ? LIST_REFUSED : LIST_LINGER);
		return;
	default:
		conn_list_leave(c);
	}
}

bool conn_wait(struct conn *c)
{
	enum wait_kind wait = wait_of(c);

	conn_state_follow(c);
	if (wait != c->net.wait.kind)
		conn_wait_begin(c, wait);
	join_list(c, wait);
	if (wait == WAIT_IDLE)
		stream_rest(&c->stream, &c->io->pool);
	if (wait != WAIT_NONE)
		weir_timer_set(c->io->net.loop, &c->net.wait.timer, deadline(c));
	return rearm(c);
}
