/* SPDX-License-Identifier: MIT */
/* The search for the knee, with servers whose capacity is known. */
#include "cunit_main.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "load/capacity.h"

/* Search with a server that keeps its objective up to `true_per_s`. Every `flip`-th trial gives the
 * wrong result (0: none). */
static struct capacity search(double start_per_s, double true_per_s, int flip)
{
	struct capacity c;
	int trial = 0;

	capacity_start(&c, start_per_s, 1e6, 0.02);
	for (double rate; (rate = capacity_next(&c)) > 0;) {
		bool kept = rate <= true_per_s;
		trial++;
		capacity_tell(&c, flip && trial % flip == 0 ? !kept : kept);
		if (trial > 3 * CAPACITY_RATES_MAX)
			break;
	}
	return c;
}

static void finds_it_from_any_start(void)
{
	static const double starts[] = {1, 100, 1733, 1735, 500000};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct capacity c = search(starts[i], 1734, 0);
		CU_ASSERT(c.done);
		CU_ASSERT(c.good_per_s <= 1734 && c.bad_per_s > 1734);
		CU_ASSERT(c.bad_per_s <= c.good_per_s * 1.02);
		CU_ASSERT_DOUBLE_EQUAL(capacity_confidence(&c), 1, 0);
	}
}

static void one_lie_does_not_move_it(void)
{
	for (int flip = 3; flip < 12; flip++) {
		struct capacity c = search(100, 1734, flip);
		CU_ASSERT(c.good_per_s <= 1734 && c.bad_per_s > 1734);
		CU_ASSERT(capacity_confidence(&c) < 1);
		CU_ASSERT(capacity_confidence(&c) > 0.6);
	}
}

static void stops_at_the_limit(void)
{
	struct capacity c;

	capacity_start(&c, 600, 1000, 0.02);
	while (capacity_next(&c) > 0)
		capacity_tell(&c, true);
	CU_ASSERT_DOUBLE_EQUAL(c.good_per_s, 1000, 0);
	CU_ASSERT_DOUBLE_EQUAL(c.bad_per_s, 0, 0);
	CU_ASSERT(c.n_trials == 4);
}

static void a_dead_server_has_none(void)
{
	struct capacity c;
	char text[160];

	capacity_start(&c, 100, 1000, 0.02);
	while (capacity_next(&c) > 0)
		capacity_tell(&c, false);
	CU_ASSERT_DOUBLE_EQUAL(c.good_per_s, 0, 0);
	capacity_describe(&c, "p99 <= 50 ms", text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "no rate met p99 <= 50 ms"));
}

static void says_what_it_found(void)
{
	struct capacity c = search(100, 1734, 0);
	char text[160];

	capacity_describe(&c, "p99 <= 50 ms", text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "met p99 <= 50 ms"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "100 % agreed"));
}

/* Late trials may occur between any two trials that count. They change nothing but the report. */
static void late_trials_do_not_count(void)
{
	struct capacity c;
	char text[200];

	capacity_start(&c, 100, 1e6, 0.02);
	for (int trial = 0; capacity_next(&c) > 0; trial++) {
		double rate = capacity_next(&c);
		if (trial < CAPACITY_LATE_MAX - 1) {
			capacity_tell_late(&c, 152000000);
			CU_ASSERT_DOUBLE_EQUAL(capacity_next(&c), rate, 0);
		}
		capacity_tell(&c, rate <= 1734);
	}
	CU_ASSERT_FALSE(c.voided);
	CU_ASSERT(c.good_per_s <= 1734 && c.bad_per_s > 1734);
	CU_ASSERT_DOUBLE_EQUAL(capacity_confidence(&c), 1, 0);
	capacity_describe(&c, "p99 <= 50 ms", text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "the generator was late in 7 more"));
	capacity_why_void(&c, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "");
}

/* After a rate that passed, a late generator limits the search. */
static void limited_when_it_becomes_late(void)
{
	struct capacity c;
	char text[256];

	capacity_start(&c, 100, 1e6, 0.02);
	capacity_tell(&c, true);
	capacity_tell(&c, true);
	for (int i = 0; i < CAPACITY_LATE_IN_A_ROW; i++) {
		CU_ASSERT_DOUBLE_EQUAL(capacity_next(&c), 200, 0);
		capacity_tell_late(&c, 43000000);
	}
	CU_ASSERT_DOUBLE_EQUAL(capacity_next(&c), 0, 0);
	CU_ASSERT_TRUE(c.limited);
	CU_ASSERT_FALSE(c.voided);
	CU_ASSERT_DOUBLE_EQUAL(c.good_per_s, 100, 0);
	capacity_describe(&c, "p99=100ms", text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text,
	    "at least 100/s met p99=100ms, the generator could not send 200/s in time; 2 trials"));
	capacity_why_void(&c, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "");
}

