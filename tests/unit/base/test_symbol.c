/* SPDX-License-Identifier: MIT */
/* Names of functions: of this program, static ones included, of libc, and of addresses that are in no
 * file. */
#include "base/symbol.h"

#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static int hidden_one(int x)
{
	return x + 1;
}

static void test_names(void)
{
	struct symbol_file file = {0};
	int (*volatile one)(int) = hidden_one;
	struct symbol s;

	/* A return address is behind its call, so the address of a function is not in it, and the next
	 * one is. */
	symbol_find(&file, (uintptr_t)one + 1, &s);
	CU_ASSERT_STRING_EQUAL(s.function, "hidden_one");
	CU_ASSERT_STRING_EQUAL(s.file, "test_symbol");
	CU_ASSERT_TRUE(s.offset > 0 && s.offset < 100000000);
	const void *map = file.map;
	symbol_find(&file, (uintptr_t)test_names + 1, &s);
	CU_ASSERT_STRING_EQUAL(s.function, "test_names");
	CU_ASSERT_PTR_EQUAL(file.map, map); /* the file has stayed open */
	symbol_find(&file, (uintptr_t)one, &s);
	CU_ASSERT_TRUE(strcmp(s.function, "hidden_one") != 0);
	symbol_file_close(&file);
	CU_ASSERT_PTR_NULL(file.map);
}

static void test_libc(void)
{
	struct symbol_file file = {0};
	void *(*volatile allocate)(size_t) = malloc;
	struct symbol s;

	symbol_find(&file, (uintptr_t)allocate + 1, &s);
	CU_ASSERT_PTR_NOT_NULL(strstr(s.function, "malloc"));
	CU_ASSERT_TRUE(s.file[0] != '\0' && !strchr(s.file, '/'));
	symbol_file_close(&file);
}

static void test_nowhere(void)
{
	struct symbol_file file = {0};
	struct symbol s;

	symbol_find(&file, 16, &s);
	CU_ASSERT_STRING_EQUAL(s.function, "??");
	CU_ASSERT_STRING_EQUAL(s.file, "");
	CU_ASSERT_EQUAL(s.offset, 16);
	symbol_file_close(&file);
}

CUNIT_MAIN("symbol", {"names", test_names}, {"libc", test_libc}, {"nowhere", test_nowhere})
