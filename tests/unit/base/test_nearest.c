/* SPDX-License-Identifier: MIT */
/* "did you mean": slips that are recognised, and words that are too different. */
#include <weir/knob.h>

#include <string.h>

#include "cunit_main.h"

static const char *const keys[] = {"threads", "queue", "cohort", "admission", "to", "use"};

static const char *near(const char *word)
{
	const char *found = weir_nearest(word, keys, sizeof(keys) / sizeof(keys[0]));

	return found ? found : "";
}

static void test_slips(void)
{
	CU_ASSERT_STRING_EQUAL(near("treads"), "threads");   /* one left out */
	CU_ASSERT_STRING_EQUAL(near("threeads"), "threads"); /* one too many */
	CU_ASSERT_STRING_EQUAL(near("queeu"), "queue");      /* swapped neighbours */
	CU_ASSERT_STRING_EQUAL(near("Cohort"), "cohort");    /* case */
	CU_ASSERT_STRING_EQUAL(near("threads"), "threads");
	CU_ASSERT_STRING_EQUAL(near("ues"), "use");
}

static void test_too_far(void)
{
	CU_ASSERT_STRING_EQUAL(near("frobnicate"), "");
	CU_ASSERT_STRING_EQUAL(near("on"), "");
	CU_ASSERT_STRING_EQUAL(near(""), "");
	CU_ASSERT_STRING_EQUAL(near("thr"), "");
	CU_ASSERT_PTR_NULL(weir_nearest("x", NULL, 0));
}

static void test_long_words(void)
{
	char word[200];

	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	const char *names[] = {word};
	CU_ASSERT_PTR_NULL(weir_nearest(word, names, 1));
	CU_ASSERT_PTR_NULL(weir_nearest("xx", names, 1));
	word[64] = '\0';
	CU_ASSERT_PTR_EQUAL(weir_nearest(word, names, 1), word);
}

/* At most a third of the word may differ; the first of equally good names wins. */
static void test_third(void)
{
	const char *names[] = {"abcdefxxx", "abcdefgxx", "abcdefgyy"};

	CU_ASSERT_STRING_EQUAL(weir_nearest("abcdefghi", names, 3), "abcdefgxx");
	CU_ASSERT_STRING_EQUAL(weir_nearest("abcdefghi", names, 1), "abcdefxxx");
	names[0] = "abcdexxxx";
	CU_ASSERT_PTR_NULL(weir_nearest("abcdefghi", names, 1));
}

CUNIT_MAIN("nearest", {"slips", test_slips}, {"too far", test_too_far},
    {"long words", test_long_words}, {"a third", test_third})
