/* SPDX-License-Identifier: MIT */
/* Single rules of resize policy weir, by views made by hand. (Whole runs: test_resize_weir.c.) */
#include "control/resize.h"

#include <string.h>

#include "base/clock.h"
#include "cunit_main.h"

static struct resize_view jam_of(int live, int target, int busy)
{
	return (struct resize_view){.live = live,
	    .target = target,
	    .min = 1,
	    .max = 64,
	    .useful = 64,
	    .budget_left = 64,
	    .cores = 2,
	    .busy = busy,
	    .queue_length = 10,
	    .runq_known = true};
}

/* Steps of 10 ms until the policy wants another target, at most `steps`; the steps it took, -1 none.
 */
static int steps_to_wish(void *state, const struct resize_view *v, int64_t *now_ns, int steps)
{
	struct resize_decision d;

	for (int i = 1; i <= steps; i++) {
		*now_ns += 10 * NS_PER_MS;
		if (resize_weir.decide(state, v, *now_ns, &d))
			return i;
	}
	return -1;
}

static void test_stall_by_hand(void)
{
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};
	struct resize_view v = jam_of(2, 2, 2);
	int64_t now_ns = 0;

	/* After 50 ms, and again each 50 ms: not each step. */
	CU_ASSERT_EQUAL(steps_to_wish(state, &v, &now_ns, 50), 6); /* the first call only looks */
	v.target = v.live = v.busy = 3;
	CU_ASSERT_EQUAL(steps_to_wish(state, &v, &now_ns, 50), 5);
	/* Not while one is idle, is still to come, or something moves. */
	v.target = v.live = 4;
	CU_ASSERT_EQUAL(steps_to_wish(state, &v, &now_ns, 50), -1);
	v.target = 5;
	v.busy = 4;
	CU_ASSERT_EQUAL(steps_to_wish(state, &v, &now_ns, 50), -1);
	v.live = v.busy = 5;
	for (int i = 0; i < 20; i++) {
		v.running++;
		CU_ASSERT_EQUAL(steps_to_wish(state, &v, &now_ns, 4), -1);
	}
}

/* With calls of 100 ms, nothing coming out for 400 ms is no stall, for 500 ms it is. */
static void test_stall_is_five_service_times(void)
{
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};
	struct resize_view v = jam_of(2, 2, 2);
	struct resize_decision d;
	int64_t now_ns = 0;

	v.max = v.useful = 3;
	v.queue_length = 0;
	for (int i = 0; i < 20; i++) {
		resize_weir.decide(state, &v, now_ns += 250 * NS_PER_MS, &d);
		v.items += 5;
		v.offered_total += 3; /* two threads are enough */
		v.busy_ns_total += 500 * NS_PER_MS;
	}
	v.queue_length = 10;
	resize_weir.decide(state, &v, now_ns += 10 * NS_PER_MS, &d);
	CU_ASSERT_EQUAL(steps_to_wish(state, &v, &now_ns, 40), -1);
	CU_ASSERT_TRUE(steps_to_wish(state, &v, &now_ns, 40) > 0);
}

/* Growth is asked for once: not again while the threads are still to come. */
static void test_waits_for_threads_to_come(void)
{
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};
	struct resize_view v = jam_of(2, 2, 2);
	struct resize_decision d = {0};
	int grown = 0;

	for (int i = 0; i < 10; i++) {
		if (resize_weir.decide(state, &v, i * 100 * NS_PER_MS, &d)) {
			v.target = d.target;
			grown++;
		}
		v.offered_total += 100;
		v.items += 20;
		v.busy_ns_total += 200 * NS_PER_MS;
	}
	CU_ASSERT_EQUAL(grown, 1);
}

/* Growth that does not raise throughput, for 1.8 s, one trial long; the queue is `queue` and from second 1 on `then`, at
 * second 1.2 for a moment `once`. Was it taken back? */
