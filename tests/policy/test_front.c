/* SPDX-License-Identifier: MIT */
/*
 * Admission upstream under floods, in virtual time (admission/route.h), with several seeds each.
 * Events for a bottleneck are refused before any work is done for them, routes that avoid it are
 * not affected, and nothing is left in flight at the end (I2, I6, I8, I10, I13, I14 of
 * docs/overload-derivation.md; W1 to W12 are in sim/workload.c).
 *
 * The bounds are those of I1 to I15. Where a test has a figure of its own, its comment gives the
 * measured value.
 */
#include "runs.h"

#ifdef WEIR_ONE_SEED /* an instrumented build */
#define SEEDS 1
#else
#define SEEDS 5
#endif
#define SLO_NS       (100 * NS_PER_MS)
#define BINS_PER_S   50 /* of 20 ms */
#define NARROW       0
#define WIDE         1
#define FLOOD_AT_S   5 /* W7, W8: the disturbance starts and ends */
#define FLOOD_ENDS_S 15

static struct sim_config c;

static void fill(const char *workload, double load, uint64_t seed, int64_t measured_ns)
{
	sim_workload_fill(
	    sim_workload_find(workload), load, &admission_weir, NULL, seed, measured_ns, &c);
	c.laws = SIM_LAWS_SERVER | SIM_LAWS_POLICY;
	c.trace = stderr;
}

static struct sim_result *run(void)
{
	struct sim_result *r = runs_do(&c);

	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	return r;
}

/* Check that `holds`; otherwise print the figure. */
static void check(bool holds, const char *what, uint64_t seed, double is)
{
	if (!holds)
		fprintf(stderr, "seed %d: %s: %g\n", (int)seed, what, is);
	CU_ASSERT(holds);
}

static uint64_t midway(const struct sim_result *r)
{
	uint64_t n = 0;

	for (int k = 0; k < c.n_classes; k++)
		n += r->class[k].refused_midway;
	return n;
}

static double wasted(const struct sim_result *r)
{
	return (double)r->wasted_ns / (double)r->service_ns;
}

static void check_nothing_on_its_way(const struct sim_result *r, uint64_t seed)
{
	for (int i = 0; i < c.n_stages; i++)
		check(r->stage[i].pipeline_end_ns == 0, "work on its way at the end, ns", seed,
		    (double)r->stage[i].pipeline_end_ns);
}

/* Number of requests in time between two seconds of the run. */
static double in_time(const struct sim_result *r, int class_id, int from_s, int to_s)
{
	double n = 0;

	for (int b = from_s * BINS_PER_S; b < to_s * BINS_PER_S; b++)
		n += r->bin[b].in_time_class[class_id];
	return n;
}

/* ---- W6: a narrow stage after a shared one ---- */

/* I8, once warm: at ten times the capacity of the narrow stage, no event is refused after the first
 * stage (measured: 0 with each seed). The wide route is not affected: it has 1.000 of its
 * throughput without the flood. The narrow stage is kept busy. */
static void test_narrow_flood(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		fill("W6", 0.5, seed, 20 * NS_PER_S);
		struct sim_result *calm = run();
		uint64_t wide = calm->route_in_time[WIDE];
		sim_result_free(calm);
		fill("W6", 10, seed, 20 * NS_PER_S);
		struct sim_result *r = run();
		check(midway(r) == 0, "refused midway", seed, (double)midway(r));
		check(wasted(r) <= 0.01, "wasted", seed, wasted(r));
		double kept = (double)r->route_in_time[WIDE] / (double)wide;
		check(kept >= 0.97, "wide route over that without the flood", seed, kept);
		double narrow = (double)r->route_in_time[NARROW] / (400 * 20);
		check(narrow >= 0.95, "use of the narrow stage", seed, narrow);
		check(sim_shed(&r->class[WIDE]) == 0, "refused of the wide route", seed,
		    (double)sim_shed(&r->class[WIDE]));
		check_nothing_on_its_way(r, seed);
		sim_result_free(r);
	}
}

