/* SPDX-License-Identifier: MIT */
/* The policy `weir` at a station in virtual time (station.h): goodput, the classes served, and
 * waits, over loads, services and jumps. Seeds are fixed. The bounds allow for other constants, but
 * not for another policy. */
#include "admission/admission.h"

#include "cunit_main.h"
#include "station.h"

static struct station_result run(struct station st)
{
	st.policy = &admission_weir;
	station_default(&st);
	return station_run(&st);
}

static void test_exponential(void)
{
	static const struct {
		double load, goodput, refused, success[4];
		int64_t p50_ms;
	} want[] = {
	    {0.5, 0.48, 0.0001, {1, 1, 1, 1}, 5},
	    {0.7, 0.68, 0.001, {0.999, 0.999, 0.999, 0.999}, 7},
	    {0.9, 0.87, 0.01, {0.999, 0.995, 0.99, 0.97}, 14},
	    {1.0, 0.94, 0.05, {0.999, 0.99, 0.98, 0.88}, 22},
	    {2.0, 0.98, 0.52, {0.999, 0.99, 0.5, 0.02}, 20},
	    {10.0, 0.98, 0.92, {0.8, 0.002, 0.002, 0.002}, 20},
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct station_result r = run((struct station){.load = want[i].load});
		CU_ASSERT(r.goodput > want[i].goodput);
		CU_ASSERT(r.refused < want[i].refused);
		CU_ASSERT(r.p50_ns < want[i].p50_ms * MS);
		CU_ASSERT(r.p99_ns < 70 * MS);
		CU_ASSERT(r.wait_max_ns < 55 * MS);
		for (int c = 0; c < 4; c++)
			CU_ASSERT(station_success(&r, c) >= want[i].success[c]);
	}
}

static void test_other_services(void)
{
	static const enum station_dist dist[] = {STATION_CONST, STATION_BIMODAL, STATION_LOGNORMAL};

	for (int d = 0; d < 3; d++) {
		struct station_result low = run((struct station){.load = 0.7, .dist = dist[d]});
		CU_ASSERT(low.refused < (d == 0 ? 0.00001 : 0.002));
		for (int i = 0; i < 2; i++) {
			struct station_result r =
			    run((struct station){.load = i ? 10 : 2, .dist = dist[d]});
			CU_ASSERT(r.goodput > 0.96);
			CU_ASSERT(r.p99_ns < 80 * MS);
			CU_ASSERT(station_success(&r, 0) > (i ? 0.8 : 0.995));
		}
	}
}

/* The same constants with services 200 times shorter or 4 times longer (W12). */
static void test_other_scales(void)
{
	static const struct {
		int threads;
		int64_t mean_us, slo_ms, to_ms;
		double goodput;
	} want[] = {{2, 100, 10, 7000, 0.98}, {32, 20000, 500, 25000, 0.98},
	    {1, 1000, 500, 25000, 0.98}, {2, 20000, 200, 65000, 0.94}};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		for (int over = 0; over < 2; over++) {
			struct station_result r = run((struct station){.load = over ? 10 : 2,
			    .threads = want[i].threads,
			    .mean_ns = want[i].mean_us * 1000,
			    .slo_ns = want[i].slo_ms * MS,
			    .from_ns = 5000 * MS,
			    .to_ns = want[i].to_ms * MS});
			CU_ASSERT(r.goodput > want[i].goodput);
			CU_ASSERT(r.p99_ns < want[i].slo_ms * MS);
		}
}

/* The top class offers 0.4 of the capacity, all classes together 5.2: the top class loses
 * nothing. */
static void test_flood(void)
{
	struct station_result r = run((struct station){
	    .load = 5.2, .n_classes = 4, .mix = {0.4 / 5.2, 0.8 / 5.2, 1.6 / 5.2, 2.4 / 5.2}});

	CU_ASSERT(station_success(&r, 0) >= 0.999);
	CU_ASSERT(r.goodput > 0.98);
}

/* I6: each class gets at least 0.9 of its guarantee, 2 % of the stage, at any load. */
static void test_guarantee(void)
{
	for (int i = 0; i < 2; i++) {
		double load = i ? 10 : 5, share[] = {0.1, 0.2, 0.3, 0.4};
		struct station_result r = run((struct station){.load = load});
		for (int c = 1; c < 4; c++)
			CU_ASSERT(station_success(&r, c) * share[c] * load > 0.9 * 0.02);
	}
}

/* I13: without a tick for 500 ms at the start of a tenfold load, the caps bound the wait. */
static void test_late_tick(void)
{
	struct station_result r = run((struct station){.load = 0.8,
	    .spike_load = 10,
	    .spike_from_ns = 5000 * MS,
	    .spike_to_ns = 6000 * MS,
	    .pause_from_ns = 5000 * MS,
	    .pause_to_ns = 5500 * MS,
	    .from_ns = 5000 * MS,
	    .to_ns = 6000 * MS});

	CU_ASSERT(r.wait_max_ns < 55 * MS);
	CU_ASSERT(r.p99_ns < 90 * MS);
	CU_ASSERT(r.goodput > 0.9);
}

/* From 0.8 to tenfold load and back: useful work continues in the first half second, the top class
 * keeps most of its share, and half a second after the end nearly all is served again. */
static void test_spike(void)
{
	struct station st = {.load = 0.8,
	    .spike_load = 10,
	    .spike_from_ns = 5000 * MS,
	    .spike_to_ns = 7000 * MS,
	    .from_ns = 5000 * MS,
	    .to_ns = 5500 * MS};
	struct station_result in = run(st);

	CU_ASSERT(in.goodput > 0.9);
	CU_ASSERT(station_success(&in, 0) > 0.7);
	CU_ASSERT(in.wait_max_ns < 55 * MS);
	st.from_ns = 7200 * MS;
	st.to_ns = 9200 * MS;
	struct station_result after = run(st);
	CU_ASSERT(after.refused < 0.01);
}

static void test_unknown_users(void)
{
	struct station_result r = run((struct station){.load = 2, .no_users = true});

	CU_ASSERT(r.goodput > 0.98);
	CU_ASSERT(station_success(&r, 0) >= 0.999);
	CU_ASSERT(station_success(&r, 3) < 0.15);
}

/* Runs repeat to the bit. */
static void test_repeats(void)
{
	struct station_result a = run((struct station){.load = 2, .seed = 7});
	struct station_result b = run((struct station){.load = 2, .seed = 7});

	CU_ASSERT_EQUAL(memcmp(a.class, b.class, sizeof(a.class)), 0);
	CU_ASSERT_EQUAL(a.p99_ns, b.p99_ns);
}

CUNIT_MAIN("weir at a station", {"exponential", test_exponential},
    {"other services", test_other_services}, {"other scales", test_other_scales},
    {"flood", test_flood}, {"guarantee", test_guarantee}, {"late tick", test_late_tick},
    {"spike", test_spike}, {"unknown users", test_unknown_users}, {"repeats", test_repeats})
