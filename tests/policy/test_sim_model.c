/* SPDX-License-Identifier: MIT */
/*
 * Validation of the simulator against exact results of queueing theory: waits of M/M/1, M/D/1,
 * M/M/4 (Erlang C) and M/G/1, processor sharing, Little's law, closed loops. A repeated run must
 * also give the same result bit for bit.
 *
 * Runs are a few 100,000 requests with fixed seeds, so a figure is the same on every machine. The
 * tolerances are the sampling error of such a run.
 */
#include "runs.h"

#define TEN_MINUTES_NS (600 * NS_PER_S)

static const struct sim_dist exp_5ms = {.kind = SIM_EXP, .mean_ns = 5 * NS_PER_MS};

/* Mean wait of a run in ms; *busy gets its utilisation. */
static double mean_wait_ms(const struct sim_config *c, double *busy)
{
	struct sim_result *r = runs_do(c);
	double ms = -1;

	if (r) {
		ms = hdr_mean_ns(&r->class[0].wait) * 1e-6;
		*busy = (double)r->stage[0].busy_ns / (double)r->stage[0].threads_ns;
	}
	sim_result_free(r);
	return ms;
}

/* Pollaczek and Khinchine: rho / (1 - rho) * (1 + cv^2) / 2 services. */
static void test_one_thread(void)
{
	static const struct {
		const char *name;
		struct sim_dist dist;
		double cv2;
	} cases[] = {
	    {"M/M/1", {.kind = SIM_EXP, .mean_ns = 5 * NS_PER_MS}, 1},
	    {"M/D/1", {.kind = SIM_CONST, .mean_ns = 5 * NS_PER_MS}, 0},
	    /* 0.5 and 5.5 with a mean of 1: 0.9 * 0.25 + 0.1 * 30.25 - 1 */
	    {"M/G/1 bimodal",
		{.kind = SIM_BIMODAL,
		    .mean_ns = 5 * NS_PER_MS,
		    .slow_share = 0.1,
		    .slow_ratio = 11},
		2.25},
	    {"M/G/1 lognormal", {.kind = SIM_LOGNORMAL, .mean_ns = 5 * NS_PER_MS, .sigma = 0.5},
		0.2840}, /* exp(sigma^2) - 1 */
	};
	static struct sim_config c;
	double busy = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		runs_one_stage(&c, cases[i].dist, 0, 1, 0.7 / 0.005, 3 * TEN_MINUTES_NS);
		double wait_ms = mean_wait_ms(&c, &busy);
		CU_ASSERT(runs_near(
		    cases[i].name, wait_ms, 0.7 / 0.3 * (1 + cases[i].cv2) / 2 * 5, 0.03));
		CU_ASSERT(runs_near("utilisation", busy, 0.7, 0.01));
	}
}

/* Erlang C with 4 threads at 0.8: a fraction of 0.5964 waits, on average for 5 ms / (4 * 0.2). */
static void test_four_threads(void)
{
	static struct sim_config c;
	double busy = 0;

	runs_one_stage(&c, exp_5ms, 0, 4, 0.8 * 4 / 0.005, TEN_MINUTES_NS);
	CU_ASSERT(runs_near("M/M/4", mean_wait_ms(&c, &busy), 0.5964 * 5 / 0.8, 0.04));
	/* The same with a core for each thread: then computing and blocking are equivalent. */
	c.stage[0].cpu_share = 1;
	CU_ASSERT(runs_near("M/M/4, cores", mean_wait_ms(&c, &busy), 0.5964 * 5 / 0.8, 0.04));
}

/* Many threads share one core: M/G/1-PS, whose mean response is S / (1 - rho) for any distribution
 * (Kleinrock, Queueing Systems II, 4.4). */
static void test_sharing_a_core(void)
{
	static struct sim_config c;
	struct sim_dist dist = {
	    .kind = SIM_BIMODAL, .mean_ns = 5 * NS_PER_MS, .slow_share = 0.1, .slow_ratio = 11};

	runs_one_stage(&c, dist, 1, 1000, 0.7 / 0.005, TEN_MINUTES_NS);
	c.cores = 1;
	struct sim_result *r = runs_do(&c);
	if (r) {
		CU_ASSERT(runs_near(
		    "PS", hdr_mean_ns(&r->class[0].response) * 1e-6, 5 / (1 - 0.7), 0.04));
		CU_ASSERT(runs_near("cores' use",
		    (double)r->cpu_ns / (double)(c.warmup_ns + c.measured_ns), 0.7, 0.01));
	}
	sim_result_free(r);
}

