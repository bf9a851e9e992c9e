/* SPDX-License-Identifier: MIT */
/* Until exactly when a connection waits, and what follows. */
#include "http/conn_rig.h"

#include <string.h>

#define IO (&conn_rig.io)
#define S  1000000000LL
/* How long rates do not matter, and how long a connection lingers: wait.c. */
#define GRACE  (5 * S)
#define LINGER (2 * S)

/* Check that `c` is due after exactly `ns`, and that until then its timer is set to that time. */
static void check_due(struct conn *c, int64_t ns)
{
	int64_t at = IO->net.loop->now_ns + ns;

	conn_rig_wait(ns - 1);
	CU_ASSERT_FALSE(conn_is_due(c));
	CU_ASSERT_EQUAL(c->net.wait.timer.at_ns, at);
	conn_rig_wait(1);
	CU_ASSERT_TRUE(conn_is_due(c));
}

/* ---- deadlines ---- */

/* The first request must come within header_timeout. */
static void test_idle(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.header_timeout_ns = 7 * S;
	IO->conf.idle_timeout_ns = 60 * S;
	c = conn_rig_conn();
	c->requests = 0;
	check_due(c, 7 * S);
	c->requests = 1;
	conn_rig_waits(c, WAIT_IDLE);
	check_due(c, 60 * S);
	conn_rig_end();
}

static void test_head(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.header_timeout_ns = 7 * S;
	c = conn_rig_conn();
	conn_rig_waits(c, WAIT_HEAD);
	conn_rig_wait(3 * S);
	c->net.wait.progress_ns = IO->net.loop->now_ns; /* changes nothing */
	check_due(c, 4 * S);
	conn_rig_end();
}

/* A body may pause for body_timeout, and must have min_body_rate on average after GRACE. */
static void test_body(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.body_timeout_ns = 10 * S;
	c = conn_rig_conn();
	conn_rig_waits(c, WAIT_BODY);
	conn_rig_wait(3 * S);
	c->net.wait.progress_ns = IO->net.loop->now_ns;
	check_due(c, 10 * S);
	IO->conf.min_body_rate = 1000;
	conn_rig_waits(c, WAIT_BODY);
	check_due(c, GRACE);
	conn_rig_waits(c, WAIT_BODY);
	c->net.wait.moved_bytes = 4000;
	check_due(c, GRACE + 4 * S);
	conn_rig_waits(c, WAIT_BODY);
	c->net.wait.moved_bytes = 6000; /* the pause is over first */
	check_due(c, 10 * S);
	conn_rig_end();
}

/* A response is judged by write_timeout and min_send_rate. */
static void test_write(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.write_timeout_ns = 10 * S;
	IO->conf.body_timeout_ns = 1;
	IO->conf.min_body_rate = 1e9;
	c = conn_rig_conn();
	conn_rig_waits(c, WAIT_WRITE);
	check_due(c, 10 * S);
	IO->conf.min_send_rate = 1000;
	conn_rig_waits(c, WAIT_WRITE);
	check_due(c, GRACE);
	conn_rig_waits(c, WAIT_WRITE);
	c->net.wait.moved_bytes = 1000;
	check_due(c, GRACE + S);
	conn_rig_end();
}

/* Before a response is given up, the kernel is asked what the client has acknowledged. The lead
 * over the rate is bounded. */
static void test_write_looks(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.write_timeout_ns = 10 * S;
	c = conn_rig_conn();
	conn_rig_waits(c, WAIT_WRITE);
	c->net.wait.queued_bytes = 1; /* the socket's own queue is empty: one byte has moved */
	conn_rig_wait(10 * S);
	CU_ASSERT_FALSE(conn_is_due(c));
	CU_ASSERT_EQUAL(c->net.wait.timer.at_ns, IO->net.loop->now_ns + 10 * S);
	CU_ASSERT_EQUAL(c->net.wait.moved_bytes, 1);
	check_due(c, 10 * S);
	IO->conf.min_send_rate = 1000;
	conn_rig_waits(c, WAIT_WRITE);
	c->net.wait.queued_bytes = 1 << 20;
	conn_rig_wait(6 * S);
	CU_ASSERT_FALSE(conn_is_due(c));
	CU_ASSERT_EQUAL(c->net.wait.moved_bytes, 6000 + 16384);
	conn_rig_waits(c, WAIT_WRITE);
	c->net.wait.queued_bytes = 6000 + 16383;
	conn_rig_wait(6 * S);
	CU_ASSERT_FALSE(conn_is_due(c));
	CU_ASSERT_EQUAL(c->net.wait.moved_bytes, 6000 + 16383);
	conn_rig_end();
}

