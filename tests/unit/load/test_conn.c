/* SPDX-License-Identifier: MIT */
/*
 * Requests on connections that misbehave: for each behaviour of the server, the outcome and the
 * kind of error, with and without pipelining and kept connections.
 */
#include "load/conn.h"

#include "fixture/load/plan.h"
#include "fixture/load/server.h"

#define NO_ERROR LOAD_N_ERRORS

static struct load_server server;

static const struct {
	const char *target;
	enum load_outcome outcome;
	enum load_error error;
} behaviours[] = {
    {"/", LOAD_OK, NO_ERROR},
    {"/big/300000", LOAD_OK, NO_ERROR},
    {"/slow", LOAD_OK, NO_ERROR},
    {"/chunked", LOAD_OK, NO_ERROR},
    {"/interim", LOAD_OK, NO_ERROR},
    {"/nocontent", LOAD_OK, NO_ERROR},
    {"/notmodified", LOAD_OK, NO_ERROR},
    {"/close", LOAD_OK, NO_ERROR},
    {"/old", LOAD_OK, NO_ERROR},
    {"/eof", LOAD_OK, NO_ERROR},
    {"/degraded", LOAD_DEGRADED, NO_ERROR},
    {"/shed", LOAD_SHED, NO_ERROR},
    {"/many", LOAD_SHED, NO_ERROR},
    {"/missing", LOAD_ERROR, LOAD_ESTATUS},
    {"/failing", LOAD_ERROR, LOAD_ESTATUS},
    {"/cut", LOAD_ERROR, LOAD_ECLOSED},
    {"/cuthead", LOAD_ERROR, LOAD_ECLOSED},
    {"/garbage", LOAD_ERROR, LOAD_EMALFORMED},
    {"/halfclose", LOAD_ERROR, LOAD_ECLOSED},
    {"/early", LOAD_ERROR, LOAD_ECLOSED},
    {"/reset", LOAD_ERROR, LOAD_ERESET},
};

#define N_CASES (sizeof(behaviours) / sizeof(behaviours[0]))

static void check_case(size_t i)
{
	const struct load_class_result *k;

	plan_run_offering();
	k = plan_counts();
	CU_ASSERT_EQUAL(k->outcome[behaviours[i].outcome], k->offered);
	for (int e = 0; e < LOAD_N_ERRORS; e++)
		CU_ASSERT_EQUAL(k->error[e], e == (int)behaviours[i].error ? k->offered : 0);
	if (k->outcome[behaviours[i].outcome] != k->offered)
		printf("%s\n", behaviours[i].target);
	plan_end();
}

static void test_kept(void)
{
	for (size_t i = 0; i < N_CASES; i++) {
		plan_for(server.port, behaviours[i].target, 200, 200 * LOAD_MS);
		check_case(i);
	}
}

/* What a response is expected to be decides, also of one with a status that is else an error. */
static void test_expect(void)
{
	static const struct {
		const char *target, *expect;
		enum load_outcome outcome;
		int error;
	} cases[] = {
	    {"/", "status=200", LOAD_OK, NO_ERROR},
	    {"/", "status=404", LOAD_ERROR, LOAD_EWRONG},
	    {"/", "type=image/png", LOAD_ERROR, LOAD_EWRONG},
	    {"/", "hash=0123456789abcdef", LOAD_ERROR, LOAD_EWRONG},
	    {"/missing", "status=404", LOAD_OK, NO_ERROR},
	    {"/missing", "type=text/plain", LOAD_ERROR, LOAD_ESTATUS},
	    {"/shed", "status=503", LOAD_OK, NO_ERROR},
	    {"/shed", "status=200", LOAD_SHED, NO_ERROR},
	};
	struct weir_err why;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		plan_for(server.port, cases[i].target, 200, 200 * LOAD_MS);
		CU_ASSERT_EQUAL(expect_parse(cases[i].expect, &plan.class[0].expect, &why), 0);
		plan_run_offering();
		const struct load_class_result *k = plan_counts();
		CU_ASSERT_EQUAL(k->outcome[cases[i].outcome], k->offered);
		for (int e = 0; e < LOAD_N_ERRORS; e++)
			CU_ASSERT_EQUAL(k->error[e], e == cases[i].error ? k->offered : 0);
		plan_end();
	}
}

static void test_fresh(void)
{
	for (size_t i = 0; i < N_CASES; i++) {
		plan_for(server.port, behaviours[i].target, 200, 200 * LOAD_MS);
		plan.fresh = true;
		check_case(i);
	}
}

static void test_closed_loop(void)
{
	for (size_t i = 0; i < N_CASES; i++) {
		plan_for(server.port, behaviours[i].target, 1, 200 * LOAD_MS);
		plan.closed = true;
		check_case(i);
	}
}

/* When a connection ends, the fate of the requests after the first one depends on which were sent,
 * so only sums are checked (by plan_run). Where the connection continues, or the server announces
 * its end, nothing is lost. But a server that closes with unread requests sends a reset, which does
 * not end a body without a length. */
static void test_pipelined(void)
{
	for (size_t i = 0; i < N_CASES; i++) {
		plan_for(server.port, behaviours[i].target, 1000, 200 * LOAD_MS);
		plan.pipeline = 8;
		plan.connections = 2;
		plan_run(NULL);
		if ((behaviours[i].error == NO_ERROR || behaviours[i].error == LOAD_ESTATUS) &&
		    strcmp(behaviours[i].target, "/eof") != 0)
			CU_ASSERT_EQUAL(
			    plan_counts()->outcome[behaviours[i].outcome], plan_counts()->offered);
		plan_end();
	}
}

