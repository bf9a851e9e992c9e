/* SPDX-License-Identifier: MIT */
/* ETags of files that change without a change of size and date: a file that is overwritten and has
 * its date restored is noticed, by clients that revalidate and by the cache. Also ETags that are
 * the same for all copies of a file (`etag: portable`), which do not notice such a change. */
#include "fixture/http/site.h"

/* Overwrite `name` in place with a text of the same length, and restore its date. */
static void change_in_place(const char *name, const char *text)
{
	struct stat st;
	int fd = open(site_path(name), O_WRONLY | O_CLOEXEC);

	CU_ASSERT_EQUAL_FATAL(fstat(fd, &st), 0);
	CU_ASSERT_EQUAL_FATAL(st.st_size, (off_t)strlen(text));
	CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	struct timespec back[2] = {st.st_atim, st.st_mtim};
	CU_ASSERT_EQUAL(futimens(fd, back), 0);
	close(fd);
	site_put_ns = site_now_ns();
}

static void etag_of(const struct answer *a, char out[64])
{
	const char *at = strstr(a->head, "ETag: ");

	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	sscanf(at, "ETag: %63[^\r]", out);
}

/* A file of `n` bytes is overwritten in place. The cache keeps small files in memory, and large
 * ones open. */
static void check_in_place(bool cached, size_t n)
{
	char *old = site_pattern(n, 1), *new = site_pattern(n, 2);
	char was[64], is[64], field[100];
	struct answer a = {0};

	site_make();
	site_put("root/f", old, n, 0);
	struct server s = site_serve(cached, "");
	int fd = client_open(s.port);
	CU_ASSERT(site_ask(fd, "GET", "/f", NULL, &a) && answer_is(&a, 200, old));
	etag_of(&a, was);
	CU_ASSERT_EQUAL(was[0], '"');
	CU_ASSERT(site_ask(fd, "GET", "/f", NULL, &a) && answer_is(&a, 200, old));
	change_in_place("root/f", new);
	/* A cache may serve the old content until it revalidates, `revalidate` later. */
	do {
		CU_ASSERT_FATAL(site_ask(fd, "GET", "/f", NULL, &a) && a.status == 200 && a.n == n);
	} while (cached && memcmp(a.body, old, n) == 0);
	CU_ASSERT(memcmp(a.body, new, n) == 0);
	snprintf(field, sizeof(field), "If-None-Match: %s\r\n", was);
	CU_ASSERT(site_ask(fd, "GET", "/f", field, &a) && a.status == 200);
	etag_of(&a, is);
	CU_ASSERT_STRING_NOT_EQUAL(was, is);
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
	free(old);
	free(new);
}

static void test_in_place(void)
{
	check_in_place(false, 100);
}

static void test_in_place_cached(void)
{
	check_in_place(true, 100);
	check_in_place(true, 100000);
}

/* ETags of copies with the same date, which have other inodes and creation times; and of a file
 * whose date does not fit into 64 bits of nanoseconds. */
static void check_copies(const char *with, bool same)
{
	char one[64], other[64], far[64];
	struct answer a = {0};

	site_make();
	site_text("root/one", "text");
	site_settle();
	site_text("root/other", "text");
	site_put("root/far", "text", 4, -2000000000); /* 2080 */
	struct timespec then[2] = {{10000000000, 7}, {10000000000, 7}};
	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, site_path("root/far"), then, 0), 0);
	struct server s = site_serve(false, with);
	int fd = client_open(s.port);
	CU_ASSERT(site_ask(fd, "GET", "/one", NULL, &a) && answer_is(&a, 200, "text"));
	etag_of(&a, one);
	CU_ASSERT(site_ask(fd, "GET", "/other", NULL, &a) && answer_is(&a, 200, "text"));
	etag_of(&a, other);
	CU_ASSERT(site_ask(fd, "GET", "/far", NULL, &a) && answer_is(&a, 200, "text"));
	etag_of(&a, far);
	CU_ASSERT_PTR_NULL(strstr(a.head, "Last-Modified: Thu, 01 Jan 1970"));
	CU_ASSERT(one[0] == '"' && other[0] == '"' && far[0] == '"');
	CU_ASSERT_EQUAL(strcmp(one, other) == 0, same);
	CU_ASSERT_STRING_NOT_EQUAL(one, far);
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

static void test_copies(void)
{
	check_copies("", false);
	check_copies("etag: portable", true);
}

/* A file and its gzip neighbour with equal length and date: a client that has the bytes of one
 * requests the other. */
static void check_codings(const char *with)
{
	char plain[64], coded[64], field[160];
	struct answer a = {0};

	site_make();
	site_text("root/f.css", "0123456789");
	site_text("root/f.css.gz", "abcdefghij");
	site_settle();
	struct server s = site_serve(false, with);
	int fd = client_open(s.port);
	CU_ASSERT(site_ask(fd, "GET", "/f.css", NULL, &a) && answer_is(&a, 200, "0123456789"));
	etag_of(&a, plain);
	CU_ASSERT(site_ask(fd, "GET", "/f.css", "Accept-Encoding: gzip\r\n", &a) &&
		  answer_is(&a, 200, "abcdefghij"));
	etag_of(&a, coded);
	CU_ASSERT_STRING_NOT_EQUAL(plain, coded);
	snprintf(field, sizeof(field), "Accept-Encoding: gzip\r\nIf-None-Match: %s\r\n", plain);
	CU_ASSERT(site_ask(fd, "GET", "/f.css", field, &a) && answer_is(&a, 200, "abcdefghij"));
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

static void test_codings(void)
{
	check_codings("precompressed: [gzip]");
	check_codings("precompressed: [gzip], etag: portable");
}

CUNIT_MAIN("ETags of files", {"changed in place", test_in_place},
    {"changed in place, behind a cache", test_in_place_cached}, {"copies", test_copies},
    {"codings", test_codings})
