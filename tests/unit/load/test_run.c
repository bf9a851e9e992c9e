/* SPDX-License-Identifier: MIT */
/*
 * Whole runs. Times caused by the server are only checked for a minimum: a slow host must not fail
 * a test.
 */
#include "load/judge.h"
#include "load/run.h"

#include "load/schedule.h"

#include "fixture/load/plan.h"
#include "fixture/load/server.h"

static struct load_server server;

static int64_t ok_ns(double q)
{
	const struct hdr *h = plan_counts()->latency[LOAD_OK];

	return h ? hdr_quantile_ns(h, q) : 0;
}

static void test_fixed_delay(void)
{
	load_server_start(&server, NULL);
	plan_for(server.port, "/delay/50", 100, 500 * LOAD_MS);
	plan.connections = 64;
	plan_run(NULL);
	CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_OK], plan_counts()->offered);
	CU_ASSERT_TRUE(ok_ns(0) >= 50 * LOAD_MS);
	CU_ASSERT_TRUE(ok_ns(0.5) < 5 * LOAD_S);
	plan_end();
	load_server_stop(&server);
}

/* The server stops for 200 ms. Requests that fell due meanwhile waited for it, on two connections.
 * Latencies measured from the send time would not show it. */
static void test_no_coordinated_omission(void)
{
	load_server_start(&server, NULL);
	atomic_store(&server.stall_ms, 200);
	atomic_store(&server.stall_at, 300);
	plan_for(server.port, "/", 1000, 1 * LOAD_S);
	plan.connections = 2;
	plan_run(NULL);
	CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_OK], plan_counts()->offered);
	CU_ASSERT_TRUE(ok_ns(0.999) >= 150 * LOAD_MS);
	CU_ASSERT_TRUE(ok_ns(0.92) >= 75 * LOAD_MS); /* 200 of 1000 waited 0..200 ms */
	plan_end();
	load_server_stop(&server);
}

static void test_closed_loop_counts(void)
{
	load_server_start(&server, NULL);
	plan_for(server.port, "/delay/10", 1, 300 * LOAD_MS);
	plan.closed = true;
	plan.connections = 4;
	plan_run(NULL);
	CU_ASSERT_TRUE(plan_counts()->offered >= 4);
	CU_ASSERT_TRUE(plan_counts()->offered <= 4 * 31);
	CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_OK], plan_counts()->offered);
	CU_ASSERT_EQUAL(result.connects, 4);
	CU_ASSERT_STRING_EQUAL(result.voided, "");
	plan_end();
	load_server_stop(&server);
}

static void test_waiting_times_out(void)
{
	load_server_start(&server, NULL);
	/* Ten requests fall due in the time after which one time-out frees the connection: most are
	 * never sent. */
	plan_for(server.port, "/delay/20", 10000, 500 * LOAD_MS);
	plan.connections = 1;
	plan.timeout_ns = 100 * LOAD_MS;
	plan_run(NULL);
	while (plan_counts()->outcome[LOAD_TIMEOUT] == 0 || plan_counts()->outcome[LOAD_OK] == 0)
		plan_run_again(); /* after a long stall of the host only one of the two occurs */
	CU_ASSERT_TRUE(plan_counts()->attempts < plan_counts()->offered);
	CU_ASSERT_TRUE(ok_ns(1) < 100 * LOAD_MS); /* later is a time-out, whenever it is noticed */
	plan_end();
	load_server_stop(&server);
}

static void test_retries(void)
{
	load_server_start(&server, NULL);
	plan_for(server.port, "/third", 200, 500 * LOAD_MS);
	plan.retries = 200; /* each attempt has one chance in three */
	plan.backoff_ns = 1000;
	plan.jitter = 0.5;
	plan.grace_ns = 60 * LOAD_S;
	plan_run(NULL);
	const struct load_class_result *k = plan_counts();
	CU_ASSERT_TRUE(k->outcome[LOAD_OK] > 0);
	CU_ASSERT_EQUAL(k->outcome[LOAD_SHED], 0);
	CU_ASSERT_EQUAL(k->attempts, k->offered + k->retries);
	CU_ASSERT_TRUE(k->retries > k->offered / 2);
	plan_end();
	load_server_stop(&server);
}