static bool taken_back(double cpu_share, uint32_t queue, uint32_t then, uint32_t once)
{
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};
	struct resize_view v = jam_of(2, 2, 2);
	struct resize_decision d = {0};
	bool grew = false;

	v.cores = 64;
	for (int i = 0; i < 18; i++) {
		v.queue_length = i == 12 ? once : i > 10 ? then : queue;
		if (resize_weir.decide(state, &v, i * 100 * NS_PER_MS, &d)) {
			grew |= d.target > v.target;
			if (strstr(d.rule, "taken back")) {
				CU_ASSERT_EQUAL(d.target, 2);
				return true;
			}
			v.target = v.live = v.busy = d.target;
		}
		v.offered_total += 100;
		v.items += 20;
		v.busy_ns_total += (uint64_t)v.live * 100 * NS_PER_MS;
		v.cpu_ns_total += (uint64_t)(cpu_share * v.live * 100 * NS_PER_MS);
	}
	CU_ASSERT_TRUE(grew);
	return false;
}

static void test_trial(void)
{
	CU_ASSERT_TRUE(taken_back(0.01, 100, 100, 100));
	CU_ASSERT_FALSE(taken_back(0.01, 100, 100, 0));  /* the queue was empty: enough is done */
	CU_ASSERT_FALSE(taken_back(0.01, 2000, 10, 10)); /* answers come sooner */
	CU_ASSERT_FALSE(taken_back(1, 100, 100, 100));   /* the cap and the veto bound these */
}

/* One window of views: `runq` of the CPU time was waiting. */
static bool grows_with(double runq, bool known, double cpu_ratio)
{
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};
	struct resize_view v = {.live = 2,
	    .target = 2,
	    .min = 1,
	    .max = 64,
	    .useful = 64,
	    .budget_left = 64,
	    .cores = 4,
	    .runq_known = known,
	    .cpu_ratio = cpu_ratio,
	    .busy = 2};
	struct resize_decision d = {0};
	bool grew = false;

	for (int i = 0; i <= 10; i++) {
		grew |= resize_weir.decide(state, &v, i * 100 * NS_PER_MS, &d);
		v.offered_total += 100; /* of 10 ms CPU each: 10 cores' worth */
		v.items += 20;
		v.cpu_ns_total += 200 * NS_PER_MS;
		v.runq_ns_total += known ? (uint64_t)(runq * 200 * NS_PER_MS) : 0;
		v.busy_ns_total += (uint64_t)((1 + runq) * 200 * NS_PER_MS);
	}
	return grew;
}

static void test_no_growth_when_cores_are_short(void)
{
	CU_ASSERT_TRUE(grows_with(0.1, true, 0.5));
	CU_ASSERT_FALSE(grows_with(0.6, true, 0.5));
	CU_ASSERT_TRUE(grows_with(0.6, false, 0.5));
	CU_ASSERT_FALSE(grows_with(0.6, false, 0.97));
}

/* Mixed work on cores that others use as well: waiting for them is no need of threads. */
static void test_runq_is_no_need(void)
{
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};
	struct resize_view v = {.live = 4,
	    .target = 4,
	    .min = 1,
	    .max = 64,
	    .useful = 64,
	    .budget_left = 64,
	    .cores = 8,
	    .busy = 4,
	    .queue_length = 1,
	    .runq_known = true};
	struct resize_decision d;
	bool grew = false;

	/* 60 a second of 20 ms CPU, 20 ms blocked and 20 ms waiting for a core: 2.4 threads' work. */
	for (int i = 0; i < 100; i++) {
		grew |= resize_weir.decide(state, &v, i * 100 * NS_PER_MS, &d) && d.target > 4;
		v.offered_total += 6;
		v.items += 6;
		v.cpu_ns_total += 120 * NS_PER_MS;
		v.runq_ns_total += 120 * NS_PER_MS;
		v.busy_ns_total += 360 * NS_PER_MS;
	}
	CU_ASSERT_FALSE(grew);
}

CUNIT_MAIN("resize_weir_rules", {"stall", test_stall_by_hand},
    {"stall is five service times", test_stall_is_five_service_times},
    {"waits for threads to come", test_waits_for_threads_to_come}, {"trial", test_trial},
    {"no growth when cores are short", test_no_growth_when_cores_are_short},
    {"run-queue time is no need", test_runq_is_no_need})
