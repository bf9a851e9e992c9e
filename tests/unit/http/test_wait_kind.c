/* SPDX-License-Identifier: MIT */
/* What a connection waits for, and in which list, and how many requests are read from it. */
#include "http/conn_rig.h"

#define IO (&conn_rig.io)
#define S  1000000000LL

/* ---- what it waits for ---- */

static void check_waits(struct conn *c, enum wait_kind kind, int list)
{
	CU_ASSERT_TRUE(conn_wait(c));
	CU_ASSERT_EQUAL(c->net.wait.kind, kind);
	CU_ASSERT_EQUAL(c->net.wait.prev ? c->net.wait.list : NET_LISTS, list);
}

static void test_kinds(void)
{
	struct conn *c;

	conn_rig_begin();
	check_waits(conn_rig_conn(), WAIT_IDLE, LIST_IDLE);
	c = conn_rig_conn();
	conn_rig_request(c);
	check_waits(c, WAIT_NONE, NET_LISTS);
	conn_rig_receive(c, "GET");
	check_waits(c, WAIT_HEAD, LIST_BEHIND);
	c = conn_rig_conn();
	conn_rig_receive(c, "GET");
	check_waits(c, WAIT_HEAD, LIST_HALF);
	conn_stop_input(c);
	check_waits(c, WAIT_NONE, NET_LISTS);
	c = conn_rig_conn();
	conn_rig_body(c);
	check_waits(c, WAIT_BODY, LIST_SLOW);
	c->socket.blocked = true; /* the response to an earlier one */
	check_waits(c, WAIT_WRITE, LIST_SLOW);
	c = conn_rig_conn();
	conn_enter(c, CONN_LINGERING);
	check_waits(c, WAIT_LINGER, LIST_LINGER);
	c = conn_rig_conn();
	c->net.refused = true;
	atomic_fetch_add(&conn_rig.srv.net.refusing, 1);
	atomic_fetch_sub(&conn_rig.srv.net.connections, 1);
	conn_enter(c, CONN_LINGERING);
	check_waits(c, WAIT_LINGER, LIST_REFUSED);
	conn_rig_end();
}

/* In a pause, only the time-outs for writing and lingering run. */
static void test_pause(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->net.pause.on = true;
	check_waits(conn_rig_conn(), WAIT_NONE, NET_LISTS);
	c = conn_rig_conn();
	conn_rig_receive(c, "GET");
	check_waits(c, WAIT_NONE, NET_LISTS);
	c->socket.blocked = true;
	check_waits(c, WAIT_WRITE, LIST_SLOW);
	c = conn_rig_conn();
	conn_enter(c, CONN_LINGERING);
	check_waits(c, WAIT_LINGER, LIST_LINGER);
	conn_rig_end();
}

/* A wait goes on while it is for the same thing, and begins anew for another one. */
static void test_goes_on(void)
{
	struct conn *c;
	int64_t begin_ns;

	conn_rig_begin();
	IO->conf.header_timeout_ns = 7 * S;
	c = conn_rig_conn();
	conn_rig_receive(c, "GET");
	check_waits(c, WAIT_HEAD, LIST_HALF);
	begin_ns = c->net.wait.since_ns;
	conn_rig_wait(3 * S);
	conn_rig_receive(c, " /");
	check_waits(c, WAIT_HEAD, LIST_HALF);
	CU_ASSERT_EQUAL(c->net.wait.since_ns, begin_ns);
	CU_ASSERT_EQUAL(c->net.wait.timer.at_ns, begin_ns + 7 * S);
	c->net.wait.moved_bytes = 5;
	c->socket.blocked = true;
	check_waits(c, WAIT_WRITE, LIST_SLOW);
	CU_ASSERT_EQUAL(c->net.wait.since_ns, begin_ns + 3 * S);
	CU_ASSERT_EQUAL(c->net.wait.moved_bytes, 0);
	conn_rig_end();
}

/* ---- how many requests are read ---- */

static void test_pipeline(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.pipeline = 3;
	c = conn_rig_conn();
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_TRUE(conn_wants_read(c));
		conn_rig_request(c);
	}
	CU_ASSERT_FALSE(conn_wants_read(c));
	IO->conf.pipeline = 4;
	CU_ASSERT_TRUE(conn_wants_read(c));
	conn_rig_receive(c, "GET"); /* while it cannot be read, the client is not to blame */
	IO->conf.pipeline = 3;
	check_waits(c, WAIT_NONE, NET_LISTS);
	conn_rig_end();
}

/* The requests of a connection may hold 16 KiB, and beyond that 16 times what was received. */
static void test_pipeline_memory(void)
{
	const uint64_t few = 16384 / sizeof(struct http_req);
	const uint64_t need = (few + 1) * sizeof(struct http_req) - 16384;
	struct conn *c;

	conn_rig_begin();
	c = conn_rig_conn();
	for (uint64_t i = 0; i < few; i++) {
		CU_ASSERT_TRUE(conn_wants_read(c));
		conn_rig_request(c);
	}
	CU_ASSERT_FALSE(conn_wants_read(c));
	c->wire_bytes = (need + 15) / 16 - 1;
	CU_ASSERT_FALSE(conn_wants_read(c));
	c->wire_bytes++;
	CU_ASSERT_TRUE(conn_wants_read(c));
	conn_rig_end();
}

static void test_reads(void)
{
	struct conn *c;

	conn_rig_begin();
	c = conn_rig_conn();
	CU_ASSERT_TRUE(conn_wants_read(c));
	IO->net.pause.on = true;
	CU_ASSERT_FALSE(conn_wants_read(c));
	IO->net.pause.on = false;
	/* During a handover the next request is for the other server, but a body is ours. */
	IO->net.handover.to = &conn_rig.srv.net;
	CU_ASSERT_FALSE(conn_wants_read(c));
	conn_rig_body(c);
	CU_ASSERT_TRUE(conn_wants_read(c));
	IO->net.handover.to = NULL;
	conn_stop_input(c);
	CU_ASSERT_FALSE(conn_wants_read(c));
	conn_enter(c, CONN_LINGERING); /* lingering discards what comes */
	CU_ASSERT_TRUE(conn_wants_read(c));
	conn_rig_end();
}

CUNIT_MAIN("wait kind", {"kinds", test_kinds}, {"pause", test_pause}, {"goes on", test_goes_on},
    {"pipeline", test_pipeline}, {"memory of a pipeline", test_pipeline_memory},
    {"reads", test_reads})
