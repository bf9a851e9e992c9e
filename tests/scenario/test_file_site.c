/* SPDX-License-Identifier: MIT */
/* Site settings of file.read: rules of Cache-Control, error pages, listings, links, with and
 * without a cache in front; and what its configuration refuses. */
#include "config.h"
#include "fixture/http/site.h"

static int connect_to(const struct server *s)
{
	int fd = client_open(s->port);

	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	return fd;
}

static bool field_is(const struct answer *a, const char *name, const char *value)
{
	const char *got = field_in(a->head, name);

	return value ? got && strcmp(got, value) == 0 : !got;
}

static void expect_control(int fd, const char *path, const char *value)
{
	struct answer a = {0};

	for (int i = 0; i < 2; i++) {
		CU_ASSERT(site_ask(fd, "GET", path, NULL, &a));
		CU_ASSERT_EQUAL(a.status, 200);
		CU_ASSERT(field_is(&a, "Cache-Control", value));
	}
	answer_free(&a);
}

static void check_cache_control(bool cached)
{
	site_make();
	site_dir("root/assets");
	site_dir("root/assets/deep");
	site_text("root/index.html", "i");
	site_text("root/a.css", "c");
	site_text("root/a.js", "j");
	site_text("root/assets/a.css", "c");
	site_text("root/assets/deep/x.bin", "x");
	struct server s = site_serve(cached,
	    "cache_control: no-transform, cache_rules: [ { match: \"/assets/*\", value: "
	    "\"max-age=31536000, immutable\" }, { match: \"*.css\", value: \"max-age=60\" }, "
	    "{ match: \"*.js\", value: \"\" } ]");
	int fd = connect_to(&s);
	expect_control(fd, "/", "no-transform");
	expect_control(fd, "/a.css", "max-age=60");
	expect_control(fd, "/a.js", NULL);
	expect_control(fd, "/assets/a.css", "max-age=31536000, immutable");
	expect_control(fd, "/assets/deep/x.bin", "max-age=31536000, immutable");
	close(fd);
	server_stop(&s);
	site_remove();
}

static void test_cache_control(void)
{
	check_cache_control(false);
	check_cache_control(true);
}

static void check_pages(bool cached)
{
	char *large = site_pattern(40000, 1);
	struct answer a = {0};

	site_make();
	site_dir("root/errors");
	site_text("root/index.html", "welcome");
	site_text("root/errors/gone.html", "<p>not here");
	site_put("root/errors/bad.txt", large, 40000, 0); /* larger than max_read */
	struct server s = site_serve(cached, "error_pages: { 404: /errors/gone.html, 400: "
					     "/errors/bad.txt, 405: /errors/none.html }");
	int fd = connect_to(&s);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(site_ask(
		    fd, "GET", "/nothing", "If-None-Match: *\r\nRange: bytes=0-1\r\n", &a));
		CU_ASSERT(answer_is(&a, 404, "<p>not here"));
		CU_ASSERT(field_is(&a, "Content-Type", "text/html; charset=utf-8"));
		CU_ASSERT(field_is(&a, "ETag", NULL) && field_is(&a, "Last-Modified", NULL));
		CU_ASSERT(field_is(&a, "Accept-Ranges", NULL));
		CU_ASSERT(site_ask(fd, "GET", "/nothing", NULL, &a));
		CU_ASSERT(answer_is(&a, 404, "<p>not here"));
		CU_ASSERT(site_ask(fd, "HEAD", "/nothing", NULL, &a));
		CU_ASSERT(a.status == 404 && a.length == 11);
		CU_ASSERT(site_ask(fd, "GET", "/x%0a", NULL, &a));
		CU_ASSERT(a.status == 400 && a.n == 40000 && memcmp(a.body, large, 40000) == 0);
		CU_ASSERT(site_ask(fd, "DELETE", "/", NULL, &a)); /* no page for 405 exists */
		CU_ASSERT(answer_is(&a, 405, "405 Method Not Allowed\n"));
		CU_ASSERT(field_is(&a, "Allow", "GET, HEAD, OPTIONS"));
		CU_ASSERT(site_ask(fd, "OPTIONS", "/", NULL, &a));
		CU_ASSERT(a.status == 204 && field_is(&a, "Allow", "GET, HEAD, OPTIONS"));
		CU_ASSERT(site_ask(fd, "GET", "/errors/gone.html", NULL, &a));
		CU_ASSERT(answer_is(&a, 200, "<p>not here")); /* served like any file */
	}
	close(fd);
	answer_free(&a);
	free(large);
	server_stop(&s);
	site_remove();
}

static void test_pages(void)
{
	check_pages(false);
	check_pages(true);
}

