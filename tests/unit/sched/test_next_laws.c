/* SPDX-License-Identifier: MIT */
/* Laws of next_choose in virtual time: each policy with each gate, many groups drawn by seed. What
 * is checked at each choice is in next_oracle.h. WEIR_NEXT_SEEDS sets the number of groups of each
 * pair. */
#include "sched/next_model.h"
#include "sched/next_quick.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static const char *const gates[] = {"all", "arrived", "events", "time", "cutoff"};

#define SEEDS 16

static int seeds(void)
{
	const char *env = getenv("WEIR_NEXT_SEEDS");

	return env ? atoi(env) : SEEDS;
}

static void print_broken(
    const struct model_config *c, const struct model_result *r, enum next_gate gate, int seed)
{
	printf("%s, gate %s, seed %d (%d stages, %d cores, load %.1f): choice %d, core %d: %s\n",
	    c->policy->name, gates[gate], seed, c->n_stages, c->n_cores, c->load, r->choice,
	    r->core, r->broken);
}

static void run_pair(
    const struct next_policy *policy, enum next_gate gate, struct model_result *sum)
{
	for (int seed = 0; seed < seeds(); seed++) {
		struct model_config c = model_draw((uint64_t)seed, policy, gate);
		struct model_result r;

		model_run(&c, &r);
		if (r.broken)
			print_broken(&c, &r, gate, seed);
		CU_ASSERT_PTR_NULL(r.broken);
		CU_ASSERT_EQUAL(r.arrived, r.ended + r.waiting);
		for (int i = 0; i < 5; i++)
			sum->by_why[i] += r.by_why[i];
		sum->policy_checked += r.policy_checked;
		sum->quick += r.quick;
	}
}

/* The runs mean something only if each reason occurs and the policy is checked nearly always. */
static void test_all_pairs(void)
{
	for (int p = 0; next_policy_at(p); p++)
		for (enum next_gate gate = NEXT_ALL; gate <= NEXT_CUTOFF; gate++) {
			struct model_result sum = {.broken = NULL};

			run_pair(next_policy_at(p), gate, &sum);
			for (int i = 0; i < 5; i++)
				CU_ASSERT(sum.by_why[i] > 100);
			CU_ASSERT(10 * sum.policy_checked > 9 * sum.by_why[NEXT_POLICY] ||
				  next_policy_at(p) == &next_color);
			CU_ASSERT(2 * sum.policy_checked > sum.by_why[NEXT_POLICY]);
			CU_ASSERT((sum.quick > 500) == (gate == NEXT_ALL));
			CU_ASSERT(gate == NEXT_ALL || sum.quick == 0);
			if (getenv("WEIR_NEXT_SEEDS"))
				printf(
				    "%-9s %-7s none %6lu urgent %6lu starved %6lu stay %6lu policy "
				    "%6lu, checked %6lu, quick %6lu\n",
				    next_policy_at(p)->name, gates[gate],
				    (unsigned long)sum.by_why[0], (unsigned long)sum.by_why[1],
				    (unsigned long)sum.by_why[2], (unsigned long)sum.by_why[3],
				    (unsigned long)sum.by_why[4], (unsigned long)sum.policy_checked,
				    (unsigned long)sum.quick);
		}
}

static struct next_core core;
static struct next_limits limits;
static struct next_stage stage[2] = {{.length = 9, .oldest_ns = 1000}};
static struct next_view view = {.n = 2, .ready = 1, .stage = stage, .now_ns = 1000};

static bool quick_may(void)
{
	struct next_core copy = core;
	bool begins;

	next_adapt(&core, &limits);
	next_adapt(&copy, &limits);
	return next_quick(&copy, &view, &begins) == 0;
}

static enum next_why why(void)
{
	return next_choose(&core, &limits, &view).why;
}

/* After a change of the limits, next_choose may be needed once. */
static void test_quick_adapts(void)
{
	next_core_init(&core, &next_srpt);
	limits = (struct next_limits){.gate = NEXT_EVENTS, .gate_events = 5};
	view.order = &(struct next_order){.n_table = 0};
	CU_ASSERT_EQUAL(why(), NEXT_POLICY);
	CU_ASSERT(!quick_may());
	limits.gate = NEXT_ALL; /* but the visit has the other */
	CU_ASSERT(!quick_may());
	CU_ASSERT_EQUAL(why(), NEXT_POLICY);
	CU_ASSERT(quick_may());
	limits.starve_ns = 1600;
	CU_ASSERT(!quick_may());
	CU_ASSERT_EQUAL(why(), NEXT_STAY);
	CU_ASSERT(quick_may());
	view.now_ns += 100;
	CU_ASSERT(!quick_may());
	limits.starve_ns = 0;
	CU_ASSERT(quick_may());
	limits.urgent_set = 2;
	CU_ASSERT(!quick_may());
	limits.urgent_set = 0;
	CU_ASSERT(quick_may());
	next_took(&core, 0, 0, 0); /* the batch was empty: the visit has ended */
	CU_ASSERT(!quick_may());
}

/* The stage is no longer urgent, but the urgent visit has not ended. */
static void test_quick_after_urgent(void)
{
	next_core_init(&core, &next_srpt);
	limits =
	    (struct next_limits){.gate = NEXT_ALL, .urgent_set = 1, .urgent[0] = {.events = 1}};
	view.order = &(struct next_order){.n_table = 0};
	CU_ASSERT_EQUAL(why(), NEXT_URGENT);
	limits.urgent_set = 0;
	CU_ASSERT(!quick_may());
	CU_ASSERT_EQUAL(why(), NEXT_URGENT);
	view.ready = 0;
	CU_ASSERT_EQUAL(why(), NEXT_NONE);
	view.ready = 1;
	CU_ASSERT(quick_may());
}

CUNIT_MAIN("laws of core groups", {"each policy with each gate", test_all_pairs},
    {"the short way adapts", test_quick_adapts},
    {"the short way and urgent visits", test_quick_after_urgent})
