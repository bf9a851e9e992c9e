/* SPDX-License-Identifier: MIT */
/* The verdicts of `weir bench` on noisy machines, as often as they come in many runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_world.h"
#include "cunit_main.h"
#include "report/noise.h"

/* ---- noise ---- */

static double disturbed;

/* Count the verdicts of 40 runs on a noisy machine. */
static void count(double kept, double noise, double drift, int n[VERDICT_COLLAPSES + 1])
{
	memset(n, 0, sizeof(int) * (VERDICT_COLLAPSES + 1));
	for (int i = 0; i < 40; i++) {
		bench_begin();
		world.kept = kept;
		world.noise = noise;
		world.drift = drift;
		world.disturbed = disturbed;
		world.key = (uint64_t)i * 977 + 1;
		n[bench_whole().kind]++;
	}
	if (getenv("WEIR_SHOW"))
		printf("kept %.2f noise %.2f drift %.2f: unsure %d changed %d kept %d loses %d "
		       "collapses %d\n",
		    kept, noise, drift, n[VERDICT_UNSURE], n[VERDICT_CHANGED], n[VERDICT_KEPT],
		    n[VERDICT_LOSES], n[VERDICT_COLLAPSES]);
}

/* The verdict is the same in nearly all runs, and a wrong one is rare: at most 5 % of the runs may
 * say that a flat curve falls. The limits are those of 40 runs. */
static void test_noise(void)
{
	static const double drift[] = {0, 0.3};
	int n[VERDICT_COLLAPSES + 1];

	for (int d = 0; d < 2; d++) {
		for (int k = 1; k <= 3; k++) {
			count(1, 0.05 * k, drift[d], n);
			CU_ASSERT(n[VERDICT_KEPT] >= 38);
			CU_ASSERT(n[VERDICT_LOSES] + n[VERDICT_COLLAPSES] <= 2);
			count(0.5, 0.05 * k, drift[d], n);
			CU_ASSERT(n[VERDICT_COLLAPSES] >= 38);
		}
		/* so much noise hides a lot, but does not mislead */
		count(1, 0.4, drift[d], n);
		CU_ASSERT(n[VERDICT_UNSURE] >= 10);
		CU_ASSERT(n[VERDICT_LOSES] + n[VERDICT_COLLAPSES] <= 2);
		count(0.4, 0.4, drift[d], n);
		CU_ASSERT(n[VERDICT_KEPT] <= 1);
	}
}

/* Some phases meet a disturbance that leaves them a tenth of the machine. */
static void test_disturbed(void)
{
	int n[VERDICT_COLLAPSES + 1];

	disturbed = 0.1;
	count(1, 0.1, 0, n);
	CU_ASSERT(n[VERDICT_KEPT] >= 32);
	CU_ASSERT(n[VERDICT_LOSES] + n[VERDICT_COLLAPSES] <= 2);
	count(0.4, 0.1, 0, n);
	CU_ASSERT(n[VERDICT_COLLAPSES] >= 30);
	CU_ASSERT(n[VERDICT_KEPT] <= 1);
	disturbed = 0;
}

/* A capacity that was found while the machine was slow: the load that should be one of the best is
 * served entirely, and a higher one takes its place. */
static void test_faster(void)
{
	bench_begin();
	world.noise = 0.1;
	world.kept = 0.6;
	world.capacity_per_s = 400;
	CU_ASSERT_EQUAL(bench_search(b, 100, &err), 0);
	world.slow_from = world.runs + 13; /* after the sweep */
	world.slow = 2.5;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	struct verdict v = bench_verdict();
	CU_ASSERT(v.pairs >= NOISE_PAIRS_MIN);
	CU_ASSERT(v.kept < 0.9);
	CU_ASSERT(v.kind == VERDICT_LOSES || v.kind == VERDICT_COLLAPSES);
}

/* Rounds that were asked for count as rounds that alternate. */
static void test_many_rounds(void)
{
	bench_begin();
	req.opt.rounds = 6;
	world.noise = 0.3;
	CU_ASSERT_EQUAL(bench_search(b, 100, &err), 0);
	world.noise = 0.45;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT(bench_verdict().pairs >= 6);
}

CUNIT_MAIN("bench_noise", {"noise", test_noise}, {"disturbed phases", test_disturbed},
    {"a machine that becomes faster", test_faster}, {"many rounds", test_many_rounds},
    {"the end", bench_end})
