/* SPDX-License-Identifier: MIT */
/* Lists of ranges, for a file of 1,000 bytes unless stated otherwise: which are merged, dropped or
 * refused. */
#include "file/range.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

/* Read `text`. Returns the set as "first-last,...", or the status when it is not 206. */
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
	/* as nginx: the last 5 bytes of an empty file are all of it */
	CU_ASSERT_STRING_EQUAL(read_as("bytes=0-", 0), "200");
	CU_ASSERT_STRING_EQUAL(read_as("bytes=-5", 0), "200");
}

static void test_order(void)
{
	check("bytes=0-1,5-6", "0-1,5-6");
	check("bytes=500-600 ,\t0-1", "500-600,0-1"); /* in the order requested */
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
	check("bytes=10-11,0-1,20-21,1-30", "0-30"); /* at the position of the first */
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

/* Any number of bytes. */
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

/* Ranges that end one byte before the last byte of the file, at it, and after it. */
static void test_end_of_the_file(void)
{
	check("bytes=0-998", "0-998");
	check("bytes=0-999", "0-999");
	check("bytes=0-1000", "0-999");
	check("bytes=0-1001", "0-999");
	check("bytes=999-1000", "999-999");
	check("bytes=1000-1000", "416");
	check("bytes=-1000", "0-999");
	check("bytes=-999", "1-999");
	check("bytes=-1001", "0-999");
	check("bytes=0-0,500-1000", "0-0,500-999");
	CU_ASSERT_STRING_EQUAL(read_as("bytes=0-1", 1), "0-0");
	CU_ASSERT_STRING_EQUAL(read_as("bytes=0-0", 1), "0-0");
	CU_ASSERT_STRING_EQUAL(read_as("bytes=-1", 1), "0-0");
}

#define FILE_BYTES 64
/* Ranges of the random test end before this. */
#define ASKED_BYTES (FILE_BYTES + 20)

/* Count how often each byte is sent. Returns false for a byte beyond the file. */
static bool count_sent(const struct range_set *set, char sent[ASKED_BYTES])
{
	for (int i = 0; i < set->n; i++) {
		const struct byte_range *r = &set->range[i];
		if (r->offset < 0 || r->length <= 0 || r->offset + r->length > FILE_BYTES)
			return false;
		for (int64_t k = 0; k < r->length; k++)
			sent[r->offset + k]++;
	}
	return true;
}

/* Compared with a map of bytes: each requested byte is sent once, in few parts. */
static void test_random(void)
{
	srand(1);
	for (int round = 0; round < 20000; round++) {
		char text[256] = "bytes=", asked[ASKED_BYTES] = {0}, sent[ASKED_BYTES] = {0};
		int n = 1 + rand() % RANGE_MAX;
		struct range_set set;
		for (int i = 0; i < n; i++) {
			int first = rand() % (FILE_BYTES + 6), last = first + rand() % 12;
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d-%d,", first,
			    last);
			for (int k = first; k <= last && k < FILE_BYTES; k++)
				asked[k] = 1;
		}
		int status = range_read((struct weir_slice){text, strlen(text)}, FILE_BYTES, &set);
		CU_ASSERT_EQUAL_FATAL(status, memchr(asked, 1, FILE_BYTES) ? 206 : 416);
		CU_ASSERT_FATAL(count_sent(&set, sent));
		CU_ASSERT_FATAL(memcmp(asked, sent, sizeof(asked)) == 0);
	}
}

CUNIT_MAIN("range", {"one", test_one}, {"order", test_order}, {"merged", test_merged},
    {"attack", test_attack}, {"large", test_large}, {"ignored", test_ignored},
    {"the end of the file", test_end_of_the_file}, {"random", test_random})
