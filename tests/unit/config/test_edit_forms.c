/* SPDX-License-Identifier: MIT */
/* Changes of a file in every form that a stage can be written, and the reasons and hints where a
 * value has no place. */
#include "loading.h"

static struct weir_errs edit_errs;

/* `before` with changes applied; NULL if one fails, with the errors in edit_errs. Valid until the
 * next call. */
static const char *edited_all(const char *before, const struct config_change *change, int n)
{
	static char *text;
	size_t size = 0;

	free(text);
	text = NULL;
	if (before)
		write_file("main.yaml", before);
	edit_errs = (struct weir_errs){0};
	int rc = config_edit("main.yaml", change, n, &text, &size, &edit_errs);
	CU_ASSERT_EQUAL(rc == 0, edit_errs.total == 0);
	CU_ASSERT_EQUAL(rc == 0, text != NULL);
	CU_ASSERT(!text || strlen(text) == size);
	return text;
}

static const char *edited(const char *before, const char *knob, const char *value)
{
	return edited_all(before, &(struct config_change){"a", knob, value, false}, 1);
}

/* Numbers are written as they are, with the quotes of the former value; other texts get quotes
 * where YAML needs them. */
static void test_values(void)
{
	static const char *const row[][3] = {/* before, value, after */
	    {"1", "16", "16"}, {"1", "8KiB", "8KiB"}, {"1", "1.5ms", "1.5ms"}, {"1", "50%", "50%"},
	    {"1", "0", "0"}, {"1", "1_0", "1_0"}, {"'1'", "9", "'9'"}, {"\"1\"", "9s", "\"9s\""},
	    {"'x'", "9", "'9'"}, {"1", "auto", "auto"}, {"1", "true", "\"true\""},
	    {"'1'", "word", "word"}, {"\"1\"", "word", "word"}, {"1", "", "\"\""},
	    {"1", "-1", "\"-1\""}, {"1", "1 2", "\"1 2\""}, {"1", "1:2", "\"1:2\""},
	    {"1", ".5", "\".5\""}, {"1", "./x", "./x"}, {"1", "a\"b\\", "\"a\\\"b\\\\\""},
	    {"1", "a\nb\t\x7f", "\"a\\nb\\x09\\x7f\""}, {"1", "\xc3\xa4", "\"\xc3\xa4\""}};
	const char *folder = enter_folder();
	char before[100], after[100];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		snprintf(before, sizeof(before), "stages: { a: { with: { x: %s } } }\n", row[i][0]);
		snprintf(after, sizeof(after), "stages: { a: { with: { x: %s } } }\n", row[i][2]);
		CU_ASSERT_STRING_EQUAL(edited(before, "with.x", row[i][1]), after);
	}
	leave_folder(folder);
}

/* Each row: a stage, a knob that is set to 8, and the stage with it. */
static void test_places(void)
{
	static const char *const row[][3] = {
	    /* at several depths of a flow map */
	    {"  a: { use: x }\n", "slo", "  a: { use: x, slo: 8 }\n"},
	    {"  a: {}\n", "slo", "  a: { slo: 8}\n"},
	    {"  a: { use: x }\n", "threads.max", "  a: { use: x, threads: { max: 8 } }\n"},
	    {"  a: { use: x }\n", "with.limit.rate",
		"  a: { use: x, with: { limit: { rate: 8 } } }\n"},
	    {"  a: { with: { limit: { b: 1 } } }\n", "with.limit.rate",
		"  a: { with: { limit: { b: 1, rate: 8 } } }\n"},
	    {"  a: { with: { limit.rate: 1 } }\n", "with.limit.rate",
		"  a: { with: { limit.rate: 8 } }\n"},
	    {"  a: { to: [b] }\n", "slo", "  a: { slo: 8, to: [b] }\n"},
	    {"  a: { b: \"x\ny\" }\n", "slo", "  a: { slo: 8, b: \"x\ny\" }\n"},
	    /* in a block: behind the last entry of one line, indented like the first */
	    {"  a:\n    use: x\n    to: y\n", "slo", "  a:\n    use: x\n    to: y\n    slo: 8\n"},
	    {"  a:\n    use: x\n    to: [y]\n", "slo",
		"  a:\n    use: x\n    slo: 8\n    to: [y]\n"},
	    {"  a:\n    use:\n      x\n    to: y\n    with: {}\n", "slo",
		"  a:\n    use:\n      x\n    to: y\n    slo: 8\n    with: {}\n"},
	    {"  a:\r\n    use: x\r\n", "slo", "  a:\r\n    use: x\r\n    slo: 8\r\n"},
	    {"  a:\n    use: x # why\n\n", "slo", "  a:\n    use: x # why\n    slo: 8\n\n"},
	    {"  a:\n    use: x", "slo", "  a:\n    use: x\n    slo: 8"},
	    {"  a:\n    use: x\n    with:\n      b: 1\n  c: {}\n", "with.x",
		"  a:\n    use: x\n    with:\n      b: 1\n      x: 8\n  c: {}\n"},
	};
	const char *folder = enter_folder();
	char before[200], after[200];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		snprintf(before, sizeof(before), "weir: 1\nstages:\n%s", row[i][0]);
		snprintf(after, sizeof(after), "weir: 1\nstages:\n%s", row[i][2]);
		const char *found = edited(before, row[i][1], "8");
		CU_ASSERT_PTR_NOT_NULL_FATAL(found);
		if (strcmp(found, after) != 0)
			fprintf(stderr, "expected\n%sbut found\n%s", after, found);
		CU_ASSERT_STRING_EQUAL(found, after);
	}
	leave_folder(folder);
}

