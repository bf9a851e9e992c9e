/* SPDX-License-Identifier: MIT */
/*
 * Stages that hold events, in virtual time: admission and the width policy together. The stage can
 * do 300/s: with 6 servers of 20 ms (objective 100 ms, or 200 ms if they are exponential) or with
 * 300 servers of 1 s (objective 2 s). It is behind a pool and is offered 1 to 10 times its
 * capacity, with several seeds each.
 */
#include "runs.h"

#include "control/width.h"

#ifdef WEIR_ONE_SEED /* an instrumented build */
#define SEEDS 1
#else
#define SEEDS 3
#endif

static struct sim_config c;

static void fill(bool slow, int kind, double load, uint64_t seed)
{
	/* the 99 % quantile of exponential times is 4.6 times the mean */
	int64_t slo_ns = slow ? 2 * NS_PER_S : kind == SIM_EXP ? 200 * NS_PER_MS : 100 * NS_PER_MS;
	struct sim_dist service = {.kind = kind, .mean_ns = slow ? NS_PER_S : 20 * NS_PER_MS};

	runs_one_stage(&c, (struct sim_dist){.mean_ns = 100 * NS_PER_US}, 1, 1, 1, 30 * NS_PER_S);
	c.seed = seed;
	c.n_classes = 2;
	sim_class_defaults(&c);
	c.stage[0].admission = &admission_weir;
	c.stage[0].slo_ns = slo_ns;
	c.n_stages = 2;
	c.stage[1] = (struct sim_stage){.name = "db",
	    .service = service,
	    .batch_max = 1,
	    .queue_limit = 4096,
	    .threads_min = 1,
	    .threads_max = 4096,
	    .threads_start = WIDTH_FIRST,
	    .admission = &admission_weir,
	    .params = sim_admission_defaults(),
	    .width = &width_weir,
	    .servers = slow ? 300 : 6,
	    .slo_ns = slo_ns};
	c.route[0] = (struct sim_route){.name = "all", .n = 2, .stage = {0, 1}};
	c.n_sources = 2;
	for (int k = 0; k < 2; k++)
		c.source[k] = (struct sim_source){.name = k == 0 ? "top" : "rest",
		    .class_id = k,
		    .arrivals = SIM_POISSON,
		    /* the top class asks for less than half of what there is */
		    .rate_per_s = k == 0 ? 120 : 300 * load - 120,
		    .deadline_ns = slo_ns};
	c.warmup_ns = 60 * NS_PER_S;
	c.laws = SIM_LAWS_SERVER;
}

static void check(bool good, const char *what, double load, uint64_t seed, double is)
{
	if (!good)
		fprintf(stderr, "load %g, seed %d: %s %.4f\n", load, (int)seed, what, is);
	CU_ASSERT(good);
}

/* A second stage that holds, behind the first: 12 servers of 30 ms, 400/s. */
static void add_second(bool narrow)
{
	c.stage[2] = c.stage[1];
	c.stage[2].name = "store";
	c.stage[2].service.mean_ns = 30 * NS_PER_MS;
	c.stage[2].servers = narrow ? 6 : 12;
	c.n_stages = 3;
	c.route[0] = (struct sim_route){.name = "all", .n = 3, .stage = {0, 1, 2}};
}

/* `least` is the least goodput as a fraction of the possible, from load 1.5 on. At load 1 the queue
 * is empty now and then, so less is required. */
static void run(bool slow, int kind, double least, double top_least)
{
	static const double loads[] = {1, 1.5, 2, 5, 10};

	for (int i = 0; i < 5 * SEEDS; i++) {
		double load = loads[i / SEEDS];
		uint64_t seed = (uint64_t)(i % SEEDS + 1);
		fill(slow, kind, load, seed);
		struct sim_result *r = runs_do(&c);
		if (!r)
			continue;
		double good = sim_goodput_per_s(&c, r, c.warmup_ns, c.warmup_ns + c.measured_ns);
		double p99_ns = (double)sim_response_ns(&c, r, 0.99);
		double top = (double)r->class[0].in_time / (double)r->class[0].offered;
		check(good / 300 >= (load > 1 ? least : least - 0.06), "goodput", load, seed,
		    good / 300);
		check(p99_ns <= (double)c.stage[1].slo_ns, "p99 over the objective", load, seed,
		    p99_ns / (double)c.stage[1].slo_ns);
		check(top >= top_least, "top class", load, seed, top);
		double wasted = (double)r->wasted_ns / (double)r->service_ns;
		check(wasted <= (kind == SIM_EXP ? 0.015 : 0.01), "wasted", load, seed, wasted);
		sim_result_free(r);
	}
}

static void test_constant(void)
{
	run(false, SIM_CONST, 0.95, 0.999);
}

static void test_exponential(void)
{
	run(false, SIM_EXP, 0.95, 0.99);
}

/* The objective is twice a service, so events must not wait for long. */
static void test_long(void)
{
	run(true, SIM_CONST, 0.95, 0.999);
}

/* Two behind each other, where the first or the second (200/s) is the bottleneck. The objective of
 * each is 100 ms, and clients wait for 200 ms. */
static void test_two(void)
{
	static const double loads[] = {1.5, 3, 10};

	for (int i = 0; i < 3 * 2 * SEEDS; i++) {
		double load = loads[i / (2 * SEEDS)];
		bool narrow = i % 2;
		double possible = narrow ? 200 : 300;
		uint64_t seed = (uint64_t)(i / 2 % SEEDS + 1);
		fill(false, SIM_CONST, load, seed);
		for (int k = 0; k < 2; k++)
			c.source[k].deadline_ns = 200 * NS_PER_MS;
		c.source[0].rate_per_s = 80;
		c.source[1].rate_per_s = possible * load - 80;
		add_second(narrow);
		struct sim_result *r = runs_do(&c);
		if (!r)
			continue;
		double good = sim_goodput_per_s(&c, r, c.warmup_ns, c.warmup_ns + c.measured_ns);
		double p99_ns = (double)sim_response_ns(&c, r, 0.99);
		double top = (double)r->class[0].in_time / (double)r->class[0].offered;
		double wasted = (double)r->wasted_ns / (double)r->service_ns;
		check(good / possible >= 0.95, "goodput of two", load, seed, good / possible);
		check(p99_ns <= 200e6, "p99 of two", load, seed, p99_ns / 200e6);
		check(top >= 0.999, "top class of two", load, seed, top);
		check(wasted <= 0.01, "wasted by two", load, seed, wasted);
		sim_result_free(r);
	}
}

CUNIT_MAIN("width_load", {"constant", test_constant}, {"exponential", test_exponential},
    {"300 at once", test_long}, {"two", test_two})
