/* SPDX-License-Identifier: MIT */
/* Laws of next_choose in virtual time: each policy with each gate, many groups drawn by seed. What
 * is checked at each choice is in next_oracle.h. WEIR_NEXT_SEEDS sets the number of groups of each
 * pair. */
#include "sched/next_model.h"

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
			if (getenv("WEIR_NEXT_SEEDS"))
				printf(
				    "%-9s %-7s none %6lu urgent %6lu starved %6lu stay %6lu policy "
				    "%6lu, checked %6lu\n",
				    next_policy_at(p)->name, gates[gate],
				    (unsigned long)sum.by_why[0], (unsigned long)sum.by_why[1],
				    (unsigned long)sum.by_why[2], (unsigned long)sum.by_why[3],
				    (unsigned long)sum.by_why[4],
				    (unsigned long)sum.policy_checked);
		}
}

CUNIT_MAIN("laws of core groups", {"each policy with each gate", test_all_pairs})