static void test_retries_end(void)
{
	load_server_start(&server, NULL);
	plan_for(server.port, "/failing", 200, 200 * LOAD_MS);
	plan.retries = 2;
	plan.backoff_ns = LOAD_MS;
	plan_run(NULL);
	const struct load_class_result *k = plan_counts();
	CU_ASSERT_EQUAL(k->outcome[LOAD_ERROR], k->offered);
	CU_ASSERT_EQUAL(k->retries, 2 * k->offered);
	CU_ASSERT_EQUAL(k->error[LOAD_ESTATUS], 3 * k->offered);
	CU_ASSERT_TRUE(hdr_quantile_ns(k->latency[LOAD_ERROR], 0) >= 3 * LOAD_MS);
	plan_end();
	load_server_stop(&server);
}

/* Retries are marked as such, whatever else is on the connection; first attempts are not. */
static void test_retries_say_so(void)
{
	for (int way = 0; way < 4; way++) {
		load_server_start(&server, NULL);
		plan_for(server.port, "/failing", 500, 300 * LOAD_MS);
		plan.retries = 2;
		plan.backoff_ns = LOAD_MS;
		plan.pipeline = way & 1 ? 4 : 1;
		plan.connections = way & 1 ? 1 : 4;
		plan.send_deadline = way & 2;
		plan_run(NULL);
		load_server_stop(&server);
		const struct load_class_result *k = plan_counts();
		CU_ASSERT_EQUAL(k->outcome[LOAD_ERROR], k->offered);
		CU_ASSERT_EQUAL(k->retries, 2 * k->offered);
		CU_ASSERT_EQUAL((uint64_t)atomic_load(&server.retries), k->retries);
		CU_ASSERT_EQUAL(atomic_load(&server.attempt_max), 2);
		CU_ASSERT_EQUAL((uint64_t)atomic_load(&server.deadlines),
		    way & 2 ? k->offered + k->retries : 0);
		plan_end();
	}
}

/* Users are counted separately, over all threads, and add up to their class. */
static void test_users(void)
{
	uint64_t offered = 0, good = 0;

	load_server_start(&server, NULL);
	plan_for(server.port, NULL, 1000, 300 * LOAD_MS);
	const struct mix_head head = {.method = "GET", .host = "127.0.0.1"};
	struct load_class *cls = &plan.class[plan.n_classes++];
	snprintf(cls->name, sizeof(cls->name), "users");
	cls->weight = 1;
	for (int i = 0; i < 3; i++) /* the last one never succeeds */
		CU_ASSERT_EQUAL_FATAL(
		    mix_add(cls, &head, i < 2 ? "/" : "/shed", 1, NULL, 0, &err), 0);
	CU_ASSERT_EQUAL_FATAL(load_class_seal(cls, &err), 0);
	cls->users = 3;
	plan.threads = 2;
	plan_run_offering();
	const struct load_class_result *k = plan_counts();
	CU_ASSERT_PTR_NOT_NULL_FATAL(k->user);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(k->user[i].good, i < 2 ? k->user[i].offered : 0);
		offered += k->user[i].offered;
		good += k->user[i].good;
	}
	CU_ASSERT_EQUAL(offered, k->offered);
	CU_ASSERT_EQUAL(good, k->outcome[LOAD_OK]);
	plan_end();
	load_server_stop(&server);
}

static void test_sessions(void)
{
	uint64_t n = 0;
	struct load_schedule *schedule;
	struct load_arrival a;

	load_server_start(&server, NULL);
	plan_for(server.port, "/", 100, 500 * LOAD_MS);
	plan.session_requests = 3;
	plan.think_ns = LOAD_MS;
	CU_ASSERT_EQUAL_FATAL(load_schedule_new(&plan, &schedule), 0);
	while (load_schedule_next(schedule, &a))
		n++;
	load_schedule_free(schedule);
	plan_run(NULL);
	/* The last users are cut off: many, when the host stalls. */
	while (plan_counts()->offered <= 2 * n)
		plan_run_again();
	CU_ASSERT_TRUE(plan_counts()->offered <= 3 * n);
	for (int o = 0; o < LOAD_N_OUTCOMES; o++)
		CU_ASSERT_EQUAL(
		    plan_counts()->outcome[o], o == LOAD_OK ? plan_counts()->offered : 0);
	plan_end();
	load_server_stop(&server);
}

