/* SPDX-License-Identifier: MIT */
/* Objects of file.cache: which parts of a response are kept, and how requests are answered from
 * them. */
#include "file/cache_answer.h"
#include "file/cache_object.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cunit_main.h"
#include "file/cache_request.h"

#define LAST_MODIFIED "Sun, 06 Nov 1994 08:49:37 GMT"

static const struct cache_limits limits = {
    .max_object_bytes = 1000, .asked_ns = INT64_MAX, .revalidate_ns = 50, .negative_ns = 20};

/* A response like those of file.read. */
static void answer(struct test_request *t, int status, const char *body)
{
	weir_http_respond(t->req, status, NULL, slice(body), NULL, NULL);
	t->req->res.fields =
	    slice("Content-Type: text/plain\r\nETag: \"e1\"\r\nAccept-Ranges: bytes\r\n"
		  "Last-Modified: " LAST_MODIFIED "\r\n");
}

static int keep(struct test_request *t, uint32_t start, struct cache_object **o)
{
	return cache_object_new(t->req, start, 77, t->req->path, 0, &limits, 1000, o);
}

/* An object made of the response of answer(), with `body`. */
static struct cache_object *usual(const char *body)
{
	struct test_request t;
	struct cache_object *o = NULL;

	request_init(&t, "/a.txt");
	answer(&t, 200, body);
	CU_ASSERT_EQUAL_FATAL(keep(&t, 0, &o), 0);
	request_fini(&t);
	return o;
}

static int kind_of(struct test_request *t)
{
	struct cache_object *o;
	int rc = keep(t, 0, &o);

	if (rc < 0)
		return rc;
	int kind = (int)o->kind;
	cache_object_put(o);
	return kind;
}

static void test_whole(void)
{
	struct cache_object *o = usual("hello");

	CU_ASSERT_EQUAL(o->kind, CACHE_WHOLE);
	CU_ASSERT_EQUAL(o->hash, 77);
	CU_ASSERT(weir_slice_is(o->key, "/a.txt"));
	CU_ASSERT(weir_slice_is(o->body, "hello"));
	CU_ASSERT(weir_slice_is(o->file.etag, "\"e1\""));
	CU_ASSERT_EQUAL(o->file.modified_s, 784111777);
	CU_ASSERT_EQUAL(o->file.size_bytes, 5);
	CU_ASSERT_EQUAL(o->checked_ns, 1000);
	CU_ASSERT_EQUAL(o->due_ns, 1050);
	CU_ASSERT(weir_slice_is(o->fields,
	    "Content-Type: text/plain\r\nAccept-Ranges: bytes\r\nETag: \"e1\"\r\n"
	    "Last-Modified: " LAST_MODIFIED "\r\n"));
	CU_ASSERT(
	    weir_slice_is(o->fields_304, "ETag: \"e1\"\r\nLast-Modified: " LAST_MODIFIED "\r\n"));
	CU_ASSERT(o->charge_bytes >= (int64_t)(sizeof(*o) + o->fields.n + 5));
	cache_object_put(o);
}

/* Fields added one by one are kept, fields added before the cache are not. */
static void test_added_fields(void)
{
	struct test_request t;
	struct cache_object *o;

	request_init(&t, "/a");
	weir_http_add_field(t.req, "X-Request", "1");
	uint32_t start = t.req->n_fields;
	weir_http_respond(t.req, 200, "text/x", slice("b"), NULL, NULL);
	weir_http_add_field(t.req, "ETag", "\"e2\"");
	CU_ASSERT_EQUAL_FATAL(keep(&t, start, &o), 0);
	CU_ASSERT(weir_slice_is(o->fields, "Content-Type: text/x\r\nETag: \"e2\"\r\n"));
	CU_ASSERT(weir_slice_is(o->file.etag, "\"e2\""));
	CU_ASSERT_EQUAL(o->file.modified_s, -1);
	cache_object_put(o);
	request_fini(&t);
}

static void check_field(const char *name, const char *value, int kind)
{
	struct test_request t;

	request_init(&t, "/a");
	answer(&t, 200, "b");
	weir_http_add_field(t.req, name, value);
	CU_ASSERT_EQUAL(kind_of(&t), kind);
	request_fini(&t);
}