/* From the very first event, at ten times the capacity: until costs and routes are known, some
 * events are admitted in vain. Measured over five seeds in the first 2 s: at most 33 of 8,000
 * refused midway, 5 % wasted. */
static void test_not_yet_warm(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		fill("W6", 10, seed, 2 * NS_PER_S);
		c.warmup_ns = 0;
		struct sim_result *r = run();
		check(midway(r) <= 100, "refused midway", seed, (double)midway(r));
		check(wasted(r) <= 0.1, "wasted", seed, wasted(r));
		sim_result_free(r);
	}
}

/* I14: handlers of the shared stage die twenty times a second, together with their events. */
static void test_deaths_give_back(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		fill("W6", 10, seed, 20 * NS_PER_S);
		c.fault[c.n_faults++] = (struct sim_fault){.kind = SIM_CRASH,
		    .stage = 0,
		    .from_ns = 3 * NS_PER_S,
		    .to_ns = 20 * NS_PER_S,
		    .period_ns = 50 * NS_PER_MS};
		struct sim_result *r = run();
		uint64_t failed = r->class[NARROW].failed + r->class[WIDE].failed;
		check(failed >= 100, "died", seed, (double)failed);
		check(midway(r) == 0, "refused midway", seed, (double)midway(r));
		check_nothing_on_its_way(r, seed);
		/* of the events that were admitted and did not die */
		double narrow = (double)r->route_in_time[NARROW] / (400 * 20);
		check(narrow >= 0.95, "use of the narrow stage", seed, narrow);
		sim_result_free(r);
	}
}

/* I13: the flood starts, and for half a second there are no ticks. The server is not told the
 * deadlines, which would hide a failure of the caps. Waits stay within the objective, as they do
 * with ticks. */
static void test_lost_ticks(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		fill("W6", 1, seed, 10 * NS_PER_S);
		c.source[NARROW].phase[0] = (struct sim_phase){0, 0.5};
		c.source[NARROW].phase[1] = (struct sim_phase){FLOOD_AT_S * NS_PER_S, 10};
		for (int i = 0; i < c.n_sources; i++)
			c.source[i].hides_deadline = true;
		c.fault[c.n_faults++] = (struct sim_fault){.kind = SIM_LOST_TICKS,
		    .from_ns = FLOOD_AT_S * NS_PER_S,
		    .to_ns = FLOOD_AT_S * NS_PER_S + 500 * NS_PER_MS};
		struct sim_result *r = run();
		for (int k = 0; k < c.n_classes; k++) {
			int64_t wait_ns = hdr_quantile_ns(&r->class[k].wait, 1);
			check(wait_ns <= SLO_NS, "longest wait, ms", seed, (double)wait_ns * 1e-6);
		}
		check(midway(r) == 0, "refused midway", seed, (double)midway(r));
		check(r->route_in_time[WIDE] >= 0.97 * (double)r->route_offered[WIDE],
		    "wide in time", seed, (double)r->route_in_time[WIDE]);
		sim_result_free(r);
	}
}

/* A cache: one class, of which a tenth goes on to a stage that can handle half of that tenth. The
 * first stage refuses nothing for so small a part; the excess is refused at the second stage
 * itself. */
static void test_cache(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		fill("W6", 1, seed, 20 * NS_PER_S);
		c.stage[1].service.mean_ns = 50 * NS_PER_MS; /* 80 per second */
		c.stage[1].slo_ns = 500 * NS_PER_MS;
		c.n_sources = 2;
		c.source[1] = c.source[0];
		c.source[0].rate_per_s = 160;
		c.source[0].deadline_ns = 500 * NS_PER_MS;
		c.source[1].rate_per_s = 1240;
		c.source[1].route = 2;
		c.route[2] = (struct sim_route){.name = "hit", .n = 1, .stage = {0}};
		c.n_routes = 3;
		struct sim_result *r = run();
		double hits = (double)r->route_in_time[2] / (double)r->route_offered[2];
		check(hits >= 0.999, "success of hits", seed, hits);
		double misses = (double)r->route_in_time[0] / (80 * 20);
		check(misses >= 0.9, "use of the stage behind", seed, misses);
		check(midway(r) >= 1000, "refused at its own door", seed, (double)midway(r));
		check_nothing_on_its_way(r, seed);
		sim_result_free(r);
	}
}

