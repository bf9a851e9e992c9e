/* SPDX-License-Identifier: MIT */
/*
 * path_map: which files request paths may name. The table of hostile paths is the corpus of the
 * traversal row in reliability.md; the scenario test sends the same ones to a real server.
 */
#include "file/path.h"

#include <stdio.h>
#include <string.h>

#include "cunit_main.h"
#include "file/nasty_paths.h"

static int map(const char *path, size_t n, const char *index, char *out)
{
	struct weir_slice s = {path, n};

	memset(out, '#', PATH_MAP_MAX);
	return path_map(s, index, out, PATH_MAP_MAX);
}

static void test_honest(void)
{
	static const struct {
		const char *path, *name;
	} cases[] = {
	    {"/", "index.html"},
	    {"/a", "a"},
	    {"/a/", "a/index.html"},
	    {"/a/b.css", "a/b.css"},
	    {"//a///b", "a/b"},
	    {"/a//", "a/index.html"},
	    {"/a/./b", "a/b"},
	    {"/a/.", "a/index.html"},
	    {"/a/../b", "b"},
	    {"/a/b/../../c", "c"},
	    {"/a/..", "index.html"},
	    {"/a/../", "index.html"},
	    {"/a/b/..", "a/index.html"},
	    {"/./a", "a"},
	    {"/%61", "a"},
	    {"/a%20b", "a b"},
	    {"/%2561", "%61"},
	    {"/100%25", "100%"},
	    {"/a%2e%2E", "a.."},
	    {"/a..b", "a..b"},
	    {"/a.", "a."},
	    {"/%C3%A4", "\xc3\xa4"},
	    {"/\xc3\xa4", "\xc3\xa4"},
	    {"/.well-known/security.txt", ".well-known/security.txt"},
	    {"/.well-known/", ".well-known/index.html"},
	    {"/x/../.well-known/a", ".well-known/a"},
	    {"/a:b;c=d,e", "a:b;c=d,e"},
	    {"/~u", "~u"},
	};
	char out[PATH_MAP_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = map(cases[i].path, strlen(cases[i].path), "index.html", out);
		if (rc != 0 || strcmp(out, cases[i].name) != 0)
			printf("\n  %s -> %d '%s'", cases[i].path, rc, rc == 0 ? out : "");
		CU_ASSERT_EQUAL(rc, 0);
		CU_ASSERT_STRING_EQUAL(rc == 0 ? out : "", cases[i].name);
	}
}

static void test_nasty(void)
{
	char out[PATH_MAP_MAX];

	CU_ASSERT(n_nasty_paths >= 80);
	for (int i = 0; i < n_nasty_paths; i++) {
		const struct nasty_path *p = &nasty_paths[i];
		int rc = map(p->path, p->n, "index.html", out);
		int status = rc == 0 ? 0 : rc == WEIR_ENOENT ? 404 : 400;
		if (status != p->status)
			printf("\n  %s: %d, not %d", p->path, status, p->status);
		CU_ASSERT_EQUAL(status, p->status);
	}
}

static void check_directory(const char *path, const char *expected)
{
	char out[PATH_MAP_MAX] = "";
	int rc = path_map_directory((struct weir_slice){path, strlen(path)}, out, sizeof(out));

	if (!expected) {
		CU_ASSERT(rc < 0);
		return;
	}
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_STRING_EQUAL(out, expected);
}

static void test_directory_names(void)
{
	check_directory("/", ".");
	check_directory("//", ".");
	check_directory("/a/..", ".");
	check_directory("/a/", "a");
	check_directory("/a/b/.", "a/b");
	check_directory("/a%20b/", "a b");
	check_directory("/a", NULL);
	check_directory("/a/b", NULL);
	check_directory("/.git/", NULL);
	check_directory("/../", NULL);
	check_directory("a/", NULL);
	check_directory("", NULL);
	check_directory("*", NULL);
}

/* Whatever the bytes are, an accepted name is relative, below the root and without dot files. */
static void check_name(const char *name)
{
	CU_ASSERT(name[0] != '/' && name[0] != '\0');
	for (const char *s = name; s; s = strchr(s, '/')) {
		s += *s == '/';
		size_t n = strcspn(s, "/");
		CU_ASSERT(n > 0);
		CU_ASSERT(s[0] != '.' || (s == name && n == 11 && !memcmp(s, ".well-known", 11)));
	}
	CU_ASSERT_PTR_NULL(strpbrk(name, "\\\n\r\t\x7f"));
}