static void test_what_may_be_kept(void)
{
	check_field("Cache-Control", "max-age=60", CACHE_WHOLE);
	check_field("Cache-Control", "no-store", CACHE_PASS);
	check_field("cache-control", "max-age=60, PRIVATE", CACHE_PASS);
	check_field("Cache-Control", "no-cache", CACHE_PASS);
	check_field("Cache-Control", "no-cache=\"Set-Cookie, X\", max-age=60", CACHE_PASS);
	check_field("Cache-Control", "PUBLIC ,\t No-Store", CACHE_PASS);
	check_field("Cache-Control", "max-age=0", CACHE_PASS);
	check_field("Cache-Control", "public, max-age=\"00\" , must-revalidate", CACHE_PASS);
	check_field("Cache-Control", "max-age=60, s-maxage=0", CACHE_PASS);
	check_field("Cache-Control", "max-age=0, s-maxage=60", CACHE_WHOLE);
	check_field("Cache-Control", "max-age=01", CACHE_WHOLE);
	check_field("Cache-Control", "max-age=", CACHE_WHOLE);
	check_field("Cache-Control", "x-private, y=\"no-store, private\", max-age=5", CACHE_WHOLE);
	check_field("Cache-Control", "y=\"a\\\"b\", no-store", CACHE_PASS);
	check_field("Cache-Control", "y=\"a\\\\\", no-store", CACHE_PASS);
	check_field("Cache-Control", "y=\"\\\", no-store\"", CACHE_WHOLE);
	check_field("Cache-Control", ",, ,", CACHE_WHOLE);
	check_field("Cache-Control", "y=\"no-store", CACHE_WHOLE);
	check_field("Set-Cookie", "a=b", CACHE_PASS);
	check_field("Vary", "Accept-Encoding", CACHE_WHOLE);
	check_field("vary", "accept-encoding", CACHE_WHOLE);
	check_field("Vary", "Accept-Encoding, Cookie", CACHE_PASS);
	check_field("Vary", "Accept", CACHE_PASS);
	check_field("Vary", "*", CACHE_PASS);
	check_field("X-Vary", "Accept-Encoding", CACHE_WHOLE);
}

/* An object that varies belongs to the code of its request, one that does not is for all. */
static void test_codes(void)
{
	struct cache_object *o;
	struct test_request t;

	for (unsigned code = 0; code < 2; code++) {
		request_init(&t, "/a");
		answer(&t, 200, "b");
		CU_ASSERT_FALSE(cache_answer_varies(t.req, 0));
		CU_ASSERT_EQUAL_FATAL(
		    cache_object_new(t.req, 0, 77, t.req->path, code, &limits, 0, &o), 0);
		CU_ASSERT(!o->varies && o->code == 0 && o->hash == 77);
		cache_object_put(o);
		weir_http_add_field(t.req, "Vary", "Accept-Encoding");
		weir_http_add_field(t.req, "Content-Encoding", "br");
		CU_ASSERT(cache_answer_varies(t.req, 0));
		CU_ASSERT_EQUAL_FATAL(
		    cache_object_new(t.req, 0, 77, t.req->path, code, &limits, 0, &o), 0);
		CU_ASSERT(o->varies && o->code == code && o->file.one_part);
		CU_ASSERT_EQUAL(o->hash, cache_variant_hash(77, code));
		CU_ASSERT_EQUAL(o->hash == 77, code == 0);
		CU_ASSERT(
		    weir_slice_is(o->fields_304, "ETag: \"e1\"\r\nLast-Modified: " LAST_MODIFIED
						 "\r\nVary: Accept-Encoding\r\n"));
		cache_object_put(o);
		request_fini(&t);
	}
	o = cache_object_fork(5, slice("/f"));
	CU_ASSERT(o && o->varies && o->kind == CACHE_FORKS && o->code == 0 && o->hash == 5);
	cache_object_put(o);
}

static void test_several_ranges(void)
{
	struct cache_object *o = usual("0123456789");
	struct test_request t;

	request_init(&t, "/a.txt");
	request_header(&t, "Range", "bytes=0-1,8-9");
	cache_object_hold(o);
	CU_ASSERT_EQUAL(cache_object_respond(o, t.req), 0);
	CU_ASSERT_EQUAL(t.req->res.status, 206);
	char *fields = request_fields(&t), *body = request_body(&t);
	CU_ASSERT_PTR_NOT_NULL(strstr(fields, "Content-Type: multipart/byteranges; boundary="));
	CU_ASSERT_PTR_NULL(strstr(fields, "text/plain"));
	CU_ASSERT_PTR_NOT_NULL(strstr(fields, "ETag: \"e1\"\r\n"));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(body, "Content-Range: bytes 8-9/10\r\nContent-Type: text/plain\r\n\r\n89\r\n"));
	free(fields);
	free(body);
	cache_object_put(o); /* the response has its own reference */
	request_fini(&t);
}