/*
 * Work in flight: 200 ms upstream of a stage that can handle 800 per second, with four times that
 * from one moment on. An event admitted now arrives at the stage 200 ms later, so work in flight
 * must be counted. Events that are still in handlers must not be taken as events that go elsewhere.
 * Waits: I4, 1.5 caps. Measured: p99 354 to 468 ms, longest wait 279 ms.
 */
static void test_long_way(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		fill("W6", 1, seed, 10 * NS_PER_S);
		c.stage[0].service =
		    (struct sim_dist){.kind = SIM_CONST, .mean_ns = 200 * NS_PER_MS};
		c.stage[0].cpu_share = 0;
		c.stage[0].batch_max = c.stage[1].batch_max = 1;
		c.stage[0].threads_min = c.stage[0].threads_start = c.stage[0].threads_max = 2000;
		c.stage[1].service.mean_ns = 5 * NS_PER_MS;
		c.stage[0].slo_ns = c.stage[1].slo_ns = 500 * NS_PER_MS;
		c.n_sources = 1;
		c.source[0].rate_per_s = 800;
		c.source[0].deadline_ns = 500 * NS_PER_MS;
		c.source[0].hides_deadline = true;
		c.source[0].phase[0] = (struct sim_phase){0, 0.5};
		c.source[0].phase[1] = (struct sim_phase){FLOOD_AT_S * NS_PER_S, 4};
		struct sim_result *r = run();
		double used = in_time(r, 0, FLOOD_AT_S + 1, FLOOD_AT_S + 7) / (800 * 6);
		int64_t p99_ns = hdr_quantile_ns(&r->class[0].response, 0.99);
		int64_t wait_ns = hdr_quantile_ns(&r->class[0].wait, 1);
		check(used >= 0.95, "use of the narrow stage", seed, used);
		check(midway(r) == 0, "refused midway", seed, (double)midway(r));
		check(p99_ns <= 500 * NS_PER_MS, "p99, ms", seed, (double)p99_ns * 1e-6);
		check(wait_ns <= 375 * NS_PER_MS, "longest wait, ms", seed, (double)wait_ns * 1e-6);
		check_nothing_on_its_way(r, seed);
		sim_result_free(r);
	}
}

/* ---- W8: a dependency on which one route waits ---- */

/* While the dependency is five times as slow, the other route gets the same as without the
 * fault. */
static void test_slow_dependency(void)
{
	static const double loads[] = {0.7, 0.8, 0.9};

	for (uint64_t seed = 1; seed <= 3 * SEEDS; seed++) {
		double load = loads[seed % 3], plain[2];
		for (int faulty = 0; faulty < 2; faulty++) {
			fill("W8", load, seed, 20 * NS_PER_S);
			c.n_faults = faulty ? c.n_faults : 0;
			struct sim_result *r = run();
			plain[faulty] = in_time(r, 0, FLOOD_AT_S, FLOOD_ENDS_S);
			check(midway(r) == 0, "refused midway", seed, (double)midway(r));
			check_nothing_on_its_way(r, seed);
			sim_result_free(r);
		}
		check(plain[1] >= 0.97 * plain[0], "plain route over that without the fault", seed,
		    plain[1] / plain[0]);
	}
}

/* ---- classes ---- */