/* N clients with think time Z: X = N / (R + Z) exactly, by Little's law. */
static void test_closed_loop(void)
{
	static struct sim_config c;

	runs_one_stage(&c, exp_5ms, 0, 2, 0, 60 * NS_PER_S);
	c.source[0].arrivals = SIM_CLOSED;
	c.source[0].clients = 20;
	c.source[0].think_ns = 50 * NS_PER_MS;
	struct sim_result *r = runs_do(&c);
	if (r) {
		double x = (double)r->class[0].in_time / 60;
		double response_s = hdr_mean_ns(&r->class[0].response) * 1e-9;
		CU_ASSERT(runs_near("X", x, 20 / (response_s + 0.05), 0.01));
		CU_ASSERT(x > 250 && x < 400);
	}
	sim_result_free(r);
}

/* All kinds of arrivals have the requested rates, phases included. */
static void test_arrivals(void)
{
	static struct sim_config c;

	for (int kind = SIM_POISSON; kind <= SIM_BURSTS; kind++) {
		runs_one_stage(&c, (struct sim_dist){.kind = SIM_CONST, .mean_ns = NS_PER_MS}, 0,
		    10, 1000, TEN_MINUTES_NS);
		c.source[0].arrivals = (enum sim_arrivals)kind;
		c.source[0].burst_factor = 5;
		c.source[0].burst_share = 0.1;
		c.source[0].burst_ns = 5 * NS_PER_MS;
		c.source[0].phase[0] = (struct sim_phase){0, 1};
		c.source[0].phase[1] = (struct sim_phase){305 * NS_PER_S, 3};
		struct sim_result *r = runs_do(&c);
		if (!r)
			continue;
		CU_ASSERT(runs_near(
		    "first", sim_goodput_per_s(&c, r, 5 * NS_PER_S, 305 * NS_PER_S), 1000, 0.03));
		CU_ASSERT(runs_near("tripled",
		    sim_goodput_per_s(&c, r, 305 * NS_PER_S, 605 * NS_PER_S), 3000, 0.03));
		sim_result_free(r);
	}
}

/* A few events of a low class behind many of a high one: they wait less if the oldest go first. The
 * amount of work done does not change. */
static void test_discipline(void)
{
	static struct sim_config c;
	double p99_ms[2] = {0};
	uint64_t done[2] = {0};

	for (int fifo = 0; fifo < 2; fifo++) {
		runs_one_stage(&c, exp_5ms, 0, 4, 720, 60 * NS_PER_S);
		c.n_classes = c.n_sources = 2;
		c.source[1] = c.source[0];
		c.source[1].class_id = 1;
		c.source[1].rate_per_s = 40;
		c.stage[0].discipline = fifo ? WEIR_DISCIPLINE_FIFO : WEIR_DISCIPLINE_PRIORITY;
		struct sim_result *r = runs_do(&c);
		if (r) {
			p99_ms[fifo] = (double)hdr_quantile_ns(&r->class[1].wait, 0.99) * 1e-6;
			done[fifo] = r->class[0].in_time + r->class[1].in_time;
		}
		sim_result_free(r);
	}
	CU_ASSERT_EQUAL(done[0], done[1]);
	CU_ASSERT(p99_ms[1] < 0.5 * p99_ms[0]);
}

/* A client gives up after three retries. If the stage admits none, every request is sent four
 * times. */
static void test_retries(void)
{
	static struct sim_config c;

	runs_one_stage(&c, (struct sim_dist){.kind = SIM_CONST, .mean_ns = 1000 * NS_PER_S}, 0, 1,
	    100, 60 * NS_PER_S);
	c.stage[0].queue_limit = 1;
	c.source[0].retries = 3;
	c.source[0].backoff_ns = 10 * NS_PER_MS;
	c.source[0].deadline_ns = 100 * NS_PER_MS;
	struct sim_result *r = runs_do(&c);
	if (r) {
		const struct sim_class_result *k = &r->class[0];
		CU_ASSERT(runs_near(
		    "attempts", (double)k->offered / (double)(k->offered - k->retries), 4, 0.01));
		CU_ASSERT_EQUAL(k->in_time, 0);
		CU_ASSERT_EQUAL(k->offered, sim_shed(k));
	}
	sim_result_free(r);
}