static void test_statuses(void)
{
	static const struct {
		int status, kind;
	} cases[] = {{200, CACHE_WHOLE}, {404, CACHE_GONE}, {204, CACHE_PASS}, {206, CACHE_PASS},
	    {301, CACHE_PASS}, {403, CACHE_PASS}, {500, WEIR_EINVAL}, {503, WEIR_EINVAL}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct test_request t;
		request_init(&t, "/a");
		answer(&t, cases[i].status, "b");
		CU_ASSERT_EQUAL(kind_of(&t), cases[i].kind);
		request_fini(&t);
	}
}

static void test_sizes(void)
{
	char body[1002];
	struct test_request t;

	memset(body, 'x', sizeof(body));
	for (size_t n = 999; n <= 1001; n++) {
		request_init(&t, "/a");
		weir_http_respond(t.req, 200, NULL, (struct weir_slice){body, n}, NULL, NULL);
		CU_ASSERT_EQUAL(kind_of(&t), n <= 1000 ? CACHE_WHOLE : CACHE_PASS);
		request_fini(&t);
	}
	struct cache_object *o = usual("");
	CU_ASSERT_EQUAL(o->kind, CACHE_WHOLE);
	CU_ASSERT_EQUAL(o->body.n, 0);
	cache_object_put(o);
}

/* A response for sendfile is read into memory, from its offset. Its descriptor stays open. */
static void test_open_file(void)
{
	struct test_request t;
	struct cache_object *o;
	int fd = memfd_create("weir-test", MFD_CLOEXEC);

	CU_ASSERT_EQUAL_FATAL(write(fd, "0123456789", 10), 10);
	request_init(&t, "/a");
	weir_http_respond_file(t.req, 200, NULL, fd, 2, 6, NULL, NULL);
	CU_ASSERT_EQUAL_FATAL(keep(&t, 0, &o), 0);
	CU_ASSERT(weir_slice_is(o->body, "234567"));
	CU_ASSERT_EQUAL(lseek(fd, 0, SEEK_CUR), 10);
	cache_object_put(o);
	t.req->res.length = 20; /* the file has shrunk */
	CU_ASSERT_EQUAL(keep(&t, 0, &o), WEIR_ESYS);
	request_fini(&t);
	close(fd);
}

/* A response too large for memory is kept as a duplicate descriptor, when it is a whole file and
 * open files may be kept. */
