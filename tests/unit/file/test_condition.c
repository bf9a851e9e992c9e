/* SPDX-License-Identifier: MIT */
/* Conditions and ranges for one file: 1,000 bytes, ETag "e1", 6 Nov 1994 08:49:37. */
#include "file/condition.h"

#include <string.h>

#include "cunit_main.h"

#define FILE_DATE "Sun, 06 Nov 1994 08:49:37 GMT"
#define OLDER     "Sun, 06 Nov 1994 08:49:36 GMT"
#define NEWER     "Sun, 06 Nov 1994 08:49:38 GMT"

static const struct condition_file the_file = {{"\"e1\"", 4}, 784111777, 1000, false, false, false};
static const struct condition_file weak_file = {
    {"W/\"e1\"", 6}, 784111777, 1000, false, false, false};

/* Judge a request with up to three header fields, given as pairs of name and value. */
static struct condition_verdict judge_of(enum weir_http_method method,
    const struct condition_file *file, const char *const *pairs, int n)
{
	struct weir_http_header headers[4] = {{{NULL, 0}, {NULL, 0}}};
	struct weir_http_request req = {.headers = headers};
	struct condition c;

	headers[0] = (struct weir_http_header){{"Host", 4}, {"x", 1}};
	req.n_headers = 1;
	for (int i = 0; i < n; i++) {
		headers[req.n_headers].name =
		    (struct weir_slice){pairs[2 * i], strlen(pairs[2 * i])};
		headers[req.n_headers++].value =
		    (struct weir_slice){pairs[2 * i + 1], strlen(pairs[2 * i + 1])};
	}
	condition_scan(&req, &c);
	CU_ASSERT_EQUAL(c.any, n > 0);
	return condition_judge(&c, method, file);
}

#define JUDGE(file, ...)                                                                           \
	judge_of(WEIR_HTTP_GET, file, (const char *const[]){__VA_ARGS__},                          \
	    (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *) / 2))
#define STATUS(...) JUDGE(&the_file, __VA_ARGS__).status

static void test_nothing_asked(void)
{
	struct condition_verdict v = judge_of(WEIR_HTTP_GET, &the_file, NULL, 0);

	CU_ASSERT_EQUAL(v.status, 200);
	CU_ASSERT_EQUAL(v.offset, 0);
	CU_ASSERT_EQUAL(v.length, 1000);
}

static void test_if_none_match(void)
{
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "\"e1\""), 304);
	CU_ASSERT_EQUAL(STATUS("if-none-match", "\"e1\""), 304);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "W/\"e1\""), 304);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "*"), 304);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "\"a\", W/\"b\" ,\"e1\""), 304);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "\"e2\""), 200);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "e1"), 200);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "\"e1"), 200);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", ""), 200);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "\"a,\"e1\""), 200);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "w/\"e1\""), 200);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "\"e1\"x"), 200);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "\"a\" \"e1\""), 200);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "\"e1\"\t,"), 304);
	CU_ASSERT_EQUAL(JUDGE(&weak_file, "If-None-Match", "\"e1\"").status, 304);
	CU_ASSERT_EQUAL(JUDGE(&the_file, "If-None-Match", "\"e1\"").length, 0);
}

static void test_if_modified_since(void)
{
	CU_ASSERT_EQUAL(STATUS("If-Modified-Since", FILE_DATE), 304);
	CU_ASSERT_EQUAL(STATUS("If-Modified-Since", NEWER), 304);
	CU_ASSERT_EQUAL(STATUS("If-Modified-Since", OLDER), 200);
	CU_ASSERT_EQUAL(STATUS("If-Modified-Since", "yesterday"), 200);
	/* the ETag decides when both are present */
	CU_ASSERT_EQUAL(STATUS("If-Modified-Since", NEWER, "If-None-Match", "\"e2\""), 200);
	CU_ASSERT_EQUAL(STATUS("If-Modified-Since", OLDER, "If-None-Match", "\"e1\""), 304);
}

static void test_preconditions(void)
{
	CU_ASSERT_EQUAL(STATUS("If-Match", "\"e1\""), 200);
	CU_ASSERT_EQUAL(STATUS("If-Match", "*"), 200);
	CU_ASSERT_EQUAL(STATUS("If-Match", "\"e2\""), 412);
	CU_ASSERT_EQUAL(STATUS("If-Match", "W/\"e1\""), 412);
	CU_ASSERT_EQUAL(JUDGE(&weak_file, "If-Match", "W/\"e1\"").status, 412);
	CU_ASSERT_EQUAL(STATUS("If-Unmodified-Since", FILE_DATE), 200);
	CU_ASSERT_EQUAL(STATUS("If-Unmodified-Since", OLDER), 412);
	CU_ASSERT_EQUAL(STATUS("If-Unmodified-Since", "never"), 200);
	CU_ASSERT_EQUAL(STATUS("If-Unmodified-Since", OLDER, "If-Match", "\"e1\""), 200);
	CU_ASSERT_EQUAL(STATUS("If-Match", "\"e2\"", "If-None-Match", "\"e1\""), 412);
}

