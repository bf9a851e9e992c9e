/* SPDX-License-Identifier: MIT */
/* Objectives: the notation, and phases that meet one, miss it, or say nothing about it. */
#include "load/objective.h"

#include <string.h>

#include "cunit_main.h"

#define MS 1000000LL

static struct load_plan plan = {.n_classes = 1};
static struct load_phase_result phase;
static struct hdr ok;
static const struct load_objective p99 = {.quantile = 0.99, .limit_ns = 100 * MS};

static void begin(uint64_t fast, uint64_t slow, int64_t slow_ns)
{
	memset(&ok, 0, sizeof(ok));
	memset(&phase, 0, sizeof(phase));
	hdr_add(&ok, 20 * MS, fast);
	hdr_add(&ok, slow_ns, slow);
	phase.class[0].offered = fast + slow;
	phase.class[0].latency[LOAD_OK] = &ok;
}

static enum load_met met(void)
{
	return load_objective_met(&plan, &phase, &p99);
}

static void test_notation(void)
{
	struct load_objective o;
	struct weir_err err;

	CU_ASSERT_EQUAL(load_objective_parse("p99.9=50ms", &o, &err), 0);
	CU_ASSERT(o.quantile > 0.99899 && o.quantile < 0.99901 && o.limit_ns == 50 * MS);
	CU_ASSERT_EQUAL(load_objective_parse("p999=1s", &o, &err), 0);
	CU_ASSERT(o.quantile > 0.99899 && o.quantile < 0.99901);
	static const char *const bad[] = {"", "99=1s", "p=1s", "p99", "p99=", "p99=5", "p0=1s"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(load_objective_parse(bad[i], &o, &err), WEIR_EINVAL);
}

static void test_met(void)
{
	begin(990, 10, 500 * MS);
	CU_ASSERT_EQUAL(met(), LOAD_MET);
	begin(989, 11, 500 * MS);
	CU_ASSERT_EQUAL(met(), LOAD_MISSED);
	begin(990, 0, 0);
	phase.class[0].offered = 1010; /* twenty were refused */
	CU_ASSERT_EQUAL(met(), LOAD_MISSED);
	begin(0, 0, 0);
	CU_ASSERT_EQUAL(met(), LOAD_MISSED);
}

/* Lag that could have made the difference leaves the result open; other lag does not. */
static void test_lag(void)
{
	begin(995, 5, 500 * MS);
	hdr_add(&phase.lag, 8 * MS, 1000);
	CU_ASSERT_EQUAL(met(), LOAD_MET);
	begin(900, 100, 105 * MS);
	hdr_add(&phase.lag, 8 * MS, 1000);
	CU_ASSERT_EQUAL(met(), LOAD_UNKNOWN);
	begin(900, 100, 120 * MS);
	hdr_add(&phase.lag, 8 * MS, 1000);
	CU_ASSERT_EQUAL(met(), LOAD_MISSED);
	begin(900, 100, 100 * MS + MS);
	hdr_add(&phase.lag, MS / 2, 1000);
	CU_ASSERT_EQUAL(met(), LOAD_MISSED);
	begin(1000, 0, 0);
	phase.late = true;
	CU_ASSERT_EQUAL(met(), LOAD_UNKNOWN);
}

static void test_limit(void)
{
	struct load_objective fast = {.quantile = 0.5, .limit_ns = 2 * MS};

	CU_ASSERT_EQUAL(load_objective_lag_ns(&p99), 10 * MS);
	CU_ASSERT_EQUAL(load_objective_lag_ns(&fast), MS);
}

CUNIT_MAIN("objective", {"notation", test_notation}, {"met and missed", test_met},
    {"lag", test_lag}, {"limit of the lag", test_limit})
