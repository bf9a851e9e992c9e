/* SPDX-License-Identifier: MIT */
#include "http/conn_rig.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/net_server.h"

struct conn_rig conn_rig;

#define HOUR_NS (3600 * 1000000000LL)
#define IO      (&conn_rig.io)

/* The client's ends of the sockets. */
static int clients[256], n_clients;

static const struct net_calls calls = {.metric = {[NET_CONNECTIONS] = SERVER_CONNECTIONS,
					   [NET_ACCEPT_FAILURES] = SERVER_ACCEPT_FAILURES,
					   [NET_REFUSED_HANDED] = SERVER_REFUSED_HANDED}};

static void nothing(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	(void)loop;
	(void)w;
	(void)events;
}

static void no_timer(struct weir_loop *loop, struct weir_timer *t)
{
	(void)loop;
	(void)t;
}

void conn_rig_begin(void)
{
	memset(&conn_rig, 0, sizeof(conn_rig));
	weir_log_set_fd(-1);
	conn_rig.stage.name = "rig";
	conn_rig.srv.net.stage = &conn_rig.stage;
	conn_rig.srv.net.calls = &calls;
	conn_rig.srv.net.n_io = 1;
	conn_rig.srv.retry_after_s = 1;
	conn_rig.srv.body_budget = INT64_MAX / 2;
	net_io_init(&IO->net, &conn_rig.srv.net, 0, &IO->conf.net, IO->count);
	IO->srv = &conn_rig.srv;
	IO->ready_tail = &IO->ready;
	IO->conf.pipeline = 100;
	IO->conf.memory_bytes = INT64_MAX / 2;
	IO->conf.header_timeout_ns = IO->conf.body_timeout_ns = HOUR_NS;
	IO->conf.write_timeout_ns = IO->conf.idle_timeout_ns = HOUR_NS;
	pool_init(&IO->pool, &conn_rig.srv.body_budget);
	pool_share(&IO->pool, &conn_rig.srv.memory_used);
	IO->pool.limit_bytes = IO->conf.memory_bytes;
	CU_ASSERT_EQUAL_FATAL(loop_new(&conn_rig.stage, NULL, IO, &IO->net.loop), 0);
	conn_rig.srv.net.io[0] = &IO->net;
	conn_rig_wait(HOUR_NS);
}

void conn_rig_end(void)
{
	while (IO->net.conns)
		conn_close(conn_of_net(IO->net.conns));
	for (struct conn *c = IO->ready, *next; c; c = next) {
		next = c->ready_next;
		for (struct http_req *r = c->first; r; r = r->next)
			r->answered = true; /* those in the graph have returned */
		conn_reap(c);
	}
	CU_ASSERT_EQUAL(IO->net.n_conns, 0);
	CU_ASSERT_EQUAL(IO->count[SERVER_CONNECTIONS], 0);
	CU_ASSERT_EQUAL(IO->pool.held_bytes, 0);
	for (int id = 0; id < NET_LISTS; id++)
		CU_ASSERT_EQUAL(IO->net.list[id].n, 0);
	pool_fini(&IO->pool);
	loop_free(IO->net.loop);
	while (n_clients > 0)
		close(clients[--n_clients]);
}

void conn_rig_wait(int64_t ns)
{
	IO->net.loop->now_ns += ns;
}

struct conn *conn_rig_conn(void)
{
	struct conn *c = calloc(1, sizeof(*c));
	int pair[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	CU_ASSERT_FATAL(n_clients < (int)(sizeof(clients) / sizeof(clients[0])));
	CU_ASSERT_EQUAL_FATAL(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	clients[n_clients++] = pair[1];
	c->io = IO;
	c->net.watch = (struct weir_watch){.ready = nothing, .fd = pair[0]};
	c->net.wait.timer.fire = no_timer;
	c->last = &c->first;
	c->requests = 1;
	CU_ASSERT_EQUAL_FATAL(weir_loop_add(IO->net.loop, &c->net.watch, CONN_EVENTS), 0);
	pool_hold(&IO->pool, sizeof(*c));
	net_conn_enter(&IO->net, &c->net);
	conn_rig_waits(c, WAIT_IDLE);
	return c;
}

int conn_rig_client(void)
{
	return clients[n_clients - 1];
}

void conn_rig_receive(struct conn *c, const char *text)
{
	size_t n = strlen(text);
	char *room;

	CU_ASSERT_FATAL(stream_room(&c->stream, &IO->pool, &room) >= n);
	memcpy(room, text, n);
	stream_got(&c->stream, n);
}

void conn_rig_waits(struct conn *c, enum wait_kind kind)
{
	weir_timer_cancel(IO->net.loop, &c->net.wait.timer);
	conn_wait_begin(c, kind);
}

void conn_rig_body(struct conn *c)
{
	c->stream.phase = STREAM_BODY;
	c->stream.body_left = 1000;
	c->stream.filling = pool_req(&IO->pool);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c->stream.filling);
}

struct http_req *conn_rig_request(struct conn *c)
{
	struct http_req *r = pool_req(&IO->pool);

	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	conn_append(c, r);
	return r;
}
