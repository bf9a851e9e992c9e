/* SPDX-License-Identifier: MIT */
/* A site as clients see it: conditional requests, ranges, HEAD, large files, coalesced misses, the
 * size limit of the cache, files that change, slow clients. */
#include "fixture/http/site.h"

static int connect_to(const struct server *s)
{
	int fd = client_open(s->port);

	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	return fd;
}

static bool body_is(const struct answer *a, const char *p, size_t n)
{
	return a->n == n && (n == 0 || memcmp(a->body, p, n) == 0);
}

/* The multipart body of bytes 0-1 and 4-5, compared byte by byte. */
static void check_parts(const struct answer *a, const char *p, size_t n)
{
	static const char type[] = "multipart/byteranges; boundary=";
	const char *field = field_in(a->head, "Content-Type");
	char boundary[64], expected[1024];

	CU_ASSERT_FATAL(field && strncmp(field, type, sizeof(type) - 1) == 0);
	snprintf(boundary, sizeof(boundary), "%.60s", field + sizeof(type) - 1);
	int length = snprintf(expected, sizeof(expected),
	    "\r\n--%s\r\nContent-Range: bytes 0-1/%zu\r\nContent-Type: application/octet-stream"
	    "\r\n\r\n%.2s\r\n--%s\r\nContent-Range: bytes 4-5/%zu\r\nContent-Type: "
	    "application/octet-stream\r\n\r\n%.2s\r\n--%s--\r\n",
	    boundary, n, p, boundary, n, p + 4, boundary);
	CU_ASSERT(body_is(a, expected, (size_t)length));
}

/* Every kind of request for one file, on one connection. */
static void check_file(int fd, const char *path, const char *p, size_t n)
{
	struct answer a = {0};
	char headers[256], etag[128], date[64];

	for (int i = 0; i < 2; i++) { /* cold, then warm */
		CU_ASSERT(site_ask(fd, "GET", path, NULL, &a));
		CU_ASSERT_EQUAL(a.status, 200);
		CU_ASSERT(body_is(&a, p, n));
		CU_ASSERT_STRING_EQUAL(field_in(a.head, "Accept-Ranges"), "bytes");
	}
	snprintf(etag, sizeof(etag), "%.100s", field_in(a.head, "ETag"));
	snprintf(date, sizeof(date), "%.60s", field_in(a.head, "Last-Modified"));
	CU_ASSERT(site_ask(fd, "HEAD", path, NULL, &a));
	CU_ASSERT_EQUAL(a.status, 200);
	CU_ASSERT_EQUAL(a.length, (long)n);
	snprintf(headers, sizeof(headers), "If-None-Match: %s\r\n", etag);
	CU_ASSERT(site_ask(fd, "GET", path, headers, &a));
	CU_ASSERT_EQUAL(a.status, 304);
	CU_ASSERT_EQUAL(a.length, -1);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "ETag"), etag);
	snprintf(headers, sizeof(headers), "If-Modified-Since: %s\r\n", date);
	CU_ASSERT(site_ask(fd, "GET", path, headers, &a));
	CU_ASSERT_EQUAL(a.status, 304);
	CU_ASSERT(site_ask(fd, "GET", path, "If-Match: \"no\"\r\n", &a));
	CU_ASSERT_EQUAL(a.status, 412);
	snprintf(headers, sizeof(headers), "Range: bytes=2-5\r\nIf-Range: %s\r\n", etag);
	CU_ASSERT(site_ask(fd, "GET", path, headers, &a));
	CU_ASSERT_EQUAL(a.status, 206);
	CU_ASSERT(body_is(&a, p + 2, 4));
	snprintf(headers, sizeof(headers), "bytes 2-5/%zu", n);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Content-Range"), headers);
	CU_ASSERT(site_ask(fd, "GET", path, "Range: bytes=2-5\r\nIf-Range: \"no\"\r\n", &a));
	CU_ASSERT(a.status == 200 && body_is(&a, p, n));
	CU_ASSERT(site_ask(fd, "GET", path, "Range: bytes=-3\r\n", &a));
	CU_ASSERT(a.status == 206 && body_is(&a, p + n - 3, 3));
	CU_ASSERT(site_ask(fd, "GET", path, "Range: bytes=0-1,4-5\r\n", &a));
	CU_ASSERT_EQUAL(a.status, 206);
	CU_ASSERT_PTR_NULL(field_in(a.head, "Content-Range"));
	check_parts(&a, p, n);
	CU_ASSERT(site_ask(fd, "GET", path, "Range: bytes=0-1,2-5,1-7\r\n", &a));
	CU_ASSERT(a.status == 206 && body_is(&a, p, 8)); /* merged into one */
	CU_ASSERT(
	    site_ask(fd, "GET", path, "Range: bytes=0-0,2-2,4-4,6-6,8-8,0-,0-,0-,0-\r\n", &a));
	CU_ASSERT(a.status == 200 && body_is(&a, p, n)); /* too many ranges */
	CU_ASSERT(site_ask(fd, "GET", path, "Range: bytes=99999999-\r\n", &a));
	CU_ASSERT_EQUAL(a.status, 416);
	snprintf(headers, sizeof(headers), "bytes */%zu", n);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Content-Range"), headers);
	answer_free(&a);
}

