/* SPDX-License-Identifier: MIT */
/* Which connections are closed when memory is short, how many at once, and after how long. */
#include "http/conn_rig.h"

#include <string.h>

#include "http/server/memory.h"

#define IO (&conn_rig.io)
#define S  1000000000LL
/* Connections closed in one iteration, and their shortest wait: memory.c. */
#define RUN   16
#define AFTER (1 * S)

/* `n` connections with half a head. */
static void half_heads(int n, bool behind)
{
	for (int i = 0; i < n; i++) {
		struct conn *c = conn_rig_conn();
		if (behind)
			conn_rig_request(c);
		conn_rig_receive(c, "GET");
		CU_ASSERT_TRUE(conn_wait(c));
	}
}

/* `n` connections whose client takes nothing. */
static void readers(int n)
{
	for (int i = 0; i < n; i++) {
		struct conn *c = conn_rig_conn();
		c->socket.blocked = true;
		CU_ASSERT_TRUE(conn_wait(c));
	}
}

static void set_step(enum memory_step step)
{
	atomic_store(&conn_rig.srv.memory_step, step);
}

/* The number of connections refused or closed by one call. */
static int64_t relieved(int metric)
{
	int64_t before = IO->count[metric];

	memory_follow(IO);
	return IO->count[metric] - before;
}

static void test_heads(void)
{
	for (int behind = 0; behind < 2; behind++) {
		enum net_list_id id = behind ? LIST_BEHIND : LIST_HALF;
		conn_rig_begin();
		half_heads(RUN + 3, behind == 1);
		conn_rig_wait(AFTER);
		half_heads(1, behind == 1);
		set_step(MEMORY_CLOSE);
		CU_ASSERT_EQUAL(relieved(SERVER_REFUSED_MEMORY), 0);
		set_step(MEMORY_REFUSE);
		CU_ASSERT_EQUAL(relieved(SERVER_REFUSED_MEMORY), RUN);
		CU_ASSERT_EQUAL(IO->net.list[id].n, 4);
		CU_ASSERT_EQUAL(relieved(SERVER_REFUSED_MEMORY), 3);
		CU_ASSERT_EQUAL(IO->net.list[id].n, 1);
		/* The last connection is spared until it has waited for AFTER; its timer is set to
		 * that time. */
		CU_ASSERT_EQUAL(
		    IO->net.list[id].first->wait.timer.at_ns, IO->net.loop->now_ns + AFTER);
		conn_rig_wait(AFTER - 1);
		CU_ASSERT_EQUAL(relieved(SERVER_REFUSED_MEMORY), 0);
		conn_rig_wait(1);
		CU_ASSERT_EQUAL(relieved(SERVER_REFUSED_MEMORY), 1);
		conn_rig_end();
	}
}

static bool has_field(const struct http_req *r, const char *line)
{
	return memmem(r->pub.fields, r->pub.n_fields, line, strlen(line));
}

/* A refusal for lack of memory is a 503 that says so. */
static void test_refusal(void)
{
	struct http_req *r;

	conn_rig_begin();
	half_heads(1, false);
	conn_rig_wait(AFTER);
	set_step(MEMORY_REFUSE);
	CU_ASSERT_EQUAL(relieved(SERVER_REFUSED_MEMORY), 1);
	r = conn_of_net(IO->net.conns)->first;
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_EQUAL(r->pub.res.status, 503);
	CU_ASSERT_TRUE(has_field(r, "X-Weir-Limit: memory\r\n"));
	CU_ASSERT_TRUE(has_field(r, "Retry-After: 1\r\n"));
	CU_ASSERT_EQUAL(IO->count[SERVER_BAD_REQUESTS], 0);
	conn_rig_end();
}

/* Clients that take nothing of their responses are reset a step earlier. */
static void test_readers(void)
{
	conn_rig_begin();
	IO->conf.min_send_rate = 1000;
	readers(RUN + 3);
	conn_rig_wait(NET_EVICT_AFTER_NS - 1);
	set_step(MEMORY_HURRY);
	CU_ASSERT_EQUAL(relieved(SERVER_EVICTED), 0);
	conn_rig_wait(1);
	set_step(MEMORY_PLENTY);
	CU_ASSERT_EQUAL(relieved(SERVER_EVICTED), 0);
	set_step(MEMORY_HURRY);
	CU_ASSERT_EQUAL(relieved(SERVER_EVICTED), RUN);
	CU_ASSERT_EQUAL(relieved(SERVER_EVICTED), 3);
	CU_ASSERT_EQUAL(relieved(SERVER_EVICTED), 0);
	CU_ASSERT_EQUAL(atomic_load(&conn_rig.srv.net.connections), 0);
	conn_rig_end();
}

/* A client that takes its response fast enough is spared, and so is one that sends a body. */
static void test_spared(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.min_send_rate = IO->conf.min_body_rate = 1000;
	readers(1);
	c = conn_of_net(IO->net.list[LIST_SLOW].first);
	conn_rig_wait(NET_EVICT_AFTER_NS);
	c->net.wait.queued_bytes = 2000;
	c = conn_rig_conn();
	conn_rig_body(c);
	CU_ASSERT_TRUE(conn_wait(c));
	c->net.wait.since_ns -= 2 * S;
	set_step(MEMORY_DEAF);
	CU_ASSERT_EQUAL(relieved(SERVER_EVICTED), 0);
	CU_ASSERT_EQUAL(IO->net.list[LIST_SLOW].n, 2);
	conn_rig_end();
}