static void test_kept_open(void)
{
	const struct cache_limits open = {.max_object_bytes = 5,
	    .asked_ns = INT64_MAX,
	    .file_charge_bytes = 16384,
	    .revalidate_ns = 50,
	    .negative_ns = 20};
	struct test_request t, asks;
	struct cache_object *o;
	int fd = memfd_create("weir-test", MFD_CLOEXEC);

	CU_ASSERT_EQUAL_FATAL(write(fd, "0123456789", 10), 10);
	request_init(&t, "/a");
	answer(&t, 200, "");
	t.req->res.fd = fd;
	t.req->res.length = 10;
	CU_ASSERT_EQUAL(kind_of(&t), CACHE_WHOLE); /* whole, by the usual limits */
	CU_ASSERT_EQUAL_FATAL(cache_object_new(t.req, 0, 77, t.req->path, 0, &open, 1000, &o), 0);
	CU_ASSERT_EQUAL(o->kind, CACHE_WHOLE);
	CU_ASSERT(o->fd >= 0 && o->fd != fd);
	CU_ASSERT_EQUAL(fcntl(o->fd, F_GETFD), FD_CLOEXEC);
	CU_ASSERT_EQUAL(o->charge_bytes, 16384);
	request_fini(&t);
	static const struct {
		const char *range, *body;
		int status;
	} cases[] = {{NULL, "0123456789", 200}, {"bytes=2-4", "234", 206},
	    {"bytes=10-", "416 Range Not Satisfiable\n", 416}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		request_init(&asks, "/a");
		if (cases[i].range)
			request_header(&asks, "Range", cases[i].range);
		cache_object_hold(o);
		CU_ASSERT_EQUAL(cache_object_respond(o, asks.req), 0);
		CU_ASSERT_EQUAL(asks.req->res.status, cases[i].status);
		char *body = request_body(&asks);
		CU_ASSERT_STRING_EQUAL(body, cases[i].body);
		free(body);
		request_fini(&asks);
	}
	request_init(&asks, "/a");
	request_header(&asks, "Range", "bytes=0-1,8-9");
	cache_object_hold(o);
	CU_ASSERT_EQUAL(cache_object_respond(o, asks.req), 0);
	char *body = request_body(&asks);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(body, "Content-Range: bytes 8-9/10\r\nContent-Type: text/plain\r\n\r\n89\r\n"));
	free(body);
	CU_ASSERT(cache_object_intact(o));
	CU_ASSERT_EQUAL(pwrite(fd, "x", 1, 10), 1); /* the file gets longer */
	CU_ASSERT(!cache_object_intact(o));
	int kept = o->fd;
	cache_object_put(o); /* the response has a reference */
	CU_ASSERT_EQUAL(fcntl(kept, F_GETFD), FD_CLOEXEC);
	request_fini(&asks);
	CU_ASSERT_EQUAL(fcntl(kept, F_GETFD), -1);
	close(fd);
}

/* Not kept: part of a file, a 404, a file whose size has changed; nor anything when open files are
 * not allowed. */
static void test_not_kept_open(void)
{
	struct cache_limits open = {.max_object_bytes = 5,
	    .asked_ns = INT64_MAX,
	    .file_charge_bytes = 16384,
	    .revalidate_ns = 50,
	    .negative_ns = 20};
	struct cache_object *o;
	struct test_request t;
	int fd = memfd_create("weir-test", MFD_CLOEXEC);

	CU_ASSERT_EQUAL_FATAL(write(fd, "0123456789", 10), 10);
	for (int i = 0; i < 4; i++) {
		request_init(&t, "/a");
		weir_http_respond_file(t.req, i == 1 ? 404 : 200, NULL, fd, i == 0,
		    10 - (i == 0) + (i == 2), NULL, NULL);
		open.file_charge_bytes = i == 3 ? 0 : 16384;
		int rc = cache_object_new(t.req, 0, 77, t.req->path, 0, &open, 1000, &o);
		CU_ASSERT_EQUAL(rc, i == 2 ? WEIR_ESYS : 0);
		if (rc == 0) {
			CU_ASSERT_EQUAL(o->kind, CACHE_PASS);
			CU_ASSERT_EQUAL(o->fd, -1);
			cache_object_put(o);
		}
		request_fini(&t);
	}
	close(fd);
}

/* Without free descriptors the response is sent unchanged and nothing is kept, not even the note
 * that it must not be kept. */
static void test_no_descriptor_left(void)
{
	const struct cache_limits open = {.max_object_bytes = 5,
	    .asked_ns = INT64_MAX,
	    .file_charge_bytes = 16384,
	    .revalidate_ns = 50};
	struct cache_object *o = NULL;
	struct test_request t;
	struct rlimit was, none;
	int fd = memfd_create("weir-test", MFD_CLOEXEC), lowest = dup(fd);

	close(lowest);
	CU_ASSERT_EQUAL_FATAL(write(fd, "0123456789", 10), 10);
	request_init(&t, "/a");
	weir_http_respond_file(t.req, 200, NULL, fd, 0, 10, NULL, NULL);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = (rlim_t)lowest;
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
	int rc = cache_object_new(t.req, 0, 77, t.req->path, 0, &open, 1000, &o);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &was), 0);
	CU_ASSERT_EQUAL(rc, WEIR_ESYS);
	CU_ASSERT_EQUAL(t.req->res.fd, fd);
	request_fini(&t);
	close(fd);
}