static void test_random(void)
{
	static const char *const parts[] = {"/", "..", ".", "%2e", "%2f", "%", "%00", "a", "%5c",
	    "\\", "%25", ".well-known", "%zz"};
	uint64_t seed = 12345;
	int passed = 0;

	for (int round = 0; round < 20000; round++) {
		char path[200] = "/", out[PATH_MAP_MAX];
		for (int i = 0; i < 10; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			strcat(path, parts[(seed >> 33) % (sizeof(parts) / sizeof(parts[0]))]);
		}
		if (map(path, strlen(path), "index.html", out) == 0) {
			check_name(out);
			passed++;
		}
	}
	CU_ASSERT(passed > 0);
}

static void test_index(void)
{
	char out[PATH_MAP_MAX];

	CU_ASSERT_EQUAL(map("/", 1, "", out), WEIR_ENOENT);
	CU_ASSERT_EQUAL(map("/a/", 3, "", out), WEIR_ENOENT);
	CU_ASSERT_EQUAL(map("/a", 2, "", out), 0);
	CU_ASSERT_EQUAL(map("/a/", 3, "start.htm", out), 0);
	CU_ASSERT_STRING_EQUAL(out, "a/start.htm");
}

static void test_not_a_path(void)
{
	char out[PATH_MAP_MAX];

	/* http.server never passes such a path: it has resolved ".." before. */
	CU_ASSERT_EQUAL(map("/.git/../index.html", 19, "i", out), WEIR_ENOENT);

	CU_ASSERT_EQUAL(map("", 0, "i", out), WEIR_EINVAL);
	CU_ASSERT_EQUAL(map("*", 1, "i", out), WEIR_EINVAL);
	CU_ASSERT_EQUAL(map("a/b", 3, "i", out), WEIR_EINVAL);
	CU_ASSERT_EQUAL(map("/%4", 2, "i", out), WEIR_EINVAL);
	CU_ASSERT_EQUAL(map("/%4f", 3, "i", out), WEIR_EINVAL);
	CU_ASSERT_EQUAL(map("/a\0b", 4, "i", out), WEIR_EINVAL);
}

static void test_lengths(void)
{
	char path[PATH_MAP_MAX * 2], out[PATH_MAP_MAX];
	struct weir_slice s = {path, 0};

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	CU_ASSERT_EQUAL(map(path, 256, "i", out), 0); /* a segment of 255 bytes */
	CU_ASSERT_EQUAL(map(path, 257, "i", out), WEIR_ENOENT);
	for (size_t i = 0; i < sizeof(path); i += 200)
		path[i] = '/';
	CU_ASSERT_EQUAL(map(path, PATH_MAP_MAX - 1, "i", out), 0);
	CU_ASSERT_EQUAL(map(path, sizeof(path), "i", out), WEIR_ENOENT);
	/* Whatever the size, nothing is written past the end of the buffer. */
	for (size_t size = 0; size <= 12; size++) {
		memcpy(path, "/abcd/ef/", 9);
		s.n = 9;
		memset(out, '#', sizeof(out));
		int rc = path_map(s, "ij", out, size);
		CU_ASSERT_EQUAL(rc == 0, size >= 11);
		CU_ASSERT_EQUAL(out[size], '#');
	}
}

static void test_directory(void)
{
	char out[64];

	CU_ASSERT_EQUAL(path_directory("a/b", out, sizeof(out)), 0);
	CU_ASSERT_STRING_EQUAL(out, "/a/b/");
	CU_ASSERT_EQUAL(path_directory("a b\r\n\xc3?#%", out, sizeof(out)), 0);
	CU_ASSERT_STRING_EQUAL(out, "/a%20b%0D%0A%C3%3F%23%25/");
	CU_ASSERT_EQUAL(path_directory("abc", out, 6), 0);
	CU_ASSERT_EQUAL(path_directory("abcdef", out, 8), WEIR_EINVAL);
	CU_ASSERT_EQUAL(path_directory("a", out, 2), WEIR_EINVAL);
	CU_ASSERT_EQUAL(path_directory("", out, 2), WEIR_EINVAL);
}

CUNIT_MAIN("path", {"directory names", test_directory_names}, {"honest paths", test_honest},
    {"nasty paths", test_nasty}, {"random paths stay below the root", test_random},
    {"index", test_index}, {"not a path", test_not_a_path}, {"lengths", test_lengths},
    {"where a directory is", test_directory})
