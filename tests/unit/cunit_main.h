/* SPDX-License-Identifier: MIT */
/*
 * One CUnit suite per executable: CUNIT_MAIN("queue", {"push then pop", test_push_pop}, ...)
 * The process exits 1 when an assertion failed, so ctest sees it.
 */
#ifndef WEIR_TESTS_CUNIT_MAIN_H
#define WEIR_TESTS_CUNIT_MAIN_H

#include <CUnit/CUnit.h>
#include <stddef.h>

struct cunit_case {
	const char *name;
	void (*fn)(void);
};

/* Run the cases as one suite. Returns the status of the process. */
int cunit_run(const char *suite_name, const struct cunit_case *cases, size_t n);

#define CUNIT_MAIN(suite, ...)                                                                     \
	int main(void)                                                                             \
	{                                                                                          \
		static const struct cunit_case cases[] = {__VA_ARGS__};                            \
		return cunit_run(suite, cases, sizeof(cases) / sizeof(cases[0]));                  \
	}

#endif