/* A request that falls due before the end of the run is sent, though the worker may notice it only after
 * the end, when it waits for no answer. In one short run this happens seldom, in one of many for certain. */
static void test_sessions_at_the_end(void)
{
	load_server_start(&server, NULL);
	plan_for(server.port, "/", 2000, 5 * LOAD_MS);
	plan.session_requests = 20;
	plan.think_ns = LOAD_MS;
	plan_run(NULL);
	for (int i = 0; i < 150; i++) {
		plan_run_again();
		CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_OK], plan_counts()->offered);
	}
	plan_end();
	load_server_stop(&server);
}

static void test_threads_and_classes(void)
{
	uint64_t offered = 0;

	load_server_start(&server, NULL);
	plan_for(server.port, "/", 1000, 500 * LOAD_MS);
	plan_class("GET", "/shed", 0);
	plan.threads = 3;
	plan.connections = 5;
	plan_run(NULL);
	offered = plan_counts()->offered + result.phase[0].class[1].offered;
	CU_ASSERT_TRUE(offered >= 499 && offered <= 501);
	CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_OK], plan_counts()->offered);
	CU_ASSERT_EQUAL(
	    result.phase[0].class[1].outcome[LOAD_SHED], result.phase[0].class[1].offered);
	CU_ASSERT_EQUAL(result.phase[0].lag.total, offered);
	plan_end();
	load_server_stop(&server);
}

static void test_fresh_connections(void)
{
	load_server_start(&server, NULL);
	plan_for(server.port, "/", 200, 300 * LOAD_MS);
	plan.fresh = true;
	plan_run(NULL);
	CU_ASSERT_EQUAL(result.connects, plan_counts()->offered);
	CU_ASSERT_EQUAL(plan_counts()->attempts, plan_counts()->offered);
	plan_end();
	load_server_stop(&server);
}

static void test_warmup_and_pause(void)
{
	load_server_start(&server, NULL);
	plan_for(server.port, "/", 500, 300 * LOAD_MS);
	plan.phase[1] = (struct load_phase){.name = "pause", .for_ns = 200 * LOAD_MS};
	plan.phase[2] = plan.phase[0];
	plan.n_phases = 3;
	CU_ASSERT_EQUAL_FATAL(phases_warmup(&plan, 200 * LOAD_MS, &err), 0);
	plan_run(NULL);
	CU_ASSERT_EQUAL(result.n_phases, 4);
	CU_ASSERT_EQUAL(result.phase[2].class[0].offered, 0);
	CU_ASSERT_TRUE(result.phase[1].class[0].offered > 100);
	CU_ASSERT_TRUE(result.phase[3].class[0].offered > 100);
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_TRUE(result.phase[i].complete);
		CU_ASSERT_EQUAL(result.phase[i].took_ns, plan.phase[i].for_ns);
	}
	CU_ASSERT_TRUE(result.second[0].all.offered > result.phase[1].class[0].offered);
	plan_end();
	load_server_stop(&server);
}

/* ---- runs with another end ---- */

static atomic_bool stop;

static void stop_run(void *arg, const struct load_second *row)
{
	(void)row;
	(*(int *)arg)++;
	atomic_store(&stop, true);
}

static void test_stopped(void)
{
	int rows = 0;
	const struct load_hooks hooks = {.arg = &rows, .second = stop_run, .stop = &stop};

	load_server_start(&server, NULL);
	atomic_store(&stop, false);
	plan_for(server.port, "/never", 100, 3600 * LOAD_S);
	plan.timeout_ns = 3600 * LOAD_S;
	plan.retries = 1;
	plan_run(&hooks);
	CU_ASSERT_TRUE(rows >= 1);
	CU_ASSERT_TRUE(result.stopped);
	CU_ASSERT_FALSE(result.phase[0].complete);
	CU_ASSERT_EQUAL(result.phase[0].took_ns, result.took_ns);
	CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_GONE], plan_counts()->offered);
	plan_end();
	load_server_stop(&server);
}

