/* SPDX-License-Identifier: MIT */
/* The calls of stages/net to http.server: connections are opened, refused, evicted, paused and
 * drained here, and handed over in handed_conn.c. */
#include "http/server/calls.h"

#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "http/conn/conn.h"
#include "http/conn/limit.h"
#include "http/server/handed_conn.h"
#include "http/server/handed_file.h"
#include "net/net_server.h"

_Static_assert((int)LIMIT_CONNECTIONS == (int)NET_LIMIT_CONNECTIONS &&
		   (int)LIMIT_ADDRESS == (int)NET_LIMIT_ADDRESS &&
		   (int)LIMIT_RATE == (int)NET_LIMIT_RATE &&
		   (int)LIMIT_MEMORY == (int)NET_LIMIT_MEMORY,
    "the limits of http.server begin with those of net/");

static void touch(struct net_io *io)
{
	io_touch((struct http_io *)io);
}

/* ---- I/O threads ---- */

static struct net_io *io_new(struct net_server *net, int index)
{
	struct http_server *srv = (struct http_server *)net;
	struct http_io *io = calloc(1, sizeof(*io));

	if (!io)
		return NULL;
	net_io_init(&io->net, net, index, &io->conf.net, io->count);
	io->srv = srv;
	io->ready_tail = &io->ready;
	pool_init(&io->pool, &srv->body_budget);
	io->pool.meter = &srv->part_meter;
	pool_share(&io->pool, &srv->memory_used);
	/* Ids must differ between runs and threads, but need not be secret. */
	if (getrandom(&io->next_id, sizeof(io->next_id), GRND_NONBLOCK) != sizeof(io->next_id))
		io->next_id = (uint64_t)(uintptr_t)io;
	return &io->net;
}

static void io_free(struct net_io *net)
{
	struct http_io *io = (struct http_io *)net;

	handed_files_forget(&io->handed_files);
	free(io);
}

/* ---- accepting ---- */

static void open_conn(
    struct net_io *io, int fd, const struct sockaddr_storage *addr, uint64_t key, int over)
{
	conn_open((struct http_io *)io, fd, addr, key, over);
}

static void turn_away(struct net_io *io, int fd, enum net_limit over, bool tell)
{
	limit_count((struct http_io *)io, (enum limit)over);
	if (tell)
		limit_tell((struct http_io *)io, fd);
	else
		close(fd);
}

/* ---- eviction ---- */

static bool is_slow(struct net_conn *c)
{
	return conn_is_slow(conn_of_net(c));
}

static void evict(struct net_conn *net)
{
	struct conn *c = conn_of_net(net);

	c->io->count[SERVER_EVICTED]++;
	if (c->net.wait.kind == WAIT_WRITE)
		conn_abort(c);
	else
		conn_close(c);
}

static bool is_between(const struct net_conn *net)
{
	const struct conn *c = (const struct conn *)net;

	return c->requests > 0;
}

/* ---- handing over ---- */

static void handed_waits(struct net_server *srv, int n)
{
	weir_count(srv->stage, SERVER_CONNECTIONS, n);
}

/* ---- pausing ---- */

static void resume(struct net_conn *net)
{
	struct conn *c = conn_of_net(net);

	if (c->socket.blocked || c->phase == CONN_LINGERING)
		return;
	enum conn_next next = conn_parse(c);
	if (next != CONN_WAIT) /* settle does CONN_WAIT, once all connections are resumed */
		conn_act(c, next);
}

static void settle(struct net_conn *c)
{
	conn_settle(conn_of_net(c));
}

/* ---- draining ---- */

static void end_idle(struct net_conn *net)
{
	struct conn *c = conn_of_net(net);

	if (c->net.wait.kind != WAIT_IDLE || (io_is_leaving(c->io) && conn_hand_over(c)))
		return;
	conn_readable(c); /* the client may just have sent something */
	if (conn_is_open(c) && c->net.wait.kind == WAIT_IDLE)
		conn_act(c, CONN_END_DONE);
}

/* Whether the client has begun a request that is not emitted, whether any of it was read or not. */
static bool has_begun(struct conn *c)
{
	if (c->phase >= CONN_ENDING || c->stream.phase == STREAM_SKIP)
		return false;
	if (!stream_partial(&c->stream))
		conn_readable(c); /* reads only: no more requests are emitted */
	return c->phase == CONN_OPEN && c->in_flight == 0 && stream_partial(&c->stream);
}

/* Close `c` unless it has a request in the graph. If a request has begun, a 503 is sent first, as
 * far as it fits into the socket buffer. */
static void end_late(struct net_conn *net)
{
	struct conn *c = conn_of_net(net);

	conn_stop_input(c);
	conn_act(c, conn_parts_end(c));
	if (c->in_flight > 0)
		return;
	if (has_begun(c)) {
		c->io->count[SERVER_REFUSED_LATE]++;
		conn_act(c, conn_refuse(c, 503, "the server is stopping"));
	} else if (c->in_flight == 0) {
		conn_close(c);
	}
}

const struct net_calls server_calls = {
    .metric = {[NET_CONNECTIONS] = SERVER_CONNECTIONS,
	[NET_ACCEPT_FAILURES] = SERVER_ACCEPT_FAILURES,
	[NET_REFUSED_HANDED] = SERVER_REFUSED_HANDED},
    .touch = touch,
    .io_new = io_new,
    .io_free = io_free,
    .open = open_conn,
    .turn_away = turn_away,
    .is_slow = is_slow,
    .evict = evict,
    .is_between = is_between,
    .resume = resume,
    .settle = settle,
    .end_idle = end_idle,
    .end_late = end_late,
    .hand_over = handed_conn_leave,
    .handed_on = handed_conn_on,
    .handed_is_idle = handed_conn_is_idle,
    .adopt = handed_conn_adopt,
    .handed_waits = handed_waits,
    .handed_drop = handed_conn_drop,
};
