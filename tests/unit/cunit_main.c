/* SPDX-License-Identifier: MIT */
#include "cunit_main.h"

#include <CUnit/Basic.h>

int cunit_run(const char *suite_name, const struct cunit_case *cases, size_t n)
{
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);
	for (size_t i = 0; suite && i < n; i++)
		if (!CU_add_test(suite, cases[i].name, cases[i].fn))
			return 2;
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	unsigned failed = CU_get_number_of_failures();
	unsigned run = CU_get_number_of_tests_run();
	CU_cleanup_registry();
	return failed == 0 && run == n ? 0 : 1;
}