/* Idle connections without TLS hold little, so they stay. */
static void test_idle(void)
{
	conn_rig_begin();
	CU_ASSERT_TRUE(conn_wait(conn_rig_conn()));
	conn_rig_wait(AFTER);
	set_step(MEMORY_DEAF);
	CU_ASSERT_EQUAL(relieved(SERVER_EVICTED), 0);
	CU_ASSERT_EQUAL(IO->net.list[LIST_IDLE].n, 1);
	conn_rig_end();
}

/* Time-outs become shorter at once. */
static void test_hurry(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.idle_timeout_ns = 40 * S;
	c = conn_rig_conn();
	CU_ASSERT_TRUE(conn_wait(c));
	CU_ASSERT_EQUAL(c->net.wait.timer.at_ns, IO->net.loop->now_ns + 40 * S);
	set_step(MEMORY_HURRY);
	memory_follow(IO);
	CU_ASSERT_EQUAL(c->net.wait.timer.at_ns, IO->net.loop->now_ns + 10 * S);
	conn_rig_end();
}

/* The step is a gauge, and nothing is accepted from MEMORY_DEAF on. */
static void test_steps(void)
{
	conn_rig_begin();
	for (int step = MEMORY_HURRY; step <= MEMORY_DEAF; step++) {
		set_step((enum memory_step)step);
		memory_follow(IO);
		CU_ASSERT_EQUAL(IO->count[SERVER_MEMORY_STEP], step);
		CU_ASSERT_EQUAL(IO->net.deaf, step == MEMORY_DEAF);
	}
	set_step(MEMORY_REFUSE);
	memory_follow(IO);
	CU_ASSERT_EQUAL(IO->count[SERVER_MEMORY_STEP], MEMORY_REFUSE);
	CU_ASSERT_FALSE(IO->net.deaf);
	conn_rig_end();
}

/* The memory of a thread is reported immediately while memory is short, otherwise from a 2048th of
 * the budget on, or when no connection is left. */
static void test_report(void)
{
	conn_rig_begin();
	IO->conf.memory_bytes = IO->pool.limit_bytes = 2048 * 100;
	conn_rig_conn();
	IO->pool.told_bytes = IO->pool.held_bytes;
	pool_hold(&IO->pool, 99);
	memory_tell(IO);
	CU_ASSERT_EQUAL(atomic_load(&conn_rig.srv.memory_used), 0);
	CU_ASSERT_EQUAL(IO->count[SERVER_MEMORY], IO->pool.held_bytes);
	pool_hold(&IO->pool, 1);
	memory_tell(IO);
	CU_ASSERT_EQUAL(atomic_load(&conn_rig.srv.memory_used), 100);
	CU_ASSERT_EQUAL(IO->count[SERVER_MEMORY], IO->pool.held_bytes);
	pool_hold(&IO->pool, -99);
	memory_tell(IO);
	CU_ASSERT_EQUAL(atomic_load(&conn_rig.srv.memory_used), 100);
	pool_hold(&IO->pool, -1);
	memory_tell(IO);
	CU_ASSERT_EQUAL(atomic_load(&conn_rig.srv.memory_used), 0);
	pool_hold(&IO->pool, 5);
	IO->memory.step = MEMORY_HURRY;
	memory_tell(IO);
	CU_ASSERT_EQUAL(atomic_load(&conn_rig.srv.memory_used), 5);
	IO->memory.step = MEMORY_PLENTY;
	pool_hold(&IO->pool, -5);
	IO->net.n_conns--;
	memory_tell(IO);
	CU_ASSERT_EQUAL(atomic_load(&conn_rig.srv.memory_used), 0);
	IO->net.n_conns++;
	conn_rig_end();
}

/* The step follows from the sum of all threads, also when the budget changes. */
static void test_decide(void)
{
	conn_rig_begin();
	conn_rig_conn();
	IO->conf.memory_bytes = IO->pool.limit_bytes = 1 << 20;
	memory_tell(IO);
	CU_ASSERT_EQUAL(atomic_load(&conn_rig.srv.memory_step), MEMORY_PLENTY);
	pool_hold(&IO->pool, 1 << 20);
	memory_tell(IO);
	CU_ASSERT_EQUAL(atomic_load(&conn_rig.srv.memory_step), MEMORY_DEAF);
	IO->conf.memory_bytes = 4 << 20;
	memory_follow(IO);
	CU_ASSERT_EQUAL(atomic_load(&conn_rig.srv.memory_step), MEMORY_PLENTY);
	CU_ASSERT_EQUAL(IO->pool.limit_bytes, 4 << 20);
	CU_ASSERT_EQUAL(atomic_load(&conn_rig.srv.memory_limit), 4 << 20);
	CU_ASSERT_EQUAL(IO->count[SERVER_MEMORY_LIMIT], 4 << 20);
	pool_hold(&IO->pool, -(1 << 20));
	conn_rig_end();
}

CUNIT_MAIN("relief", {"half heads", test_heads}, {"refusal", test_refusal},
    {"readers", test_readers}, {"spared", test_spared}, {"idle", test_idle}, {"hurry", test_hurry},
    {"steps", test_steps}, {"report", test_report}, {"decide", test_decide})
