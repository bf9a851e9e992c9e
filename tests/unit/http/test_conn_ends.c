/* SPDX-License-Identifier: MIT */
/* Decisions about a connection: when it is closed after a response, when it is ready, and when the
 * rest of its response can be handed over. */
#include "http/conn_rig.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/request/transfer.h"
#include "http/server/handed.h"

#define IO (&conn_rig.io)

/* A request that has returned from the graph, in HTTP/1.1. */
static struct http_req *answered(struct conn *c)
{
	struct http_req *r = conn_rig_request(c);

	r->keep_alive = r->answered = true;
	return r;
}

/* ---- keep-alive ---- */

static void test_request_closes(void)
{
	struct conn *c;
	struct http_req *r;

	conn_rig_begin();
	c = conn_rig_conn();
	r = answered(c);
	CU_ASSERT_FALSE(conn_closes_behind(c, r));
	r->keep_alive = false;
	CU_ASSERT_TRUE(conn_closes_behind(c, r));
	r->keep_alive = r->last = true;
	CU_ASSERT_TRUE(conn_closes_behind(c, r));
	r->last = false;
	r->refusal = true;
	CU_ASSERT_TRUE(conn_closes_behind(c, r));
	r->refusal = false;
	r->pub.res.close = true;
	CU_ASSERT_TRUE(conn_closes_behind(c, r));
	answered(c); /* a request without a response */
	CU_ASSERT_TRUE(conn_closes_behind(c, r));
	conn_rig_end();
}

/* If memory is short, the last response closes the connection, unless another request has begun. */
static void test_memory_closes(void)
{
	struct conn *c;
	struct http_req *r;

	conn_rig_begin();
	c = conn_rig_conn();
	r = answered(c);
	IO->memory.step = MEMORY_HURRY;
	CU_ASSERT_FALSE(conn_closes_behind(c, r));
	IO->memory.step = MEMORY_CLOSE;
	CU_ASSERT_TRUE(conn_closes_behind(c, r));
	CU_ASSERT_TRUE(conn_closes_behind(c, answered(c)));
	CU_ASSERT_FALSE(conn_closes_behind(c, r));
	conn_rig_receive(c, "G");
	CU_ASSERT_FALSE(conn_closes_behind(c, r->next));
	conn_rig_end();
}

/* In a drain, too, the last response closes the connection, unless the connection can be handed
 * over. When the drain is over, every response closes it. */
static void test_drain_closes(void)
{
	struct conn *c;
	struct http_req *r;

	conn_rig_begin();
	c = conn_rig_conn();
	r = answered(c);
	IO->net.drain.phase = NET_DRAINING;
	CU_ASSERT_TRUE(conn_closes_behind(c, r));
	IO->net.handover.to = &conn_rig.srv.net;
	CU_ASSERT_FALSE(conn_closes_behind(c, r));
	IO->net.drain.phase = NET_CLOSED;
	CU_ASSERT_TRUE(conn_closes_behind(c, r));
	IO->net.handover.to = NULL;
	conn_rig_receive(c, "G");
	CU_ASSERT_TRUE(conn_closes_behind(c, r));
	IO->net.drain.phase = NET_DRAINING;
	CU_ASSERT_FALSE(conn_closes_behind(c, r));
	conn_rig_end();
}

/* ---- returned ---- */

/* A connection is ready when its first request has returned, and only once. */
static void test_answered(void)
{
	struct conn *c, *other;
	struct http_req *r[2];

	conn_rig_begin();
	c = conn_rig_conn();
	other = conn_rig_conn();
	r[0] = conn_rig_request(c);
	r[1] = conn_rig_request(c);
	IO->in_graph = 3;
	conn_answered(r[1]);
	CU_ASSERT_TRUE(r[1]->answered);
	CU_ASSERT_FALSE(c->net.ready);
	CU_ASSERT_PTR_NULL(IO->ready);
	conn_answered(r[0]);
	CU_ASSERT_TRUE(c->net.ready);
	conn_answered(conn_rig_request(other));
	conn_make_ready(c);
	CU_ASSERT_PTR_EQUAL(IO->ready, c);
	CU_ASSERT_PTR_EQUAL(c->ready_next, other);
	CU_ASSERT_PTR_NULL(other->ready_next);
	CU_ASSERT_EQUAL(IO->in_graph, 0);
	conn_rig_end();
}

/* A request with a streamed body no longer counts as one in the graph when it returns, whether or
 * not a signal has come before it. */
