/* SPDX-License-Identifier: MIT */
/* The names that knobs of policies may have: those of the tables of policies, in their order. */
#include "cunit_main.h"

#include <string.h>

#include <weir/spec.h>

#include "admission/admission.h"
#include "control/batch.h"
#include "control/resize.h"
#include "control/width.h"
#include "plan/policies.h"
#include "sched/next.h"
#include "sched/policy.h"

/* Name number `i` of the row is `name` with `help`; a row past the last one is NULL. */
static void is_option(
    const struct weir_knob *table, const char *knob, int i, const char *name, const char *help)
{
	const struct weir_knob *row = weir_knob_find(table, knob);
	struct weir_option option = {0};

	CU_ASSERT_EQUAL(row->option(i, &option), name != NULL);
	if (!name)
		return;
	CU_ASSERT_STRING_EQUAL(option.name, name);
	CU_ASSERT_STRING_EQUAL(option.help, help);
}

static void test_admission(void)
{
	int i = 0;

	is_option(
	    weir_admission_knobs, "policy", 0, "auto", "weir where there is a queue, else none");
	for (; admission_at(i); i++)
		is_option(weir_admission_knobs, "policy", i + 1, admission_at(i)->name,
		    admission_at(i)->help);
	is_option(weir_admission_knobs, "policy", i + 1, NULL, NULL);
	is_option(weir_admission_knobs, "policy", -1, NULL, NULL);
}

static void test_others(void)
{
	int i, k, n, w;

	for (i = 0; resize_at(i); i++)
		is_option(weir_threads_knobs, "policy", i, resize_at(i)->name, resize_at(i)->help);
	is_option(weir_threads_knobs, "policy", i, NULL, NULL);
	for (k = 0; batch_at(k); k++)
		is_option(weir_cohort_knobs, "policy", k, batch_at(k)->name, batch_at(k)->help);
	is_option(weir_cohort_knobs, "policy", k, NULL, NULL);
	for (w = 0; width_at(w); w++)
		is_option(weir_width_knobs, "policy", w, width_at(w)->name, width_at(w)->help);
	is_option(weir_width_knobs, "policy", w, NULL, NULL);
	for (n = 0; sched_policy_at(n); n++)
		is_option(weir_group_knobs, "schedule", n, sched_policy_at(n)->name,
		    sched_policy_at(n)->help);
	for (i = 0; next_policy_at(i); i++)
		is_option(weir_group_knobs, "schedule", n + i, next_policy_at(i)->name,
		    next_policy_at(i)->help);
	is_option(weir_group_knobs, "schedule", n + i, NULL, NULL);
}

/* The default of each such row is one of its names. */
static void test_defaults(void)
{
	const struct weir_knob *const rows[] = {weir_knob_find(weir_admission_knobs, "policy"),
	    weir_knob_find(weir_threads_knobs, "policy"),
	    weir_knob_find(weir_cohort_knobs, "policy"), weir_knob_find(weir_width_knobs, "policy"),
	    weir_knob_find(weir_group_knobs, "schedule")};

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct weir_option option;
		bool found = false;
		for (int i = 0; rows[r]->option(i, &option); i++)
			found |= strcmp(option.name, rows[r]->def) == 0;
		CU_ASSERT_TRUE(found);
	}
}

static void test_hint(void)
{
	char hint[POLICIES_HINT_BYTES];

	CU_ASSERT_STRING_EQUAL(
	    policies_hint(policies_admission, "thresold", hint), "did you mean 'threshold'?");
	CU_ASSERT_STRING_EQUAL(
	    policies_hint(policies_resize, "luck", hint), "there are static, seda, weir");
	CU_ASSERT_TRUE(strncmp(policies_hint(policies_admission, "hope", hint),
			   "there are auto, none, ", 22) == 0);
}

CUNIT_MAIN("policies", {"admission", test_admission}, {"others", test_others},
    {"defaults", test_defaults}, {"hint", test_hint})
