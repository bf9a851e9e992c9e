/* SPDX-License-Identifier: MIT */
/* The policy `seda_rt` on a virtual clock: both controllers, and the bucket. */
#include <stdlib.h>

#include "admission/admission.h"

#include "cunit_main.h"
#include "station.h"

_Alignas(16) static unsigned char state[ADMISSION_STATE_MAX];
static const struct weir_admission_spec own = {.target_ns = -1, .interval_ns = -1};
static int64_t now_ns; /* virtual */

static void start(int n_classes)
{
	struct admission_sample sample = {.n_classes = n_classes, .slo_ns = 100 * MS};

	now_ns = 0;
	admission_seda_rt.init(state, &own, 0);
	admission_seda_rt.tick(state, &own, &sample);
}

static int ask(int class_id, int n_classes, int n)
{
	struct admission_view v = {.now_ns = now_ns, .n_classes = n_classes, .threads = 1};
	bool refused[1024] = {false};
	int reason = 0;

	int m = admission_seda_rt.admit(state, &own, &v, class_id, n, refused, &reason);
	CU_ASSERT_EQUAL(reason, m < n ? WEIR_ERATE : 0);
	return m;
}

/* `n` responses of a class with a 90th percentile of p90_ms; the objective is 100 ms. */
static void respond(int class_id, int n_classes, uint64_t n, int64_t p90_ms)
{
	struct admission_sample sample = {.now_ns = now_ns,
	    .n_classes = n_classes,
	    .slo_ns = 100 * MS,
	    .completed = n,
	    .response_p90_ns = p90_ms * MS};

	sample.class[class_id].completed = n;
	sample.class[class_id].response_p90_ns = p90_ms * MS;
	admission_seda_rt.tick(state, &own, &sample);
}

/* The rate of the class as explained by the policy. */
static double rate_of(int class_id)
{
	char line[256];
	const char *at = line;

	admission_seda_rt.explain(state, &own, NULL, line, sizeof(line));
	for (int c = 0; at && c <= class_id; c++)
		at = strchr(at, c == 0 ? ':' : ')') + 1;
	return strtod(at, NULL);
}

/* The rate at which class 0, the only one, is admitted over 100 s of excessive load. */
static double rate_admitted(void)
{
	double sum = 0;

	ask(0, 1, 1000); /* empty the bucket */
	for (int i = 0; i < 100000; i++) {
		now_ns += MS;
		sum += ask(0, 1, 10);
	}
	return sum / 100;
}

static void test_direct_starts_low(void)
{
	start(1);
	CU_ASSERT_EQUAL(ask(0, 1, 100), 10); /* the depth of the bucket */
	CU_ASSERT_DOUBLE_EQUAL(rate_of(0), 10, 0.002);
	CU_ASSERT_DOUBLE_EQUAL(rate_admitted(), 10, 0.02);
}

static void test_direct_moves(void)
{
	start(1);
	respond(0, 1, 99, 10); /* fewer than 100 */
	CU_ASSERT_DOUBLE_EQUAL(rate_of(0), 10, 0.002);
	start(1);
	respond(0, 1, 100, 10);
	CU_ASSERT_DOUBLE_EQUAL(rate_of(0), 10.5, 0.002);
	start(1);
	respond(0, 1, 100, 401); /* smoothed: 120.3 ms, over 1.2 of the objective */
	CU_ASSERT_DOUBLE_EQUAL(rate_of(0), 5, 0.002);
	start(1);
	respond(0, 1, 100, 399); /* 119.7 ms */
	respond(0, 1, 100, 119); /* 119.5 ms */
	CU_ASSERT_DOUBLE_EQUAL(rate_of(0), 10, 0.002);
	start(1);
	now_ns = 1000 * MS;
	respond(0, 1, 1, 10); /* a second also ends a period */
	CU_ASSERT_DOUBLE_EQUAL(rate_of(0), 10.5, 0.002);
	now_ns += 5000 * MS;
	respond(0, 1, 0, 10); /* but not without a response */
	CU_ASSERT_DOUBLE_EQUAL(rate_of(0), 10.5, 0.002);
}