/* The server dies after the first second. The run ends after a second in which every failed request
 * began after the death of the server. */
static void kill_server(void *arg, const struct load_second *row)
{
	int *rows = arg;

	if (++*rows == 1)
		load_server_stop(&server);
	else if (*rows > 2 && row->all.outcome[LOAD_ERROR] > 0)
		atomic_store(&stop, true);
}

/* The server dies during the run: no hang, no lost request, no busy loop. */
static void test_killed_server(void)
{
	for (int closed = 0; closed <= 1; closed++) {
		int rows = 0;
		const struct load_hooks hooks = {
		    .arg = &rows, .second = kill_server, .stop = &stop};
		load_server_start(&server, NULL);
		atomic_store(&stop, false);
		plan_for(server.port, "/", 500, 3600 * LOAD_S);
		plan.closed = closed;
		plan_run(&hooks);
		const struct load_class_result *k = plan_counts();
		CU_ASSERT_TRUE(result.stopped);
		CU_ASSERT_TRUE(k->outcome[LOAD_OK] > 0);
		CU_ASSERT_TRUE(k->error[LOAD_EREFUSED] > 0);
		CU_ASSERT_EQUAL(
		    k->outcome[LOAD_OK] + k->outcome[LOAD_ERROR] + k->outcome[LOAD_GONE],
		    k->offered);
		if (closed)
			CU_ASSERT_TRUE(k->error[LOAD_EREFUSED] < 1000 * (uint64_t)rows);
		plan_end();
	}
}

static void test_nobody_listens(void)
{
	load_server_start(&server, NULL);
	plan_for(server.port, "/", 500, 300 * LOAD_MS);
	load_server_stop(&server);
	plan.retries = 1;
	plan.backoff_ns = LOAD_MS;
	plan_run(NULL);
	CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_ERROR], plan_counts()->offered);
	CU_ASSERT_EQUAL(plan_counts()->error[LOAD_EREFUSED], 2 * plan_counts()->offered);
	CU_ASSERT_EQUAL(plan_counts()->attempts, 0);
	plan_end();
}

static void test_grace(void)
{
	load_server_start(&server, NULL);
	plan_for(server.port, "/never", 100, 100 * LOAD_MS);
	plan.connections = 64;
	plan.grace_ns = 50 * LOAD_MS;
	plan_run(NULL);
	CU_ASSERT_EQUAL(plan_counts()->outcome[LOAD_GONE], plan_counts()->offered);
	CU_ASSERT_TRUE(result.phase[0].complete);
	plan_end();
	load_server_stop(&server);
}

/* More than any thread can send: the arrivals that were not sent count as offered and gone, and the
 * run is void. */
static void test_overrun(void)
{
	load_server_start(&server, NULL);
	plan_for(server.port, "/", 5e6, 100 * LOAD_MS);
	plan.grace_ns = 50 * LOAD_MS;
	plan_run(NULL);
	CU_ASSERT_TRUE(plan_counts()->offered >= 499999);
	CU_ASSERT_TRUE(plan_counts()->outcome[LOAD_GONE] > 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(result.voided, "p99 of the generator's lag"));
	plan_end();
	load_server_stop(&server);
}

/* A run of few requests can be late too, but a single late request is not enough. */
static void test_late(void)
{
	static struct hdr lag;

	CU_ASSERT_FALSE(load_lag_late(&lag, LOAD_LAG_LIMIT_NS));
	hdr_add(&lag, 100000, 40);
	hdr_add(&lag, 184000000, 1);
	CU_ASSERT_FALSE(load_lag_late(&lag, LOAD_LAG_LIMIT_NS));
	hdr_add(&lag, 2300000, 1);
	CU_ASSERT_TRUE(load_lag_late(&lag, LOAD_LAG_LIMIT_NS));
	hdr_add(&lag, 100000, 400); /* two of 442 */
	CU_ASSERT_FALSE(load_lag_late(&lag, LOAD_LAG_LIMIT_NS));
	hdr_add(&lag, 2300000, 4);
	CU_ASSERT_TRUE(load_lag_late(&lag, LOAD_LAG_LIMIT_NS));
	CU_ASSERT_FALSE(load_lag_late(&lag, 5 * LOAD_MS));
}