/* Small files are read, medium ones sent by descriptor and cached, large ones never cached. */
static void check_sizes(bool cached)
{
	static const size_t sizes[] = {10, 1000, 16384, 16385, 300000, 3000000};

	site_make();
	struct server s = SITE_START(cached, "cache.with.max_object", "1MiB");
	int fd = connect_to(&s);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *p = site_pattern(sizes[i], (int)i), name[64];
		snprintf(name, sizeof(name), "root/%zu.bin", i);
		site_put(name, p, sizes[i], (int)i);
		check_file(fd, name + 4, p, sizes[i]);
		free(p);
	}
	if (cached)
		CU_ASSERT_EQUAL(
		    stage_metric(&s, "cache", "cache_objects"), 6); /* one is a "pass" */
	close(fd);
	server_stop(&s);
	site_remove();
}

static void test_sizes_disk(void)
{
	check_sizes(false);
}

static void test_sizes_cache(void)
{
	check_sizes(true);
}

static void test_directories(void)
{
	struct answer a = {0};

	site_make();
	site_dir("root/d e");
	site_text("root/d e/index.html", "inner");
	struct server s = SITE_START(true, "disk.threads", "1");
	int fd = connect_to(&s);
	CU_ASSERT(site_ask(fd, "GET", "/d%20e?x=1", NULL, &a));
	CU_ASSERT_EQUAL(a.status, 301);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Location"), "/d%20e/?x=1");
	CU_ASSERT(site_ask(fd, "GET", "/d%20e/?x=1", NULL, &a) && answer_is(&a, 200, "inner"));
	CU_ASSERT(site_ask(fd, "POST", "/d%20e/", "Content-Length: 0\r\n", &a));
	CU_ASSERT_EQUAL(a.status, 405);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Allow"), "GET, HEAD, OPTIONS");
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

/* Many clients, one cold object: the stage after the cache gets one request. */
static void test_coalesced(void)
{
	enum { N = 40 };
	struct server s = server_new("t.reply");
	struct answer a = {0};
	int fd[N];

	struct weir_stage_spec *cache = weir_spec_add_stage(s.spec, "cache", "file.cache");
	fixture_set(cache, "threads", "inline");
	weir_spec_link(cache, "miss", "app", false);
	CU_ASSERT_EQUAL_FATAL(weir_spec_text(&s.spec->stages[0].to[0].stage, "cache"), 0);
	server_start(&s);
	for (int i = 0; i < N; i++) {
		fd[i] = connect_to(&s);
		CU_ASSERT(client_say(fd[i], GET("/wait/it")));
	}
	gate_await(1);
	FIXTURE_AWAIT(stage_metric(&s, "cache", "cache_coalesced_total") == N - 1);
	gate_open("it");
	for (int i = 0; i < N; i++) {
		CU_ASSERT(answer_read(fd[i], &a) && answer_is(&a, 200, "GET /wait/it\n"));
		close(fd[i]);
	}
	CU_ASSERT_EQUAL(stage_metric(&s, "cache", "cache_misses_total"), 1);
	CU_ASSERT_EQUAL(stage_metric(&s, "cache", "cache_hits_total"), 0);
	answer_free(&a);
	server_stop(&s);
}

static void test_bound(void)
{
	enum { FILES = 80, BYTES = 3000 };
	struct answer a = {0};
	char name[32];

	site_make();
	struct server s =
	    SITE_START(true, "cache.with.size", "64KiB", "cache.with.max_object", "8KiB");
	int fd = connect_to(&s);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < FILES; i++) {
			char *p = site_pattern(BYTES, i);
			snprintf(name, sizeof(name), "root/%d", i);
			if (round == 0)
				site_put(name, p, BYTES, i);
			CU_ASSERT(site_ask(fd, "GET", name + 4, NULL, &a));
			CU_ASSERT(a.status == 200 && body_is(&a, p, BYTES));
			CU_ASSERT(stage_metric(&s, "cache", "cache_bytes") <= 65536);
			free(p);
		}
	}
	CU_ASSERT(stage_metric(&s, "cache", "cache_evictions_total") > 0);
	CU_ASSERT(stage_metric(&s, "cache", "cache_objects") > 10);
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

/* Request /f once more. */
static void ask_f(int fd, struct answer *a)
{
	CU_ASSERT_FATAL(site_ask(fd, "GET", "/f", NULL, a));
}

