/* SPDX-License-Identifier: MIT */
/* Tables: lookup by name, defaults of every type, release of the values. */
#include "knob_table.h"

#include "cunit_main.h"

static void test_find(void)
{
	CU_ASSERT_PTR_EQUAL(weir_knob_find(all_knobs, "flag"), &all_knobs[0]);
	CU_ASSERT_PTR_NULL(weir_knob_find(all_knobs, "Flag"));
	CU_ASSERT_PTR_NULL(weir_knob_find(NULL, "flag"));
}

static void test_defaults(void)
{
	struct all a = {0};

	CU_ASSERT_EQUAL(weir_knobs_init(all_knobs, &a), 0);
	CU_ASSERT_TRUE(a.flag);
	CU_ASSERT_EQUAL(a.count, -1);
	CU_ASSERT_EQUAL(a.signed_count, 0);
	CU_ASSERT_EQUAL(a.size_bytes, 65536);
	CU_ASSERT_EQUAL(a.wait_ns, 1500000000);
	CU_ASSERT_EQUAL(a.rate, 20000);
	CU_ASSERT_EQUAL(a.share, 0.05);
	CU_ASSERT_STRING_EQUAL(a.text, "hello");
	CU_ASSERT_PTR_NULL(a.more);
	CU_ASSERT_EQUAL(a.choice, 2);
	CU_ASSERT_EQUAL(a.list.n, 2);
	CU_ASSERT_STRING_EQUAL(a.list.items[0], "a");
	CU_ASSERT_STRING_EQUAL(a.list.items[1], "b");
	CU_ASSERT_EQUAL(a.records.n, 0);
	CU_ASSERT_EQUAL(a.inner.n, 3);
	CU_ASSERT_STRING_EQUAL(a.inner.name, "in");
	weir_knobs_fini(all_knobs, &a);
}

static void test_fini_clears(void)
{
	struct all a = {0}, zero = {0};

	weir_knobs_init(all_knobs, &a);
	weir_knobs_fini(all_knobs, &a);
	CU_ASSERT_EQUAL(memcmp(&a, &zero, sizeof(a)), 0);
	weir_knobs_fini(all_knobs, &a); /* a second call is harmless */
	weir_knobs_fini(NULL, &a);
	CU_ASSERT_EQUAL(weir_knobs_init(NULL, &a), 0);
}

CUNIT_MAIN(
    "knob", {"find", test_find}, {"defaults", test_defaults}, {"fini clears", test_fini_clears})
