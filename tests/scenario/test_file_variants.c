/* SPDX-License-Identifier: MIT */
/* Precompressed files as seen by clients and by caches on the way, from disk and from the cache:
 * negotiated codings, Vary on every answer that varies, an ETag for each variant, ranges of the
 * selected variant, neighbours that appear, disappear and become outdated while the server runs. */
#include "fixture/http/site.h"

#define ALL "precompressed: [br, zstd, gzip]"

static int connect_to(const struct server *s)
{
	int fd = client_open(s->port);

	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	return fd;
}

/* Request `path` with Accept-Encoding `accept` (NULL: none) and further `headers`. */
static void get(int fd, const char *path, const char *accept, const char *headers, struct answer *a)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s%s%s%s", accept ? "Accept-Encoding: " : "",
	    accept ? accept : "", accept ? "\r\n" : "", headers ? headers : "");
	CU_ASSERT_FATAL(site_ask(fd, "GET", path, text, a));
}

static bool varies(const struct answer *a)
{
	const char *vary = field_in(a->head, "Vary");

	return vary && strcmp(vary, "Accept-Encoding") == 0;
}

/* A request with `accept` gets `body` in this coding (NULL: none), with the type of the file. */
static void expect(int fd, const char *accept, const char *body, const char *coding)
{
	struct answer a = {0};

	get(fd, "/f.css", accept, NULL, &a);
	CU_ASSERT(answer_is(&a, 200, body));
	CU_ASSERT(varies(&a));
	const char *got = field_in(a.head, "Content-Encoding");
	CU_ASSERT(coding ? got && strcmp(got, coding) == 0 : !got);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Content-Type"), "text/css; charset=utf-8");
	answer_free(&a);
}

static void put_all(void)
{
	site_make();
	site_put("root/f.css", "plain text of it", 16, 0);
	site_put("root/f.css.br", "BR0123456789", 12, 0);
	site_put("root/f.css.gz", "GZ0123456789!", 13, 0);
	site_put("root/alone.css", "alone", 5, 0);
	site_put("root/old.css", "new text", 8, 0);
	site_put("root/old.css.gz", "OLD", 3, 10);
}

static void check_wishes(bool cached)
{
	struct answer a = {0};

	put_all();
	struct server s = site_serve(cached, ALL);
	int fd = connect_to(&s);
	for (int round = 0; round < 3; round++) { /* in changing order */
		if (round != 1)
			expect(fd, "gzip, deflate, br, zstd", "BR0123456789", "br");
		expect(fd, NULL, "plain text of it", NULL);
		expect(fd, "gzip", "GZ0123456789!", "gzip");
		expect(fd, "br;q=0.5, gzip;q=1", "GZ0123456789!", "gzip");
		expect(fd, "zstd", "plain text of it", NULL);
		expect(fd, "identity", "plain text of it", NULL);
		expect(fd, "br;q=0, *", "GZ0123456789!", "gzip");
		if (round == 1)
			expect(fd, "gzip, deflate, br, zstd", "BR0123456789", "br");
		get(fd, "/f.css", "zstd, identity;q=0", NULL, &a);
		CU_ASSERT(a.status == 406 && varies(&a));
		get(fd, "/alone.css", "br", NULL, &a);
		CU_ASSERT(answer_is(&a, 200, "alone") && !varies(&a));
		get(fd, "/alone.css", "*;q=0", NULL, &a);
		CU_ASSERT(answer_is(&a, 200, "alone")); /* not negotiated */
		get(fd, "/old.css", "gzip", NULL, &a);
		CU_ASSERT(answer_is(&a, 200, "new text") && !varies(&a));
		CU_ASSERT_PTR_NULL(field_in(a.head, "Content-Encoding"));
		get(fd, "/f.css.gz", NULL, NULL, &a); /* the neighbour itself is also a file */
		CU_ASSERT(answer_is(&a, 200, "GZ0123456789!"));
		CU_ASSERT_STRING_EQUAL(field_in(a.head, "Content-Type"), "application/gzip");
	}
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

static void test_wishes_disk(void)
{
	check_wishes(false);
}

static void test_wishes_cache(void)
{
	check_wishes(true);
}

/* Store the ETag of the answer to `accept`. */
static void etag_of(int fd, const char *accept, char etag[128])
{
	struct answer a = {0};

	get(fd, "/f.css", accept, NULL, &a);
	snprintf(etag, 128, "%.120s", field_in(a.head, "ETag"));
	answer_free(&a);
}

static void check_conditions(bool cached)
{
	struct answer a = {0};
	char plain[128], br[128], headers[512];

	put_all();
	struct server s = site_serve(cached, ALL);
	int fd = connect_to(&s);
	etag_of(fd, NULL, plain);
	etag_of(fd, "br", br);
	CU_ASSERT_STRING_NOT_EQUAL(plain, br);
	snprintf(headers, sizeof(headers), "If-None-Match: %s\r\n", br);
	get(fd, "/f.css", "br", headers, &a);
	CU_ASSERT(a.status == 304 && varies(&a));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "ETag"), br);
	CU_ASSERT_PTR_NULL(field_in(a.head, "Content-Encoding"));
	CU_ASSERT_PTR_NULL(field_in(a.head, "Content-Type"));
	get(fd, "/f.css", NULL, headers, &a); /* the tag of the other variant */
	CU_ASSERT(answer_is(&a, 200, "plain text of it"));
	snprintf(headers, sizeof(headers), "Range: bytes=2-4\r\nIf-Range: %s\r\n", br);
	get(fd, "/f.css", "br", headers, &a);
	CU_ASSERT(answer_is(&a, 206, "012") && varies(&a));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Content-Range"), "bytes 2-4/12");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Content-Encoding"), "br");
	get(fd, "/f.css", NULL, headers, &a);
	CU_ASSERT(answer_is(&a, 200, "plain text of it"));
	/* The date is not a validator if the other variants may have the same one. */
	snprintf(headers, sizeof(headers), "Range: bytes=2-4\r\nIf-Range: %.100s\r\n",
	    field_in(a.head, "Last-Modified"));
	get(fd, "/f.css", NULL, headers, &a);
	CU_ASSERT(answer_is(&a, 200, "plain text of it"));
	get(fd, "/f.css", "br", "Range: bytes=0-1,4-5\r\n", &a); /* only one part of coded bytes */
	CU_ASSERT(answer_is(&a, 206, "BR"));
	get(fd, "/f.css", "br", "Range: bytes=99-\r\n", &a);
	CU_ASSERT(a.status == 416 && varies(&a));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Content-Range"), "bytes */12");
	get(fd, "/f.css", "br", "If-Match: \"no\"\r\n", &a);
	CU_ASSERT(a.status == 412 && varies(&a));
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