static void check_listing(bool cached)
{
	struct answer a = {0};

	site_make();
	site_set_traps();
	site_dir("root/d");
	site_text("root/d/<b>.txt", "bold");
	struct server s = site_serve(cached, "listing: json");
	int fd = connect_to(&s);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(site_ask(fd, "GET", "/", NULL, &a) && answer_is(&a, 200, "welcome"));
		CU_ASSERT(site_ask(fd, "GET", "/d/", NULL, &a));
		CU_ASSERT_EQUAL(a.status, 200);
		CU_ASSERT(field_is(&a, "Content-Type", "application/json"));
		CU_ASSERT_PTR_NOT_NULL(
		    strstr(a.body, "{\"name\":\"<b>.txt\",\"href\":\"./%3Cb%3E.txt\","));
		CU_ASSERT(
		    site_ask(fd, "GET", "/d/%3Cb%3E.txt", NULL, &a) && answer_is(&a, 200, "bold"));
		CU_ASSERT(site_ask(fd, "GET", "/d?x=1", NULL, &a));
		CU_ASSERT(a.status == 301 && field_is(&a, "Location", "/d/?x=1"));
		CU_ASSERT(site_ask(fd, "GET", "/a/", NULL, &a)); /* its index is a pipe */
		CU_ASSERT_EQUAL(a.status, 200);
		CU_ASSERT(!strstr(a.body, "hidden") && !strstr(a.body, "index.html") &&
			  !strstr(a.body, "deep.txt") && !strstr(a.body, "\"up\""));
		CU_ASSERT(site_ask(fd, "GET", "/up/", NULL, &a) && a.status == 404);
		CU_ASSERT(site_ask(fd, "GET", "/dirlink/", NULL, &a) && a.status == 404);
		CU_ASSERT(site_ask(fd, "GET", "/.git/", NULL, &a) && a.status == 404);
		CU_ASSERT(site_ask(fd, "GET", "/%0a/", NULL, &a) && a.status == 400);
		CU_ASSERT(site_ask(fd, "GET", "/nothing/", NULL, &a) && a.status == 404);
	}
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

static void test_listing(void)
{
	check_listing(false);
	check_listing(true);
}

/* A listing has no ranges, whether it is fetched, in the cache, or the answer to a first request
 * for a range. */
static void check_listing_has_no_ranges(bool cached)
{
	static const char *const ranges[] = {
	    "Range: bytes=0-1\r\n", "Range: bytes=0-1,4-5\r\n", "Range: bytes=1000000-\r\n"};
	struct answer a = {0}, whole = {0};

	site_make();
	site_dir("root/d");
	site_dir("root/e");
	site_text("root/d/one", "1");
	site_text("root/e/one", "1");
	struct server s = site_serve(cached, "listing: html");
	int fd = connect_to(&s);
	CU_ASSERT(site_ask(fd, "GET", "/d/", NULL, &whole) && whole.status == 200);
	CU_ASSERT(field_is(&whole, "Accept-Ranges", "none"));
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		CU_ASSERT(site_ask(fd, "GET", "/d/", ranges[i], &a));
		CU_ASSERT(a.status == 200 && a.n == whole.n && field_is(&a, "Content-Range", NULL));
		CU_ASSERT(site_ask(fd, "GET", "/e/", ranges[i], &a));
		CU_ASSERT(a.status == 200 && a.n == whole.n && field_is(&a, "Content-Range", NULL));
	}
	close(fd);
	answer_free(&a);
	answer_free(&whole);
	server_stop(&s);
	site_remove();
}

static void test_listing_has_no_ranges(void)
{
	check_listing_has_no_ranges(false);
	check_listing_has_no_ranges(true);
}

/* The tag of a listing depends on its content: a client that has it need not get it again until a
 * name or a size changes. */
static void check_listing_asked_again(bool cached)
{
	struct answer a = {0};
	char have[128], etag[64];

	site_make();
	site_dir("root/d");
	site_text("root/d/one", "1");
	struct server s = site_serve(cached, "listing: html");
	int fd = connect_to(&s);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(site_ask(fd, "GET", "/d/", NULL, &a) && a.status == 200);
		CU_ASSERT_FATAL(field_in(a.head, "ETag") != NULL);
		snprintf(etag, sizeof(etag), "%.60s", field_in(a.head, "ETag"));
		CU_ASSERT_EQUAL(strncmp(etag, "W/\"", 3), 0);
		CU_ASSERT(site_ask(fd, "HEAD", "/d/", NULL, &a) && a.status == 200 &&
			  field_is(&a, "ETag", etag));
		snprintf(have, sizeof(have), "If-None-Match: \"x\", %s\r\n", etag);
		CU_ASSERT(site_ask(fd, "GET", "/d/", have, &a));
		CU_ASSERT(a.status == 304 && a.n == 0 && field_is(&a, "ETag", etag));
		CU_ASSERT(site_ask(fd, "GET", "/d/", "If-None-Match: W/\"x\"\r\n", &a) &&
			  a.status == 200);
		snprintf(have, sizeof(have), "If-Match: %s\r\n", etag); /* weak tags never match */
		CU_ASSERT(site_ask(fd, "GET", "/d/", have, &a) && a.status == 412);
		CU_ASSERT(site_ask(fd, "GET", "/d/", "If-Match: *\r\n", &a) && a.status == 200);
	}
	site_text("root/d/two", "22");
	snprintf(have, sizeof(have), "If-None-Match: %s\r\n", etag);
	do {
		CU_ASSERT_FATAL(site_ask(fd, "GET", "/d/", have, &a));
	} while (a.status == 304);
	CU_ASSERT(a.status == 200 && !field_is(&a, "ETag", etag));
	CU_ASSERT_PTR_NOT_NULL(strstr(a.body, "two"));
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