static void check_range(const char *text, int status, int64_t offset, int64_t length)
{
	struct condition_verdict v = JUDGE(&the_file, "Range", text);

	CU_ASSERT_EQUAL(v.status, status);
	CU_ASSERT_EQUAL(v.offset, offset);
	CU_ASSERT_EQUAL(v.length, length);
}

static void test_one_range(void)
{
	check_range("bytes=0-0", 206, 0, 1);
	check_range("bytes=0-999", 206, 0, 1000);
	check_range("bytes=0-", 206, 0, 1000);
	check_range("bytes=999-", 206, 999, 1);
	check_range("bytes=10-19", 206, 10, 10);
	check_range("bytes=990-2000", 206, 990, 10);
	check_range("bytes=990-99999999999999999999999", 206, 990, 10);
	check_range("bytes=-1", 206, 999, 1);
	check_range("bytes=-1000", 206, 0, 1000);
	check_range("bytes=-5000", 206, 0, 1000);
	check_range("BYTES=5-6", 206, 5, 2);
}

static void test_range_out_of_file(void)
{
	check_range("bytes=1000-", 416, 0, 0);
	check_range("bytes=1000-1001", 416, 0, 0);
	check_range("bytes=99999999999999999999999-", 416, 0, 0);
	check_range("bytes=-0", 416, 0, 0);
	struct condition_file empty = {{NULL, 0}, -1, 0, false, false, false};
	CU_ASSERT_EQUAL(JUDGE(&empty, "Range", "bytes=0-").status, 200);
	CU_ASSERT_EQUAL(JUDGE(&empty, "Range", "bytes=-1").status, 200);
}

static void test_several_ranges(void)
{
	struct condition_verdict v = JUDGE(&the_file, "Range", "bytes=0-1, 500-600");

	CU_ASSERT_EQUAL(v.status, 206);
	CU_ASSERT_EQUAL(v.parts, 2);
	CU_ASSERT_EQUAL(v.length, 0);
	check_range("bytes=0-1,2-9", 206, 0, 10);
	check_range("bytes=0-1,5000-", 206, 0, 2);
	check_range("bytes=2000-,3000-", 416, 0, 0);
	CU_ASSERT_EQUAL(STATUS("Range", "bytes=0-1,5-6", "If-Range", "\"e2\""), 200);
	CU_ASSERT_EQUAL(JUDGE(&the_file, "Range", "bytes=0-1,5-6", "If-Range", "\"e1\"").parts, 2);
}

static void test_no_ranges(void)
{
	struct condition_file file = the_file;

	file.no_ranges = true;
	struct condition_verdict v = JUDGE(&file, "Range", "bytes=0-1");
	CU_ASSERT(v.status == 200 && v.length == 1000 && v.parts == 0);
	CU_ASSERT_EQUAL(JUDGE(&file, "Range", "bytes=0-1,5-6").status, 200);
	CU_ASSERT_EQUAL(JUDGE(&file, "Range", "bytes=1000-").status, 200);
	CU_ASSERT_EQUAL(JUDGE(&file, "Range", "bytes=0-1", "If-Range", "\"e1\"").status, 200);
	CU_ASSERT_EQUAL(JUDGE(&file, "Range", "bytes=0-1", "If-None-Match", "\"e1\"").status, 304);
}

