/* SPDX-License-Identifier: MIT */
/* Variables in values: each form, where they are not expanded, how long their text may be. */
#include "loading.h"

/* The value of knob `root` after loading a server with it. */
static const char *named(const char *value)
{
	static char name[256];
	char text[1024];

	snprintf(text, sizeof(text),
	    "weir: 1\nstages: { w: { use: t.work, with: { root: %s } } }\n", value);
	struct weir_spec *spec = load_text(text);
	if (!spec)
		return loading_errs.err[0].text;
	snprintf(name, sizeof(name), "%s", weir_node_get(spec->stages[0].with, "root")->text);
	weir_spec_free(spec);
	return name;
}

static void set_up(void)
{
	setenv("WEIR_TEST_WORD", "word", 1);
	setenv("WEIR_TEST_EMPTY", "", 1);
	setenv("WEIR_TEST_YAML", "a\", size: 5, x: \"${WEIR_TEST_WORD}", 1);
	unsetenv("WEIR_TEST_UNSET");
}

static void test_forms(void)
{
	set_up();
	CU_ASSERT_STRING_EQUAL(named("\"${WEIR_TEST_WORD}\""), "word");
	CU_ASSERT_STRING_EQUAL(named("'a${WEIR_TEST_WORD}b${WEIR_TEST_WORD}c'"), "awordbwordc");
	CU_ASSERT_STRING_EQUAL(named("\"${WEIR_TEST_UNSET:-default}\""), "default");
	CU_ASSERT_STRING_EQUAL(named("\"${WEIR_TEST_EMPTY:-default}\""), "default");
	CU_ASSERT_STRING_EQUAL(named("\"${WEIR_TEST_WORD:-default}\""), "word");
	CU_ASSERT_STRING_EQUAL(named("\"${WEIR_TEST_UNSET:-}\""), "");
	CU_ASSERT_STRING_EQUAL(named("\"${WEIR_TEST_UNSET:-a:-b?}\""), "a:-b?");
	CU_ASSERT_STRING_EQUAL(named("\"${WEIR_TEST_EMPTY}\""), "");
	CU_ASSERT_STRING_EQUAL(named("\"${WEIR_TEST_WORD:?no}\""), "word");
	CU_ASSERT_STRING_EQUAL(
	    named("\"${WEIR_TEST_EMPTY:?no}\""), "the variable 'WEIR_TEST_EMPTY' is not set: no");
}

static void test_literal(void)
{
	set_up();
	CU_ASSERT_STRING_EQUAL(named("\"$${WEIR_TEST_WORD}\""), "${WEIR_TEST_WORD}");
	CU_ASSERT_STRING_EQUAL(named("\"$WEIR_TEST_WORD $5 $$ $\""), "$WEIR_TEST_WORD $5 $$ $");
	CU_ASSERT_STRING_EQUAL(named("\"$$${WEIR_TEST_WORD}\""), "$${WEIR_TEST_WORD}");
}

/* A variable always expands to text, whatever it looks like, and is not expanded again. */
static void test_no_structure(void)
{
	set_up();
	CU_ASSERT_STRING_EQUAL(
	    named("\"${WEIR_TEST_YAML}\""), "a\", size: 5, x: \"${WEIR_TEST_WORD}");
}

/* Only values are expanded; keys are taken literally. */
static void test_not_in_keys(void)
{
	set_up();
	CU_ASSERT_STRING_EQUAL(
	    load_bad("weir: 1\nstages: { w: { use: t.work, \"${WEIR_TEST_WORD}\": 1 } }\n"),
	    "unknown key '${WEIR_TEST_WORD}' in stage 'w'");
}

/* Notes of the user are not expanded. */
static void test_not_in_notes(void)
{
	set_up();
	weir_spec_free(load_good("weir: 1\nx-note: \"${WEIR_TEST_UNSET} ${}\"\nstages: {}\n"));
}

/* Each missing variable is reported once, without any other error about its value. */
static void test_all_at_once(void)
{
	set_up();
	load_bad("weir: 1\n"
		 "name: \"${WEIR_TEST_UNSET} x ${WEIR_TEST_UNSET:?again}\"\n"
		 "stages: { w: { use: t.work, queue: { limit: \"${}\" }, slo: 5 } }\n");
	CU_ASSERT_EQUAL(loading_errs.total, 4);
	CU_ASSERT_EQUAL(loading_errs.err[0].col, 8);
	CU_ASSERT_EQUAL(loading_errs.err[1].col, 29);
	CU_ASSERT_STRING_EQUAL(loading_errs.err[2].text, "'${}' is not a variable");
	CU_ASSERT_STRING_EQUAL(loading_errs.err[3].text, "'5' needs a unit: write 5ms or 5s");
}

static void test_too_much(void)
{
	char *big = malloc(100001), *text = malloc(2000), *p = text;

	memset(big, 'x', 100000);
	big[100000] = '\0';
	setenv("WEIR_TEST_BIG", big, 1);
	p += sprintf(p, "weir: 1\nstages: { w: { use: t.work, with: { names: [");
	for (int i = 0; i < 11; i++)
		p += sprintf(p, "\"${WEIR_TEST_BIG}\", ");
	sprintf(p, "] } } }\n");
	CU_ASSERT_STRING_EQUAL(
	    load_bad(text), "the variables of this configuration expand to more than 1 MiB");
	unsetenv("WEIR_TEST_BIG");
	free(text);
	free(big);
}

CUNIT_MAIN("expand", {"forms", test_forms}, {"literal", test_literal},
    {"no structure", test_no_structure}, {"not in keys", test_not_in_keys},
    {"not in notes", test_not_in_notes}, {"all at once", test_all_at_once},
    {"too much", test_too_much})
