/* SPDX-License-Identifier: MIT */
/*
 * Schedules against theory. Seeds are fixed, so every run draws the same values: the tolerances (at
 * most four standard deviations) test the code, not luck.
 */
#include "load/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "load/phases.h"
#include "load/rng.h"

#include "cunit_main.h"

#define S  1000000000LL
#define MS 1000000LL

static struct load_plan plan;
static struct load_request requests[LOAD_CLASSES_MAX][100];

/* A plan with one class and one request. */
static void fresh(enum load_arrivals arrivals)
{
	memset(&plan, 0, sizeof(plan));
	plan.arrivals = arrivals;
	plan.seed = 42;
	plan.n_classes = 1;
	plan.class[0] =
	    (struct load_class){.name = "a", .weight = 1, .n_requests = 1, .request = requests[0]};
	requests[0][0].cumulative = 1;
	plan.burst_factor = 5;
	plan.burst_share = 0.1;
	plan.burst_ns = 100 * MS;
}

static void phase(double from, double to, int64_t for_ns)
{
	plan.phase[plan.n_phases++] =
	    (struct load_phase){.from_per_s = from, .to_per_s = to, .for_ns = for_ns};
}

static struct load_schedule *begin(void)
{
	struct load_schedule *s = NULL;

	CU_ASSERT_EQUAL_FATAL(load_schedule_new(&plan, &s), 0);
	return s;
}

/* All arrivals of the plan. Each must lie in its phase and not before its predecessor. */
static size_t collect(struct load_arrival **all)
{
	struct load_schedule *s = begin();
	struct load_arrival a, *list = NULL;
	int64_t before_ns = 0, begin_ns = 0, end_ns = 0;
	int at = -1;
	bool right = true;
	size_t n = 0, room = 0;

	while (load_schedule_next(s, &a)) {
		if (n == room) {
			room = room ? 2 * room : 1024;
			list = realloc(list, room * sizeof(*list));
			CU_ASSERT_PTR_NOT_NULL_FATAL(list);
		}
		for (; at < a.phase; begin_ns = end_ns, end_ns += plan.phase[at].for_ns)
			at++;
		right &= a.number == n && a.at_ns >= before_ns && a.at_ns >= begin_ns &&
			 a.at_ns < end_ns && a.phase == at;
		before_ns = a.at_ns;
		list[n++] = a;
	}
	CU_ASSERT_TRUE(right);
	CU_ASSERT_FALSE(load_schedule_next(s, &a)); /* the schedule remains at its end */
	CU_ASSERT_FALSE(load_schedule_next(s, &a));
	load_schedule_free(s);
	*all = list;
	return n;
}

static size_t in_phase(const struct load_arrival *all, size_t n, int p)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += all[i].phase == p;
	return count;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The Kolmogorov-Smirnov distance of values in 0..1 from the uniform distribution, times sqrt(n).
 * It exceeds 1.63 by chance in 1 % of all cases. */
static double ks_uniform(double *v, size_t n)
{
	double worst = 0;

	qsort(v, n, sizeof(*v), by_value);
	for (size_t i = 0; i < n; i++) {
		double low = v[i] - (double)i / (double)n,
		       high = (double)(i + 1) / (double)n - v[i];
		worst = fmax(worst, fmax(low, high));
	}
	return worst * sqrt((double)n);
}

static void test_uniform(void)
{
	struct load_arrival *all;

	fresh(LOAD_UNIFORM);
	phase(1000, 1000, 3 * S);
	phase(0, 0, S);
	phase(250, 250, 2 * S);
	size_t n = collect(&all);
	CU_ASSERT_EQUAL_FATAL(n, 3500);
	for (size_t i = 0; i < 3000; i++)
		CU_ASSERT_EQUAL(all[i].at_ns, (int64_t)i * MS);
	for (size_t i = 0; i < 500; i++)
		CU_ASSERT_EQUAL(all[3000 + i].at_ns, 4 * S + (int64_t)i * 4 * MS);
	CU_ASSERT_EQUAL(all[3000].phase, 2);
	free(all);
}

/* Gaps continue across a border: a quarter of the gap at 1 per s, the rest at 3 per s. */
static void test_uniform_border(void)
{
	struct load_arrival *all;

	fresh(LOAD_UNIFORM);
	phase(1, 1, S / 4);
	phase(3, 3, S);
	size_t n = collect(&all);
	CU_ASSERT_EQUAL_FATAL(n, 4);
	CU_ASSERT_EQUAL(all[0].at_ns, 0);
	CU_ASSERT_EQUAL(all[1].at_ns, S / 2);
	CU_ASSERT_EQUAL(all[2].at_ns, S / 2 + 333333333);
	free(all);
}