static void test_never_answers(void)
{
	for (int pipeline = 1; pipeline <= 4; pipeline += 3) {
		plan_for(server.port, "/never", 100, 200 * LOAD_MS);
		plan.timeout_ns = 50 * LOAD_MS;
		plan.pipeline = pipeline;
		plan_run(NULL);
		const struct load_class_result *k = plan_counts();
		CU_ASSERT_EQUAL(k->outcome[LOAD_TIMEOUT], k->offered);
		/* those without a connection wait for half of the time-out */
		CU_ASSERT_TRUE(hdr_quantile_ns(k->latency[LOAD_TIMEOUT], 0) >= 25 * LOAD_MS);
		CU_ASSERT_TRUE(hdr_quantile_ns(k->latency[LOAD_TIMEOUT], 1) >= 50 * LOAD_MS);
		plan_end();
	}
}

/* A kept connection closed by the server is not an error: the request is sent again. */
static void test_closed_while_idle(void)
{
	plan_for(server.port, "/once", 500, 200 * LOAD_MS);
	plan_run(NULL);
	CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_OK], plan_counts()->offered);
	CU_ASSERT_TRUE(plan_counts()->attempts > plan_counts()->offered);
	CU_ASSERT_EQUAL(plan_counts()->error[LOAD_ECLOSED], 0);
	plan_end();
	plan_for(server.port, "/silent", 500, 200 * LOAD_MS);
	plan_run(NULL);
	CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_OK], plan_counts()->offered);
	plan_end();
}

/* Bytes without a request end the connection, but fail no request. */
static void test_unasked_bytes(void)
{
	plan_for(server.port, "/toomuch", 500, 200 * LOAD_MS);
	plan_run(NULL);
	CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_OK], plan_counts()->offered);
	plan_end();
}

static void test_head_and_body(void)
{
	plan_for(server.port, NULL, 500, 200 * LOAD_MS);
	plan_class("HEAD", "/", 0);
	plan_class("POST", "/", 1000000);
	plan_run_offering();
	for (int c = 0; c < 2; c++) {
		const struct load_class_result *k = &result.phase[0].class[c];
		CU_ASSERT_EQUAL(k->outcome[LOAD_OK], k->offered);
		CU_ASSERT_EQUAL(k->attempts, k->offered);
	}
	CU_ASSERT_TRUE(
	    result.phase[0].class[1].bytes_out > result.phase[0].class[1].offered * 1000000);
	plan_end();
}

static void test_slow_reader(void)
{
	plan_for(server.port, "/big/60000", 20, 100 * LOAD_MS);
	plan.slow_read_share = 1;
	plan.slow_read_bytes_per_s = 200000;
	plan_run(NULL);
	CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_OK], plan_counts()->offered);
	/* 60 kB at 200 kB/s, less the bytes of the first tick */
	CU_ASSERT_TRUE(hdr_quantile_ns(plan_counts()->latency[LOAD_OK], 0) > 250 * LOAD_MS);
	plan_end();
}

static void test_slow_writer(void)
{
	plan_for(server.port, NULL, 20, 100 * LOAD_MS);
	plan_class("POST", "/", 60000);
	plan.slow_write_share = 1;
	plan.slow_write_bytes_per_s = 200000;
	plan_run(NULL);
	CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_OK], plan_counts()->offered);
	CU_ASSERT_TRUE(hdr_quantile_ns(plan_counts()->latency[LOAD_OK], 0) > 250 * LOAD_MS);
	plan_end();
}

static void test_deadline_field(void)
{
	for (int pipeline = 1; pipeline <= 4; pipeline += 3) {
		int before = atomic_load(&server.deadlines);
		plan_for(server.port, NULL, 500, 200 * LOAD_MS);
		plan_class("POST", "/", 10);
		plan.send_deadline = true;
		plan.pipeline = pipeline;
		plan.timeout_ns = 9 * LOAD_S;
		plan_run(NULL);
		CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_OK], plan_counts()->offered);
		CU_ASSERT_EQUAL(
		    (uint64_t)(atomic_load(&server.deadlines) - before), plan_counts()->offered);
		CU_ASSERT_TRUE(atomic_load(&server.deadline_ms_max) <= 9000);
		CU_ASSERT_TRUE(atomic_load(&server.deadline_ms_max) > 0);
		plan_end();
	}
}

static void test_start(void)
{
	load_server_start(&server, NULL);
	CU_ASSERT_TRUE(server.port > 0);
}

static void test_stop(void)
{
	load_server_stop(&server);
	CU_ASSERT_TRUE(atomic_load(&server.requests) > 0);
}

CUNIT_MAIN("conn", {"the server starts", test_start}, {"expected", test_expect},
    {"kept connections", test_kept}, {"a connection per request", test_fresh},
    {"closed loop", test_closed_loop}, {"pipelined", test_pipelined},
    {"never answers", test_never_answers}, {"closed while idle", test_closed_while_idle},
    {"unasked bytes", test_unasked_bytes}, {"HEAD and POST", test_head_and_body},
    {"slow reader", test_slow_reader}, {"slow writer", test_slow_writer},
    {"deadlines", test_deadline_field}, {"the server stops", test_stop})
