/* SPDX-License-Identifier: MIT */
/* Degradation: it rises, holds and falls, does not oscillate, and tolerates late steps. */
#include "stage/degrade.h"

#include "cunit_main.h"

#define MS   1000000LL
#define STEP (500 * MS)
#define TICK (100 * MS)

static struct degrade d;
static int64_t now_ns;

static void start(void)
{
	degrade_init(&d, 0.5, 0.2, STEP);
	now_ns = TICK;
}

/* Step each tick for `for_ns` with constant pressure. Returns how often the level changed. */
static int look(double pressure, int64_t for_ns)
{
	int moves = 0;

	for (int64_t end_ns = now_ns + for_ns; now_ns < end_ns; now_ns += TICK)
		moves += degrade_step(&d, pressure, now_ns);
	return moves;
}

/* Step with constant pressure until the smoothed pressure has reached it. The level is kept. */
static void settle(double pressure)
{
	struct degrade before = d;

	look(pressure, 50 * STEP);
	CU_ASSERT_DOUBLE_EQUAL(d.mean, pressure, 1e-6);
	d.tenths = before.tenths;
	d.due_ns = now_ns;
}

static void test_rises_holds_falls(void)
{
	start();
	CU_ASSERT_EQUAL(look(0.5, 10 * STEP), 0); /* not above the bound */
	settle(0.51);
	CU_ASSERT_EQUAL(look(0.51, 1), 1); /* at once, then one tenth per step */
	CU_ASSERT_EQUAL(look(0.51, STEP - TICK), 0);
	CU_ASSERT_EQUAL(look(0.9, 2 * STEP), 2);
	CU_ASSERT_DOUBLE_EQUAL(degrade_level(&d), 0.3, 1e-9);
	settle(0.49);
	CU_ASSERT_EQUAL(look(0.49, 10 * STEP), 0);
	settle(0.2);
	CU_ASSERT_EQUAL(look(0.2, 10 * STEP), 0);
	CU_ASSERT_DOUBLE_EQUAL(degrade_level(&d), 0.3, 1e-9);
	settle(0.19);
	CU_ASSERT_EQUAL(look(0.19, 2 * STEP), 2);
	CU_ASSERT_EQUAL(look(0.19, 10 * STEP), 1);
	CU_ASSERT_EQUAL(degrade_level(&d), 0);
}

/* A short queue is full at one check and empty at the next: its mean counts. */
static void test_noise_is_smoothed(void)
{
	int moves = 0;

	start();
	d.tenths = 5;
	look(0.3, TICK); /* between the bounds */
	for (int i = 0; i < 200; i++)
		moves += look(i % 3 ? 0 : 1, TICK);
	CU_ASSERT_EQUAL(moves, 0);
}

static void test_ends(void)
{
	start();
	CU_ASSERT_EQUAL(look(1, 9 * STEP), 9);
	CU_ASSERT_EQUAL(look(1, 20 * STEP), 1); /* full range: ten steps */
	CU_ASSERT_EQUAL(degrade_level(&d), 1);
	CU_ASSERT_EQUAL(look(0, 30 * STEP), 10);
	CU_ASSERT_EQUAL(degrade_level(&d), 0);
	degrade_init(&d, 1, 0.2, STEP);
	CU_ASSERT_EQUAL(look(1, 20 * STEP), 0); /* a bound of 1 is never exceeded */
}

/* A pressure that oscillates around a bound, slowly enough to be seen, changes the level in one
 * direction only. */
static void test_no_oscillation(void)
{
	int last = 0, down = 0, up = 0;

	start();
	for (int i = 0; i < 50; i++) {
		look(i % 2 ? 0.58 : 0.42, 10 * STEP);
		down += d.tenths < last;
		last = d.tenths;
	}
	CU_ASSERT_EQUAL(down, 0);
	CU_ASSERT_EQUAL(last, DEGRADE_TENTHS);
	for (int i = 0; i < 50; i++) {
		look(i % 2 ? 0.28 : 0.12, 10 * STEP);
		up += d.tenths > last;
		last = d.tenths;
	}
	CU_ASSERT_EQUAL(up, 0);
	CU_ASSERT_EQUAL(last, 0);
}

/* A rise and a fall are at least a step apart. */
static void test_a_step_between_turns(void)
{
	start();
	CU_ASSERT(degrade_step(&d, 1, 1));
	d.looked_ns = 0; /* forget the earlier pressure */
	CU_ASSERT_FALSE(degrade_step(&d, 0, STEP));
	d.looked_ns = 0;
	CU_ASSERT(degrade_step(&d, 0, STEP + 1));
	d.looked_ns = 0;
	CU_ASSERT_FALSE(degrade_step(&d, 1, STEP + 2));
}

static void test_late_looks(void)
{
	start();
	CU_ASSERT(degrade_step(&d, 1, 1));
	CU_ASSERT(degrade_step(&d, 1, 100 * STEP)); /* one tenth, however late */
	CU_ASSERT_EQUAL(d.tenths, 2);
	CU_ASSERT_FALSE(degrade_step(&d, 1, 100 * STEP + STEP - 1)); /* and no catching up */
	CU_ASSERT(degrade_step(&d, 1, 101 * STEP));
	CU_ASSERT_EQUAL(d.tenths, 3);
}

CUNIT_MAIN("degrade", {"rises, holds, falls", test_rises_holds_falls},
    {"noise is smoothed", test_noise_is_smoothed}, {"ends", test_ends},
    {"no oscillation", test_no_oscillation}, {"a step between turns", test_a_step_between_turns},
    {"late looks", test_late_looks})