/* A file that changes is noticed; one that does not is revalidated by ETag and stays in memory. */
static void test_revalidated(void)
{
	struct answer a = {0};

	site_make();
	site_put("root/f", "one", 3, 10);
	struct server s = SITE_START(true, "cache.with.revalidate", "1ms");
	int fd = connect_to(&s);
	while (stage_metric(&s, "cache", "cache_revalidations_total") < 3) {
		ask_f(fd, &a);
		CU_ASSERT(answer_is(&a, 200, "one"));
	}
	CU_ASSERT_EQUAL(stage_metric(&s, "disk", "file_read_bytes_total"), 3); /* read once */
	site_put("root/f", "two", 3, 5);
	while (a.status == 200 && memcmp(a.body, "one", 3) == 0)
		ask_f(fd, &a);
	CU_ASSERT(answer_is(&a, 200, "two"));
	CU_ASSERT_EQUAL_FATAL(unlink(site_path("root/f")), 0);
	while (a.status == 200)
		ask_f(fd, &a);
	CU_ASSERT_EQUAL(a.status, 404);
	site_put("root/f", "three", 5, 1);
	while (a.status == 404)
		ask_f(fd, &a);
	CU_ASSERT(answer_is(&a, 200, "three"));
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

/* An object that is evicted while a slow client reads it is still sent whole. */
static void test_slow_reader(void)
{
	enum { BYTES = 900000, FILES = 20 };
	struct answer a = {0}, b = {0};
	char *p = site_pattern(BYTES, 1), name[32];
	int small = 65536; /* so that the object does not fit into the buffers */

	site_make();
	site_put("root/slow", p, BYTES, 0);
	struct server s =
	    SITE_START(true, "cache.with.size", "4MiB", "cache.with.max_object", "1MiB");
	int slow = connect_to(&s), quick = connect_to(&s);
	setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	CU_ASSERT(site_ask(quick, "GET", "/slow", NULL, &b)); /* now the file is in memory */
	CU_ASSERT(client_say(slow, GET("/slow")));
	CU_ASSERT(head_read(slow, a.head, sizeof(a.head)));
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "root/%d", i);
		site_put(name, p, BYTES, i);
		CU_ASSERT(site_ask(quick, "GET", name + 4, NULL, &b));
		CU_ASSERT(body_is(&b, p, BYTES));
	}
	CU_ASSERT(stage_metric(&s, "cache", "cache_evictions_total") > 0);
	a.body = malloc(BYTES);
	for (ssize_t got; a.n < BYTES; a.n += (size_t)got) {
		got = client_recv(slow, a.body + a.n, BYTES - a.n, 0);
		CU_ASSERT_FATAL(got > 0);
	}
	CU_ASSERT(body_is(&a, p, BYTES));
	close(slow);
	close(quick);
	answer_free(&a);
	answer_free(&b);
	free(p);
	server_stop(&s);
	site_remove();
}

/* Ranges larger than any buffer are sent completely, from memory and from disk, also to slow
 * clients. */
static void check_large_parts(const char *max_object)
{
	enum { BYTES = 3 << 20 };
	static const struct {
		size_t first, last;
	} part[] = {{0, 999999}, {2000000, 2900000}, {BYTES - 10, BYTES - 1}};
	char *p = site_pattern(BYTES, 3), *expected = malloc(BYTES + 4096);
	struct answer a = {0};
	int small = 16384;

	site_make();
	site_put("root/large", p, BYTES, 0);
	struct server s = SITE_START(true, "cache.with.max_object", max_object);
	int fd = connect_to(&s);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	for (int i = 0; i < 2; i++) {
		size_t n = 0;
		CU_ASSERT(site_ask(fd, "GET", "/large",
		    i == 0 ? "Range: bytes=0-999999,2000000-2900000,-10\r\n" : NULL, &a));
		/* The next answer is complete too, and the file may now be cached. */
		if (i == 1)
			CU_ASSERT(body_is(&a, p, BYTES));
		CU_ASSERT(site_ask(
		    fd, "GET", "/large", "Range: bytes=0-999999,2000000-2900000,-10\r\n", &a));
		const char *field = field_in(a.head, "Content-Type"),
			   *boundary = strrchr(field, '=') + 1;
		for (int k = 0; k < 3; k++) {
			n += (size_t)sprintf(expected + n,
			    "\r\n--%s\r\nContent-Range: bytes %zu-%zu/%d\r\nContent-Type: "
			    "application/octet-stream\r\n\r\n",
			    boundary, part[k].first, part[k].last, BYTES);
			memcpy(expected + n, p + part[k].first, part[k].last + 1 - part[k].first);
			n += part[k].last + 1 - part[k].first;
		}
		n += (size_t)sprintf(expected + n, "\r\n--%s--\r\n", boundary);
		CU_ASSERT_EQUAL(a.status, 206);
		CU_ASSERT(body_is(&a, expected, n));
	}
	close(fd);
	answer_free(&a);
	free(p);
	free(expected);
	server_stop(&s);
	site_remove();
}

static void test_large_parts(void)
{
	check_large_parts("4MiB");
	check_large_parts("1MiB");
}

CUNIT_MAIN("file server", {"sizes, from disk", test_sizes_disk},
    {"sizes, from the cache", test_sizes_cache}, {"directories", test_directories},
    {"coalesced", test_coalesced}, {"bound", test_bound}, {"revalidated", test_revalidated},
    {"slow reader", test_slow_reader}, {"large parts", test_large_parts})