static void check_transfer(bool known, bool streamed)
{
	struct conn *c;
	struct http_req *r;

	conn_rig_begin();
	c = conn_rig_conn();
	r = conn_rig_request(c);
	r->transfer = transfer_new(r, &IO->pool);
	r->known_transfer = known ? r->transfer : NULL;
	r->pub.res.streamed = streamed;
	IO->in_graph = 1;
	IO->not_awaited = r->not_awaited = known;
	conn_answered(r);
	CU_ASSERT_EQUAL(IO->in_graph, 0);
	CU_ASSERT_EQUAL(IO->not_awaited, 0);
	CU_ASSERT_EQUAL(r->streams, streamed);
	CU_ASSERT_PTR_EQUAL(r->known_transfer, r->transfer);
	CU_ASSERT_TRUE(c->net.ready);
	conn_rig_end();
}

static void test_transfer(void)
{
	for (int i = 0; i < 4; i++)
		check_transfer(i & 1, i & 2);
}

/* The memory of a response is counted while it waits to be written. */
static void test_held(void)
{
	char *body = malloc(1000);
	struct conn *c;
	int64_t before;

	conn_rig_begin();
	c = conn_rig_conn();
	struct http_req *r = conn_rig_request(c);
	CU_ASSERT_EQUAL(weir_http_respond(&r->pub, 200, "text/plain",
			    (struct weir_slice){body, 1000}, free, body),
	    0);
	before = IO->pool.held_bytes;
	conn_answered(r);
	CU_ASSERT_EQUAL(IO->pool.held_bytes, before + 1000);
	conn_rig_end();
}

/* ---- opened ---- */

/* Each connection has an id of its own, even before the first request. */
static void test_opened(void)
{
	struct sockaddr_storage addr = {.ss_family = AF_INET};
	struct conn *c[2];
	int pair[2][2];

	conn_rig_begin();
	((struct sockaddr_in *)&addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(
		    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair[i]), 0);
		conn_open(IO, pair[i][0], &addr, 0, -1);
		c[i] = conn_of_net(IO->net.conns);
		CU_ASSERT_PTR_NOT_NULL_FATAL(c[i]);
		CU_ASSERT_EQUAL(c[i]->net.watch.fd, pair[i][0]);
		CU_ASSERT_STRING_EQUAL(c[i]->net.client.address, "127.0.0.1");
		CU_ASSERT_EQUAL(c[i]->net.wait.kind, WAIT_IDLE);
		CU_ASSERT_FALSE(c[i]->net.refused);
	}
	CU_ASSERT_NOT_EQUAL(
	    memcmp(c[0]->net.client.id, c[1]->net.client.id, sizeof(c[0]->net.client.id)), 0);
	CU_ASSERT_EQUAL(IO->count[SERVER_ACCEPTED], 2);
	CU_ASSERT_EQUAL(atomic_load(&conn_rig.srv.net.connections), 2);
	conn_rig_end();
	close(pair[0][1]);
	close(pair[1][1]);
}

/* ---- handing a response over ---- */

/* Only a connection that sends its last known response, and whose socket is full, is handed over
 * with it. */
static void test_fits(void)
{
	struct conn *c;
	struct http_req *r;

	conn_rig_begin();
	c = conn_rig_conn();
	c->socket.blocked = true;
	CU_ASSERT_FALSE(handed_fits(c)); /* no response */
	r = answered(c);
	CU_ASSERT_TRUE(handed_fits(c));
	r->answered = false;
	CU_ASSERT_FALSE(handed_fits(c));
	r->answered = r->streams = true;
	CU_ASSERT_FALSE(handed_fits(c));
	r->streams = false;
	c->socket.blocked = false;
	CU_ASSERT_FALSE(handed_fits(c));
	c->socket.blocked = true;
	c->socket.continue_left = 1;
	CU_ASSERT_FALSE(handed_fits(c));
	c->socket.continue_left = 0;
	c->stream.phase = STREAM_SKIP;
	CU_ASSERT_FALSE(handed_fits(c));
	c->stream.phase = STREAM_HEAD;
	c->net.refused = true;
	CU_ASSERT_FALSE(handed_fits(c));
	c->net.refused = false;
	CU_ASSERT_TRUE(handed_fits(c));
	answered(c);
	CU_ASSERT_FALSE(handed_fits(c));
	conn_rig_end();
}

CUNIT_MAIN("conn ends", {"a request closes", test_request_closes},
    {"short of memory", test_memory_closes}, {"drain", test_drain_closes},
    {"answered", test_answered}, {"streamed", test_transfer}, {"held", test_held},
    {"opened", test_opened}, {"handed over", test_fits})