/* Exponential gaps, transformed by their distribution function, are uniform. */
static void test_poisson(void)
{
	struct load_arrival *all;
	double sum = 0;

	fresh(LOAD_POISSON);
	phase(1000, 1000, 50 * S);
	size_t n = collect(&all);
	CU_ASSERT_DOUBLE_EQUAL((double)n, 50000, 2 * sqrt(50000));
	double *v = calloc(n, sizeof(*v));
	CU_ASSERT_PTR_NOT_NULL_FATAL(v);
	for (size_t i = 1; i < n; i++) {
		double gap_s = (double)(all[i].at_ns - all[i - 1].at_ns) * 1e-9;
		v[i - 1] = 1 - exp(-gap_s * 1000);
		sum += gap_s;
	}
	CU_ASSERT_DOUBLE_EQUAL(sum / (double)(n - 1), 0.001, 0.00001);
	double d = ks_uniform(v, n - 1);
	printf(" KS %.2f", d);
	CU_ASSERT(d < 1.3);
	/* neighbouring gaps are independent */
	double product = 0;
	for (size_t i = 2; i < n; i++)
		product += ((double)(all[i].at_ns - all[i - 1].at_ns) * 1e-6 - 1) *
			   ((double)(all[i - 1].at_ns - all[i - 2].at_ns) * 1e-6 - 1);
	CU_ASSERT(fabs(product / (double)n) < 0.01);
	free(v);
	free(all);
}

/* The integral of ramps is right, up and down, and the density within them is linear. */
static void ramp(double from, double to)
{
	struct load_arrival *all;
	double middle = (from + to) / 2, expected = middle * 20;

	fresh(LOAD_UNIFORM);
	phase(from, to, 20 * S);
	size_t n = collect(&all);
	CU_ASSERT_EQUAL(n, (size_t)expected);
	/* arrival k happens when k are expected: a t + (b - a) t^2 / 2T = k */
	for (size_t k = 0; k < n; k += 97) {
		double t = (double)all[k].at_ns * 1e-9;
		double integral = from * t + (to - from) * t * t / 40;
		CU_ASSERT_DOUBLE_EQUAL(integral, (double)k, 1e-4);
	}
	free(all);
	plan.arrivals = LOAD_POISSON;
	n = collect(&all);
	CU_ASSERT_DOUBLE_EQUAL((double)n, expected, 2.5 * sqrt(expected));
	double *v = calloc(n, sizeof(*v));
	CU_ASSERT_PTR_NOT_NULL_FATAL(v);
	for (size_t k = 0; k < n; k++) {
		double t = (double)all[k].at_ns * 1e-9;
		v[k] = (from * t + (to - from) * t * t / 40) / expected;
	}
	double d = ks_uniform(v, n);
	printf(" KS %.2f", d);
	CU_ASSERT(d < 1.5);
	free(v);
	free(all);
}

static void test_ramps(void)
{
	ramp(100, 1900);
	ramp(1900, 100);
	ramp(0.5, 1000);
	ramp(1000, 0.5);
}

/* 256 phases, each with its own rate. */
static void test_phases(void)
{
	struct load_arrival *all;
	double chi2 = 0;

	fresh(LOAD_POISSON);
	for (int i = 0; i < LOAD_PHASES_MAX; i++)
		phase(100 + i, 100 + i, S);
	size_t n = collect(&all);
	for (int i = 0; i < LOAD_PHASES_MAX; i++) {
		double expected = 100 + i, count = (double)in_phase(all, n, i);
		CU_ASSERT_DOUBLE_EQUAL(count, expected, 4 * sqrt(expected));
		chi2 += (count - expected) * (count - expected) / expected;
	}
	/* with 256 degrees of freedom: 256 +- 22.6 */
	CU_ASSERT(fabs(chi2 - 256) < 2 * 22.6);
	free(all);
}

/* Bursts: the mean rate is that of the phase, counts vary far more than those of a Poisson process
 * (index of dispersion 1), and the time in bursts is as configured. */
static double dispersion(const struct load_arrival *all, size_t n, int64_t window_ns, int windows)
{
	double sum = 0, squares = 0;
	size_t at = 0;

	for (int w = 0; w < windows; w++) {
		double count = 0;
		for (; at < n && all[at].at_ns < (w + 1) * window_ns; at++)
			count++;
		sum += count;
		squares += count * count;
	}
	double mean = sum / windows;
	return (squares / windows - mean * mean) / mean;
}