static void test_conditions_disk(void)
{
	check_conditions(false);
}

static void test_conditions_cache(void)
{
	check_conditions(true);
}

/* Repeat the request until the answer is `body`: the cache revalidates after 20 ms. */
static void await_body(int fd, const char *accept, const char *body, bool vary)
{
	struct answer a = {0};

	do
		get(fd, "/f.css", accept, NULL, &a);
	while (a.status != 200 || strcmp(a.body, body) != 0 || varies(&a) != vary);
	answer_free(&a);
}

/* Neighbours appear, change and disappear while the cache knows the file. */
static void test_neighbours_change(void)
{
	site_make();
	site_put("root/f.css", "plain", 5, 100);
	struct server s = site_serve(true, ALL);
	int fd = connect_to(&s);
	await_body(fd, "br", "plain", false);
	await_body(fd, NULL, "plain", false);
	site_put("root/f.css.br", "BR1", 3, 100);
	await_body(fd, "br", "BR1", true);
	await_body(fd, NULL, "plain", true);
	site_put("root/f.css.br", "BR2", 3, 90);
	await_body(fd, "br", "BR2", true);
	await_body(fd, NULL, "plain", true);
	site_put("root/f.css", "newer", 5, 80); /* the neighbour is forgotten */
	await_body(fd, "br", "newer", false);
	await_body(fd, NULL, "newer", false);
	site_put("root/f.css.br", "BR3", 3, 70);
	await_body(fd, NULL, "newer", true); /* a client without codings finds the neighbour */
	await_body(fd, "br", "BR3", true);
	CU_ASSERT_EQUAL_FATAL(unlink(site_path("root/f.css.br")), 0);
	await_body(fd, "br", "newer", false);
	await_body(fd, NULL, "newer", false);
	close(fd);
	server_stop(&s);
	site_remove();
}

/* A cached answer is a hit for all requests with the same codings, and for all requests if nothing
 * varies. */
static void test_hits(void)
{
	struct answer a = {0};

	put_all();
	struct server s =
	    SITE_START(true, "cache.with.revalidate", "1h", "disk.with.precompressed", "br");
	int fd = connect_to(&s);
	for (int i = 0; i < 10; i++) {
		get(fd, "/alone.css", i % 2 ? "br" : NULL, NULL, &a);
		get(fd, "/f.css", "br", NULL, &a);
		CU_ASSERT(answer_is(&a, 200, "BR0123456789"));
		get(fd, "/f.css", "BR;q=1.0, deflate", NULL, &a);
		get(fd, "/f.css", NULL, NULL, &a);
		CU_ASSERT(answer_is(&a, 200, "plain text of it"));
	}
	CU_ASSERT_EQUAL(stage_metric(&s, "cache", "cache_misses_total"), 3);
	CU_ASSERT_EQUAL(stage_metric(&s, "cache", "cache_hits_total"), 37);
	CU_ASSERT_EQUAL(stage_metric(&s, "disk", "file_precompressed_total"), 1);
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

CUNIT_MAIN("file variants", {"wishes, from disk", test_wishes_disk},
    {"wishes, from the cache", test_wishes_cache}, {"conditions, from disk", test_conditions_disk},
    {"conditions, from the cache", test_conditions_cache},
    {"neighbours change", test_neighbours_change}, {"hits", test_hits})
