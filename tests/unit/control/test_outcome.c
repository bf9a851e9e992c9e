/* SPDX-License-Identifier: MIT */
/* Outcomes of decisions in the journal, on a virtual clock. */
#include "control/outcome.h"

#include <string.h>

#include "base/clock.h"
#include "cunit_main.h"

static struct outcomes o;
static struct journal journal;
static struct resize_view view;
static int64_t now_ns;

static void begin(int target)
{
	memset(&o, 0, sizeof(o));
	memset(&journal, 0, sizeof(journal));
	journal_init(&journal);
	view = (struct resize_view){.target = target, .live = target};
	now_ns = 0;
}

/* Let `seconds` pass in ticks of 100 ms, with `per_s` events done per second and `queue`
 * waiting. */
static void pass(double seconds, int per_s, uint32_t queue)
{
	for (int i = 0; i < (int)(seconds * 10 + 0.5); i++) {
		now_ns += 100 * NS_PER_MS;
		view.items += (uint64_t)per_s / 10;
		view.queue_length = queue;
		outcomes_step(&o, &view, now_ns, &journal);
	}
}

static void decide(int to)
{
	struct weir_decision d = {.from = view.target, .to = to};

	outcomes_expect(&o, journal_add(&journal, d), view.target, to, now_ns);
	view.target = to;
}

static struct weir_decision newest(void)
{
	struct weir_decision d = {0};

	journal_read(&journal, &d, 1);
	return d;
}

static void check(const char *at_5s, const char *at_30s)
{
	CU_ASSERT_STRING_EQUAL(newest().outcome_5s, at_5s);
	CU_ASSERT_STRING_EQUAL(newest().outcome_30s, at_30s);
}

static void test_helped(void)
{
	begin(4);
	pass(10, 400, 100);
	decide(5);
	pass(4.8, 500, 100);
	check("", "");
	pass(0.4, 500, 100);
	check("helped", "");
	pass(24.4, 500, 100);
	check("helped", "");
	pass(0.8, 500, 100);
	check("helped", "helped");
	journal_fini(&journal);
}

static void test_shorter_wait_helped(void)
{
	begin(4);
	pass(10, 400, 100);
	decide(5);
	pass(31, 400, 10);
	check("helped", "helped");
	journal_fini(&journal);
}

static void test_no_effect(void)
{
	begin(4);
	pass(10, 400, 100);
	decide(5);
	pass(31, 404, 98);
	check("no effect", "no effect");
	begin(4);
	pass(10, 400, 0);
	decide(3); /* a shrink without effect */
	pass(31, 400, 1);
	check("no effect", "no effect");
	journal_fini(&journal);
}

static void test_undone(void)
{
	begin(4);
	pass(10, 400, 100);
	decide(5);
	pass(10, 500, 100);
	view.target = 4;
	pass(21, 500, 100);
	check("helped", "undone");
	begin(4);
	decide(3);
	view.target = 5;
	pass(31, 500, 100);
	check("undone", "undone");
	journal_fini(&journal);
}

static void test_harmed(void)
{
	begin(4);
	pass(10, 400, 2);
	decide(3);
	pass(31, 400, 20);
	check("harmed", "harmed");
	journal_fini(&journal);
}

/* Each step is judged after its own 5 s and 30 s, even while an older one waits for its 30 s. */
static void test_steps_that_overlap(void)
{
	struct weir_decision d[2];

	begin(4);
	pass(10, 400, 100);
	decide(5);
	pass(3, 500, 100);
	decide(6);
	pass(5.2, 500, 100);
	CU_ASSERT_EQUAL_FATAL(journal_read(&journal, d, 2), 2);
	CU_ASSERT_STRING_EQUAL(d[1].outcome_5s, "helped");
	CU_ASSERT_STRING_NOT_EQUAL(d[0].outcome_5s, "");
	CU_ASSERT_STRING_EQUAL(d[1].outcome_30s, "");
	pass(22, 500, 100);
	journal_read(&journal, d, 2);
	CU_ASSERT_STRING_EQUAL(d[1].outcome_30s, "helped");
	CU_ASSERT_STRING_EQUAL(d[0].outcome_30s, "");
	pass(3.2, 500, 100);
	journal_read(&journal, d, 2);
	CU_ASSERT_STRING_NOT_EQUAL(d[0].outcome_30s, "");
	journal_fini(&journal);
}

/* Two views at the same time give no throughput. */
static void test_two_looks_at_one_time(void)
{
	begin(4);
	pass(10, 400, 100);
	view.items += 40;
	outcomes_step(&o, &view, now_ns, &journal);
	decide(5);
	pass(31, 500, 100);
	check("helped", "helped");
	journal_fini(&journal);
}

/* More decisions than the journal keeps, and an outcome for one that has left the ring: it is
 * written nowhere. */
static void test_many(void)
{
	begin(1);
	pass(5, 100, 0);
	for (int i = 0; i < JOURNAL_SIZE + 5; i++)
		decide(view.target == 1 ? 2 : 1);
	journal_outcome(&journal, 3, JOURNAL_5S, "helped");
	struct weir_decision d[JOURNAL_SIZE];
	int n = journal_read(&journal, d, JOURNAL_SIZE), said = 0;
	for (int i = 0; i < n; i++)
		said += d[i].outcome_5s[0] != '\0';
	CU_ASSERT_EQUAL(said, 0);
	pass(31, 100, 0);
	n = journal_read(&journal, d, JOURNAL_SIZE);
	for (int i = 0; i < n; i++)
		said += d[i].outcome_30s[0] != '\0';
	CU_ASSERT_EQUAL(said, OUTCOMES_MAX);
	journal_fini(&journal);
}

CUNIT_MAIN("outcome", {"helped", test_helped}, {"a shorter wait helped", test_shorter_wait_helped},
    {"no effect", test_no_effect}, {"undone", test_undone}, {"harmed", test_harmed},
    {"steps that overlap", test_steps_that_overlap},
    {"two looks at one time", test_two_looks_at_one_time}, {"many", test_many})
