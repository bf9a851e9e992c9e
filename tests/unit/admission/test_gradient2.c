/* SPDX-License-Identifier: MIT */
/* The policy `gradient2` on a virtual clock: its limit, and how response times move it. */
#include <stdlib.h>

#include "admission/admission.h"

#include "cunit_main.h"
#include "station.h"

_Alignas(16) static unsigned char state[ADMISSION_STATE_MAX];
static const struct weir_admission_spec own = {.target_ns = -1, .interval_ns = -1};

static int ask(uint32_t length, uint32_t running, int n)
{
	struct admission_view v = {
	    .length = length, .running = running, .limit = 4096, .n_classes = 1, .threads = 4};
	bool refused[1024] = {false};
	int reason = 0;

	int m = admission_gradient2.admit(state, &own, &v, 0, n, refused, &reason);
	CU_ASSERT_EQUAL(reason, m < n ? WEIR_ELIMIT : 0);
	return m;
}

/* The limit, found by offering more than it admits. */
static int limit(void)
{
	return ask(0, 0, 1000);
}

static void respond(uint64_t n, int64_t mean_ms)
{
	struct admission_sample sample = {.completed = n, .response_mean_ns = mean_ms * MS};

	admission_gradient2.tick(state, &own, &sample);
}

static void test_limit_counts_the_running(void)
{
	admission_gradient2.init(state, &own, 0);
	CU_ASSERT_EQUAL(limit(), 20);
	CU_ASSERT_EQUAL(ask(10, 4, 10), 6);
	CU_ASSERT_EQUAL(ask(10, 4, 6), 6);
	CU_ASSERT_EQUAL(ask(16, 4, 1), 0);
	CU_ASSERT_EQUAL(ask(100, 4, 1), 0);
}

/* While response times stay alike, each sample adds 0.2 of a queue of 4, up to 200. */
static void test_grows(void)
{
	admission_gradient2.init(state, &own, 0);
	for (int i = 1; i <= 10; i++) {
		CU_ASSERT_EQUAL(limit(), 20 + (int)(0.8 * (i - 1) + 1e-9));
		respond(10, 5);
	}
	for (int i = 0; i < 300; i++) {
		limit();
		respond(10, 5);
	}
	CU_ASSERT_EQUAL(limit(), 200);
}

static void test_grows_only_when_tried(void)
{
	admission_gradient2.init(state, &own, 0);
	for (int i = 0; i < 100; i++) {
		ask(5, 3, 1); /* 9 in the stage, the limit is 20 */
		respond(100, 5);
	}
	CU_ASSERT_EQUAL(limit(), 20);
	respond(9, 5); /* fewer than 10 do not make a sample */
	CU_ASSERT_EQUAL(ask(0, 0, 21), 20);
	respond(1, 5);
	limit();
	respond(10, 5);
	CU_ASSERT_EQUAL(limit(), 21);
}

/* Slower than 1.5 times the average: a fifth of the way to L * gradient + 4. At most halved, never
 * below 20. */
static void test_shrinks(void)
{
	admission_gradient2.init(state, &own, 0);
	for (int i = 0; i < 300; i++) {
		limit();
		respond(10, 10);
	}
	CU_ASSERT_EQUAL(limit(), 200);
	respond(10, 14); /* within the tolerance */
	CU_ASSERT_EQUAL(limit(), 200);
	respond(10, 1000);
	CU_ASSERT_EQUAL(limit(), 180); /* 0.8 * 200 + 0.2 * (100 + 4) */
	for (int i = 0; i < 60; i++) {
		limit();
		respond(10, 100000LL << (i / 4)); /* growing: a lasting wait would become normal */
	}
	CU_ASSERT_EQUAL(limit(), 20);
}

/* A long bad period is not remembered for long: the average falls by 5 % per sample. */
static void test_average_is_cut(void)
{
	char line[128];

	admission_gradient2.init(state, &own, 0);
	for (int i = 0; i < 100; i++)
		respond(10, 1000);
	for (int i = 0; i < 120; i++)
		respond(10, 10);
	admission_gradient2.explain(state, &own, NULL, line, sizeof(line));
	double average_ms = strtod(strrchr(line, 'e') + 1, NULL);
	CU_ASSERT(average_ms > 9 && average_ms < 25);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "the limit is 20 events at the stage"));
}

static void test_station(void)
{
	static const double load[] = {0.5, 0.7, 1}, least[] = {0.48, 0.67, 0.92};

	for (int i = 0; i < 3; i++) {
		struct station st = {.policy = &admission_gradient2, .spec = own, .load = load[i]};
		station_default(&st);
		struct station_result r = station_run(&st);
		CU_ASSERT(r.goodput > least[i]);
		CU_ASSERT(i == 2 || r.refused < 0.005);
	}
}

CUNIT_MAIN("gradient2", {"the limit counts the running", test_limit_counts_the_running},
    {"grows", test_grows}, {"grows only when tried", test_grows_only_when_tried},
    {"shrinks", test_shrinks}, {"the average is cut", test_average_is_cut},
    {"station", test_station})