static void void_when_it_stays_late(void)
{
	struct capacity c;
	char text[200];

	capacity_start(&c, 100, 1e6, 0.02);
	capacity_tell(&c, false);
	capacity_tell(&c, false);
	capacity_tell_late(&c, 3000000);
	capacity_tell_late(&c, 152000000);
	CU_ASSERT_DOUBLE_EQUAL(capacity_next(&c), 50, 0);
	capacity_tell_late(&c, 2000000);
	CU_ASSERT_DOUBLE_EQUAL(capacity_next(&c), 0, 0);
	CU_ASSERT_TRUE(c.voided);
	CU_ASSERT_FALSE(c.limited);
	CU_ASSERT_DOUBLE_EQUAL(c.good_per_s, 0, 0);
	capacity_why_void(&c, text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text,
	    "at 50/s: the p99 of the generator's lag was up to 152.0 ms in 3 trials in a row"));
	capacity_describe(&c, "p99 <= 50 ms", text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "not found: no rate met p99 <= 50 ms"));
}

/* Every second trial is late: never three in a row, but the search must end. */
static void void_when_it_is_late_too_often(void)
{
	struct capacity c;
	char text[200];
	int late = 0;

	capacity_start(&c, 1e9, 1e9, 0.001);
	for (int trial = 0; capacity_next(&c) > 0 && trial < 1000; trial++) {
		if (trial % 2)
			capacity_tell(&c, false);
		else
			capacity_tell_late(&c, 5000000 + late++);
	}
	CU_ASSERT_TRUE(c.voided);
	CU_ASSERT_EQUAL(late, CAPACITY_LATE_MAX);
	capacity_why_void(&c, text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "in 8 trials, which"));
}

/* A rate whose trials only the lag fails counts as met in the end, and that is said. */
static void a_rate_that_the_lag_hides(void)
{
	struct capacity c;
	char text[256];

	capacity_start(&c, 100, 1e6, 0.03);
	for (int i = 0; i < 1000 && capacity_next(&c) > 0; i++) {
		double per_s = capacity_next(&c);
		CU_ASSERT(capacity_left(&c) >= 1);
		if (per_s > 450 && per_s < 500)
			capacity_tell_unknown(&c);
		else
			capacity_tell(&c, per_s < 475);
	}
	CU_ASSERT_EQUAL(capacity_left(&c), 0);
	CU_ASSERT_FALSE(c.voided);
	CU_ASSERT(c.good_per_s > 470 && c.good_per_s < 500);
	CU_ASSERT(c.n_lenient > 0 && c.n_unknown == 3 * c.n_lenient);
	capacity_describe(&c, "p99=100ms", text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "only the generator's lag hid"));
}

/* The estimate falls, and is near the true number from the bracket on. */
static void the_rest_is_estimated(void)
{
	struct capacity c;
	int left[200], n = 0;

	capacity_start(&c, 100, 1e6, 0.03);
	CU_ASSERT_EQUAL(capacity_left(&c), 16);
	while (capacity_next(&c) > 0 && n < 200) {
		left[n++] = c.bad_per_s > 0 ? capacity_left(&c) : -1;
		capacity_tell(&c, capacity_next(&c) < 475);
	}
	for (int i = 0; i < n; i++)
		CU_ASSERT(left[i] < 0 || abs(left[i] - (n - i)) <= 2);
}

CUNIT_MAIN("capacity", {"finds it from any start", finds_it_from_any_start},
    {"one lie does not move it", one_lie_does_not_move_it},
    {"stops at the limit", stops_at_the_limit}, {"a dead server has none", a_dead_server_has_none},
    {"says what it found", says_what_it_found},
    {"late trials do not count", late_trials_do_not_count},
    {"limited when the generator becomes late", limited_when_it_becomes_late},
    {"void when the generator stays late", void_when_it_stays_late},
    {"void when it is late too often", void_when_it_is_late_too_often},
    {"a rate that the lag hides", a_rate_that_the_lag_hides},
    {"the rest is estimated", the_rest_is_estimated})
