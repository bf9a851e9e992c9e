/* SPDX-License-Identifier: MIT */
/* Writing values into a file without changing any other byte (weir save). */
#include "loading.h"

static struct weir_errs edit_errs;

/* `before` with one change applied; "" if it fails, with the errors in edit_errs. Valid until the
 * next call. */
static const char *edited(
    const char *before, const char *stage, const char *knob, const char *value)
{
	static char result[4096];
	const struct config_change change = {stage, knob, value, false};
	char *text = NULL;
	size_t n = 0;

	write_file("main.yaml", before);
	memset(&edit_errs, 0, sizeof(edit_errs));
	int rc = config_edit("main.yaml", &change, 1, &text, &n, &edit_errs);
	CU_ASSERT_EQUAL(rc == 0, edit_errs.total == 0);
	snprintf(result, sizeof(result), "%s", rc == 0 ? text : "");
	CU_ASSERT(rc != 0 || strlen(text) == n);
	free(text);
	return result;
}

static void test_values_are_replaced(void)
{
	const char *folder = enter_folder();

	CU_ASSERT_STRING_EQUAL(edited("stages: # all\n"
				      "  a:\n"
				      "    threads:   { max:  4, min: 1 } # four\n",
				   "a", "threads.max", "16"),
	    "stages: # all\n"
	    "  a:\n"
	    "    threads:   { max:  16, min: 1 } # four\n");
	CU_ASSERT_STRING_EQUAL(
	    edited("stages:\n  a:\n    with: { x: \"4 KiB\" }\n", "a", "with.x", "8KiB"),
	    "stages:\n  a:\n    with: { x: \"8KiB\" }\n");
	CU_ASSERT_STRING_EQUAL(
	    edited("stages: {a: {slo: '1s'}}", "a", "slo", "20ms"), "stages: {a: {slo: '20ms'}}");
	CU_ASSERT_STRING_EQUAL(
	    edited("stages:\r\n  a:\r\n    slo: 1s\r\n    to: b\r\n", "a", "slo", "20ms"),
	    "stages:\r\n  a:\r\n    slo: 20ms\r\n    to: b\r\n");
	/* Columns count bytes, not characters. */
	CU_ASSERT_STRING_EQUAL(edited("stages: { \"\xc3\xa4\": { use: \"\xc3\xb6\", slo: 1s } }\n",
				   "\xc3\xa4", "slo", "2s"),
	    "stages: { \"\xc3\xa4\": { use: \"\xc3\xb6\", slo: 2s } }\n");
	CU_ASSERT_STRING_EQUAL(
	    edited("stages: { a: { with: { body: x } } }\n", "a", "with.body", "on: {1}\n"),
	    "stages: { a: { with: { body: \"on: {1}\\n\" } } }\n");
	leave_folder(folder);
}

static void test_values_are_added(void)
{
	const char *folder = enter_folder();

	CU_ASSERT_STRING_EQUAL(edited("stages:\n  a:\n    use: x # why\n    with:\n      b: |\n"
				      "        text\n  # end\n",
				   "a", "threads.max", "8"),
	    "stages:\n  a:\n    use: x # why\n    threads: { max: 8 }\n    with:\n      b: |\n"
	    "        text\n  # end\n");
	CU_ASSERT_STRING_EQUAL(edited("stages:\n  a:\n    use: x\n    threads:\n      min: 1", "a",
				   "threads.max", "8"),
	    "stages:\n  a:\n    use: x\n    threads:\n      min: 1\n      max: 8");
	CU_ASSERT_STRING_EQUAL(
	    edited("stages: { a: { use: x, threads: {min: 1} } }\n", "a", "threads.max", "8"),
	    "stages: { a: { use: x, threads: {min: 1, max: 8} } }\n");
	CU_ASSERT_STRING_EQUAL(
	    edited("stages: { a: { use: x, to: {b: c} } }\n", "a", "queue.limit", "8"),
	    "stages: { a: { queue: { limit: 8 }, use: x, to: {b: c} } }\n");
	CU_ASSERT_STRING_EQUAL(
	    edited("stages: { a: { use: x, threads: {} } }\n", "a", "threads.max", "8"),
	    "stages: { a: { use: x, threads: { max: 8} } }\n");
	leave_folder(folder);
}

static void refused(const char *text, const char *knob, int line, int col, const char *why)
{
	CU_ASSERT_STRING_EQUAL(edited(text, "a", knob, "8"), "");
	CU_ASSERT_EQUAL(edit_errs.total, 1);
	CU_ASSERT_EQUAL(edit_errs.err[0].line, line);
	CU_ASSERT_EQUAL(edit_errs.err[0].col, col);
	CU_ASSERT_PTR_NOT_NULL(strstr(edit_errs.err[0].text, why));
}

static void test_what_has_no_place(void)
{
	const char *folder = enter_folder();

	refused("stages: { a: { slo: \"${X:-1s}\" } }\n", "slo", 1, 21, "${}");
	refused("stages: { a: { threads: 4 } }\n", "threads.max", 1, 25, "sets several knobs");
	refused("include: b.yaml\n", "slo", 1, 10, "included");
	refused("stages: { b: { slo: 1s } }\n", "slo", 1, 9, "no stage 'a'");
	refused("stages:\n  a:\n    slo:\n", "slo", 3, 9, "no value here");
	refused("stages:\n  a:\n    with:\n      body: |\n        x\n", "with.body", 4, 13,
	    "more than one line");
	refused("stages: { a: { slo: &x 1s } }\n", "slo", 1, 21, "anchors");
	refused("stages:\n  a:\n    to:\n      x: y\n", "slo", 3, 5, "not clear where");
	leave_folder(folder);
}

CUNIT_MAIN("edit", {"values are replaced", test_values_are_replaced},
    {"values are added", test_values_are_added}, {"what has no place", test_what_has_no_place})
