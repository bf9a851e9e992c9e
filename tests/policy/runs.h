/* SPDX-License-Identifier: MIT */
/* Simulator runs for tests: a configuration with one stage, and checks of the resulting figures. */
#ifndef WEIR_TESTS_POLICY_RUNS_H
#define WEIR_TESTS_POLICY_RUNS_H

#include <math.h>
#include <string.h>

#include "cunit_main.h"

#include "base/clock.h"
#include "sim/sim.h"
#include "sim/workload.h"

/** One stage "work", one source "all" with one class: M/G/n with rate_per_s requests per second. */
static inline void runs_one_stage(struct sim_config *c, struct sim_dist service, double cpu_share,
    int threads, double rate_per_s, int64_t measured_ns)
{
	memset(c, 0, sizeof(*c));
	c->seed = 1;
	c->cores = threads;
	c->n_classes = c->n_stages = c->n_routes = c->n_sources = 1;
	c->stage[0] = (struct sim_stage){.name = "work",
	    .service = service,
	    .cpu_share = cpu_share,
	    .batch_max = 1,
	    .queue_limit = 1000000,
	    .threads_min = threads,
	    .threads_max = threads,
	    .threads_start = threads,
	    .admission = &admission_none,
	    .params = sim_admission_defaults(),
	    .slo_ns = 100 * NS_PER_MS};
	c->route[0] = (struct sim_route){.name = "all", .n = 1};
	c->source[0] =
	    (struct sim_source){.name = "all", .arrivals = SIM_POISSON, .rate_per_s = rate_per_s};
	c->warmup_ns = 5 * NS_PER_S;
	c->measured_ns = measured_ns;
	c->bin_ns = 100 * NS_PER_MS;
	c->laws = SIM_LAWS_SERVER;
	c->trace = stderr;
}

/** Run. A broken law fails the test and is printed. The caller frees the result; NULL if there is
 * none. */
static inline struct sim_result *runs_do(const struct sim_config *c)
{
	struct sim_result *r = NULL;
	int rc = sim_run(c, &r);

	CU_ASSERT_EQUAL(rc, 0);
	if (rc != 0)
		fprintf(stderr, "%s\n", r ? r->breach : "out of memory");
	if (rc == 0)
		return r;
	sim_result_free(r);
	return NULL;
}

/** Is `is` within `tolerance` (a fraction) of `wanted`? Prints a message if it is not. */
static inline bool runs_near(const char *what, double is, double wanted, double tolerance)
{
	bool near = fabs(is - wanted) <= tolerance * fabs(wanted);

	if (!near)
		fprintf(stderr, "%s: %g, expected %g within %g %%\n", what, is, wanted,
		    tolerance * 100);
	return near;
}

#endif