static void fill_everything(struct sim_config *c, const struct admission_policy *p)
{
	sim_workload_fill(sim_workload_find("W9"), 3, p, &resize_seda, 42, 6 * NS_PER_S, c);
	c->stage[0].threads_max = 32;
	c->cores = 3;
	c->source[0].arrivals = SIM_BURSTS;
	c->source[0].burst_factor = 4;
	c->source[0].burst_share = 0.2;
	c->source[0].burst_ns = 50 * NS_PER_MS;
	c->fault[c->n_faults++] = (struct sim_fault){.kind = SIM_CRASH,
	    .from_ns = 4 * NS_PER_S,
	    .to_ns = 7 * NS_PER_S,
	    .period_ns = 70 * NS_PER_MS};
	c->trace = stderr;
}

/* The same seed gives the same result, bit for bit; another seed gives another. */
static void test_repeats(void)
{
	static struct sim_config c;

	for (int i = 0; admission_at(i); i++) {
		fill_everything(&c, admission_at(i));
		struct sim_result *a = runs_do(&c), *b = runs_do(&c);
		c.seed++;
		struct sim_result *other = runs_do(&c);
		if (a && b && other) {
			size_t bins = (size_t)a->n_bins * sizeof(*a->bin);
			CU_ASSERT_EQUAL(a->events, b->events);
			CU_ASSERT_EQUAL(memcmp(a->class, b->class, sizeof(a->class)), 0);
			CU_ASSERT_EQUAL(memcmp(a->stage, b->stage, sizeof(a->stage)), 0);
			CU_ASSERT_EQUAL(memcmp(a->bin, b->bin, bins), 0);
			CU_ASSERT_NOT_EQUAL(memcmp(a->bin, other->bin, bins), 0);
		}
		sim_result_free(a);
		sim_result_free(b);
		sim_result_free(other);
	}
}

/* Impossible configurations are refused with a message. */
static void test_impossible(void)
{
	static struct sim_config c;
	struct sim_result *r = NULL;

	runs_one_stage(&c, exp_5ms, 0, 4, 100, NS_PER_S);
	c.source[0].route = 3;
	CU_ASSERT_EQUAL(sim_run(&c, &r), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_STRING_EQUAL(r->breach, "source 'all': class 0 or route 3 does not exist");
	sim_result_free(r);
}

/* A crash every 0 ns would never let time pass; a fault of an absent stage reads past the array. */
static void test_impossible_faults(void)
{
	static const struct {
		struct sim_fault fault;
		const char *breach;
	} cases[] = {
	    {{.kind = SIM_CRASH, .to_ns = NS_PER_S},
		"a fault has the period 0 ns, which is below 1"},
	    {{.kind = SIM_CRASH, .stage = 1, .period_ns = 1},
		"a fault has stage 1, which does not exist"},
	    {{.kind = SIM_LOST_TICKS, .stage = -1}, "a fault has stage -1, which does not exist"},
	    {{.kind = SIM_SLOW, .to_ns = NS_PER_S},
		"a fault has the factor 0, which is not above 0"},
	};
	static struct sim_config c;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sim_result *r = NULL;
		runs_one_stage(&c, exp_5ms, 0, 4, 100, NS_PER_S);
		c.n_faults = 1;
		c.fault[0] = cases[i].fault;
		CU_ASSERT_EQUAL(sim_run(&c, &r), WEIR_EINVAL);
		CU_ASSERT_PTR_NOT_NULL_FATAL(r);
		CU_ASSERT_STRING_EQUAL(r->breach, cases[i].breach);
		sim_result_free(r);
	}
}

CUNIT_MAIN("sim model", {"one thread waits as theory says", test_one_thread},
    {"four threads", test_four_threads}, {"sharing a core", test_sharing_a_core},
    {"closed loop", test_closed_loop}, {"arrivals and phases", test_arrivals},
    {"discipline", test_discipline}, {"retries", test_retries},
    {"repeats to the bit", test_repeats}, {"impossible configurations", test_impossible},
    {"impossible faults", test_impossible_faults})
