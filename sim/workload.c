/* SPDX-License-Identifier: MIT */
/* Configures the workloads W1 to W12; see workload.h.
 *
 * sim_workload_fill_warm() sets the defaults and calls the workload's fill function, which adds
 * stages, routes, sources and faults for the given load. Then it sets the policies of all
 * stages. */
#include "workload.h"

#include <string.h>

#include "base/clock.h"

#define MS(n)       ((n)*NS_PER_MS)
#define SLO_NS      MS(100)
#define WARMUP_NS   (2 * NS_PER_S)
#define QUEUE_LIMIT 10000
#define THREADS     4
#define BASE_LOAD   0.8 /* load before and after a spike */

/* W5, W7, W8: start and end of the spike or fault, after the warm-up. */
#define TROUBLE_FROM_NS (3 * NS_PER_S)
#define TROUBLE_TO_NS   (TROUBLE_FROM_NS + 10 * NS_PER_S)

struct weir_admission_spec sim_admission_defaults(void)
{
	return (struct weir_admission_spec){.mode = WEIR_ADMISSION_ENFORCE,
	    .threshold = -1,
	    .rate = 1000,
	    .target_ns = -1,
	    .interval_ns = -1};
}

/* ---- parts ---- */

static struct sim_stage *add_stage(
    struct sim_config *c, const char *name, struct sim_dist service, double cpu_share)
{
	struct sim_stage *st = &c->stage[c->n_stages++];

	*st = (struct sim_stage){.name = name,
	    .service = service,
	    .cpu_share = cpu_share,
	    .batch_max = 32,
	    .queue_limit = QUEUE_LIMIT,
	    .threads_min = THREADS,
	    .threads_max = THREADS,
	    .threads_start = THREADS,
	    .slo_ns = SLO_NS};
	return st;
}

static void add_route(struct sim_config *c, const char *name, int n, int a, int b)
{
	c->route[c->n_routes++] = (struct sim_route){.name = name, .n = n, .stage = {a, b}};
}

static struct sim_source *add_source(
    struct sim_config *c, const char *name, int class_id, int route, double rate_per_s)
{
	struct sim_source *s = &c->source[c->n_sources++];

	*s = (struct sim_source){.name = name,
	    .class_id = class_id,
	    .route = route,
	    .arrivals = SIM_POISSON,
	    .rate_per_s = rate_per_s,
	    .deadline_ns = SLO_NS};
	return s;
}

/* Add four classes with 10, 20, 30 and 40 % of `rate_per_s` on route 0. */
static void add_mix(struct sim_config *c, double rate_per_s)
{
	static const char *const names[] = {"top", "high", "low", "bulk"};

	c->n_classes = 4;
	sim_class_defaults(c);
	for (int k = 0; k < 4; k++)
		add_source(c, names[k], k, 0, rate_per_s * 0.1 * (k + 1));
}

/* Configure one stage and one route. Returns the capacity of the stage per second. */
static double one_stage(struct sim_config *c, struct sim_dist service, double cpu_share)
{
	add_stage(c, "work", service, cpu_share);
	add_route(c, "all", 1, 0, 0);
	return sim_ceiling_per_s(c, 0, THREADS);
}

/* ---- the workloads ---- */

static void fill_w1(struct sim_config *c, double load)
{
	struct sim_dist d = {.kind = SIM_CONST, .mean_ns = MS(1)};

	add_mix(c, load * one_stage(c, d, 1));
}

static const struct sim_dist exp_5ms = {.kind = SIM_EXP, .mean_ns = MS(5)};

static void fill_w2(struct sim_config *c, double load)
{
	add_mix(c, load * one_stage(c, exp_5ms, 1));
}

static void fill_w3(struct sim_config *c, double load)
{
	struct sim_dist d = {
	    .kind = SIM_BIMODAL, .mean_ns = MS(1), .slow_share = 0.1, .slow_ratio = 11};

	add_mix(c, load * one_stage(c, d, 1));
}

static void fill_w4(struct sim_config *c, double load)
{
	struct sim_dist d = {.kind = SIM_LOGNORMAL, .mean_ns = MS(5), .sigma = 1};

	add_mix(c, load * one_stage(c, d, 1));
}

