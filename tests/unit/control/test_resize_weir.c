/* SPDX-License-Identifier: MIT */
/* Resize policy weir on simulated cores (pool_sim.h): it settles, stays stable and does not grow in
 * vain. The same checks fail for policies that are wrong. */
#include "pool_sim.h"

static const double ms = NS_PER_MS;

/* ---- properties of a good policy (each takes the policy; wrong ones must fail) ---- */

/* Service time rises from 20 ms to 100 ms at 1000/s. 3 s later throughput equals the load, and the
 * number of threads is final. */
static bool settles(const struct resize_policy *policy)
{
	struct sim *s = sim_new(policy, 26, 512);

	s->arrivals_per_s = 1000;
	s->cpu_ns = 0.1 * ms;
	s->block_ns = 19.9 * ms;
	sim_run(s, 30);
	bool fits = s->v.queue_length < 100 && s->v.target < 100;
	s->block_ns = 99.9 * ms;
	sim_run(s, 3);
	int settled = s->v.target;
	double rate = sim_rate(s, 2);
	fits = fits && rate > 950;
	sim_run(s, 20);
	fits = fits && abs(s->v.target - settled) <= settled / 5 && s->v.queue_length < 100;
	sim_free(s);
	return fits;
}

/* A CPU-bound stage that is offered five times the capacity of the cores. */
static bool keeps_to_the_cap(const struct resize_policy *policy)
{
	struct sim *s = sim_new(policy, 1, 512);

	s->arrivals_per_s = 2000;
	s->cpu_ns = 5 * ms;
	sim_run(s, 60);
	bool kept = s->most <= 4 && s->v.target >= 2; /* 2 cores * 1.25 + 1 */
	sim_free(s);
	return kept;
}

/* The blocked events wait for the queued ones: five threads are needed, only one exists. */
static bool unjams(const struct resize_policy *policy)
{
	struct sim *s = sim_new(policy, 1, 512);

	s->arrivals_per_s = 100;
	s->cpu_ns = 1 * ms;
	s->jammed = true;
	for (int i = 0; i < 50 && s->v.target < 5; i++)
		sim_run(s, 0.1);
	bool grew = s->v.target == 5;
	s->jammed = false;
	sim_run(s, 60);
	bool back = s->v.target <= 2 && s->v.queue_length < 10;
	sim_free(s);
	return grew && back;
}

/* A pool of one thread has nothing to do for a minute, or little if `warm`, then work for 8
 * threads. Once warm it grows in steps of half the distance; before that, at once. */
static int after_two_windows(bool warm)
{
	struct sim *s = sim_new(&resize_weir, 1, 512);

	s->block_ns = 20 * ms;
	s->cpu_ns = 0.1 * ms;
	s->arrivals_per_s = warm ? 10 : 0;
	sim_run(s, 60);
	s->arrivals_per_s = 400;
	sim_run(s, 0.3);
	int n = s->v.target;
	sim_free(s);
	return n;
}

static void test_cold(void)
{
	CU_ASSERT(after_two_windows(false) >= 8);
	CU_ASSERT(after_two_windows(true) < 8);
}

static void test_settles(void)
{
	CU_ASSERT_TRUE(settles(&resize_weir));
}

static void test_cap(void)
{
	CU_ASSERT_TRUE(keeps_to_the_cap(&resize_weir));
}

static void test_unjams(void)
{
	CU_ASSERT_TRUE(unjams(&resize_weir));
}

/* ---- mutants ---- */

static bool most_decide(
    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	(void)state, (void)now_ns;
	d->target = v->max;
	return true;
}

static bool least_decide(
    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	(void)state, (void)now_ns;
	d->target = v->min;
	return true;
}

/* The policy weir without CPU and run-queue times. */
static bool blind_decide(
    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	struct resize_view blind = *v;

	blind.cpu_ns_total = 0;
	blind.runq_ns_total = 0;
	return resize_weir.decide(state, &blind, now_ns, d);
}

static bool passes(const struct resize_policy *policy)
{
	return settles(policy) && keeps_to_the_cap(policy) && unjams(policy);
}

static void test_mutants_fail(void)
{
	static const struct resize_policy most = {"most", "", most_decide},
					  least = {"least", "", least_decide},
					  blind = {"blind", "", blind_decide};

	CU_ASSERT_TRUE(passes(&resize_weir));
	CU_ASSERT_FALSE(passes(&resize_static)); /* never changes */
	CU_ASSERT_FALSE(passes(&most));
	CU_ASSERT_FALSE(passes(&least));
	CU_ASSERT_FALSE(keeps_to_the_cap(&blind));
	CU_ASSERT_FALSE(passes(&resize_seda));
}

