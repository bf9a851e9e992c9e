/* SPDX-License-Identifier: MIT */
/* file.read as a stage: each kind of response, from a root with traps. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cunit_main.h"
#include "file/http_call.h"

static char root[] = "/tmp/weir-read-XXXXXX";
static struct weir_graph *graph;
static struct weir_stage *disk;
static struct call *calls[256];
static int n_calls;

static void path_of(char out[128], const char *name)
{
	snprintf(out, 128, "%s/%s", root, name);
}

/* Create a file with a date in the past, so that its ETag is strong. */
static void put(const char *name, const char *text, size_t n)
{
	char path[128];
	struct timespec then[2] = {{784111777, 0}, {784111777, 0}};

	path_of(path, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CU_ASSERT_FATAL(fd != -1);
	CU_ASSERT_EQUAL_FATAL(write(fd, text, n), (ssize_t)n);
	CU_ASSERT_EQUAL_FATAL(futimens(fd, then), 0);
	close(fd);
}

static void set_up(bool missing)
{
	struct weir_spec *spec = weir_spec_new("read");
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "disk", "file.read");

	fixture_set(s, "with.root", root);
	fixture_set(s, "with.max_read", "1KiB");
	fixture_set(s, "with.cache_control", "max-age=60");
	if (missing) {
		weir_spec_link(s, "missing", "other", false);
		weir_spec_add_stage(spec, "other", "drop");
	}
	graph = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(graph, "test"), 0);
	disk = weir_graph_stage(graph, "disk");
}

static void tear_down(void)
{
	struct weir_drain_report report;

	weir_thread_detach();
	weir_graph_drain(graph, 10000000000, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(graph);
	while (n_calls > 0)
		call_free(calls[--n_calls]);
}

/* Send a request with up to two header fields and wait for its response. */
static struct call *ask(enum weir_http_method method, const char *path, const char *name,
    const char *value, const char *name2, const char *value2)
{
	struct call *c = calls[n_calls++] = call_new(path);

	c->t.req->method = method;
	if (name)
		request_header(&c->t, name, value);
	if (name2)
		request_header(&c->t, name2, value2);
	call_send(c, disk);
	call_await(c);
	return c;
}

static struct call *get(const char *path)
{
	return ask(WEIR_HTTP_GET, path, NULL, NULL, NULL, NULL);
}

static struct call *get_if(const char *path, const char *name, const char *value)
{
	return ask(WEIR_HTTP_GET, path, name, value, NULL, NULL);
}

/* Until 100 ms after a change ETags are weak. That is judged by the ctime, which cannot be set, so
 * wait. */
static void settle(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 110000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) != 0)
		;
}

static void test_make_root(void)
{
	char path[128], large[5000];

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
	path_of(path, "sub");
	CU_ASSERT_EQUAL_FATAL(mkdir(path, 0755), 0);
	path_of(path, "sub dir");
	CU_ASSERT_EQUAL_FATAL(mkdir(path, 0755), 0);
	put("index.html", "<p>hi", 5);
	put("a.txt", "0123456789", 10);
	put("empty.css", "", 0);
	put("sub/index.html", "sub", 3);
	memset(large, 'x', sizeof(large));
	put("large.bin", large, sizeof(large));
	path_of(path, "pipe");
	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0644), 0);
	settle();
}