/* The service time changes from 20 ms to 100 ms; the capacity is computed for 100 ms. */
static void fill_w5(struct sim_config *c, double load)
{
	struct sim_dist d = {.kind = SIM_EXP, .mean_ns = MS(100)};
	struct sim_stage *st = add_stage(c, "disk", d, 0);

	st->threads_min = 2;
	st->threads_start = 8;
	st->threads_max = 200;
	st->slo_ns = MS(500);
	add_route(c, "all", 1, 0, 0);
	c->n_classes = 1;
	add_source(c, "all", 0, 0, load * sim_ceiling_per_s(c, 0, 200))->deadline_ns = MS(500);
	c->fault[c->n_faults++] = (struct sim_fault){.kind = SIM_SLOW,
	    .stage = 0,
	    .from_ns = 0,
	    .to_ns = c->warmup_ns + TROUBLE_FROM_NS,
	    .factor = 0.2};
}

/* Two routes, with classes of equal priority, share the first stage, which can process 2,000 events
 * per second. The second stage of one route can process only 400 per second. `load` applies to that
 * route; the other route gets 0.2 of the first stage's capacity. */
static void fill_w6(struct sim_config *c, double load)
{
	struct sim_dist front = {.kind = SIM_EXP, .mean_ns = MS(1)};
	struct sim_dist narrow = {.kind = SIM_EXP, .mean_ns = MS(10)};

	add_stage(c, "front", front, 1)->threads_max = THREADS;
	add_stage(c, "narrow", narrow, 0);
	add_stage(c, "wide", exp_5ms, 0);
	c->cores = 2;
	add_route(c, "narrow", 2, 0, 1);
	add_route(c, "wide", 2, 0, 2);
	c->n_classes = 2;
	add_source(c, "narrow", 0, 0, load * 400);
	add_source(c, "wide", 1, 1, 400);
}

static void fill_w7(struct sim_config *c, double load)
{
	fill_w2(c, 1);
	for (int i = 0; i < c->n_sources; i++) {
		c->source[i].phase[0] = (struct sim_phase){0, BASE_LOAD};
		c->source[i].phase[1] = (struct sim_phase){c->warmup_ns + TROUBLE_FROM_NS, load};
		c->source[i].phase[2] = (struct sim_phase){c->warmup_ns + TROUBLE_TO_NS, BASE_LOAD};
	}
}

/* One of two routes, with classes of equal priority, depends on a stage that becomes five times as
 * slow for 10 s. */
static void fill_w8(struct sim_config *c, double load)
{
	struct sim_dist front = {.kind = SIM_EXP, .mean_ns = MS(1)};
	struct sim_dist slow = {.kind = SIM_EXP, .mean_ns = MS(10)};

	add_stage(c, "front", front, 1);
	struct sim_stage *st = add_stage(c, "downstream", slow, 0);
	st->threads_min = st->threads_start = st->threads_max = 8;
	add_route(c, "plain", 1, 0, 0);
	add_route(c, "downstream", 2, 0, 1);
	c->n_classes = 2;
	add_source(c, "plain", 0, 0, load * 2000);
	add_source(c, "downstream", 1, 1, load * 600);
	c->fault[c->n_faults++] = (struct sim_fault){.kind = SIM_SLOW,
	    .stage = 1,
	    .from_ns = c->warmup_ns + TROUBLE_FROM_NS,
	    .to_ns = c->warmup_ns + TROUBLE_TO_NS,
	    .factor = 5};
}

/* W7 with retries of failed requests. */
static void fill_w9(struct sim_config *c, double load)
{
	fill_w7(c, load);
	for (int i = 0; i < c->n_sources; i++) {
		c->source[i].retries = 3;
		c->source[i].backoff_ns = MS(100);
	}
}

/* The top class uses 0.4 of the capacity; any load beyond that is a flood of the lowest class. */
static void fill_w10(struct sim_config *c, double load)
{
	double per_s = one_stage(c, exp_5ms, 1);

	c->n_classes = 4;
	sim_class_defaults(c);
	add_source(c, "top", 0, 0, per_s * (load < 0.4 ? load : 0.4));
	if (load > 0.4)
		add_source(c, "flood", 3, 0, per_s * (load - 0.4));
}

/* A hundred equal users and one user that sends ten times as much. */
static void fill_w11(struct sim_config *c, double load)
{
	double per_s = load * one_stage(c, exp_5ms, 1);
	struct sim_source *equal, *greedy;

	c->n_classes = 1;
	equal = add_source(c, "equal", 0, 0, per_s * 100 / 110);
	equal->users = 100;
	greedy = add_source(c, "greedy", 0, 0, per_s * 10 / 110);
	greedy->user_first = 100;
	greedy->users = 1;
}

