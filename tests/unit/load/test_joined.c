/* SPDX-License-Identifier: MIT */
/* Runs joined into one: phases, seconds and totals of both, and nothing is lost. */
#include "cunit_main.h"

#include <stdlib.h>
#include <string.h>

#include "load/joined.h"
#include "load/judge.h"

static struct load_result run_of(
    int n_phases, size_t n_seconds, int64_t started_ns, uint64_t offered)
{
	struct load_result r = {.started_unix_ns = started_ns,
	    .took_ns = (int64_t)n_seconds * 1000000000,
	    .connects = 3,
	    .n_phases = n_phases,
	    .n_seconds = n_seconds};

	r.phase = calloc((size_t)n_phases, sizeof(*r.phase));
	r.second = calloc(n_seconds, sizeof(*r.second));
	for (int i = 0; i < n_phases; i++) {
		struct load_class_result *c = &r.phase[i].class[0];
		c->offered = offered + (uint64_t)i;
		c->latency[LOAD_OK] = calloc(1, sizeof(struct hdr));
		hdr_add(c->latency[LOAD_OK], 1000000, c->offered);
	}
	for (size_t i = 0; i < n_seconds; i++)
		r.second[i] =
		    (struct load_second){.at_ns = (int64_t)i * 1000000000, .phase = n_phases - 1};
	return r;
}

static void two_become_one(void)
{
	static struct load_plan plan = {.n_classes = 1};
	struct load_phase phase[2] = {{.name = "one"}, {.name = "two"}};
	struct load_result all = {0}, a = run_of(2, 3, 1000, 10), b = run_of(1, 2, 5000001000, 20);

	CU_ASSERT(load_join(&plan, &all, phase, &a) == 0);
	CU_ASSERT(load_join(&plan, &all, &phase[1], &b) == 0);
	CU_ASSERT(a.phase == NULL && b.second == NULL);
	CU_ASSERT_FATAL(all.n_phases == 3 && plan.n_phases == 3 && all.n_seconds == 5);
	CU_ASSERT_STRING_EQUAL(plan.phase[2].name, "two");
	CU_ASSERT(all.phase[1].class[0].offered == 11 && all.phase[2].class[0].offered == 20);
	CU_ASSERT(all.phase[2].class[0].latency[LOAD_OK]->total == 20);
	CU_ASSERT(all.second[3].at_ns == 5000000000 && all.second[3].phase == 2);
	CU_ASSERT(all.took_ns == 7000000000);
	CU_ASSERT(all.connects == 6);
	load_result_fini(&all);
}

/* A late phase does not count, and does not void the others. */
static void a_late_run_voids_itself(void)
{
	static struct load_plan plan = {.n_classes = 1};
	struct load_phase phase = {.name = "one", .from_per_s = 10, .to_per_s = 10};
	struct load_result all = {0}, a = run_of(1, 1, 0, 1), b = run_of(1, 1, 0, 1);

	a.phase[0].took_ns = b.phase[0].took_ns = 1000000000;
	hdr_add(&a.phase[0].lag, 7000000, 10);
	a.phase[0].late = true;
	b.stopped = true;
	CU_ASSERT(load_join(&plan, &all, &phase, &a) == 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(all.voided, "lag was 7.0 ms, above 1 ms, in phase 'one'"));
	CU_ASSERT_FALSE(all.stopped);
	CU_ASSERT(load_join(&plan, &all, &phase, &b) == 0);
	CU_ASSERT_STRING_EQUAL(all.voided, "");
	CU_ASSERT(!load_phase_counts(&plan, &all, 0) && load_phase_counts(&plan, &all, 1));
	CU_ASSERT(all.stopped);
	load_result_fini(&all);
}

static void too_many_phases_are_refused_and_freed(void)
{
	static struct load_plan plan = {.n_classes = 1, .n_phases = LOAD_PHASES_MAX};
	struct load_phase phase = {.name = "one"};
	struct load_result all = {0}, a = run_of(1, 1, 0, 1);

	CU_ASSERT(load_join(&plan, &all, &phase, &a) == WEIR_EINVAL);
	CU_ASSERT(a.phase == NULL && a.n_phases == 0);
	CU_ASSERT(all.n_phases == 0 && plan.n_phases == LOAD_PHASES_MAX);
}

CUNIT_MAIN("joined", {"two become one", two_become_one},
    {"a late run voids itself", a_late_run_voids_itself},
    {"too many phases are refused and freed", too_many_phases_are_refused_and_freed})