static void test_whole_files(void)
{
	set_up(false);
	struct call *c = get("/a.txt");
	CU_ASSERT_EQUAL(call_status(c), 200);
	CU_ASSERT_EQUAL(c->outcome, WEIR_OK);
	CU_ASSERT(call_body_is(c, "0123456789"));
	CU_ASSERT(call_has_field(c, "Content-Type: text/plain; charset=utf-8\r\n"));
	CU_ASSERT(call_has_field(c, "Accept-Ranges: bytes\r\n"));
	CU_ASSERT(call_has_field(c, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
	CU_ASSERT(call_has_field(c, "Cache-Control: max-age=60\r\n"));
	CU_ASSERT(call_has_field(c, "ETag: \""));
	CU_ASSERT(call_has_field(c, "X-Content-Type-Options: nosniff\r\n"));
	CU_ASSERT(!call_has_field(c, "Vary"));
	CU_ASSERT(call_body_is(get("/"), "<p>hi"));
	CU_ASSERT(call_body_is(get("/sub/"), "sub"));
	CU_ASSERT(call_body_is(get("/%61.txt"), "0123456789"));
	c = get("/empty.css");
	CU_ASSERT_EQUAL(call_status(c), 200);
	CU_ASSERT(call_body_is(c, ""));
	CU_ASSERT_EQUAL(metric_of(graph, "disk", 0), 5);  /* file_opened_total */
	CU_ASSERT_EQUAL(metric_of(graph, "disk", 1), 28); /* file_read_bytes_total */
	tear_down();
}

static void test_large(void)
{
	set_up(false);
	struct call *c = get("/large.bin");
	CU_ASSERT_EQUAL(call_status(c), 200);
	CU_ASSERT(c->t.req->res.fd >= 0);
	CU_ASSERT_EQUAL(c->t.req->res.offset, 0);
	CU_ASSERT_EQUAL(c->t.req->res.length, 5000);
	c = get_if("/large.bin", "Range", "bytes=100-2099");
	CU_ASSERT_EQUAL(call_status(c), 206);
	CU_ASSERT_EQUAL(c->t.req->res.offset, 100);
	CU_ASSERT_EQUAL(c->t.req->res.length, 2000);
	CU_ASSERT(call_has_field(c, "Content-Range: bytes 100-2099/5000\r\n"));
	c = get_if("/large.bin", "Range", "bytes=-100"); /* small enough to read */
	CU_ASSERT_EQUAL(call_status(c), 206);
	CU_ASSERT_EQUAL(c->t.req->res.fd, -1);
	CU_ASSERT_EQUAL(c->t.req->res.body.n, 100);
	CU_ASSERT_EQUAL(metric_of(graph, "disk", 2), 2); /* file_sendfile_total */
	tear_down();
}

static void test_head(void)
{
	set_up(false);
	struct call *c = ask(WEIR_HTTP_HEAD, "/a.txt", "Range", "bytes=0-1", NULL, NULL);
	CU_ASSERT_EQUAL(call_status(c), 200);
	CU_ASSERT(c->t.req->res.fd >= 0); /* its length is sent, its bytes are not read */
	CU_ASSERT_EQUAL(c->t.req->res.length, 10);
	CU_ASSERT_EQUAL(metric_of(graph, "disk", 1), 0);
	c = ask(WEIR_HTTP_HEAD, "/empty.css", NULL, NULL, NULL, NULL);
	CU_ASSERT_EQUAL(call_status(c), 200);
	tear_down();
}

static void test_conditions(void)
{
	char etag[128] = "";

	set_up(false);
	struct call *c = get("/a.txt");
	char *fields = request_fields(&c->t);
	sscanf(strstr(fields, "ETag: "), "ETag: %127[^\r]", etag);
	free(fields);
	c = get_if("/a.txt", "If-None-Match", etag);
	CU_ASSERT_EQUAL(call_status(c), 304);
	CU_ASSERT(c->t.req->res.no_length);
	CU_ASSERT(call_body_is(c, ""));
	CU_ASSERT(call_has_field(c, "ETag: "));
	CU_ASSERT(!call_has_field(c, "Content-Type"));
	CU_ASSERT_EQUAL(call_status(get_if("/a.txt", "If-None-Match", "\"other\"")), 200);
	CU_ASSERT_EQUAL(
	    call_status(get_if("/a.txt", "If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT")),
	    304);
	CU_ASSERT_EQUAL(call_status(get_if("/a.txt", "If-Match", "\"other\"")), 412);
	c = ask(WEIR_HTTP_GET, "/a.txt", "Range", "bytes=2-4", "If-Range", etag);
	CU_ASSERT_EQUAL(call_status(c), 206);
	CU_ASSERT(call_body_is(c, "234"));
	CU_ASSERT_EQUAL(
	    call_status(ask(WEIR_HTTP_GET, "/a.txt", "Range", "bytes=2-4", "If-Range", "\"x\"")),
	    200);
	c = get_if("/a.txt", "Range", "bytes=10-");
	CU_ASSERT_EQUAL(call_status(c), 416);
	CU_ASSERT(call_has_field(c, "Content-Range: bytes */10\r\n"));
	tear_down();
}

/* Several ranges: each in its part, with the type of the file, from a descriptor or from memory. */
static void test_several_ranges(void)
{
	set_up(false);
	struct call *c = get_if("/a.txt", "Range", "bytes=0-1,7-8");
	CU_ASSERT_EQUAL(call_status(c), 206);
	CU_ASSERT(call_has_field(c, "Content-Type: multipart/byteranges; boundary="));
	CU_ASSERT(!call_has_field(c, "Content-Type: text/plain"));
	CU_ASSERT(!call_has_field(c, "Content-Range"));
	CU_ASSERT(call_has_field(c, "ETag: \"") && call_has_field(c, "Last-Modified: "));
	char *text = request_body(&c->t);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(text, "\r\nContent-Range: bytes 0-1/10\r\n"
			 "Content-Type: text/plain; charset=utf-8\r\n\r\n01\r\n--"));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(text, "\r\nContent-Range: bytes 7-8/10\r\n"
			 "Content-Type: text/plain; charset=utf-8\r\n\r\n78\r\n--"));
	free(text);
	c = get_if("/large.bin", "Range", "bytes=0-1999,3000-4999"); /* more than max_read */
	CU_ASSERT_EQUAL(call_status(c), 206);
	CU_ASSERT(c->t.req->res.length > 4000);
	CU_ASSERT_EQUAL(call_status(get_if("/a.txt", "Range", "bytes=10-,20-30")), 416);
	c = ask(WEIR_HTTP_HEAD, "/a.txt", "Range", "bytes=0-1,7-8", NULL, NULL);
	CU_ASSERT_EQUAL(call_status(c), 200);
	tear_down();
}