static void test_bursts(void)
{
	struct load_arrival *all;

	fresh(LOAD_BURSTS);
	phase(500, 500, 2000 * S);
	size_t n = collect(&all);
	double burst = dispersion(all, n, S, 2000);
	/* The rate is 2500 per s in bursts and 278 per s between them. The variance of the expected
	 * count in a window of t is 2 s^2 c^2 (t / c - 1 + exp(-t / c)), with s^2 = (2500 - 278)^2
	 * 0.1 0.9 and c = 90 ms. */
	double c = 0.09, variance = 2 * 2222.2 * 2222.2 * 0.09 * c * c * (1 / c - 1 + exp(-1 / c));
	printf(" n %zu dispersion %.1f, in theory %.1f", n, burst, 1 + variance / 500);
	/* 2000 windows of 500 arrivals, with that dispersion */
	CU_ASSERT_DOUBLE_EQUAL((double)n, 1e6, 2 * sqrt(1e6 * (1 + variance / 500)));
	CU_ASSERT_DOUBLE_EQUAL(burst, 1 + variance / 500, 0.15 * (1 + variance / 500));
	free(all);
	plan.arrivals = LOAD_POISSON;
	n = collect(&all);
	CU_ASSERT_DOUBLE_EQUAL(dispersion(all, n, S, 2000), 1, 0.1);
	free(all);
}

/* Bursts on ramps and over many phases; the rate in a burst is `factor` times the mean. */
static void test_burst_ramp(void)
{
	struct load_arrival *all;

	fresh(LOAD_BURSTS);
	plan.burst_ns = 10 * MS;
	phase(100, 1100, 500 * S);
	phase(0, 0, 10 * S);
	phase(1100, 100, 500 * S);
	size_t n = collect(&all);
	double up = (double)in_phase(all, n, 0), down = (double)in_phase(all, n, 2);
	CU_ASSERT_EQUAL(in_phase(all, n, 1), 0);
	CU_ASSERT_DOUBLE_EQUAL(up, 300000, 6000);
	CU_ASSERT_DOUBLE_EQUAL(down, 300000, 6000);
	CU_ASSERT(fabs(up - 300000) > 1 || fabs(down - 300000) > 1); /* the numbers are random */
	free(all);
}

/* The chain is in a burst as often at the beginning as later: 4000 runs of 20 ms. */
static void test_burst_start(void)
{
	size_t sum = 0;

	for (uint64_t seed = 0; seed < 4000; seed++) {
		struct load_arrival *all;
		fresh(LOAD_BURSTS);
		plan.seed = seed;
		phase(1000, 1000, 20 * MS);
		sum += collect(&all);
		free(all);
	}
	/* 20 each; the standard deviation of one is at most 26, that of the sum 26 * sqrt(4000) */
	CU_ASSERT_DOUBLE_EQUAL((double)sum, 80000, 3 * 26 * sqrt(4000));
}

static bool same(const struct load_arrival *a, const struct load_arrival *b)
{
	return a->number == b->number && a->at_ns == b->at_ns && a->phase == b->phase &&
	       a->class_id == b->class_id && a->request == b->request && a->random == b->random;
}

static void mixed_classes(void)
{
	const double weight[] = {5, 3, 2};

	plan.n_classes = 3;
	for (int c = 0; c < 3; c++) {
		plan.class[c] = (struct load_class){
		    .weight = weight[c], .n_requests = 100, .request = requests[c]};
		for (int i = 0; i < 100; i++) /* weights 1, 2, ... 100 */
			requests[c][i].cumulative = (i + 1) * (i + 2) / 2 / 5050.0;
	}
}

static void test_seeds(void)
{
	static const enum load_arrivals kinds[] = {LOAD_POISSON, LOAD_UNIFORM, LOAD_BURSTS};

	for (int k = 0; k < 3; k++) {
		struct load_arrival *one, *two, *other;
		fresh(kinds[k]);
		mixed_classes();
		phase(200, 800, 20 * S);
		size_t n = collect(&one), m = collect(&two), differ = 0;
		CU_ASSERT_EQUAL_FATAL(n, m);
		for (size_t i = 0; i < n; i++)
			differ += !same(&one[i], &two[i]);
		CU_ASSERT_EQUAL(differ, 0);
		plan.seed++;
		m = collect(&other);
		for (size_t i = 0; i < n && i < m; i++)
			differ += other[i].random != one[i].random;
		CU_ASSERT(differ > n / 2);
		CU_ASSERT(kinds[k] == LOAD_UNIFORM || other[0].at_ns != one[0].at_ns);
		free(one);
		free(two);
		free(other);
	}
}

