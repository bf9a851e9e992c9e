/* SPDX-License-Identifier: MIT */
/* Runs that are better, worse or equal by construction, and runs that must not be compared. */
#include "report/compare.h"

#include "report/reading.h"

/* Compare two made-up runs. The result is in *c, or the message of the refusal in *err. */
static int compare(const struct made_up *a, const struct made_up *b, bool force,
    struct comparison *c, struct weir_err *err)
{
	static struct rundata run[2];

	rundata_fini(&run[0]);
	rundata_fini(&run[1]);
	reading_read(a, &run[0]);
	reading_read(b, &run[1]);
	int rc = compare_runs(&run[0], &run[1], force, c, err);
	if (rc != 0) {
		rundata_fini(&run[0]);
		rundata_fini(&run[1]);
	}
	return rc;
}

/* Release what the last comparison referred to. */
static void done(struct comparison *c)
{
	rundata_fini((struct rundata *)(uintptr_t)c->a);
	rundata_fini((struct rundata *)(uintptr_t)c->b);
	compare_fini(c);
}

static void test_equal(void)
{
	struct made_up a = reading_plain("a", 1), b = reading_plain("b", 2);
	struct comparison c;
	struct weir_err err = {0};
	char text[400];

	a.phase_s = b.phase_s = 30;
	CU_ASSERT_EQUAL_FATAL(compare(&a, &b, false, &c, &err), 0);
	CU_ASSERT_EQUAL(c.n, 3);
	CU_ASSERT_EQUAL(c.count[STATS_WORSE], 0);
	CU_ASSERT_EQUAL(c.count[STATS_BETTER], 0);
	CU_ASSERT_STRING_EQUAL(compare_verdict(&c), "within noise");
	CU_ASSERT_PTR_NOT_NULL(strstr(compare_sentence(&c, text, sizeof(text)), "No difference"));
	CU_ASSERT_TRUE(c.drift);
	CU_ASSERT_PTR_NOT_NULL(strstr(compare_note(&c, 0), "did not alternate"));
	done(&c);
}

static void test_worse(void)
{
	struct made_up a = reading_plain("a", 1), b = reading_plain("b", 2);
	struct comparison c;
	struct weir_err err = {0};
	char text[400];

	b.kept = 0.4;
	b.latency_s = 0.008;
	CU_ASSERT_EQUAL_FATAL(compare(&a, &b, false, &c, &err), 0);
	const struct compare_row *over = &c.row[2]; /* 0.5x, 1x, 2x */
	CU_ASSERT_STRING_EQUAL(over->name, "2x");
	CU_ASSERT_EQUAL(over->cell[RUN_GOODPUT].ratio.verdict, STATS_WORSE);
	CU_ASSERT_DOUBLE_EQUAL(over->cell[RUN_GOODPUT].ratio.ratio, 0.4 / 0.98, 0.03);
	CU_ASSERT_EQUAL(c.row[0].cell[RUN_GOODPUT].ratio.verdict, STATS_NOISE);
	CU_ASSERT_EQUAL(c.row[0].cell[RUN_P50].ratio.verdict, STATS_WORSE);
	CU_ASSERT_DOUBLE_EQUAL(c.row[0].cell[RUN_P50].ratio.ratio, 2, 0.2);
	CU_ASSERT_EQUAL(over->cell[RUN_SHED].ratio.verdict, STATS_WORSE);
	CU_ASSERT_STRING_EQUAL(compare_verdict(&c), "worse");
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(compare_sentence(&c, text, sizeof(text)), "goodput times 0.4"));
	done(&c);
	CU_ASSERT_EQUAL_FATAL(compare(&b, &a, false, &c, &err), 0);
	CU_ASSERT_STRING_EQUAL(compare_verdict(&c), "better");
	done(&c);
}

static void test_mixed(void)
{
	struct made_up a = reading_plain("a", 1), b = reading_plain("b", 2);
	struct comparison c;
	struct weir_err err = {0};

	b.kept = 0.5;
	b.latency_s = 0.001;
	CU_ASSERT_EQUAL_FATAL(compare(&a, &b, false, &c, &err), 0);
	CU_ASSERT_STRING_EQUAL(compare_verdict(&c), "mixed");
	done(&c);
}

