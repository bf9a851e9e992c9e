/* SPDX-License-Identifier: MIT */
/* Lists of ranges, for a file of 1,000 bytes unless said otherwise: what is merged, dropped, refused. */
#include "file/range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

/* Read `text`; the set as "first-last,...", or the status when it is not 206. */
static const char *read_as(const char *text, int64_t size_bytes)
{
	static char out[512];
	struct range_set set;
	int status = range_read((struct weir_slice){text, strlen(text)}, size_bytes, &set);
	int n = 0;

	if (status != 206) {
		snprintf(out, sizeof(out), "%d", status);
		return out;
	}
	for (int i = 0; i < set.n; i++)
		n += snprintf(out + n, sizeof(out) - (size_t)n, "%s%lld-%lld", i ? "," : "",
		    (long long)set.range[i].offset,
		    (long long)(set.range[i].offset + set.range[i].length - 1));
	return out;
}

static void check(const char *text, const char *expected)
{
	const char *got = read_as(text, 1000);

	if (strcmp(got, expected) != 0)
		fprintf(stderr, "%s: %s, not %s\n", text, got, expected);
	CU_ASSERT_STRING_EQUAL(got, expected);
}

static void test_one(void)
{
	check("bytes=0-0", "0-0");
	check("bytes=10-", "10-999");
	check("bytes=-10", "990-999");
	check("bytes=-10000", "0-999");
	check("bytes=900-10000", "900-999");
	check("bytes=,,0-0,, ,", "0-0");
	check("bytes=1000-", "416");
	check("bytes=-0", "416");
	/* as nginx: who asks for the last 5 bytes has all of an empty file */
	CU_ASSERT_STRING_EQUAL(read_as("bytes=0-", 0), "200");
	CU_ASSERT_STRING_EQUAL(read_as("bytes=-5", 0), "200");
}

static void test_order(void)
{
	check("bytes=0-1,5-6", "0-1,5-6");
	check("bytes=500-600 ,\t0-1", "500-600,0-1"); /* as asked for */
	check("bytes=0-0,-1", "0-0,999-999");
	check("bytes=0-1,2000-3000,5-6", "0-1,5-6");
	check("bytes=2000-,-0", "416");
}

static void test_merged(void)
{
	check("bytes=0-5,3-9", "0-9");
	check("bytes=0-4,5-9", "0-9");
	check("bytes=5-9,0-4", "0-9");
	check("bytes=0-,0-,0-,0-", "0-999");
	check("bytes=0-1,10-11,20-21,5-15", "0-1,5-15,20-21");
	check("bytes=10-11,0-1,20-21,1-30", "0-30"); /* in the place of the first */
	check("bytes=50-60,0-1,20-21,1-30", "50-60,0-30");
	check("bytes=0-9,-991", "0-999");
}

/* CVE-2011-3192: many ranges that overlap, or descend by one. */
static void test_attack(void)
{
	char text[8192] = "bytes=0-";
	struct range_set set;

	for (int i = 1; i < 1300; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ",%d-", i % 10);
	CU_ASSERT_EQUAL(range_read((struct weir_slice){text, strlen(text)}, 1000, &set), 200);
	check("bytes=7-7,6-6,5-5,4-4,3-3,2-2,1-1,0-0", "0-7");
	check(
	    "bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14", "0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14");
	check("bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16", "200");
	check("bytes=9000-,9000-,9000-,9000-,9000-,9000-,9000-,9000-,0-0", "200");
}

/* However many bytes they are. */
static void test_large(void)
{
	CU_ASSERT_STRING_EQUAL(
	    read_as("bytes=0-499999,600000-1048575", 1 << 20), "0-499999,600000-1048575");
	CU_ASSERT_STRING_EQUAL(
	    read_as("bytes=0-0,9-9223372036854775806", INT64_MAX), "0-0,9-9223372036854775806");
}

static void test_ignored(void)
{
	static const char *const texts[] = {"", "bytes", "bytes=", "bytes=,", "bytes=-",
	    "bytes=5-4", "bytes=0-1,5-4", "bytes=0-1,a", "bytes=0-1 2-3", "bytes=0-1;2-3",
	    "bytes= 0-1", "lines=0-1", "bytes=0--1", "bytes=1", "bytes =0-1"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check(texts[i], "200");
}

/* Against a map of bytes: what is sent is what was asked for, once, in few parts. */
static void test_random(void)
{
	srand(1);
	for (int round = 0; round < 20000; round++) {
		char text[256] = "bytes=", asked[64] = {0}, sent[64] = {0};
		int n = 1 + rand() % RANGE_MAX;
		struct range_set set;
		for (int i = 0; i < n; i++) {
			int first = rand() % 70, last = first + rand() % 12;
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d-%d,", first,
			    last);
			for (int k = first; k <= last && k < 64; k++)
				asked[k] = 1;
		}
		int status = range_read((struct weir_slice){text, strlen(text)}, 64, &set);
		CU_ASSERT_EQUAL_FATAL(status, memchr(asked, 1, 64) ? 206 : 416);
		for (int i = 0; i < set.n; i++)
			for (int64_t k = 0; k < set.range[i].length; k++)
				sent[set.range[i].offset + k]++;
		CU_ASSERT_FATAL(memcmp(asked, sent, 64) == 0);
	}
}

CUNIT_MAIN("range", {"one", test_one}, {"order", test_order}, {"merged", test_merged},
    {"attack", test_attack}, {"large", test_large}, {"ignored", test_ignored},
    {"random", test_random})