/* Class, request and random bits of an arrival do not depend on the rates. */
static void test_independence(void)
{
	struct load_arrival *slow, *fast;
	size_t differ = 0;

	fresh(LOAD_POISSON);
	mixed_classes();
	phase(100, 100, 20 * S);
	size_t n = collect(&slow);
	plan.phase[0].from_per_s = plan.phase[0].to_per_s = 5000;
	size_t m = collect(&fast);
	CU_ASSERT_FATAL(m > n);
	for (size_t i = 0; i < n; i++)
		differ += slow[i].class_id != fast[i].class_id ||
			  slow[i].request != fast[i].request || slow[i].random != fast[i].random;
	CU_ASSERT_EQUAL(differ, 0);
	free(slow);
	free(fast);
}

static void test_shares(void)
{
	struct load_arrival *all;
	double in_class[3] = {0}, request[100] = {0}, chi2 = 0;

	fresh(LOAD_POISSON);
	mixed_classes();
	phase(10000, 10000, 20 * S);
	size_t n = collect(&all);
	for (size_t i = 0; i < n; i++) {
		in_class[all[i].class_id]++;
		if (all[i].class_id == 0)
			request[all[i].request]++;
	}
	CU_ASSERT_DOUBLE_EQUAL(in_class[0] / (double)n, 0.5, 0.003);
	CU_ASSERT_DOUBLE_EQUAL(in_class[1] / (double)n, 0.3, 0.003);
	CU_ASSERT_DOUBLE_EQUAL(in_class[2] / (double)n, 0.2, 0.003);
	for (int i = 0; i < 100; i++) {
		double expected = in_class[0] * (i + 1) / 5050;
		chi2 += (request[i] - expected) * (request[i] - expected) / expected;
	}
	printf(" chi2 of 99: %.0f", chi2);
	CU_ASSERT(chi2 > 55 && chi2 < 143); /* 99 +- 3 * 14.1, rounded up */
	free(all);
}

/* Replayed classes send their requests in order, whatever is sent in between. */
static void test_in_order(void)
{
	struct load_arrival *all;
	int next = 0, wrong = 0, others = 0;

	fresh(LOAD_POISSON);
	mixed_classes();
	plan.class[1].in_order = true;
	plan.class[1].n_requests = 7;
	phase(1000, 1000, 5 * S);
	size_t n = collect(&all);
	for (size_t i = 0; i < n; i++) {
		if (all[i].class_id != 1) {
			others++;
			continue;
		}
		wrong += all[i].request != next;
		next = (next + 1) % 7;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(others > 3000 && others < 4000);
	free(all);
}

static void test_trace(void)
{
	int64_t times[] = {0, 5, 5, S - 1, S, 2 * S + 7, 3 * S, 4 * S};
	const int phases[] = {0, 0, 0, 0, 1, 2};
	struct load_arrival *all;

	fresh(LOAD_TRACE);
	plan.trace_ns = times;
	plan.n_trace = 8;
	phase(1, 1, S);
	phase(0, 0, S); /* rates have no effect */
	phase(1, 1, S);
	size_t n = collect(&all);
	CU_ASSERT_EQUAL_FATAL(n, 6); /* times after the end are not sent */
	for (int i = 0; i < 6; i++)
		CU_ASSERT_TRUE(all[i].at_ns == times[i] && all[i].phase == phases[i]);
	free(all);
	plan.n_trace = 2;
	CU_ASSERT_EQUAL(collect(&all), 2);
	free(all);
}

/* After a pause of a day and 1000 hours with one request per 1000 s, gaps are still exact to the
 * ns. */
static void test_day(void)
{
	struct load_schedule *s;
	struct load_arrival a = {0};

	fresh(LOAD_UNIFORM);
	phase(0, 0, 24 * 3600 * S);
	phase(1e-3, 1e-3, 3600 * 1000 * S);
	phase(50000, 50000, 2 * S);
	s = begin();
	uint64_t n = 0;
	while (load_schedule_next(s, &a))
		n++;
	CU_ASSERT_EQUAL(n, 3600 + 100000);
	CU_ASSERT_EQUAL(a.at_ns, (24 * 3600 + 3600 * 1000 + 2) * S - 20000);
	load_schedule_free(s);
}

CUNIT_MAIN("schedule", {"uniform", test_uniform}, {"uniform over a border", test_uniform_border},
    {"poisson", test_poisson}, {"ramps", test_ramps}, {"many phases", test_phases},
    {"bursts", test_bursts}, {"bursts on ramps", test_burst_ramp},
    {"start of bursts", test_burst_start}, {"seeds", test_seeds},
    {"independence of rates", test_independence}, {"class shares", test_shares},
    {"in order", test_in_order}, {"trace", test_trace}, {"days", test_day})
