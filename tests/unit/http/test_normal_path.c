/* SPDX-License-Identifier: MIT */
/* The normal spelling of a path: every spelling leads to it, and patterns that can never match one
 * are reported. */
#include "http/message/normal_path.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

/* The normal spelling, written to an allocation of the largest size allowed, so that ASan detects
 * one byte too many. "above" when there is none. */
static const char *normal(const char *path)
{
	static char text[512];
	size_t n = strlen(path);
	char *in = malloc(n ? n : 1), *out = malloc(n + 1);

	memcpy(in, path, n);
	long got = normal_path((struct weir_slice){in, n}, out);
	CU_ASSERT(got == -1 || (got > 0 && (size_t)got <= (n ? n : 1)));
	snprintf(text, sizeof(text), "%.*s", got < 0 ? 5 : (int)got, got < 0 ? "above" : out);
	free(in);
	free(out);
	return text;
}

static void is(const char *path, const char *wanted)
{
	const char *got = normal(path);

	if (strcmp(got, wanted) != 0)
		fprintf(stderr, "%s is %s, not %s\n", path, got, wanted);
	CU_ASSERT_STRING_EQUAL(got, wanted);
}

struct row {
	const char *path, *wanted;
};

static void check(const struct row *row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		is(row[i].path, row[i].wanted);
}

#define CHECK(table) check(table, sizeof(table) / sizeof(table[0]))

static void test_segments(void)
{
	static const struct row t[] = {
	    {"/", "/"},
	    {"", "/"},
	    {"/a", "/a"},
	    {"/a/", "/a/"},
	    {"/a/b.css", "/a/b.css"},
	    /* slashes */
	    {"//", "/"},
	    {"///", "/"},
	    {"//a", "/a"},
	    {"/a//b", "/a/b"},
	    {"/a//", "/a/"},
	    /* dots, RFC 3986, 5.2.4 and 5.4 */
	    {"/.", "/"},
	    {"/./", "/"},
	    {"/./a", "/a"},
	    {"/a/.", "/a/"},
	    {"/a/./b", "/a/b"},
	    {"/a/..", "/"},
	    {"/a/../", "/"},
	    {"/a/../b", "/b"},
	    {"/a/b/..", "/a/"},
	    {"/a/b/c/./../../g", "/a/g"},
	    {"/a/b/../../c", "/c"},
	    {"/a//../b", "/b"},
	    {"/a/.../b", "/a/.../b"},
	    {"/a/..b", "/a/..b"},
	    {"/a/b..", "/a/b.."},
	    {"/.a", "/.a"},
	    {"/..a", "/..a"},
	    /* escaped dots and slashes */
	    {"/%2e", "/"},
	    {"/%2E/a", "/a"},
	    {"/a/%2e%2E/b", "/b"},
	    {"/a/.%2e/b", "/b"},
	    {"/a/%2e./b", "/b"},
	    {"/a%2fb", "/a%2Fb"},
	    {"/a%2F%2fb", "/a%2F%2Fb"},
	    {"/a/..%2fb", "/a/..%2Fb"},
	    {"/%2f..%2f", "/%2F..%2F"},
	    /* above the root */
	    {"/..", "above"},
	    {"/../", "above"},
	    {"//..", "above"},
	    {"/./..", "above"},
	    {"/%2e%2e", "above"},
	    {"/a/../..", "above"},
	    {"/a/../../a/b", "above"},
	    {"/a//../../b", "above"},
	};

	CHECK(t);
}

static void test_bytes(void)
{
	static const struct row t[] = {
	    {"/%61%7A%2D", "/az-"},
	    {"/%7euser", "/~user"},
	    {"/%21%24%26%27%28%29%2a%2b%2c%3b%3d%3a%40", "/!$&'()*+,;=:@"},
	    {"/%5b%5d%7c", "/[]|"},
	    {"/a%20b", "/a%20b"},
	    {"/%c3%a4", "/%C3%A4"},
	    {"/%3f%23", "/%3F%23"},
	    {"/%5c%5C", "/%5C%5C"},
	    {"/%0a%0D%1f%7f", "/%0A%0D%1F%7F"},
	    {"/%22%3c%3e%5e%60%7b%7d", "/%22%3C%3E%5E%60%7B%7D"},
	    /* decoded only once */
	    {"/%25", "/%25"},
	    {"/%2570rivate", "/%2570rivate"},
	    {"/%252e%252e/a", "/%252e%252e/a"},
	    {"/%c0%ae%c0%ae/a", "/%C0%AE%C0%AE/a"},
	};

	CHECK(t);
}

/* For any combination of these parts, normalizing the normal spelling again changes nothing, and it
 * contains nothing ambiguous. */
static void test_fixed_point(void)
{
	static const char *const parts[] = {"/", "..", ".", "%2e", "%2F", "a", "%5c", "%61", "%25",
	    "0", "%0a", "//", "/./", "/../", "%E4"};
	uint64_t seed = 12345;
	int kept = 0;

	for (int round = 0; round < 50000; round++) {
		char path[200] = "/", once[512];
		for (int i = 0; i < 8; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			strcat(path, parts[(seed >> 33) % (sizeof(parts) / sizeof(parts[0]))]);
		}
		snprintf(once, sizeof(once), "%s", normal(path));
		if (strcmp(once, "above") == 0)
			continue;
		kept++;
		CU_ASSERT_STRING_EQUAL(normal(once), once);
		CU_ASSERT(once[0] == '/' && !strstr(once, "//") && !strstr(once, "/./") &&
			  !strstr(once, "/../") && !strstr(once, "%2e") && !strstr(once, "%61"));
	}
	CU_ASSERT(kept > 10000);
}

static bool may_be(const char *pattern, char hint[160])
{
	size_t n = strlen(pattern);
	bool prefix = n > 0 && pattern[n - 1] == '*';

	hint[0] = '\0';
	return normal_path_pattern(pattern, n - prefix, prefix, hint, 160);
}

static void test_patterns(void)
{
	static const char *const good[] = {"/", "*", "/*", "/a", "/a*", "/a/*", "/.*", "/..*",
	    "/a/.*", "/a%20b*", "/a%2F*", "/[a]", "/.well-known/*", "/a*b", "/a/.b"};
	static const struct {
		const char *pattern, *hint;
	} bad[] = {
	    {"//a", "write the path in its normal form: '/a'"},
	    {"/%61/*", "write the path in its normal form: '/a/*'"},
	    {"/a%2f*", "write the path in its normal form: '/a%2F*'"},
	    {"/a/./b*", "write the path in its normal form: '/a/b*'"},
	    {"/a/.", "write the path in its normal form: '/a/'"},
	    {"/a//*", "write the path in its normal form: '/a/*'"},
	    {"/..", "the path leads above the root"},
	    {"a", NULL},
	    {"", NULL},
	    {"/a b", NULL},
	    {"/\xc3\xa4", NULL},
	    {"/a?b", NULL},
	    {"/%4*", NULL},
	    {"/%", NULL},
	};
	char hint[160];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CU_ASSERT(may_be(good[i], hint));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_FALSE(may_be(bad[i].pattern, hint));
		CU_ASSERT(hint[0] != '\0');
		if (bad[i].hint)
			CU_ASSERT_STRING_EQUAL(hint, bad[i].hint);
	}
}

CUNIT_MAIN("normal paths", {"segments", test_segments}, {"bytes", test_bytes},
    {"fixed point", test_fixed_point}, {"patterns", test_patterns})