/* A value that is not a list of byte ranges is ignored. */
static void test_range_ignored(void)
{
	static const char *const texts[] = {"bytes=0-1 5-6", "bytes=0-1,x", "bytes=", "bytes=-",
	    "bytes", "", "lines=0-1", "bytes=5-4", "bytes=a-b", "bytes=0-1x", "bytes= 0-1",
	    "bytes=0x1-2", "bytes=--1", "bytes=+1-2", "bytes=1", "0-1"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check_range(texts[i], 200, 0, 1000);
	const char *const pair[] = {"Range", "bytes=0-1"};
	CU_ASSERT_EQUAL(judge_of(WEIR_HTTP_HEAD, &the_file, pair, 1).status, 200);
}

static void test_if_range(void)
{
	static const struct condition_file variant = {
	    {"\"e1\"", 4}, 784111777, 1000, false, true, false};

	CU_ASSERT_EQUAL(STATUS("Range", "bytes=0-1", "If-Range", "\"e1\""), 206);
	CU_ASSERT_EQUAL(STATUS("Range", "bytes=0-1", "If-Range", "\"e2\""), 200);
	CU_ASSERT_EQUAL(STATUS("Range", "bytes=0-1", "If-Range", "W/\"e1\""), 200);
	CU_ASSERT_EQUAL(STATUS("Range", "bytes=0-1", "If-Range", FILE_DATE), 206);
	CU_ASSERT_EQUAL(STATUS("Range", "bytes=0-1", "If-Range", NEWER), 200);
	CU_ASSERT_EQUAL(STATUS("Range", "bytes=0-1", "If-Range", "x"), 200);
	CU_ASSERT_EQUAL(STATUS("Range", "bytes=9999-", "If-Range", "\"e2\""), 200);
	CU_ASSERT_EQUAL(STATUS("If-Range", "\"e2\""), 200);
	/* the date may be that of another variant, or of a file that is being changed */
	CU_ASSERT_EQUAL(JUDGE(&variant, "Range", "bytes=0-1", "If-Range", FILE_DATE).status, 200);
	CU_ASSERT_EQUAL(JUDGE(&variant, "Range", "bytes=0-1", "If-Range", "\"e1\"").status, 206);
	CU_ASSERT_EQUAL(JUDGE(&weak_file, "Range", "bytes=0-1", "If-Range", FILE_DATE).status, 200);
	CU_ASSERT_EQUAL(JUDGE(&variant, "If-Modified-Since", FILE_DATE).status, 304);
	/* 304 takes precedence over a range */
	CU_ASSERT_EQUAL(STATUS("Range", "bytes=0-1", "If-None-Match", "\"e1\""), 304);
}

static void test_sent_twice(void)
{
	CU_ASSERT_EQUAL(STATUS("Range", "bytes=0-1", "Range", "bytes=2-3"), 200);
	/* two lists count as one (RFC 9110, 5.3) */
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "\"e2\"", "If-None-Match", "\"e1\""), 304);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "\"e1\"", "If-None-Match", "\"e2\""), 304);
	CU_ASSERT_EQUAL(STATUS("If-None-Match", "\"e3\"", "If-None-Match", "\"e2\""), 200);
	CU_ASSERT_EQUAL(STATUS("If-Match", "\"e2\"", "If-Match", "\"e3\""), 412);
	CU_ASSERT_EQUAL(STATUS("If-Match", "\"e2\"", "if-match", "\"e1\""), 200);
	CU_ASSERT_EQUAL(STATUS("If-Modified-Since", NEWER, "If-Modified-Since", NEWER), 200);
	/* of two validators neither is known to match the client's copy */
	CU_ASSERT_EQUAL(
	    STATUS("Range", "bytes=0-1", "If-Range", "\"e1\"", "If-Range", "\"e2\""), 200);
	CU_ASSERT_EQUAL(
	    STATUS("Range", "bytes=0-1", "Range", "bytes=2-3", "range", "bytes=4-5"), 200);
}

static void test_nothing_known(void)
{
	struct condition_file bare = {{NULL, 0}, -1, 10, false, false, false};

	CU_ASSERT_EQUAL(JUDGE(&bare, "If-None-Match", "\"\"").status, 200);
	CU_ASSERT_EQUAL(JUDGE(&bare, "If-Modified-Since", NEWER).status, 200);
	CU_ASSERT_EQUAL(JUDGE(&bare, "If-Unmodified-Since", OLDER).status, 200);
	CU_ASSERT_EQUAL(JUDGE(&bare, "Range", "bytes=0-1", "If-Range", "\"\"").status, 200);
	CU_ASSERT_EQUAL(/* a second before 1970 equals -1, the value for "no date" */
	    JUDGE(&bare, "Range", "bytes=0-1", "If-Range", "Wed, 31 Dec 1969 23:59:59 GMT").status,
	    200);
}

static void test_content_range(void)
{
	char out[CONDITION_RANGE_SIZE];
	struct condition_verdict part = {206, 10, 5, 1}, none = {416, 0, 0, 0};
	struct condition_verdict most = {206, INT64_MAX - 2, 2, 1};

	condition_content_range(&part, 1000, out);
	CU_ASSERT_STRING_EQUAL(out, "bytes 10-14/1000");
	condition_content_range(&none, 1000, out);
	CU_ASSERT_STRING_EQUAL(out, "bytes */1000");
	condition_content_range(&most, INT64_MAX, out);
	CU_ASSERT_STRING_EQUAL(
	    out, "bytes 9223372036854775805-9223372036854775806/9223372036854775807");
}

CUNIT_MAIN("condition", {"nothing asked", test_nothing_asked},
    {"If-None-Match", test_if_none_match}, {"If-Modified-Since", test_if_modified_since},
    {"preconditions", test_preconditions}, {"one range", test_one_range},
    {"range out of file", test_range_out_of_file}, {"range ignored", test_range_ignored},
    {"several ranges", test_several_ranges}, {"no ranges", test_no_ranges},
    {"If-Range", test_if_range}, {"sent twice", test_sent_twice},
    {"nothing known", test_nothing_known}, {"Content-Range", test_content_range})