static void test_directories(void)
{
	set_up(false);
	struct call *c = get("/sub");
	CU_ASSERT_EQUAL(call_status(c), 301);
	CU_ASSERT(call_has_field(c, "Location: /sub/\r\n"));
	c = get("//sub"); /* must not lead to another site */
	CU_ASSERT(call_has_field(c, "Location: /sub/\r\n"));
	c = call_new("/sub%20dir");
	c->t.req->query = slice("a=1&b=%20");
	calls[n_calls++] = c;
	call_send(c, disk);
	call_await(c);
	CU_ASSERT(call_has_field(c, "Location: /sub%20dir/?a=1&b=%20\r\n"));
	CU_ASSERT_EQUAL(call_status(get("/sub%20dir/")), 404); /* the folder has no index */
	tear_down();
}

static void test_refused(void)
{
	set_up(false);
	CU_ASSERT_EQUAL(call_status(get("/nothing")), 404);
	CU_ASSERT_EQUAL(call_status(get("/pipe")), 404);
	CU_ASSERT_EQUAL(call_status(get("/.git/config")), 404);
	CU_ASSERT_EQUAL(call_status(get("/../a.txt")), 400);
	CU_ASSERT_EQUAL(call_status(get("*")), 400);
	struct call *c = ask(WEIR_HTTP_POST, "/a.txt", NULL, NULL, NULL, NULL);
	CU_ASSERT_EQUAL(call_status(c), 405);
	CU_ASSERT(call_has_field(c, "Allow: GET, HEAD, OPTIONS\r\n"));
	c = ask(WEIR_HTTP_OPTIONS, "/nothing", NULL, NULL, NULL, NULL);
	CU_ASSERT_EQUAL(call_status(c), 204);
	CU_ASSERT(call_has_field(c, "Allow: GET, HEAD, OPTIONS\r\n"));
	tear_down();
}

