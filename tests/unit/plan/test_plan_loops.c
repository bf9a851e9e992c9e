/* SPDX-License-Identifier: MIT */
/* Types along links that are marked as loops, but lead to stages that nothing else leads to. */
#include "fixture/graph/probes.h"
#include "plan_types.h"

static const struct weir_stage_ops through_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.through",
    .summary = "passes on events of any type",
    .outlets = pass_outlets,
    .handle = pass_handle};

/* src -> a -> b -> c -> d, where the link from a to b is marked as a loop. */
static int check(const char *d, struct weir_errs *errs)
{
	struct weir_spec *spec = weir_spec_new("loops");

	memset(errs, 0, sizeof(*errs));
	fixture_stage(spec, "src", "t.source", "a");
	weir_spec_link(fixture_stage(spec, "a", "t.through", NULL), "out", "b", true);
	fixture_stage(spec, "b", "t.through", "c");
	fixture_stage(spec, "c", "t.through", "d");
	fixture_stage(spec, "d", d, NULL);
	int rc = weir_spec_check(spec, errs);
	weir_spec_free(spec);
	return rc;
}

static void test_prepare(void)
{
	fixture_register(&plan_source_ops);
	fixture_register(&plan_other_ops);
	fixture_register(&through_ops);
	fixture_register(&end_ops);
}

static void test_right_type(void)
{
	struct weir_errs errs;

	CU_ASSERT_EQUAL(check("t.end", &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 0);
}

static void test_wrong_type(void)
{
	struct weir_errs errs;

	CU_ASSERT_NOT_EQUAL(check("t.other", &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 1);
	CU_ASSERT_STRING_EQUAL(
	    errs.err[0].text, "'out' of stage 'c' carries probe, but 'd' (t.other) takes other");
}

CUNIT_MAIN("plan_loops", {"types are known", test_prepare}, {"the right type", test_right_type},
    {"a wrong type", test_wrong_type})