/* W2 with ten times the service time, objective and clients' deadline. */
static void fill_w12(struct sim_config *c, double load)
{
	struct sim_dist d = {.kind = SIM_EXP, .mean_ns = MS(50)};

	add_mix(c, load * one_stage(c, d, 1));
	c->stage[0].slo_ns *= 10;
	for (int i = 0; i < c->n_sources; i++)
		c->source[i].deadline_ns *= 10;
}

static const struct sim_workload workloads[] = {
    {"W1", "1 ms of CPU each", 0, 0, false, fill_w1},
    {"W2", "exponential, 5 ms", 0, 0, false, fill_w2},
    {"W3", "bimodal, 0.5 and 5.5 ms", 0, 0, false, fill_w3},
    {"W4", "lognormal, 5 ms, sigma 1", 0, 0, false, fill_w4},
    {"W5", "blocking, 20 ms then 100 ms", TROUBLE_FROM_NS, INT64_MAX, true, fill_w5},
    {"W6", "two routes share a stage, one is narrow", 0, 0, false, fill_w6},
    {"W7", "10 s spike over 0.8", TROUBLE_FROM_NS, TROUBLE_TO_NS, false, fill_w7},
    {"W8", "a dependency five times as slow for 10 s", TROUBLE_FROM_NS, TROUBLE_TO_NS, false,
	fill_w8},
    {"W9", "10 s spike, three retries each", TROUBLE_FROM_NS, TROUBLE_TO_NS, false, fill_w9},
    {"W10", "top class at 0.4, the rest is a flood", 0, 0, false, fill_w10},
    {"W11", "100 equal users and a greedy one", 0, 0, false, fill_w11},
    {"W12", "exponential, 50 ms", 0, 0, false, fill_w12},
};

#define N_WORKLOADS (int)(sizeof(workloads) / sizeof(workloads[0]))

const struct sim_workload *sim_workload_at(int i)
{
	return i >= 0 && i < N_WORKLOADS ? &workloads[i] : NULL;
}

const struct sim_workload *sim_workload_find(const char *name)
{
	for (int i = 0; i < N_WORKLOADS; i++)
		if (strcmp(workloads[i].name, name) == 0)
			return &workloads[i];
	return NULL;
}

/* Return the share of all requests that visit stage `i`. */
static double visits(const struct sim_config *c, int i)
{
	double all = 0, here = 0;

	for (int k = 0; k < c->n_sources; k++) {
		const struct sim_route *r = &c->route[c->source[k].route];
		all += c->source[k].rate_per_s;
		for (int at = 0; at < r->n; at++)
			if (r->stage[at] == i)
				here += c->source[k].rate_per_s;
	}
	return all > 0 ? here / all : 0;
}

double sim_capacity_per_s(const struct sim_config *c)
{
	double least = 1e12;

	for (int i = 0; i < c->n_stages; i++) {
		const struct sim_stage *st = &c->stage[i];
		double share = visits(c, i);
		double per_s =
		    sim_ceiling_per_s(c, i, st->servers > 0 ? st->servers : st->threads_max);
		if (share > 0 && per_s / share < least)
			least = per_s / share;
	}
	return least;
}

void sim_workload_fill(const struct sim_workload *w, double load,
    const struct admission_policy *policy, const struct resize_policy *resize, uint64_t seed,
    int64_t measured_ns, struct sim_config *c)
{
	sim_workload_fill_warm(w, load, policy, resize, seed, WARMUP_NS, measured_ns, c);
}

void sim_workload_fill_warm(const struct sim_workload *w, double load,
    const struct admission_policy *policy, const struct resize_policy *resize, uint64_t seed,
    int64_t warmup_ns, int64_t measured_ns, struct sim_config *c)
{
	memset(c, 0, sizeof(*c));
	c->seed = seed;
	c->cores = THREADS;
	c->warmup_ns = warmup_ns;
	c->measured_ns = measured_ns;
	c->bin_ns = MS(20);
	c->laws = SIM_LAWS_SERVER;
	w->fill(c, load);
	for (int i = 0; i < c->n_stages; i++) {
		c->stage[i].admission = policy;
		c->stage[i].params = sim_admission_defaults();
		c->stage[i].resize = resize;
	}
}

void sim_workload_span(
    const struct sim_workload *w, const struct sim_config *c, int64_t *from_ns, int64_t *to_ns)
{
	int64_t length_ns = w->to_ns && w->to_ns < c->measured_ns ? w->to_ns : c->measured_ns;

	*from_ns = c->warmup_ns + w->from_ns;
	*to_ns = c->warmup_ns + length_ns;
}