/* ---- stationary load ---- */

struct kind {
	const char *name;
	double per_s, cpu_ms, block_ms;
	int least, most; /* threads: L = rate * time, adjusted for utilisation 0.8 and noise */
	int reversals;   /* in 300 s; I11 allows 5 */
};

/* Of ten events per second that take one second each, 10 are in progress at a time, give or take 3.
 * That load is not steady, and the pool follows it. */
static const struct kind kinds[] = {{"cpu", 300, 5, 0, 2, 4, 0},
    {"blocking", 1000, 0.1, 20, 22, 32, 0}, {"mixed", 150, 5, 5, 2, 4, 0},
    {"few and long", 10, 1, 1000, 11, 34, 5}};

#define KINDS (int)(sizeof(kinds) / sizeof(kinds[0]))

static struct sim *stationary(const struct kind *k, int start, uint64_t seed)
{
	struct sim *s = sim_new(&resize_weir, start, 256);

	s->seed += seed * 7919;
	s->arrivals_per_s = k->per_s;
	s->cpu_ns = k->cpu_ms * ms;
	s->block_ns = k->block_ms * ms;
	return s;
}

static void test_keeps_still(void)
{
	for (int k = 0; k < KINDS; k++) {
		for (uint64_t seed = 0; seed < 5; seed++) {
			struct sim *s = stationary(&kinds[k], 1, seed);
			sim_run(s, 40);
			sim_forget_moves(s);
			sim_run(s, 300);
			SIM_EXPECT(s, s->reversals <= kinds[k].reversals);
			SIM_EXPECT(s, s->least >= kinds[k].least && s->most <= kinds[k].most);
			SIM_EXPECT(s, s->v.queue_length < 200);
			sim_free(s);
		}
	}
}

static void test_converges_from_anywhere(void)
{
	static const int starts[] = {1, 2, 5, 20, 50, 256};

	for (int k = 0; k < KINDS; k++) {
		for (int i = 0; i < 6; i++) {
			struct sim *s = stationary(&kinds[k], starts[i], 1);
			sim_run(s, 240);
			/* From above it stops at up to a quarter too many threads, which is not
			 * worth a change. */
			int most = kinds[k].most * 4 / 3 + 1;
			SIM_EXPECT(s, s->v.target >= kinds[k].least && s->v.target <= most);
			SIM_EXPECT(s, s->reversals <= 2 + kinds[k].reversals);
			sim_free(s);
		}
	}
}

static void test_square_load(void)
{
	struct sim *s = sim_new(&resize_weir, 1, 256);

	s->cpu_ns = 0.1 * ms;
	s->block_ns = 19.9 * ms;
	for (int i = 0; i < 20; i++) {
		if (i == 6)
			sim_forget_moves(s);
		s->arrivals_per_s = i % 2 ? 1500 : 300;
		sim_run(s, 5);
	}
	SIM_EXPECT(s, s->reversals == 0);
	SIM_EXPECT(s, s->least >= 30 && s->most <= 48);
	sim_free(s);
}

/* ---- limits, messages ---- */

static void test_refused_work_counts(void)
{
	struct sim *s = sim_new(&resize_weir, 1, 256);

	s->v.queue_limit = 5;
	s->arrivals_per_s = 1000;
	s->cpu_ns = 0.1 * ms;
	s->block_ns = 19.9 * ms;
	sim_run(s, 10);
	SIM_EXPECT(s, s->v.target >= 20);
	sim_free(s);
}

static void test_says_why_and_what_limits(void)
{
	struct sim *s = sim_new(&resize_weir, 1, 8);
	struct weir_decision d[64];

	s->arrivals_per_s = 912;
	s->cpu_ns = 0.1 * ms;
	s->block_ns = 19.9 * ms;
	sim_run(s, 30);
	int n = journal_read(control_journal(s->control), d, 64);
	SIM_EXPECT(s, s->v.target == 8);
	CU_ASSERT_TRUE_FATAL(n >= 2);
	CU_ASSERT_STRING_EQUAL(d[0].action, "limit");
	CU_ASSERT_PTR_NOT_NULL(strstr(d[0].limit, ", max 8"));
	CU_ASSERT_STRING_EQUAL(d[n - 1].actor, "weir");
	CU_ASSERT_STRING_EQUAL(d[n - 1].action, "grow");
	double need = 0, rate = 0, cpu = 0, blocked = 0;
	CU_ASSERT_EQUAL(
	    sscanf(d[n - 1].rule, "need %lf threads: %lf/s x (%lf ms CPU + %lf ms blocked) / 0.8",
		&need, &rate, &cpu, &blocked),
	    4);
	CU_ASSERT_DOUBLE_EQUAL(need, rate * (cpu + blocked) / 1000 / 0.8, 0.2);
	CU_ASSERT_TRUE(n < 12); /* the row at the maximum appears once, not once per window */
	sim_free(s);
}

