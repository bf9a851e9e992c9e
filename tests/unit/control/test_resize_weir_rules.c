/* SPDX-License-Identifier: MIT */
/* Single rules of resize policy weir, with views built by hand. (Whole runs:
 * test_resize_weir.c.) */
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

/* Run steps of 10 ms until the policy wants another target, but at most `steps`. Returns the number
 * of steps, -1 if it never did. */
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

	/* After 50 ms, and again every 50 ms, but not at every step. */
	CU_ASSERT_EQUAL(steps_to_wish(state, &v, &now_ns, 50), 6); /* first call only observes */
	v.target = v.live = v.busy = 3;
	CU_ASSERT_EQUAL(steps_to_wish(state, &v, &now_ns, 50), 5);
	/* Not while a thread is idle or has still to start, or while there is progress. */
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

/* With calls of 100 ms, 400 ms without a completion are not a stall, 500 ms are. */
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

/* Growth is requested once, not again while the new threads have still to start. */
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

/* Growth that does not raise throughput, run for 1.8 s, the length of one trial. The queue is
 * `queue` at first, `then` from second 1 on, and `once` for one moment at second 1. Returns whether
 * the growth was taken back. */
static bool taken_back(double cpu_share, uint32_t queue, uint32_t then, uint32_t once)
{
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};
	struct resize_view v = jam_of(2, 2, 2);
	struct resize_decision d = {0};
	bool grew = false;

	v.cores = 64;
	for (int i = 0; i < 18; i++) {
		v.queue_length = i == 10 ? once : i > 10 ? then : queue;
		if (resize_weir.decide(state, &v, i * 100 * NS_PER_MS, &d)) {
			grew |= d.target > v.target;
			if (strstr(d.rule, "reverted")) {
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
	CU_ASSERT_FALSE(taken_back(0.01, 100, 100, 0));  /* the queue was empty: enough done */
	CU_ASSERT_FALSE(taken_back(0.01, 2000, 10, 10)); /* responses become faster */
	CU_ASSERT_FALSE(taken_back(1, 100, 100, 100));   /* bounded by the cap and the veto */
}

/* From 0.2 s on, when the trial has begun, throughput is a fifth of what it was. */
static void test_trial_says_what_it_gained(void)
{
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};
	struct resize_view v = jam_of(2, 2, 2);
	struct resize_decision d = {0};

	v.cores = 64;
	v.max = v.useful = 4;
	v.queue_length = 100;
	for (int i = 0; i < 18 && !strstr(d.rule, "reverted"); i++) {
		if (resize_weir.decide(state, &v, i * 100 * NS_PER_MS, &d))
			v.target = v.live = v.busy = d.target;
		v.offered_total += 100;
		v.items += i < 2 ? 20 : 4;
		v.busy_ns_total += (uint64_t)v.live * 100 * NS_PER_MS;
	}
	CU_ASSERT_STRING_EQUAL(d.rule,
	    "4 instead of 2 threads changed throughput by -80%: reverted, no growth for 10 s");
}

/* The target returns to what it was before growth, and nothing is offered any more. When the trial
 * is judged, at 1.1 s, there is nothing to undo. */
static void test_trial_of_undone_growth(void)
{
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};
	struct resize_view v = jam_of(2, 2, 2);
	struct resize_decision d = {0};
	bool grew = false;

	v.cores = 64;
	for (int i = 0; i < 30; i++) {
		bool decided = resize_weir.decide(state, &v, i * 100 * NS_PER_MS, &d);
		grew |= decided && d.target > v.target && i == 1;
		CU_ASSERT_FALSE(decided && i >= 10); /* the mean of what was offered is small */
		v.target = v.live = v.busy = i == 1 ? d.target : 2;
		v.offered_total += i < 2 ? 100 : 0;
		v.items += 20;
		v.busy_ns_total += (uint64_t)v.live * 100 * NS_PER_MS;
	}
	CU_ASSERT_TRUE(grew);
}

/* The last target wanted within 5 s for a pool of `n` threads, at most `max`. Offered are 400
 * events per second of 20 ms each, enough for 10 threads. */
static struct resize_decision last_wish(int n, int max, double cpu_share, int cores)
{
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};
	struct resize_view v = jam_of(n, n, n);
	struct resize_decision d = {0};

	v.max = max;
	v.cores = cores;
	for (int i = 0; i < 50; i++) {
		resize_weir.decide(state, &v, i * 100 * NS_PER_MS, &d);
		v.offered_total += 40;
		v.items += (uint64_t)n * 5;
		v.busy_ns_total += (uint64_t)n * 100 * NS_PER_MS;
		v.cpu_ns_total += (uint64_t)(cpu_share * n * 100 * NS_PER_MS);
	}
	return d;
}

/* A pool at its maximum reports how many threads it needs, even when it is warm. */
static void test_wish_beyond_max(void)
{
	CU_ASSERT_EQUAL(last_wish(4, 4, 0.01, 64).target, 10);
}

/* With pure CPU work, a quarter more threads than cores, plus one, can help. */
static void test_threads_that_can_help(void)
{
	struct resize_decision d = last_wish(2, 2, 1, 4);

	CU_ASSERT_EQUAL(d.target, 6);
	CU_ASSERT_PTR_NOT_NULL(strstr(d.rule, "need 10.0 threads, 6 can help: "));
}

/* Spinning threads use CPU time before anything is offered; it must not be charged to the first
 * events. */