static void test_linger(void)
{
	struct conn *c;

	conn_rig_begin();
	c = conn_rig_conn();
	conn_rig_waits(c, WAIT_LINGER);
	check_due(c, LINGER);
	conn_rig_waits(c, WAIT_NONE);
	conn_rig_wait(1000 * 3600 * S);
	CU_ASSERT_FALSE(conn_is_due(c));
	conn_rig_end();
}

/* When memory is short, clients have a quarter of the time, but rates and lingering stay. */
static void test_hurry(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.header_timeout_ns = 8 * S;
	IO->conf.idle_timeout_ns = 16 * S;
	IO->conf.body_timeout_ns = 24 * S;
	IO->conf.write_timeout_ns = 32 * S;
	IO->memory.step = MEMORY_HURRY;
	c = conn_rig_conn();
	check_due(c, 4 * S);
	conn_rig_waits(c, WAIT_HEAD);
	check_due(c, 2 * S);
	conn_rig_waits(c, WAIT_BODY);
	check_due(c, 6 * S);
	conn_rig_waits(c, WAIT_WRITE);
	check_due(c, 8 * S);
	conn_rig_waits(c, WAIT_LINGER);
	check_due(c, LINGER);
	IO->conf.min_body_rate = 1;
	conn_rig_waits(c, WAIT_BODY);
	check_due(c, GRACE);
	conn_rig_end();
}

/* A connection whose bytes are about to be parsed is looked at again in the next iteration. */
static void test_ready(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.header_timeout_ns = 7 * S;
	c = conn_rig_conn();
	conn_rig_waits(c, WAIT_HEAD);
	conn_make_ready(c);
	conn_rig_wait(7 * S);
	CU_ASSERT_FALSE(conn_is_due(c));
	CU_ASSERT(c->net.wait.timer.at_ns > IO->net.loop->now_ns);
	CU_ASSERT(c->net.wait.timer.at_ns <= IO->net.loop->now_ns + 4000000);
	conn_rig_end();
}

/* ---- what follows ---- */

/* Check that the time-out of `c` leads to `next`, and counts `metric` once. */
static void check_out(struct conn *c, enum conn_next next, int metric)
{
	int64_t before[SERVER_N_METRICS];

	memcpy(before, IO->count, sizeof(before));
	CU_ASSERT_EQUAL(conn_time_out(c), next);
	before[metric]++;
	before[SERVER_BAD_REQUESTS] = IO->count[SERVER_BAD_REQUESTS];
	CU_ASSERT_EQUAL(memcmp(before, IO->count, sizeof(before)), 0);
}

static void check_refused(const struct conn *c, const char *code)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(c->first);
	CU_ASSERT_EQUAL(c->first->pub.res.status, 408);
	CU_ASSERT_TRUE(c->first->refusal && c->first->answered);
	CU_ASSERT_PTR_NOT_NULL(
	    memmem(c->first->pub.fields, c->first->pub.n_fields, code, strlen(code)));
	CU_ASSERT_EQUAL(c->input, INPUT_STOPPED);
	CU_ASSERT_TRUE(c->net.ready);
	CU_ASSERT_EQUAL(IO->count[SERVER_BAD_REQUESTS], 1);
}

static void test_head_out(void)
{
	struct conn *c;

	conn_rig_begin();
	c = conn_rig_conn();
	conn_rig_waits(c, WAIT_HEAD);
	check_out(c, CONN_WAIT, SERVER_TIMEOUTS_HEADER);
	check_refused(c, "X-Weir-Limit: header_timeout\r\n");
	conn_rig_end();
}

/* A pause that is too long is reported as such even if the body was also too slow. */
static void test_body_out(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.body_timeout_ns = 10 * S;
	IO->conf.min_body_rate = 1000;
	c = conn_rig_conn();
	conn_rig_body(c);
	conn_rig_waits(c, WAIT_BODY);
	conn_rig_wait(10 * S);
	check_out(c, CONN_WAIT, SERVER_TIMEOUTS_BODY);
	check_refused(c, "X-Weir-Limit: body_timeout\r\n");
	conn_rig_end();

	conn_rig_begin();
	IO->conf.body_timeout_ns = 10 * S;
	IO->conf.min_body_rate = 1000;
	c = conn_rig_conn();
	conn_rig_body(c);
	conn_rig_waits(c, WAIT_BODY);
	conn_rig_wait(10 * S - 1);
	check_out(c, CONN_WAIT, SERVER_SLOW_BODIES);
	check_refused(c, "X-Weir-Limit: min_body_rate\r\n");
	conn_rig_end();
}

