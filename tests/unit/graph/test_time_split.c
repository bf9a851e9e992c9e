/* SPDX-License-Identifier: MIT */
/* The split of the time of threads, with made-up counters in ms. */
#include "graph/time_split.h"

#include "cunit_main.h"

#define MS 1e6

static double sum_of(const struct time_stage *s, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		for (int t = 0; t < WEIR_TIMES; t++)
			sum += s[i].out[t];
	return sum / MS;
}

static void check(const struct time_stage *s, enum weir_thread_time time, double want_ms)
{
	CU_ASSERT_DOUBLE_EQUAL(s->out[time] / MS, want_ms, 1e-6);
}

/* Two threads for 100 ms: 30 ms on cores, of which 10 polled; 15 without a core; 120 in handlers. */
static void test_one_stage(void)
{
	struct time_stage s = {.busy_ns = 120 * MS, .seen = {[SLEEP_IO] = 3, [SLEEP_LOCK] = 1}};
	struct time_round r = {.wall_ns = 200 * MS,
	    .cpu_ns = 30 * MS,
	    .spun_ns = 10 * MS,
	    .runq_ns = 15 * MS,
	    .in_calls = 5};
	double carry = 0;

	time_split(&r, &s, 1, &carry);
	check(&s, WEIR_TIME_RUNNING, 20);
	check(&s, WEIR_TIME_RUNNABLE, 15);
	check(&s, WEIR_TIME_IO, 85 * 0.75);
	check(&s, WEIR_TIME_LOCK, 85 * 0.25);
	check(&s, WEIR_TIME_BLOCKED, 0);
	check(&s, WEIR_TIME_DOWNSTREAM, 0);
	check(&s, WEIR_TIME_IDLE, 80);
	CU_ASSERT_DOUBLE_EQUAL(sum_of(&s, 1), 200, 1e-6);
	CU_ASSERT_EQUAL(carry, 0);
}

/* Without samples nothing is known to sleep: the time waits for an explanation, and is not idle
 * either. After CARRY_NS, it is shown as blocked for an unknown reason. */
static void test_no_samples(void)
{
	struct time_stage s = {.busy_ns = 50 * MS};
	struct time_round r = {.wall_ns = 100 * MS, .cpu_ns = 10 * MS};
	double carry = 0;

	time_split(&r, &s, 1, &carry);
	check(&s, WEIR_TIME_BLOCKED, 0);
	check(&s, WEIR_TIME_RUNNING, 10);
	check(&s, WEIR_TIME_IDLE, 50);
	CU_ASSERT_DOUBLE_EQUAL(carry, 40 * MS, 1);
	carry = CARRY_NS;
	time_split(&r, &s, 1, &carry);
	check(&s, WEIR_TIME_BLOCKED, 40);
	CU_ASSERT_DOUBLE_EQUAL(carry, CARRY_NS, 1);
}

/* The kernel adds to the run-queue time only when the thread gets a core: two threads compute on one
 * core, and the wait of one of them appears three rounds late. */