/* Exactly between 0.05 and 5,000 per second: SEDA's bucket stopped at 1,000. */
static void test_direct_bounds(void)
{
	start(1);
	for (int i = 0; i < 20; i++)
		respond(0, 1, 100, 10000);
	CU_ASSERT_DOUBLE_EQUAL(rate_of(0), 0.05, 0.0002);
	CU_ASSERT_DOUBLE_EQUAL(rate_admitted(), 0.05, 0.011);
	start(1);
	for (int i = 0; i < 11000; i++)
		respond(0, 1, 100, 10);
	CU_ASSERT_DOUBLE_EQUAL(rate_of(0), 5000, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(rate_admitted(), 5000, 0.1);
}

static void test_target(void)
{
	struct weir_admission_spec spec = {.target_ns = 10 * MS, .interval_ns = -1};
	struct admission_sample sample = {
	    .n_classes = 1, .slo_ns = 100 * MS, .completed = 100, .response_p90_ns = 50 * MS};

	start(1);
	admission_seda_rt.tick(state, &spec, &sample); /* 15 ms against a target of 10 ms */
	CU_ASSERT_DOUBLE_EQUAL(rate_of(0), 5, 0.002);
}

static void test_give_back(void)
{
	start(1);
	CU_ASSERT_EQUAL(ask(0, 1, 8), 8);
	admission_seda_rt.give_back(state, 8);
	CU_ASSERT_EQUAL(ask(0, 1, 100), 10);
	start(2);
	CU_ASSERT_EQUAL(ask(1, 2, 1), 1);
	admission_seda_rt.give_back(state, 1);
	CU_ASSERT_EQUAL(ask(0, 2, 2), 1);
	CU_ASSERT_EQUAL(ask(1, 2, 2), 1);
}

static void test_multi_gains(void)
{
	start(3);
	CU_ASSERT_EQUAL(ask(0, 3, 10), 1);
	CU_ASSERT_DOUBLE_EQUAL(rate_of(2), 100, 0.002);
	respond(2, 3, 100, 100); /* 30 ms, error -0.7: 2 * (0.7 - 0.1) */
	CU_ASSERT_DOUBLE_EQUAL(rate_of(2), 101.2, 0.002);
	CU_ASSERT_DOUBLE_EQUAL(rate_of(1), 100, 0.002);
	start(3);
	respond(2, 3, 100, 200); /* 60 ms, error -0.4: too close */
	CU_ASSERT_DOUBLE_EQUAL(rate_of(2), 100, 0.002);
}

/* A late class pays a little; the lower classes pay much and miss their next increase. */
static void test_multi_pays(void)
{
	start(3);
	respond(1, 3, 100, 400); /* 120 ms */
	CU_ASSERT_DOUBLE_EQUAL(rate_of(0), 100, 0.002);
	CU_ASSERT_DOUBLE_EQUAL(rate_of(1), 100 / 1.2, 0.005);
	CU_ASSERT_DOUBLE_EQUAL(rate_of(2), 10, 0.002);
	respond(2, 3, 100, 100); /* missed */
	CU_ASSERT_DOUBLE_EQUAL(rate_of(2), 10, 0.002);
	respond(2, 3, 100, 10); /* 0.7 * 30 + 0.3 * 10 = 24 ms: 2 * (0.76 - 0.1) */
	CU_ASSERT_DOUBLE_EQUAL(rate_of(2), 11.32, 0.002);
	for (int i = 0; i < 100; i++)
		respond(0, 3, 100, 1000);
	CU_ASSERT_DOUBLE_EQUAL(rate_of(2), 0.05, 0.002);
}

static void test_explain(void)
{
	char line[256];

	start(2);
	respond(0, 2, 100, 100);
	admission_seda_rt.explain(state, &own, NULL, line, sizeof(line));
	CU_ASSERT_STRING_EQUAL(
	    line, "admits per second, by class: 101.2 (p90 30 ms) 100 (p90 0 ms)");
	admission_seda_rt.explain(
	    state, &own, (const char *const[]){"app", "bulk", NULL}, line, sizeof(line));
	CU_ASSERT_STRING_EQUAL(
	    line, "admits per second, by class: app 101.2 (p90 30 ms), bulk 100 (p90 0 ms)");
}

/* The policy protects the stage, but underuses it for a long time. */
static void test_station(void)
{
	for (int i = 0; i < 2; i++) {
		struct station st = {.policy = &admission_seda_rt, .spec = own, .load = i ? 10 : 2};
		station_default(&st);
		struct station_result r = station_run(&st);
		CU_ASSERT(r.goodput > 0.3 && r.goodput < 0.9);
		CU_ASSERT(r.p99_ns < 50 * MS);
		CU_ASSERT(station_success(&r, 0) > station_success(&r, 3));
	}
}

CUNIT_MAIN("seda_rt", {"direct: starts low", test_direct_starts_low},
    {"direct: moves", test_direct_moves}, {"direct: bounds", test_direct_bounds},
    {"target", test_target}, {"give back", test_give_back}, {"multiclass: gains", test_multi_gains},
    {"multiclass: pays", test_multi_pays}, {"explains itself", test_explain},
    {"station", test_station})