/* If cores are the limit, the policy reports how many threads can help. */
static void test_says_how_many_can_help(void)
{
	struct sim *s = sim_new(&resize_weir, 1, 256);
	struct weir_decision d[64];
	int said = 0;

	s->arrivals_per_s = 1000;
	s->cpu_ns = 4 * ms;
	s->block_ns = 4 * ms;
	sim_run(s, 30);
	int n = journal_read(control_journal(s->control), d, 64);
	for (int i = 0; i < n; i++) {
		double need = 0;
		int help = 0;
		if (strcmp(d[i].action, "grow") != 0)
			continue;
		CU_ASSERT(strncmp(d[i].rule, "need ", 5) == 0);
		if (sscanf(d[i].rule, "need %lf threads, %d can help: ", &need, &help) != 2)
			continue;
		CU_ASSERT(help < need && d[i].to <= help);
		said++;
	}
	SIM_EXPECT(s, said > 0);
	sim_free(s);
}

static void test_budget(void)
{
	struct sim *s = sim_new(&resize_weir, 1, 256);

	s->v.budget_left = 5;
	s->arrivals_per_s = 1000;
	s->cpu_ns = 0.1 * ms;
	s->block_ns = 19.9 * ms;
	sim_run(s, 30);
	SIM_EXPECT(s, s->v.target == 6 && s->v.budget_left == 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(sim_decision(s).limit, "thread budget allows 6"));
	sim_free(s);
}

/* The last thread of the budget is worth a try: a cold pool grows as far as it can at once and
 * waits for the result. */
static void test_last_of_the_budget(void)
{
	struct sim *s = sim_new(&resize_weir, 1, 256);
	int wanted = 0;
	double need = 0;

	s->v.budget_left = 1;
	s->arrivals_per_s = 1000;
	s->cpu_ns = 0.1 * ms;
	s->block_ns = 19.9 * ms;
	while (s->v.target == 1 && s->now_ns < 30 * NS_PER_S)
		sim_run(s, 0.1);
	SIM_EXPECT(s, s->v.target == 2 && s->v.budget_left == 0);
	struct weir_decision d = sim_decision(s);
	CU_ASSERT_EQUAL(sscanf(d.limit, "wanted %d, thread budget allows 2", &wanted), 1);
	CU_ASSERT_EQUAL(sscanf(d.rule, "need %lf threads", &need), 1);
	CU_ASSERT(wanted > 2 && wanted <= need + 1);
	sim_free(s);
}

static void test_shrinks_after_the_hold(void)
{
	struct sim *s = stationary(&kinds[1], 1, 0);

	sim_run(s, 60);
	int n = s->v.target;
	s->arrivals_per_s = 0;
	sim_run(s, 14);
	SIM_EXPECT(s, s->v.target == n);
	sim_run(s, 60);
	SIM_EXPECT(s, s->v.target == 1);
	CU_ASSERT_STRING_EQUAL(sim_decision(s).action, "shrink");
	sim_free(s);
}

static void test_no_shrink_before_it_has_looked(void)
{
	struct sim *s = stationary(&kinds[1], 200, 0);

	sim_run(s, 14);
	SIM_EXPECT(s, s->v.target == 200);
	sim_run(s, 10);
	SIM_EXPECT(s, s->v.target < 200);
	sim_free(s);
}

static void test_exclusive_does_not_grow(void)
{
	struct sim *s = sim_new(&resize_weir, 1, 256);

	s->v.useful = 1;
	s->arrivals_per_s = 500;
	s->block_ns = 20 * ms;
	sim_run(s, 20);
	s->jammed = true;
	sim_run(s, 5);
	SIM_EXPECT(s, s->most == 1);
	sim_free(s);
}

/* ---- trials and vetoes ---- */

/* Rules of decisions, newest first: does each hold double, "... no growth for 20 s" after "... for
 * 10 s"? */