/* Answer a request from `o`; check the status, the body, and that the fields contain `field`. */
static void check_response(
    struct cache_object *o, struct test_request *t, int status, const char *body, const char *field)
{
	cache_object_hold(o);
	CU_ASSERT_EQUAL(cache_object_respond(o, t->req), 0);
	CU_ASSERT_EQUAL(t->req->res.status, status);
	CU_ASSERT(weir_slice_is(t->req->res.body, body));
	CU_ASSERT_EQUAL(t->req->res.fd, -1);
	char *fields = request_fields(t);
	if (field && !strstr(fields, field))
		printf("\n  '%s' is not in '%s'", field, fields);
	CU_ASSERT(!field || strstr(fields, field) != NULL);
	free(fields);
	request_fini(t);
	CU_ASSERT_EQUAL(o->refs, 1);
}

static void test_respond(void)
{
	struct cache_object *o = usual("hello");
	struct test_request t;

	request_init(&t, "/a.txt");
	check_response(o, &t, 200, "hello", "Content-Type: text/plain\r\n");
	request_init(&t, "/a.txt");
	t.req->method = WEIR_HTTP_HEAD;
	check_response(o, &t, 200, "hello", "ETag: \"e1\"");
	request_init(&t, "/a.txt");
	request_header(&t, "If-None-Match", "\"e1\"");
	check_response(o, &t, 304, "", "ETag: \"e1\"");
	request_init(&t, "/a.txt");
	request_header(&t, "If-Modified-Since", LAST_MODIFIED);
	check_response(o, &t, 304, "", "Last-Modified: ");
	request_init(&t, "/a.txt");
	request_header(&t, "Range", "bytes=1-3");
	check_response(o, &t, 206, "ell", "Content-Range: bytes 1-3/5\r\n");
	request_init(&t, "/a.txt");
	request_header(&t, "Range", "bytes=9-");
	check_response(o, &t, 416, "416 Range Not Satisfiable\n", "Content-Range: bytes */5\r\n");
	request_init(&t, "/a.txt");
	request_header(&t, "If-Match", "\"e2\"");
	check_response(o, &t, 412, "412 Precondition Failed\n", NULL);
	cache_object_put(o);
}

static void count_release(void *arg)
{
	++*(int *)arg;
}

/* An existing response is replaced and released once. */
static void test_replaces(void)
{
	struct cache_object *o = usual("hello");
	struct test_request t;
	int released = 0;

	request_init(&t, "/a.txt");
	weir_http_respond(t.req, 200, "text/x", slice("other"), count_release, &released);
	check_response(o, &t, 200, "hello", "Content-Type: text/plain\r\n");
	CU_ASSERT_EQUAL(released, 1);
	cache_object_put(o);
}

static void test_304_is_bare(void)
{
	struct cache_object *o = usual("hello");
	struct test_request t;

	request_init(&t, "/a.txt");
	request_header(&t, "If-None-Match", "*");
	cache_object_hold(o);
	CU_ASSERT_EQUAL(cache_object_respond(o, t.req), 0);
	CU_ASSERT(t.req->res.no_length);
	char *fields = request_fields(&t);
	CU_ASSERT_PTR_NULL(strstr(fields, "Content-Type"));
	free(fields);
	request_fini(&t);
	cache_object_put(o);
}

static void test_gone(void)
{
	struct test_request t;
	struct cache_object *o;

	request_init(&t, "/a");
	weir_http_respond_status(t.req, 404);
	CU_ASSERT_EQUAL_FATAL(keep(&t, 0, &o), 0);
	CU_ASSERT_EQUAL(o->kind, CACHE_GONE);
	CU_ASSERT_EQUAL(o->due_ns, 1020);
	request_fini(&t);
	request_init(&t, "/a");
	request_header(&t, "Range", "bytes=0-1"); /* conditions do not apply to a 404 */
	request_header(&t, "If-None-Match", "*");
	check_response(o, &t, 404, "404 Not Found\n", "Content-Type: text/plain");
	cache_object_put(o);
}

CUNIT_MAIN("cache_object", {"whole", test_whole}, {"added fields", test_added_fields},
    {"what may be kept", test_what_may_be_kept}, {"codes", test_codes},
    {"several ranges", test_several_ranges}, {"statuses", test_statuses}, {"sizes", test_sizes},
    {"open file", test_open_file}, {"kept open", test_kept_open},
    {"not kept open", test_not_kept_open}, {"no descriptor left", test_no_descriptor_left},
    {"respond", test_respond}, {"replaces", test_replaces}, {"304 is bare", test_304_is_bare},
    {"gone", test_gone})