/* Two runs that alternate: each pauses while the other runs a phase. */
static void test_paired(void)
{
	struct made_up a = reading_plain("a", 1), b = reading_plain("b", 2);
	struct comparison c;
	struct weir_err err = {0};

	a.rounds = b.rounds = 6;
	a.phase_s = b.phase_s = 2;
	b.latency_s = 0.006;
	a.pause_s = b.pause_s = 2;
	b.started_unix_ns += 2000000000;
	CU_ASSERT_EQUAL_FATAL(compare(&a, &b, false, &c, &err), 0);
	CU_ASSERT_TRUE(c.row[0].paired);
	CU_ASSERT_FALSE(c.drift);
	CU_ASSERT_EQUAL(c.row[0].cell[RUN_P50].ratio.n, 6);
	CU_ASSERT_EQUAL(c.row[0].cell[RUN_P50].ratio.verdict, STATS_WORSE);
	CU_ASSERT_EQUAL(c.row[0].cell[RUN_P999].ratio.verdict, STATS_WORSE);
	CU_ASSERT_TRUE(c.row[0].cell[RUN_CPU].known);
	done(&c);

	b.started_unix_ns += 3600LL * 1000000000; /* an hour later: no longer pairs */
	CU_ASSERT_EQUAL_FATAL(compare(&a, &b, false, &c, &err), 0);
	CU_ASSERT_FALSE(c.row[0].paired);
	CU_ASSERT_TRUE(c.drift);
	done(&c);
}

static void test_multiples(void)
{
	struct made_up a = reading_plain("a", 1), b = reading_plain("b", 2);
	struct comparison c;
	struct weir_err err = {0};

	b.capacity_per_s = 1500;
	CU_ASSERT_EQUAL_FATAL(compare(&a, &b, false, &c, &err), 0);
	CU_ASSERT_TRUE(c.multiples);
	CU_ASSERT_EQUAL(c.n, 3);
	CU_ASSERT_DOUBLE_EQUAL(c.row[1].cell[RUN_GOODPUT].ratio.ratio, 1.5, 0.05);
	done(&c);
	b = a;
	b.n_loads = 2;
	CU_ASSERT_EQUAL_FATAL(compare(&a, &b, false, &c, &err), 0);
	CU_ASSERT_EQUAL(c.n, 2);
	CU_ASSERT_EQUAL(c.left_out, 1);
	done(&c);
}

static void test_refused(void)
{
	struct made_up a = reading_plain("first", 1), b = reading_plain("second", 2);
	struct comparison c;
	struct weir_err err = {0};

	b.closed = true;
	CU_ASSERT_EQUAL(compare(&a, &b, false, &c, &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "'first' is an open-loop run"));
	b = reading_plain("second", 2);
	b.class_name = "other";
	CU_ASSERT_EQUAL(compare(&a, &b, false, &c, &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "'bulk' in 'first', 'other' in 'second'"));
	b = reading_plain("second", 2);
	b.voided = "late";
	CU_ASSERT_EQUAL(compare(&a, &b, false, &c, &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "run 'second' is void (late)"));
	CU_ASSERT_EQUAL(compare(&a, &b, true, &c, &err), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(compare_note(&c, 0), "void"));
	done(&c);
}

static void test_other_rates(void)
{
	struct made_up a = reading_plain("first", 1), b = reading_plain("second", 2);
	struct rundata run[2] = {{.n_points = 0}, {.n_points = 0}};
	struct comparison c;
	struct weir_err err = {0};

	reading_read(&a, &run[0]);
	reading_read(&b, &run[1]);
	for (int p = 0; p < run[1].n_points; p++) {
		run[1].point[p].multiple = 0;
		run[1].point[p].from_per_s *= 1.7;
	}
	CU_ASSERT_EQUAL(compare_runs(&run[0], &run[1], false, &c, &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "different rates"));
	rundata_fini(&run[0]);
	rundata_fini(&run[1]);
}

static void test_closed(void)
{
	struct made_up a = reading_plain("a", 1), b = reading_plain("b", 2);
	struct comparison c;
	struct weir_err err = {0};

	a.closed = b.closed = true;
	CU_ASSERT_EQUAL_FATAL(compare(&a, &b, false, &c, &err), 0);
	CU_ASSERT_EQUAL(c.n, 3);
	CU_ASSERT_STRING_EQUAL(c.a->name, "a (closed loop)");
	done(&c);
}

CUNIT_MAIN("compare", {"equal", test_equal}, {"worse, and better the other way", test_worse},
    {"mixed", test_mixed}, {"alternating rounds are pairs", test_paired},
    {"other capacities, other loads", test_multiples}, {"refused", test_refused},
    {"nothing in common", test_other_rates}, {"closed loops", test_closed})