static void test_cpu_time_of_an_unused_pool(void)
{
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};
	struct resize_view v = jam_of(2, 2, 2);
	struct resize_decision d = {0};
	int64_t now_ns = 0;

	for (int i = 0; i < 50; i++, now_ns += 100 * NS_PER_MS) {
		CU_ASSERT_FALSE(resize_weir.decide(state, &v, now_ns, &d));
		v.running++; /* no stall */
		v.cpu_ns_total += 200 * NS_PER_MS;
	}
	resize_weir.decide(state, &v, now_ns, &d);
	v.offered_total += 40;
	v.items += 10;
	v.busy_ns_total += 200 * NS_PER_MS;
	for (int i = 0; i < 5 && d.target == 0; i++)
		resize_weir.decide(state, &v, now_ns += 100 * NS_PER_MS, &d);
	CU_ASSERT_PTR_NOT_NULL(strstr(d.rule, "(0 ms CPU + 20 ms blocked)"));
}

/* One window of views. Run-queue time is `runq` times the CPU time. */
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
		v.offered_total += 100; /* 10 ms CPU each: work for 10 cores */
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
	CU_ASSERT_FALSE(grows_with(0.6, false, 0.95));
	CU_ASSERT_FALSE(grows_with(0.6, false, 0.97));
}

/* Mixed work on cores that others use as well: run-queue time does not count as need for
 * threads. */
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

	/* 60 per second of 20 ms CPU, 20 ms blocked and 20 ms waiting for a core: work for 2.4
	 * threads. */
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

/* What one window sees: events per second, and how long each takes. */
struct window {
	uint64_t per_s;
	int64_t cpu_ms, blocked_ms, runq_ms;
};

static void pass_window(struct resize_view *v, const struct window *w)
{
	uint64_t items = w->per_s / 10; /* windows of a cold pool last 100 ms */
	uint64_t cpu_ns = items * (uint64_t)w->cpu_ms * NS_PER_MS,
		 runq_ns = items * (uint64_t)w->runq_ms * NS_PER_MS;

	v->offered_total += items;
	v->items += items;
	v->cpu_ns_total += cpu_ns;
	v->runq_ns_total += runq_ns;
	v->busy_ns_total += cpu_ns + runq_ns + items * (uint64_t)w->blocked_ms * NS_PER_MS;
}

/* Four threads see these two windows. Returns true, and the decision, if the pool grows at the end
 * of the second one. */
static bool grows_after(const struct window window[2], struct resize_decision *d)
{
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};
	struct resize_view v = jam_of(4, 4, 4);

	v.cores = 8;
	CU_ASSERT_FALSE(resize_weir.decide(state, &v, 0, d));
	pass_window(&v, &window[0]);
	CU_ASSERT_FALSE(resize_weir.decide(state, &v, 100 * NS_PER_MS, d));
	pass_window(&v, &window[1]);
	return resize_weir.decide(state, &v, 200 * NS_PER_MS, d);
}

/* The first window is taken as it is; each later one has a weight of three tenths. */
static void test_smoothing(void)
{
	struct resize_decision d = {0};
	struct window window[2] = {{100, 10, 20, 0}, {200, 20, 40, 0}};

	CU_ASSERT_TRUE(grows_after(window, &d));
	CU_ASSERT_STRING_EQUAL(
	    d.rule, "need 6.3 threads: 130/s x (13 ms CPU + 26 ms blocked) / 0.8");
	/* A run-queue time of half the CPU time vetoes growth. Here it is smoothed to 3 ms per 10
	 * ms, which is less. */
	window[0] = (struct window){300, 10, 0, 0};
	window[1] = (struct window){800, 10, 0, 10};
	CU_ASSERT_TRUE(grows_after(window, &d));
	/* 10 ms per 10 ms in the first window become 7 after the second. */
	window[0].runq_ms = 10;
	window[1].runq_ms = 0;
	CU_ASSERT_FALSE(grows_after(window, &d));
}

/* The first of the four windows of each second requires 5.7 threads of 10, the last one 8.0. A pool
 * that remembers only the first one would shrink. */
static void test_highest_need_of_a_second_counts(void)
{
	_Alignas(16) unsigned char state[RESIZE_STATE_MAX] = {0};
	struct resize_view v = jam_of(10, 10, 0);
	struct resize_decision d = {0};

	v.queue_length = 0;
	for (int i = 0; i < 4 * 60; i++) {
		CU_ASSERT_FALSE(resize_weir.decide(state, &v, i * 250 * NS_PER_MS, &d));
		uint64_t items = i % 4 == 3 ? 5 : 185; /* 10 ms each */
		v.offered_total += items;
		v.items += items;
		v.busy_ns_total += items * 10 * NS_PER_MS;
	}
}

CUNIT_MAIN("resize_weir_rules", {"stall", test_stall_by_hand},
    {"stall is five service times", test_stall_is_five_service_times},
    {"waits for threads to come", test_waits_for_threads_to_come}, {"trial", test_trial},
    {"gain", test_trial_says_what_it_gained},
    {"trial of undone growth", test_trial_of_undone_growth},
    {"a wish beyond max", test_wish_beyond_max},
    {"threads that can help", test_threads_that_can_help},
    {"CPU time of an unused pool", test_cpu_time_of_an_unused_pool},
    {"no growth when cores are short", test_no_growth_when_cores_are_short},
    {"run-queue time is no need", test_runq_is_no_need}, {"smoothing", test_smoothing},
    {"the highest need of a second counts", test_highest_need_of_a_second_counts})