/* I6: at ten times the capacity, over each second, a class with a guarantee of 2 % gets 0.9 of it.
 * W2 with 0.1 ms instead of 5: at 5 ms, 2 % are 16 events a second, and chance alone changes that
 * by 4. */
static void test_guarantees(void)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		fill("W2", 10, seed, 5 * NS_PER_S);
		c.stage[0].service.mean_ns /= 50;
		c.stage[0].queue_limit *= 50;
		for (int i = 0; i < c.n_sources; i++)
			c.source[i].rate_per_s *= 50;
		double share = 0.02 * sim_capacity_per_s(&c);
		struct sim_result *r = run();
		for (int k = 1; k < c.n_classes; k++)
			for (int s = 2; s < 7; s++)
				check(in_time(r, k, s, s + 1) >= 0.9 * share,
				    "of its guarantee in a second", seed,
				    in_time(r, k, s, s + 1) / share);
		sim_result_free(r);
	}
}

/* I6 with services of 5 ms, over 20 s. */
static void test_guarantees_of_long_services(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		fill("W2", 10, seed, 20 * NS_PER_S);
		struct sim_result *r = run();
		double share = 0.02 * sim_capacity_per_s(&c) * 20;
		for (int k = 1; k < c.n_classes; k++)
			check(in_time(r, k, 2, 22) >= 0.9 * share, "of its guarantee", seed,
			    in_time(r, k, 2, 22) / share);
		sim_result_free(r);
	}
}

/* The policy weir with a watched tick, and the first time from FLOOD_ENDS_S on at which it was
 * NORMAL. */
static struct admission_policy watched;
static int64_t normal_ns;

static void watching_tick(
    void *state, const struct weir_admission_spec *p, const struct admission_sample *sample)
{
	char line[256];

	admission_weir.tick(state, p, sample);
	admission_weir.explain(state, p, NULL, line, sizeof(line));
	if (sample->now_ns == FLOOD_ENDS_S * NS_PER_S)
		CU_ASSERT_EQUAL(strncmp(line, "OVER", 4), 0);
	if (sample->now_ns > FLOOD_ENDS_S * NS_PER_S && normal_ns == 0 && line[0] == 'N')
		normal_ns = sample->now_ns - FLOOD_ENDS_S * NS_PER_S;
}

/* I10: after a spike of ten times the capacity, the stage is NORMAL again within two intervals (200
 * ms) plus the time for queued work (at most 50 ms), and everything is admitted. At a load of 0.7
 * and more, chance causes a refusal now and then. */
static void test_normal_again(void)
{
	static const double loads[] = {0.4, 0.5, 0.6};
	const int after = FLOOD_ENDS_S * BINS_PER_S + 13;

	watched = admission_weir;
	watched.tick = watching_tick;
	for (uint64_t seed = 1; seed <= 3 * SEEDS; seed++) {
		fill("W7", 10, seed, 20 * NS_PER_S);
		c.stage[0].admission = &watched;
		for (int i = 0; i < c.n_sources; i++)
			c.source[i].phase[2].factor = loads[seed % 3];
		normal_ns = 0;
		struct sim_result *r = run();
		uint64_t late = 0;
		for (int b = after; b < r->n_bins; b++)
			late += r->bin[b].refused;
		check(normal_ns > 0 && normal_ns <= 250 * NS_PER_MS, "NORMAL again after ms", seed,
		    (double)normal_ns * 1e-6);
		check(late == 0, "refused more than 260 ms after it", seed, (double)late);
		sim_result_free(r);
	}
}

CUNIT_MAIN("front door", {"a flood of the narrow route", test_narrow_flood},
    {"not yet warm", test_not_yet_warm}, {"deaths give back", test_deaths_give_back},
    {"lost ticks", test_lost_ticks}, {"a cache", test_cache}, {"a long way", test_long_way},
    {"a slow dependency", test_slow_dependency}, {"guarantees", test_guarantees},
    {"guarantees of long services", test_guarantees_of_long_services},
    {"normal again", test_normal_again})