static void test_listing_asked_again(void)
{
	check_listing_asked_again(false);
	check_listing_asked_again(true);
}

/* Links that stay inside the root are followed if enabled; no others are. */
static void test_symlinks(void)
{
	static const struct {
		const char *path;
		int status;
	} cases[] = {{"/in.html", 200}, {"/dirlink/b/c.txt", 200}, {"/dirlink", 301},
	    {"/out.txt", 404}, {"/up/secret.txt", 404}, {"/up/", 404}, {"/etc/passwd", 404},
	    {"/passwd", 404}, {"/loop", 404}, {"/magic/passwd", 404}, {"/a/deep.txt", 404},
	    {"/a/up/secret.txt", 404}, {"/cwd/secret.txt", 404}, {"/fd/0", 404}, {"/fifo", 404}};
	struct answer a = {0};

	site_make();
	site_set_traps();
	struct server s =
	    site_serve(true, "symlinks: beneath, listing: html, precompressed: [br, gzip]");
	int fd = connect_to(&s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CU_ASSERT(site_ask(fd, "GET", cases[i].path, "Accept-Encoding: br, gzip\r\n", &a));
		if (a.status != cases[i].status)
			fprintf(stderr, "%s: %d\n", cases[i].path, a.status);
		CU_ASSERT_EQUAL(a.status, cases[i].status);
		CU_ASSERT(!a.body || (!strstr(a.body, SECRET) && !strstr(a.body, "root:")));
	}
	close(fd);
	answer_free(&a);
	server_stop(&s);
	site_remove();
}

static void expect_refused(const char *with, const char *words)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_spec *spec = NULL;
	struct weir_graph *g = NULL;
	char yaml[1024], text[2048] = "";

	snprintf(yaml, sizeof(yaml),
	    "weir: 1\nadmin: { listen: \"\" }\nstages:\n  web: { use: http.server, with: { listen: "
	    "\"127.0.0.1:0\" }, to: { request: disk } }\n  disk: { use: file.read, with: { root: "
	    "/, %s "
	    "} }\n",
	    with);
	if (config_load_text(yaml, strlen(yaml), "test.yaml", &spec, errs) == 0)
		CU_ASSERT(weir_graph_build(spec, &g, errs) < 0);
	weir_errs_format(errs, text, sizeof(text));
	if (!strstr(text, words))
		fprintf(stderr, "%s: %s", with, text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, words));
	weir_spec_free(spec);
	free(errs);
}

static void test_bad_configuration(void)
{
	expect_refused("precompressed: [br, lzma]", "'precompressed' cannot contain 'lzma'");
	expect_refused("precompressed: [identity]", "'precompressed' cannot contain 'identity'");
	expect_refused("precompressed: [gzip, x-gzip]", "'precompressed' names 'x-gzip' twice");
	expect_refused("error_pages: { 404: 404.html }", "'error_pages' cannot be '404.html'");
	expect_refused("error_pages: { 404: /../x }", "'error_pages' cannot be '/../x'");
	expect_refused("error_pages: { 400: / }", "'error_pages' cannot be '/'");
	expect_refused("error_pages: { 500: /x }", "500");
	expect_refused("cache_rules: [ { match: a, value: \"a\\r\\nb\" } ]", "must be one line");
	expect_refused("cache_rules: [ { match: a } ]", "value");
	expect_refused("listing: yes", "listing");
	expect_refused("symlinks: all", "symlinks");
}

CUNIT_MAIN("file site", {"Cache-Control", test_cache_control}, {"pages of errors", test_pages},
    {"listing", test_listing}, {"listing asked again", test_listing_asked_again},
    {"listing without ranges", test_listing_has_no_ranges}, {"symlinks", test_symlinks},
    {"bad configuration", test_bad_configuration})