static void test_late_runq(void)
{
	struct time_stage s = {.busy_ns = 200 * MS};
	double carry = 0, sum[WEIR_TIMES] = {0};

	for (int i = 0; i < 4; i++) {
		struct time_round r = {.wall_ns = 200 * MS,
		    .cpu_ns = 100 * MS,
		    .runq_ns = i == 3 ? 400 * MS : 0,
		    .in_calls = 2};
		time_split(&r, &s, 1, &carry);
		for (int t = 0; t < WEIR_TIMES; t++)
			sum[t] += s.out[t] / MS;
	}
	CU_ASSERT_DOUBLE_EQUAL(sum[WEIR_TIME_RUNNING], 400, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(sum[WEIR_TIME_RUNNABLE], 400, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(sum[WEIR_TIME_BLOCKED], 0, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(sum[WEIR_TIME_IDLE], 0, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(carry, 0, 1);
}

/* A sleep that the samples find late is caught up with. */
static void test_late_samples(void)
{
	struct time_stage s = {.busy_ns = 100 * MS};
	double carry = 0, slept = 0;

	for (int i = 0; i < 10; i++) {
		struct time_round r = {.wall_ns = 100 * MS, .in_calls = 1};
		s.seen[SLEEP_LOCK] = i < 3 ? 0 : 1;
		time_split(&r, &s, 1, &carry);
		slept += s.out[WEIR_TIME_LOCK];
	}
	CU_ASSERT_DOUBLE_EQUAL(slept / MS, 1000, 1e-6);
	CU_ASSERT_EQUAL(carry, 0);
}

/* A handler that only computes is never shown as asleep, though its counters are not read at the same
 * moment: what one round has too much, the next one has too little. */
static void test_carry(void)
{
	struct time_stage s = {0};
	double carry = 0, slept = 0;

	for (int i = 0; i < 100; i++) {
		double late = i % 2 ? 5 * MS : -5 * MS;
		struct time_round r = {.wall_ns = 100 * MS, .cpu_ns = 96 * MS};
		s.busy_ns = 94 * MS + late;
		time_split(&r, &s, 1, &carry);
		slept += s.out[WEIR_TIME_BLOCKED];
	}
	CU_ASSERT_EQUAL(slept, 0);
	/* what is owed is limited, so a later sleep is noticed */
	CU_ASSERT_TRUE(carry >= -OWED_NS && carry < 0);
	struct time_round r = {.wall_ns = 100 * MS, .cpu_ns = 10 * MS, .in_calls = 1};
	s.busy_ns = 100 * MS;
	s.seen[SLEEP_IO] = 1;
	time_split(&r, &s, 1, &carry);
	CU_ASSERT_TRUE(s.out[WEIR_TIME_IO] >= 70 * MS);
}

/* A stage with an inline stage after it: 20 ms of its own work, 40 ms asleep there, 30 ms of work there. */
static void test_downstream(void)
{
	struct time_stage s = {.busy_ns = 20 * MS, .behind_ns = 70 * MS};
	struct time_round r = {
	    .wall_ns = 100 * MS, .cpu_ns = 50 * MS, .seen_behind = 2, .in_calls = 2};
	double carry = 0;

	time_split(&r, &s, 1, &carry);
	check(&s, WEIR_TIME_RUNNING, 20);
	check(&s, WEIR_TIME_DOWNSTREAM, 70);
	check(&s, WEIR_TIME_BLOCKED, 0);
	check(&s, WEIR_TIME_IDLE, 10);
}

/* In a group, the stage whose handler was seen asleep gets the sleep. */
static void test_group(void)
{
	struct time_stage s[2] = {
	    {.busy_ns = 60 * MS}, {.busy_ns = 100 * MS, .seen = {[SLEEP_MEMORY] = 5}}};
	struct time_round r = {
	    .wall_ns = 200 * MS, .cpu_ns = 80 * MS, .runq_ns = 16 * MS, .in_calls = 6};
	double carry = 0;

	time_split(&r, s, 2, &carry);
	check(&s[0], WEIR_TIME_MEMORY, 0);
	check(&s[0], WEIR_TIME_BLOCKED, 0);
	check(&s[1], WEIR_TIME_MEMORY, 64);
	check(&s[0], WEIR_TIME_RUNNING, 80 * 60.0 / 96);
	check(&s[1], WEIR_TIME_RUNNING, 80 * 36.0 / 96);
	check(&s[0], WEIR_TIME_RUNNABLE, 6);
	check(&s[1], WEIR_TIME_RUNNABLE, 10);
	check(&s[0], WEIR_TIME_IDLE, 20);
	CU_ASSERT_DOUBLE_EQUAL(sum_of(s, 2), 200, 1e-6);
}

static void test_idle(void)
{
	struct time_stage s = {0};
	struct time_round r = {.wall_ns = 100 * MS, .cpu_ns = 2 * MS, .spun_ns = 3 * MS};
	double carry = 0;

	time_split(&r, &s, 1, &carry);
	check(&s, WEIR_TIME_IDLE, 100);
	CU_ASSERT_DOUBLE_EQUAL(sum_of(&s, 1), 100, 1e-6);
}

static void test_age(void)
{
	struct time_stage s = {.seen = {[SLEEP_IO] = 1}};

	time_split_age(&s, 1);
	CU_ASSERT_DOUBLE_EQUAL(s.seen[SLEEP_IO], SEEN_KEPT, 1e-9);
}

/* A sleep in an inline stage never exceeds its busy time, and what has not been counted yet remains. */
static void test_inline(void)
{
	struct time_stage s = {.busy_ns = 30 * MS, .seen = {[SLEEP_IO] = 1}};
	double pending[SLEEP_REASONS] = {0};

	time_split_inline(&s, 100 * MS, pending);
	check(&s, WEIR_TIME_IO, 30);
	check(&s, WEIR_TIME_RUNNING, 0);
	s = (struct time_stage){.busy_ns = 90 * MS};
	time_split_inline(&s, 100 * MS, pending);
	check(&s, WEIR_TIME_IO, 70);
	check(&s, WEIR_TIME_RUNNING, 20);
	s = (struct time_stage){.busy_ns = 50 * MS};
	time_split_inline(&s, 100 * MS, pending);
	check(&s, WEIR_TIME_IO, 0);
	check(&s, WEIR_TIME_RUNNING, 50);
}

CUNIT_MAIN("time split", {"one stage", test_one_stage}, {"no samples", test_no_samples},
    {"late run-queue time", test_late_runq}, {"late samples", test_late_samples},
    {"carry", test_carry}, {"downstream", test_downstream}, {"group", test_group},
    {"idle", test_idle}, {"age", test_age}, {"inline", test_inline})
