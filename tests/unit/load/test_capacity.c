/* SPDX-License-Identifier: MIT */
/* The search for the knee against servers whose capacity is known. */
#include "cunit_main.h"

#include <math.h>
#include <string.h>

#include "load/capacity.h"

/* Run a search against a server that keeps its objective up to `true_per_s`; every `flip`-th trial lies (0: none). */
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
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "no rate kept p99 <= 50 ms"));
}

static void says_what_it_found(void)
{
	struct capacity c = search(100, 1734, 0);
	char text[160];

	capacity_describe(&c, "p99 <= 50 ms", text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "kept p99 <= 50 ms"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "100 % agreed"));
}

CUNIT_MAIN("capacity", {"finds it from any start", finds_it_from_any_start},
    {"one lie does not move it", one_lie_does_not_move_it},
    {"stops at the limit", stops_at_the_limit}, {"a dead server has none", a_dead_server_has_none},
    {"says what it found", says_what_it_found})