/* All misbehaviours at once, in each way of sending. plan_run checks that nothing is lost or
 * counted twice, and that the run ends. */
static void test_everything_at_once(void)
{
	static const char *const targets[] = {
	    "/never", "/reset", "/cut", "/garbage", "/halfclose", "/close", "/third", "/once"};
	/* may be 0 in a closed loop that stalls: it may never request /never */
	uint64_t timeouts = 0;

	load_server_start(&server, NULL);
	for (int way = 0; way < 16; way++) {
		plan_for(server.port, NULL, 1000, 200 * LOAD_MS);
		for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
			plan_class(i % 3 ? "GET" : "POST", targets[i], i % 3 ? 0 : 5000);
		plan.arrivals = LOAD_POISSON;
		plan.seed = (uint64_t)way;
		plan.threads = 2;
		plan.connections = 16;
		plan.pipeline = way & 1 ? 4 : 1;
		plan.fresh = way & 2;
		plan.closed = way & 4;
		plan.send_deadline = way & 8;
		plan.session_requests = 2;
		plan.think_ns = 10 * LOAD_MS;
		plan.retries = 2;
		plan.backoff_ns = 5 * LOAD_MS;
		plan.jitter = 1;
		plan.timeout_ns = 30 * LOAD_MS;
		plan.slow_read_share = plan.slow_write_share = 0.2;
		plan.slow_read_bytes_per_s = plan.slow_write_bytes_per_s = 1e5;
		plan_run(NULL);
		timeouts += plan_counts()->outcome[LOAD_TIMEOUT];
		plan_end();
	}
	CU_ASSERT_TRUE(timeouts > 0);
	load_server_stop(&server);
}

/* ---- runs that cannot begin ---- */

static void check_refused(int code, const char *text)
{
	CU_ASSERT_EQUAL(load_run(&plan, NULL, &result, &err), code);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
	plan_end();
}

static void test_cannot_begin(void)
{
	plan_for(1, "/", 10, LOAD_MS);
	snprintf(plan.host, sizeof(plan.host), "a..b");
	check_refused(WEIR_EINVAL, "host 'a..b' cannot be resolved");
	plan_for(1, "/", 10, LOAD_MS);
	plan.connections = 1 << 30;
	check_refused(WEIR_ESYS, "1073741824 connections need");
	plan_for(1, "/", 10, LOAD_MS);
	plan.threads = 5;
	check_refused(WEIR_EINVAL, "5 threads need");
	plan_for(1, "/", 10, LOAD_MS);
	plan.cpu = 1000;
	check_refused(WEIR_ESYS, "cannot run on core 1000");
}

CUNIT_MAIN("run", {"a fixed delay is seen", test_fixed_delay},
    {"no coordinated omission", test_no_coordinated_omission},
    {"closed loop", test_closed_loop_counts},
    {"requests wait and time out", test_waiting_times_out}, {"retries", test_retries},
    {"retries end", test_retries_end}, {"retries say so", test_retries_say_so},
    {"users", test_users}, {"sessions", test_sessions},
    {"sessions_at_the_end", test_sessions_at_the_end},
    {"threads and classes", test_threads_and_classes}, {"late", test_late},
    {"fresh connections", test_fresh_connections}, {"warm-up and pause", test_warmup_and_pause},
    {"stopped by hand", test_stopped}, {"a server that dies", test_killed_server},
    {"nobody listens", test_nobody_listens}, {"grace ends", test_grace},
    {"too much for the generator", test_overrun}, {"everything at once", test_everything_at_once},
    {"cannot begin", test_cannot_begin})