/* Several changes are made in their order; after a failure there is no text. */
static void test_several(void)
{
	static const struct config_change both[] = {{"a", "slo", "1s", false},
	    {"b", "slo", "2s", false}, {"a", "slo", "3s", false}, {"a", "key", "k", false}};
	static const struct config_change bad[] = {
	    {"a", "slo", "1s", false}, {"c", "slo", "2s", false}};
	static const char before[] = "stages: { a: { use: x }, b: { slo: 1s } }\n";
	const char *folder = enter_folder();

	CU_ASSERT_STRING_EQUAL(edited_all(before, both, 4),
	    "stages: { a: { use: x, slo: 3s, key: k }, b: { slo: 2s } }\n");
	CU_ASSERT_STRING_EQUAL(edited_all(before, both, 0), before);
	CU_ASSERT_PTR_NULL(edited_all(before, bad, 2));
	leave_folder(folder);
}

static const char *told(void)
{
	static char text[1024];

	weir_errs_format(&edit_errs, text, sizeof(text));
	return text;
}

static void refused(const char *text, const char *knob, const char *words)
{
	CU_ASSERT_PTR_NULL(edited(text, knob, "8"));
	if (strcmp(told(), words) != 0)
		fprintf(stderr, "expected\n%sbut found\n%s", words, told());
	CU_ASSERT_STRING_EQUAL(told(), words);
}

static void test_reasons(void)
{
	const char *folder = enter_folder();

	refused("stages: { a: { slo: \"${X:-1s}\" } }\n", "slo",
	    "main.yaml:1:21: this value comes from ${}\n"
	    "    1 | stages: { a: { slo: \"${X:-1s}\" } }\n"
	    "      |                     ^^^^^^^^^^ change the variable, or write a value here "
	    "first\n");
	refused("stages: { a: { slo: [1s] } }\n", "slo",
	    "main.yaml:1:21: this key has several values, but a single one is to be written\n"
	    "    1 | stages: { a: { slo: [1s] } }\n"
	    "      |                     ^\n");
	refused("stages: { a: { slo: } }\n", "slo",
	    "main.yaml:1:21: there is no value here to replace\n"
	    "    1 | stages: { a: { slo: } }\n"
	    "      |                     ^ write the value by hand\n");
	refused("stages: { a: { slo: \"1\n s\" } }\n", "slo",
	    "main.yaml:1:21: this value has more than one line\n"
	    "    1 | stages: { a: { slo: \"1\n"
	    "      |                     ^^ write the value by hand\n");
	refused("stages:\n  a:\n    slo: >\n      1s\n", "slo",
	    "main.yaml:3:10: this value has more than one line\n"
	    "    3 |     slo: >\n"
	    "      |          ^ write the value by hand\n");
	refused("stages: { a: { threads: 4 } }\n", "threads.max",
	    "main.yaml:1:25: this value sets several knobs, but only one is to be written\n"
	    "    1 | stages: { a: { threads: 4 } }\n"
	    "      |                         ^ write the value as a map with separate keys\n");
	refused("stages: { a: { threads: } }\n", "threads.max",
	    "main.yaml:1:25: this key has no value, so nothing can be added to it\n"
	    "    1 | stages: { a: { threads: } }\n"
	    "      |                         ^ write the key by hand\n");
	refused("stages:\n  a:\n    to:\n      x: y\n", "slo",
	    "main.yaml:3:5: it is not clear where to insert another key here\n"
	    "    3 |     to:\n"
	    "      |     ^ write the key by hand\n");
	refused("stages:\n- a: 1\n", "slo",
	    "main.yaml:2:1: there is no stage 'a' here\n"
	    "    2 | - a: 1\n"
	    "      | ^ check that the server runs this file\n");
	refused("weir: 1\n", "slo",
	    "there is no stage 'a' here: check that the server runs this file\n");
	refused("include: [b.yaml]\nstages: { b: {} }\n", "slo",
	    "main.yaml:1:10: stage 'a' is not in this file, but in an included one\n"
	    "    1 | include: [b.yaml]\n"
	    "      |          ^ save that file\n");
	refused("stages: { a: { slo: 1s }\n", "slo",
	    "main.yaml:1:9: this '{' is never closed\n"
	    "    1 | stages: { a: { slo: 1s }\n"
	    "      |         ^\n");
	unlink("main.yaml");
	CU_ASSERT_PTR_NULL(edited(NULL, "slo", "8"));
	CU_ASSERT_STRING_EQUAL(told(), "main.yaml: cannot be read: No such file or directory\n");
	leave_folder(folder);
}

CUNIT_MAIN("edit forms", {"values", test_values}, {"places", test_places},
    {"several changes", test_several}, {"reasons", test_reasons})
