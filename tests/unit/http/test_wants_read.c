/* SPDX-License-Identifier: MIT */
/* When a connection reads: the memory of its requests, pauses, hand-overs and the end of its input. */
#include "http/conn_rig.h"

#define IO (&conn_rig.io)

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
	conn_enter(c, CONN_LINGERING); /* to discard it */
	CU_ASSERT_TRUE(conn_wants_read(c));
	conn_rig_end();
}

CUNIT_MAIN("wants to read", {"memory of a pipeline", test_pipeline_memory}, {"reads", test_reads})
