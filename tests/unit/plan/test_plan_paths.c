/* SPDX-License-Identifier: MIT */
/* Names of stages that are paths: `--set b.admission.mode=off` must not be able to mean two
 * things. */
#include "fixture/graph/probes.h"
#include "plan_types.h"

static void test_prepare(void)
{
	fixture_register(&plan_source_ops);
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

/* src -> b -> the stage `name`, whose position is line 7. */
static int check(const char *name, struct weir_errs *errs)
{
	struct weir_spec *spec = weir_spec_new("paths");

	memset(errs, 0, sizeof(*errs));
	fixture_stage(spec, "src", "t.source", "b");
	fixture_stage(spec, "b", "t.pass", name);
	fixture_stage(spec, name, "t.end", NULL)->mark =
	    (struct weir_mark){.file = "x.yaml", .line = 7, .col = 3};
	int rc = weir_spec_check(spec, errs);
	weir_spec_free(spec);
	return rc;
}

static void test_refused(void)
{
	static const struct {
		const char *name, *text;
	} cases[] = {
	    {"b.admission",
		"the name of stage 'b.admission' is also the path of 'admission:' of stage 'b'"},
	    {"b.threads",
		"the name of stage 'b.threads' is also the path of 'threads:' of stage 'b'"},
	    {"b.slo", "the name of stage 'b.slo' is also the path of 'slo:' of stage 'b'"},
	    {"b.with", "the name of stage 'b.with' is also the path of 'with:' of stage 'b'"},
	    {"b.admission.mode",
		"the name of stage 'b.admission.mode' is also the path of 'admission:' of stage "
		"'b'"},
	};
	struct weir_errs errs;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CU_ASSERT_NOT_EQUAL(check(cases[i].name, &errs), 0);
		CU_ASSERT_EQUAL(errs.total, 1);
		CU_ASSERT_STRING_EQUAL(errs.err[0].text, cases[i].text);
		CU_ASSERT_EQUAL(errs.err[0].line, 7);
	}
}

static void test_accepted(void)
{
	static const char *const names[] = {
	    "b.v2", "b.admissions", "b.admission-2", "b.v2.admission", "bb.admission", "admission"};
	struct weir_errs errs;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CU_ASSERT_EQUAL(check(names[i], &errs), 0);
}

CUNIT_MAIN("plan: names that are paths", {"types are known", test_prepare},
    {"refused", test_refused}, {"accepted", test_accepted})