static bool holds_double(const struct weir_decision *d, int n)
{
	int want = 10, said = 0;

	for (int i = n; i-- > 0;) {
		const char *at = strstr(d[i].rule, "no growth for ");
		if (!at)
			continue;
		if (atoi(at + strlen("no growth for ")) != want)
			return false;
		want = want * 2 < 160 ? want * 2 : 160;
		said++;
	}
	return said >= 2;
}

/* A database with 4 connections: additional threads only queue for it. */
static void trial_of(bool closed_loop)
{
	struct sim *s = sim_new(&resize_weir, 6, 256);
	struct weir_decision d[64];
	int taken_back = 0;

	s->slots = 4;
	s->arrivals_per_s = closed_loop ? 100 : 800;
	s->closed_loop = closed_loop;
	s->cpu_ns = 0.1 * ms;
	s->block_ns = 10 * ms;
	sim_run(s, 60);
	int n = journal_read(control_journal(s->control), d, 64);
	for (int i = 0; i < n; i++)
		taken_back += strstr(d[i].rule, "reverted") != NULL;
	SIM_EXPECT(s, taken_back >= 2);
	SIM_EXPECT(s, s->v.target <= 12);
	CU_ASSERT_TRUE(holds_double(d, n));
	/* Holds double: 10 + 20 + 40 + 80 s, then 160 s each. */
	sim_run(s, 120);
	sim_forget_moves(s);
	sim_run(s, 320);
	SIM_EXPECT(s, s->reversals <= 6);
	sim_free(s);
}

static void test_growth_that_did_not_help_is_taken_back(void)
{
	trial_of(false);
	trial_of(true);
}

static void test_growth_that_helps_stays(void)
{
	struct sim *s = sim_new(&resize_weir, 1, 256);

	s->closed_loop = true;
	s->arrivals_per_s = 50;
	s->cpu_ns = 0.1 * ms;
	s->block_ns = 20 * ms;
	sim_run(s, 60);
	SIM_EXPECT(s, s->v.target >= 45 && s->reversals == 0);
	sim_free(s);
}

static void test_stall_beats_the_veto(void)
{
	struct sim *s = sim_new(&resize_weir, 4, 64);

	s->cpu_ns = 5 * ms;
	s->arrivals_per_s = 2000;
	sim_run(s, 20);
	SIM_EXPECT(s, s->most == 4);
	s->jammed = true;
	sim_run(s, 1);
	SIM_EXPECT(s, s->v.target > 4);
	CU_ASSERT_PTR_NOT_NULL(strstr(sim_decision(s).rule, "stalled"));
	sim_free(s);
}

static void test_slow_is_not_stalled(void)
{
	struct sim *s = sim_new(&resize_weir, 4, 64);

	/* Four at a time, 1 s each: most of the time nothing completes. */
	s->block_ns = 1000 * ms;
	s->closed_loop = true;
	s->arrivals_per_s = 20;
	s->v.max = 4;
	sim_run(s, 10); /* nothing is known before the first completion */
	uint64_t known = journal_total(control_journal(s->control));
	sim_run(s, 60);
	struct weir_decision d[64];
	int n = journal_read(control_journal(s->control), d, 64), stalls = 0;
	for (int i = 0; i < n; i++)
		stalls += d[i].id > known && strstr(d[i].rule, "stalled");
	SIM_EXPECT(s, stalls == 0);
	sim_free(s);
}

CUNIT_MAIN("resize_weir", {"a cold pool", test_cold},
    {"settles within 3 s of a jump", test_settles}, {"CPU-bound: never over the cap", test_cap},
    {"stalled: grows, and gives back", test_unjams},
    {"wrong policies fail these", test_mutants_fail},
    {"keeps still under steady load", test_keeps_still},
    {"converges from anywhere", test_converges_from_anywhere}, {"square load", test_square_load},
    {"what is refused counts as offered", test_refused_work_counts},
    {"says why, and what limits", test_says_why_and_what_limits},
    {"says how many can help", test_says_how_many_can_help}, {"budget", test_budget},
    {"the last of the budget", test_last_of_the_budget},
    {"shrinks after the hold", test_shrinks_after_the_hold},
    {"no shrink before it has looked", test_no_shrink_before_it_has_looked},
    {"exclusive does not grow", test_exclusive_does_not_grow},
    {"growth that did not help is taken back", test_growth_that_did_not_help_is_taken_back},
    {"growth that helps stays", test_growth_that_helps_stays},
    {"a stall beats the veto", test_stall_beats_the_veto},
    {"slow is not stalled", test_slow_is_not_stalled})
