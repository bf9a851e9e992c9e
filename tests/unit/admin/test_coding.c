/* SPDX-License-Identifier: MIT */
/* Which values of Accept-Encoding accept gzip. */
#include "admin/request/coding.h"

#include "cunit_main.h"

static void test_taken(void)
{
	static const char *const field[] = {"gzip", "GZip", "x-gzip", "gzip, deflate, br, zstd",
	    "br;q=1.0,gzip;q=0.8", " gzip ; q=0.001", "*", "identity;q=0.5, gzip;q=0.5",
	    "gzip;q=0.4, *;q=0", "deflate,,gzip", "identity;q=0, *", "gzip;Q=1.000"};

	for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++)
		CU_ASSERT_TRUE(coding_takes_gzip(field[i]));
}

static void test_not_taken(void)
{
	static const char *const field[] = {NULL, "", "br", "identity", "gzip;q=0", "gzip;q=0.000",
	    "*;q=0", "gzip;q=0, *", "identity, gzip;q=0.5", "gzipped", "xgzip", "gzip;q=2",
	    "gzip;q=0.0001", "gzip;level=9", "gzip;q=", "gzip;", "gzip deflate", "gzip;q=1.001",
	    "gzip;q=x", ",", ";", "\"gzip\""};

	for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++)
		CU_ASSERT_FALSE(coding_takes_gzip(field[i]));
}

CUNIT_MAIN("coding", {"gzip is accepted", test_taken}, {"gzip is not accepted", test_not_taken})
