/* SPDX-License-Identifier: MIT */
/* The hash of keys: XXH3's published value for the empty text, equal hashes for equal keys, never
 * 0. */
#include <weir/event.h>

#include <string.h>

#include "cunit_main.h"

static uint64_t hash_of(const char *s)
{
	return weir_hash((struct weir_slice){s, strlen(s)});
}

static void test_values(void)
{
	CU_ASSERT_EQUAL(hash_of(""), 0x2d06800538d394c2ULL); /* xxHash 0.8, XXH3_64bits, seed 0 */
	CU_ASSERT_EQUAL(weir_hash((struct weir_slice){NULL, 0}), hash_of(""));
	CU_ASSERT_EQUAL(hash_of("/app/1"), hash_of("/app/1"));
	CU_ASSERT_NOT_EQUAL(hash_of("/app/1"), hash_of("/app/2"));
}

static void test_never_zero(void)
{
	char text[5] = "";

	for (unsigned i = 1; i < 100000; i++) {
		memcpy(text, &i, 4);
		if (weir_hash((struct weir_slice){text, 4}) == 0)
			CU_FAIL_FATAL("a hash is 0");
	}
}

CUNIT_MAIN("hash", {"values", test_values}, {"never zero", test_never_zero})
