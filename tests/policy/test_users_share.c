/* SPDX-License-Identifier: MIT */
/*
 * Users of one class share an overloaded stage by max-min fairness (admission/fair.h): a user that
 * requests less than its share gets all of it, and the users that request more get equal shares.
 *
 * One stage of 4 threads handles 230 events a second of 4/230 s each, exponential.
 */
#include "runs.h"

#define CAPACITY_PER_S 230.0
#define FOR_NS         (40 * NS_PER_S)

static struct sim_config c;

static void start(void)
{
	struct sim_dist d = {.kind = SIM_EXP, .mean_ns = (int64_t)(4e9 / CAPACITY_PER_S)};

	runs_one_stage(&c, d, 1, 4, 1, FOR_NS);
	c.stage[0].admission = &admission_weir;
	c.stage[0].slo_ns = 500 * NS_PER_MS;
	c.laws |= SIM_LAW_IDLE | SIM_LAW_USER | SIM_LAW_BOUND;
	c.n_sources = 0;
	sim_class_defaults(&c);
}

/* Add `n` users, with the next free numbers, that send `rate_per_s` each. */
static void add(uint32_t n, double rate_per_s)
{
	const struct sim_source *last = c.n_sources ? &c.source[c.n_sources - 1] : NULL;

	c.source[c.n_sources++] = (struct sim_source){.name = "users",
	    .arrivals = SIM_POISSON,
	    .rate_per_s = n * rate_per_s,
	    .user_first = last ? last->user_first + last->users : 0,
	    .users = n,
	    .deadline_ns = 500 * NS_PER_MS};
}

static double success(const struct sim_result *r, uint32_t user)
{
	return (double)r->user_in_time[user] / r->user_offered[user];
}

static double per_s(const struct sim_result *r, uint32_t user)
{
	return r->user_in_time[user] * 1e9 / (double)FOR_NS;
}

static double least_success(const struct sim_result *r, uint32_t first, uint32_t n)
{
	double least = 1;

	for (uint32_t u = first; u < first + n; u++)
		least = success(r, u) < least ? success(r, u) : least;
	return least;
}

static double goodput(const struct sim_result *r)
{
	return sim_goodput_per_s(&c, r, c.warmup_ns, c.warmup_ns + FOR_NS) / CAPACITY_PER_S;
}

/* A hog of 450/s and nine users of 5/s: the nine get all they request, the hog the rest. */
static void test_hog(void)
{
	start();
	add(9, 5);
	add(1, 450);
	struct sim_result *r = runs_do(&c);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT(least_success(r, 0, 9) >= 0.99);
	CU_ASSERT(goodput(r) >= 0.97);
	sim_result_free(r);
}

/* The hog starts while the stage is already overloaded, and is unknown at first: until it is known,
 * the others lose a request or two. */
static void test_hog_appears(void)
{
	start();
	add(9, 5);
	add(20, 20);
	add(1, 2000);
	c.source[2].phase[0] = (struct sim_phase){0, 1e-6};
	c.source[2].phase[1] = (struct sim_phase){20 * NS_PER_S, 1};
	struct sim_result *r = runs_do(&c);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT(least_success(r, 0, 9) >= 0.98);
	CU_ASSERT(sim_jain(r, 9, 20) >= 0.95);
	CU_ASSERT(goodput(r) >= 0.97);
	sim_result_free(r);
}

/* Ten users of 2, 4, ... 20/s and four of 100/s: of the 230, the ten get their 110 in full, and 30
 * are left for each of the four. */
static void test_levels(void)
{
	start();
	for (int i = 1; i <= 10; i++)
		add(1, 2 * i);
	add(4, 100);
	struct sim_result *r = runs_do(&c);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT(least_success(r, 0, 10) >= 0.97);
	CU_ASSERT(least_success(r, 0, 8) >= 0.99);
	for (uint32_t u = 10; u < 14; u++)
		CU_ASSERT(runs_near("a user over its share", per_s(r, u), 30, 0.1));
	CU_ASSERT(sim_jain(r, 10, 4) >= 0.95);
	sim_result_free(r);
}

/* Equal users are served equally, at every load. */
static void test_equals(void)
{
	static const double load[] = {1.2, 2, 5, 10};

	for (size_t i = 0; i < sizeof(load) / sizeof(load[0]); i++) {
		start();
		add(100, load[i] * CAPACITY_PER_S / 100);
		struct sim_result *r = runs_do(&c);
		CU_ASSERT_PTR_NOT_NULL_FATAL(r);
		CU_ASSERT(sim_jain(r, 0, 100) >= 0.95);
		CU_ASSERT(goodput(r) >= 0.97);
		sim_result_free(r);
	}
}

CUNIT_MAIN("shares of users", {"a hog", test_hog}, {"a hog appears", test_hog_appears},
    {"levels", test_levels}, {"equal users", test_equals})
