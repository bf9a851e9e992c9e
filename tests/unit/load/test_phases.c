/* SPDX-License-Identifier: MIT */
/* Phases: valid texts give these phases; invalid ones give the message and leave the plan
 * unchanged. */
#include "load/phases.h"

#include "load_text.h"

#define S 1000000000LL

static struct load_plan plan;
static struct weir_err err;

static void fresh(void)
{
	memset(&plan, 0, sizeof(plan));
	memset(&err, 0, sizeof(err));
}

static void check(int i, double from, double to, int64_t for_ns, const char *name)
{
	const struct load_phase *p = &plan.phase[i];

	CU_ASSERT_DOUBLE_EQUAL(p->from_per_s, from, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(p->to_per_s, to, 1e-9);
	CU_ASSERT_EQUAL(p->for_ns, for_ns);
	CU_ASSERT_STRING_EQUAL(p->name, name);
}

static void test_plain(void)
{
	fresh();
	CU_ASSERT_EQUAL(phases_constant(&plan, 500, 3 * S, &err), 0);
	CU_ASSERT_EQUAL(phases_ramp(&plan, "1k..10k", 5 * S, &err), 0);
	CU_ASSERT_EQUAL(phases_steps(&plan, "1k,2k,0.5", S, &err), 0);
	CU_ASSERT_EQUAL_FATAL(plan.n_phases, 5);
	check(0, 500, 500, 3 * S, "500/s");
	check(1, 1000, 10000, 5 * S, "1000..10000/s");
	check(2, 1000, 1000, S, "1000/s");
	check(4, 0.5, 0.5, S, "0.5/s");
	CU_ASSERT_EQUAL(phases_total_ns(&plan), 11 * S);
	CU_ASSERT_FALSE(plan.phase[0].warmup);
}

static void test_warmup(void)
{
	fresh();
	check_refused(phases_warmup(&plan, S, &err), &err, "a warm-up needs a phase");
	phases_ramp(&plan, "100..300", 2 * S, &err);
	CU_ASSERT_EQUAL(phases_warmup(&plan, S, &err), 0);
	CU_ASSERT_EQUAL_FATAL(plan.n_phases, 2);
	check(0, 100, 100, S, "warm-up");
	CU_ASSERT_TRUE(plan.phase[0].warmup);
	check(1, 100, 300, 2 * S, "100..300/s");
}

/* A spike within a phase splits it into three. Its time counts from the end of the warm-up. */
static void test_spike(void)
{
	fresh();
	phases_constant(&plan, 100, 60 * S, &err);
	phases_warmup(&plan, 10 * S, &err);
	CU_ASSERT_EQUAL(phases_spike(&plan, "10x@20s+5s", &err), 0);
	CU_ASSERT_EQUAL_FATAL(plan.n_phases, 4);
	check(1, 100, 100, 20 * S, "100/s");
	check(2, 1000, 1000, 5 * S, "spike 10x");
	check(3, 100, 100, 35 * S, "100/s");
	CU_ASSERT_EQUAL(phases_total_ns(&plan), 70 * S);
}

/* At borders nothing is split. All phases that a spike spans are raised. A ramp is split at the
 * rate it has there. */
static void test_spike_borders(void)
{
	fresh();
	phases_steps(&plan, "100,200,300", 10 * S, &err);
	CU_ASSERT_EQUAL(phases_spike(&plan, "2x@10s+10s", &err), 0);
	CU_ASSERT_EQUAL_FATAL(plan.n_phases, 3);
	check(1, 400, 400, 10 * S, "spike 2x");
	CU_ASSERT_EQUAL(phases_spike(&plan, "0.5x@0s+30s", &err), 0);
	CU_ASSERT_EQUAL_FATAL(plan.n_phases, 3);
	check(0, 50, 50, 10 * S, "spike 0.5x");
	check(1, 200, 200, 10 * S, "spike 0.5x");
	fresh();
	phases_ramp(&plan, "100..200", 10 * S, &err);
	phases_constant(&plan, 200, 10 * S, &err);
	plan.phase[0].multiple = 0.5;
	CU_ASSERT_EQUAL(phases_spike(&plan, "3x@5s+10s", &err), 0);
	CU_ASSERT_EQUAL_FATAL(plan.n_phases, 4);
	check(0, 100, 150, 5 * S, "100..200/s");
	check(1, 450, 600, 5 * S, "spike 3x");
	check(2, 600, 600, 5 * S, "spike 3x");
	check(3, 200, 200, 5 * S, "200/s");
	CU_ASSERT_DOUBLE_EQUAL(plan.phase[1].multiple, 1.5, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(plan.phase[0].multiple, 0.5, 1e-12);
}

static void test_multiples(void)
{
	double m[14];

	fresh();
	CU_ASSERT_EQUAL(phases_multiples("0.1x..10x", m, 14, &err), 14);
	CU_ASSERT_EQUAL(m[0], 0.1);
	CU_ASSERT_EQUAL(m[13], 10);
	CU_ASSERT_EQUAL(phases_multiples("0.8x..1.5x", m, 14, &err), 6);
	CU_ASSERT_EQUAL(m[0], 0.8);
	CU_ASSERT_EQUAL(m[5], 1.5);
	CU_ASSERT_EQUAL(phases_multiples("2x,0.5x,1x", m, 14, &err), 3);
	CU_ASSERT_TRUE(m[0] == 0.5 && m[1] == 1 && m[2] == 2);
	check_refused(phases_multiples("1x,2x,3x", m, 2, &err), &err, "more than 2");
	check_refused(phases_multiples("1x,2,3x", m, 9, &err), &err, "'2' is not a multiple");
	check_refused(phases_multiples("1x,1x", m, 9, &err), &err, "'1x' is listed twice");
	check_refused(phases_multiples("11x..12x", m, 9, &err), &err, "11x..12x");
	check_refused(phases_multiples("5x..1x", m, 9, &err), &err, "5x..1x");
	check_refused(phases_multiples("x..1x", m, 9, &err), &err, "'x' is not a multiple");
	check_refused(phases_multiples("1x..", m, 9, &err), &err, "'' is not a multiple");
	check_refused(phases_multiples("", m, 9, &err), &err, "'' is not a multiple");
	check_refused(phases_multiples("0x", m, 9, &err), &err, "'0x' is not a multiple");
	check_refused(phases_multiples("2000x", m, 9, &err), &err, "'2000x' is not a multiple");
}

/* Round 1 upwards, round 2 downwards, with a pause before each load. */
static void test_sweep(void)
{
	const double m[] = {0.5, 1, 2};
	const double order[] = {0.5, 1, 2, 2, 1, 0.5};

	fresh();
	CU_ASSERT_EQUAL(phases_sweep(&plan, 1000, m, 3, 2, 4 * S, S, &err), 0);
	CU_ASSERT_EQUAL_FATAL(plan.n_phases, 12);
	for (int i = 0; i < 6; i++) {
		check(2 * i, 0, 0, S, "pause");
		CU_ASSERT_EQUAL(plan.phase[2 * i + 1].multiple, order[i]);
		CU_ASSERT_EQUAL(plan.phase[2 * i + 1].from_per_s, 1000 * order[i]);
		CU_ASSERT_EQUAL(plan.phase[2 * i + 1].round, i / 3 + 1);
	}
	CU_ASSERT_STRING_EQUAL(plan.phase[1].name, "0.5x");
	CU_ASSERT_EQUAL(phases_warmup(&plan, 3 * S, &err), 0);
	check(0, 500, 500, 3 * S, "warm-up"); /* not at the rate of the pause */
	fresh();
	CU_ASSERT_EQUAL(phases_sweep(&plan, 10, m, 3, 3, S, 0, &err), 0);
	CU_ASSERT_EQUAL(plan.n_phases, 9);
	check_refused(phases_sweep(&plan, 10, m, 3, 90, S, 0, &err), &err, "279 phases");
	check_refused(phases_sweep(&plan, 0, m, 3, 2, S, 0, &err), &err, "capacity");
	check_refused(phases_sweep(&plan, 10, m, 3, 0, S, 0, &err), &err, "0 rounds");
	CU_ASSERT_EQUAL(plan.n_phases, 9);
}

static void test_bad_rates(void)
{
	fresh();
	check_refused(phases_constant(&plan, 0, S, &err), &err, "rate");
	check_refused(phases_constant(&plan, 5, 0, &err), &err, "above 0s");
	check_refused(phases_ramp(&plan, "1k", S, &err), &err, "'1k' is not a ramp");
	check_refused(phases_ramp(&plan, "1k..abc", S, &err), &err, "'abc'");
	check_refused(phases_ramp(&plan, "..5", S, &err), &err, "''");
	check_refused(phases_ramp(&plan, "0..5", S, &err), &err, "'0'");
	check_refused(phases_ramp(&plan, "1..-5", S, &err), &err, "'-5'");
	check_refused(phases_steps(&plan, "1,2,,3", S, &err), &err, "''");
	check_refused(phases_steps(&plan, "1,2,3q", S, &err), &err, "'3q'");
	check_refused(phases_steps(&plan, "1,2", -S, &err), &err, "above 0s");
	check_refused(phases_steps(&plan, "1\033[31m", S, &err), &err, "'1?[31m'");
	CU_ASSERT_EQUAL(plan.n_phases, 0);
	char many[2 * LOAD_PHASES_MAX + 2] = "";
	for (int i = 0; i <= LOAD_PHASES_MAX; i++)
		strcat(many, i ? ",7" : "7");
	check_refused(phases_steps(&plan, many, S, &err), &err, "257 phases");
	CU_ASSERT_EQUAL(plan.n_phases, 0);
	char overlong[200];
	memset(overlong, '1', sizeof(overlong));
	memcpy(overlong + 196, "..2", 4);
	check_refused(phases_ramp(&plan, overlong, S, &err), &err, "too many digits");
}

static void test_bad_spikes(void)
{
	static const char *const bad[][2] = {{"", "'' is not a spike"},
	    {"10x", "'10x' is not a spike"}, {"10x@5s", "'10x@5s' is not a spike"},
	    {"10@5s+1s", "'10' is not a multiple"}, {"ax@5s+1s", "'ax' is not a multiple"},
	    {"2x@5+1s", "'5'"}, {"2x@5s+", "''"}, {"2x@1s+0s", "above 0s"}, {"2x@1s+1y", "'1y'"},
	    {"2x@25s+6s", "'2x@25s+6s' does not lie within"}, {"2x@8760h+8760h", "does not lie"}};

	fresh();
	phases_constant(&plan, 100, 30 * S, &err);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_refused(phases_spike(&plan, bad[i][0], &err), &err, bad[i][1]);
	CU_ASSERT_EQUAL(plan.n_phases, 1);
	/* to the end of the last phase */
	CU_ASSERT_EQUAL(phases_spike(&plan, "2x@25s+5s", &err), 0);
	CU_ASSERT_EQUAL(plan.n_phases, 2);
}

CUNIT_MAIN("phases", {"constant, ramp, steps", test_plain}, {"warm-up", test_warmup},
    {"spike", test_spike}, {"spike over borders", test_spike_borders},
    {"multiples", test_multiples}, {"sweep", test_sweep}, {"bad rates", test_bad_rates},
    {"bad spikes", test_bad_spikes})