/* The response was sent before the rest of the body: no other one is possible. */
static void test_skip_out(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.body_timeout_ns = 10 * S;
	c = conn_rig_conn();
	c->stream.phase = STREAM_SKIP;
	conn_rig_waits(c, WAIT_BODY);
	conn_rig_wait(10 * S);
	check_out(c, CONN_CLOSE, SERVER_TIMEOUTS_BODY);
	CU_ASSERT_PTR_NULL(c->first);
	conn_rig_end();
}

static void test_write_out(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.write_timeout_ns = 10 * S;
	IO->conf.min_send_rate = 1000;
	c = conn_rig_conn();
	conn_rig_waits(c, WAIT_WRITE);
	conn_rig_wait(10 * S - 1);
	check_out(c, CONN_ABORT, SERVER_SLOW_READERS);
	conn_rig_wait(1);
	check_out(c, CONN_ABORT, SERVER_TIMEOUTS_WRITE);
	CU_ASSERT_PTR_NULL(c->first);
	conn_rig_end();
}

static void test_others_out(void)
{
	struct conn *c;

	conn_rig_begin();
	c = conn_rig_conn();
	check_out(c, CONN_END_DONE, SERVER_TIMEOUTS_IDLE);
	conn_rig_waits(c, WAIT_LINGER);
	CU_ASSERT_EQUAL(conn_time_out(c), CONN_CLOSE);
	CU_ASSERT_EQUAL(IO->count[SERVER_BAD_REQUESTS], 0);
	conn_rig_end();
}

/* ---- slow ---- */

/* A body is slow below min_body_rate, without a grace. */
static void test_slow_body(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.min_send_rate = 1e9;
	c = conn_rig_conn();
	conn_rig_waits(c, WAIT_BODY);
	conn_rig_wait(2 * S);
	CU_ASSERT_FALSE(conn_is_slow(c)); /* there is no rate */
	IO->conf.min_body_rate = 1000;
	c->net.wait.moved_bytes = 2000;
	CU_ASSERT_FALSE(conn_is_slow(c));
	c->net.wait.moved_bytes = 1999;
	CU_ASSERT_TRUE(conn_is_slow(c));
	conn_rig_end();
}

/* A response is also slow if nothing was acknowledged for a second, however much was before. */
static void test_slow_write(void)
{
	struct conn *c;

	conn_rig_begin();
	IO->conf.min_body_rate = 1e9;
	c = conn_rig_conn();
	conn_rig_waits(c, WAIT_WRITE);
	conn_rig_wait(NET_EVICT_AFTER_NS);
	CU_ASSERT_FALSE(conn_is_slow(c)); /* there is no rate */
	IO->conf.min_send_rate = 1000;
	conn_rig_waits(c, WAIT_WRITE);
	c->net.wait.moved_bytes = 1 << 20;
	conn_rig_wait(NET_EVICT_AFTER_NS - 1);
	CU_ASSERT_FALSE(conn_is_slow(c));
	conn_rig_wait(1);
	CU_ASSERT_TRUE(conn_is_slow(c));
	c->net.wait.queued_bytes = 1; /* has been acknowledged */
	CU_ASSERT_FALSE(conn_is_slow(c));
	CU_ASSERT_EQUAL(c->net.wait.progress_ns, IO->net.loop->now_ns);
	conn_rig_waits(c, WAIT_WRITE);
	c->net.wait.queued_bytes = 499;
	conn_rig_wait(S / 2);
	CU_ASSERT_TRUE(conn_is_slow(c));
	conn_rig_waits(c, WAIT_WRITE);
	c->net.wait.queued_bytes = 500;
	conn_rig_wait(S / 2);
	CU_ASSERT_FALSE(conn_is_slow(c));
	conn_rig_end();
}

CUNIT_MAIN("wait", {"idle", test_idle}, {"head", test_head}, {"body", test_body},
    {"write", test_write}, {"write, acknowledged", test_write_looks}, {"linger", test_linger},
    {"hurry", test_hurry}, {"about to be parsed", test_ready}, {"head, out", test_head_out},
    {"body, out", test_body_out}, {"rest of a body, out", test_skip_out},
    {"write, out", test_write_out}, {"others, out", test_others_out}, {"slow body", test_slow_body},
    {"slow write", test_slow_write})
