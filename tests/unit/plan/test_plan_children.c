/* SPDX-License-Identifier: MIT */
/* Cycles of awaits: children that come back to the stage that awaits them. */
#include "fixture/graph/probes.h"
#include "plan_types.h"

static const struct weir_outlet child_outlets[] = {
    {"child", &probe_type, true, ""}, {"out", WEIR_ANY_EVENT, true, ""}, {.name = NULL}};
static const struct weir_stage_ops parent_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.parent",
    .summary = "awaits children",
    .accepts = &probe_type,
    .outlets = child_outlets,
    .children = 1,
    .handle = pass_handle};
static const struct weir_stage_ops tree_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.tree",
    .summary = "walks a tree",
    .flags = WEIR_STAGE_RECURSES,
    .accepts = &probe_type,
    .outlets = child_outlets,
    .children = 1,
    .handle = pass_handle};

static const struct weir_outlet second_outlets[] = {
    {"own", WEIR_ANY_EVENT, true, ""}, {"child", &probe_type, true, ""}, {.name = NULL}};
static const struct weir_stage_ops second_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.second",
    .summary = "awaits what it sends to its second outlet",
    .accepts = &probe_type,
    .outlets = second_outlets,
    .children = 2,
    .handle = pass_handle};

static const struct weir_event_type plain_type = {
    .name = "plain", .size = sizeof(struct weir_event), .finish = probe_finish};
static const struct weir_outlet plain_outlets[] = {
    {"child", &plain_type, true, ""}, {.name = NULL}};
static const struct weir_stage_ops plain_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.plain",
    .summary = "awaits children without an operation",
    .outlets = plain_outlets,
    .children = 1,
    .handle = pass_handle};

static struct weir_errs errs;

/* a sends children to b, and other events to c; b sends events to `back`, by a loop. */
static int check(const char *use, const char *back)
{
	struct weir_spec *spec = weir_spec_new("children");

	memset(&errs, 0, sizeof(errs));
	fixture_stage(spec, "src", "t.source", "a");
	struct weir_stage_spec *a = fixture_stage(spec, "a", use, NULL);
	weir_spec_link(a, "child", "b", false);
	weir_spec_link(a, "out", "c", false);
	weir_spec_link(fixture_stage(spec, "b", "t.pass", NULL), "out", back, true);
	fixture_stage(spec, "c", "t.end", NULL);
	int rc = weir_spec_check(spec, &errs);
	weir_spec_free(spec);
	return rc;
}

static void test_cycle(void)
{
	CU_ASSERT_NOT_EQUAL(check("t.parent", "a"), 0);
	CU_ASSERT_EQUAL(errs.total, 1);
	CU_ASSERT_STRING_EQUAL(errs.err[0].text,
	    "the children of stage 'a' come back to it (a > b > a): each would await others for "
	    "ever");
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint,
	    "send them elsewhere; a type that ends the recursion sets WEIR_STAGE_RECURSES");
}

/* The second outlet is awaited, and a way that ends is not part of the message. */
static void test_second_outlet(void)
{
	struct weir_spec *spec = weir_spec_new("children");

	memset(&errs, 0, sizeof(errs));
	fixture_stage(spec, "src", "t.source", "a");
	struct weir_stage_spec *a = fixture_stage(spec, "a", "t.second", NULL);
	weir_spec_link(a, "own", "c", false);
	weir_spec_link(a, "child", "b", false);
	struct weir_stage_spec *b = fixture_stage(spec, "b", "t.parent", NULL);
	weir_spec_link(b, "child", "c", false);
	weir_spec_link(b, "out", "a", true);
	fixture_stage(spec, "c", "t.end", NULL);
	CU_ASSERT_NOT_EQUAL(weir_spec_check(spec, &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 1);
	CU_ASSERT_STRING_EQUAL(errs.err[0].text,
	    "the children of stage 'a' come back to it (a > b > a): each would await others for "
	    "ever");
	weir_spec_free(spec);
}

static void test_no_cycle(void)
{
	CU_ASSERT_EQUAL(check("t.parent", "b"), 0); /* a cycle behind it */
	CU_ASSERT_EQUAL(check("t.parent", "c"), 0);
	CU_ASSERT_EQUAL(check("t.tree", "a"), 0);
}

static void test_type(void)
{
	struct weir_err err = {0};

	CU_ASSERT_EQUAL(weir_stage_register(&plain_ops, &err), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(err.text,
	    "stage type 't.plain': outlet 'child' is for children, but plain has no struct weir_op "
	    "(weir_event_type.op)");
}

static void test_width(void)
{
	static const struct weir_stage_ops wide_ops = {.abi = WEIR_STAGE_ABI,
	    .name = "t.wide",
	    .summary = "recurses, with a width",
	    .flags = WEIR_STAGE_RECURSES | WEIR_STAGE_HOLDS,
	    .outlets = child_outlets,
	    .children = 1,
	    .handle = pass_handle};
	struct weir_err err = {0};

	CU_ASSERT_EQUAL(weir_stage_register(&wide_ops, &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "it cannot have a width"));
}

static void test_prepare(void)
{
	fixture_register(&plan_source_ops);
	fixture_register(&parent_ops);
	fixture_register(&tree_ops);
	fixture_register(&second_ops);
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN("plan_children", {"types are known", test_prepare}, {"a cycle", test_cycle},
    {"the second outlet", test_second_outlet}, {"no cycle", test_no_cycle},
    {"a type without an operation", test_type}, {"a width", test_width})