static void test_missing_outlet(void)
{
	set_up(true);
	CU_ASSERT_EQUAL(call_status(get("/nothing")), 204); /* the response of the other stage */
	CU_ASSERT_EQUAL(call_status(get("/.env")), 204);
	CU_ASSERT_EQUAL(call_status(get("/a.txt")), 200);
	CU_ASSERT_EQUAL(call_status(get("/%zz")), 400);
	tear_down();
}

static void test_out_of_descriptors(void)
{
	struct rlimit before, none;

	set_up(false);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3;
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
	struct call *c = get("/a.txt");
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &before), 0);
	CU_ASSERT_EQUAL(c->outcome, WEIR_EPRESSURE);
	CU_ASSERT_EQUAL(call_status(c), 503);
	tear_down();
}

/* When a deployment replaces the root directory, by a rename or by changing a link, a running
 * server notices. */
static void test_root_replaced(void)
{
	const struct timespec pause = {0, 50000000};
	char old[64], path[128];
	struct call *c;

	snprintf(old, sizeof(old), "%s-old", root);
	set_up(false);
	CU_ASSERT(call_body_is(get("/a.txt"), "0123456789"));
	CU_ASSERT_EQUAL_FATAL(rename(root, old), 0);
	CU_ASSERT(call_body_is(get("/a.txt"), "0123456789")); /* no new root exists yet */
	CU_ASSERT_EQUAL_FATAL(mkdir(root, 0755), 0);
	put("a.txt", "new", 3);
	for (int i = 0; i < 200; i++) {
		c = get("/a.txt");
		if (call_body_is(c, "new"))
			break;
		nanosleep(&pause, NULL);
	}
	CU_ASSERT(call_body_is(c, "new"));
	CU_ASSERT_EQUAL(call_status(get("/large.bin")), 404);
	tear_down();
	path_of(path, "a.txt");
	CU_ASSERT_EQUAL(remove(path), 0);
	CU_ASSERT_EQUAL(rename(old, root), 0);
}

/* Init fails with `words` in the message. */
static void check_init(const char *knob, const char *value, const char *words)
{
	struct weir_spec *spec = weir_spec_new("bad");
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "disk", "file.read");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = NULL;

	fixture_set(s, "with.root", root);
	fixture_set(s, knob, value);
	CU_ASSERT(weir_graph_build(spec, &g, errs) < 0);
	CU_ASSERT_EQUAL(errs->n, 1);
	if (!strstr(errs->err[0].text, words))
		printf("\n  '%s'", errs->err[0].text);
	CU_ASSERT_PTR_NOT_NULL(strstr(errs->err[0].text, words));
	weir_spec_free(spec);
	free(errs);
}

static void test_bad_configuration(void)
{
	check_init("with.root", "/nowhere/at/all", "cannot be opened: No such file or directory");
	check_init("with.index", "a/b.html", "'index' must be a file name");
	check_init("with.cache_control", "a\r\nSet-Cookie: x", "'cache_control' must be one line");
}

static void test_remove_root(void)
{
	static const char *const names[] = {"index.html", "a.txt", "empty.css", "sub/index.html",
	    "sub", "sub dir", "large.bin", "pipe", ""};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[128];
		path_of(path, names[i]);
		CU_ASSERT_EQUAL(remove(path), 0);
	}
}

CUNIT_MAIN("file.read", {"make a root", test_make_root}, {"whole files", test_whole_files},
    {"large files", test_large}, {"HEAD", test_head}, {"conditions", test_conditions},
    {"several ranges", test_several_ranges}, {"directories", test_directories},
    {"refused", test_refused}, {"missing outlet", test_missing_outlet},
    {"out of descriptors", test_out_of_descriptors}, {"root replaced", test_root_replaced},
    {"bad configuration", test_bad_configuration}, {"remove the root", test_remove_root})
