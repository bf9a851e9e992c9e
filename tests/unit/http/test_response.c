/* SPDX-License-Identifier: MIT */
/*
 * Responses from stages: no field that splits a response, and no field that only the server may
 * set. Responses replace each other, and every release runs exactly once. Outcomes without a
 * response get one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http.h>

#include "http/request/refusal.h"
#include "http/request/request.h"

#include "cunit_main.h"

static int released;

static void on_release(void *arg)
{
	released += *(int *)arg;
}

static int one = 1, ten = 10;

static struct weir_http_request *make(void)
{
	struct weir_http_request *req = calloc(1, weir_http_request_type.size);

	released = 0;
	return req;
}

static void drop(struct weir_http_request *req)
{
	weir_http_response_reset(req);
	free(req);
}

static bool fields_are(const struct weir_http_request *req, const char *text)
{
	return req->n_fields == strlen(text) && memcmp(req->fields, text, req->n_fields) == 0;
}

static void test_fields(void)
{
	static const char *const bad[][2] = {{"X", "a\r\nY: b"}, {"X", "a\rb"}, {"X", "a\nb"},
	    {"X", "\x01"}, {"X", "\x7f"}, {"X\r\nY", "b"}, {"X Y", "b"}, {"X:", "b"}, {"", "b"},
	    {"\xc3\xa4", "b"}, {"Content-Length", "1"}, {"content-length", "1"}, {"Date", "x"},
	    {"Connection", "close"}, {"Transfer-Encoding", "chunked"}};
	struct weir_http_request *req = make();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(weir_http_add_field(req, bad[i][0], bad[i][1]), WEIR_EINVAL);
		CU_ASSERT_EQUAL(req->n_fields, 0);
	}
	CU_ASSERT_EQUAL(weir_http_add_field(req, "X-A", "b\tc \xc3\xa4"), 0);
	CU_ASSERT_EQUAL(weir_http_add_field(req, "X-B", ""), 0);
	CU_ASSERT(fields_are(req, "X-A: b\tc \xc3\xa4\r\nX-B: \r\n"));
	request_field_drop(req, "X");
	request_field_drop(req, "x-");
	CU_ASSERT(fields_are(req, "X-A: b\tc \xc3\xa4\r\nX-B: \r\n"));
	request_field_drop(req, "x-a");
	CU_ASSERT(fields_are(req, "X-B: \r\n"));
	weir_http_add_field(req, "Y", "x-b: z");
	weir_http_add_field(req, "X-B", "2");
	request_field_drop(req, "X-B");
	CU_ASSERT(fields_are(req, "Y: x-b: z\r\n"));
	request_field_drop(req, "y");
	CU_ASSERT(fields_are(req, ""));
	weir_http_add_field(req, "X-A", "b\tc \xc3\xa4");
	weir_http_add_field(req, "X-B", "");
	drop(req);
}

static bool lines_good(const char *text)
{
	return weir_http_fields_good((struct weir_slice){text, strlen(text)});
}

/* Header lines formatted by the stage itself. */
static void test_ready_fields(void)
{
	static const char *const bad[] = {"A: b", "A: b\n", "A: b\r", "A: b\r\n\r\n",
	    "A: b\nC: d\r\n", "A\r\n", ": b\r\n", "A : b\r\n", " A: b\r\n", "A: b\r\n c\r\n",
	    "A: b\rc\r\n", "A: \177\r\n", "Content-Length: 1\r\n",
	    "A: b\r\ntransfer-encoding: chunked\r\n", "\r\n", "A: b\r\n\n"};

	CU_ASSERT(lines_good(""));
	CU_ASSERT(lines_good("A: b\r\nVary:*\r\nX-Long: \t c:d \xc3\xa4\r\nE:\r\n"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(lines_good(bad[i]));
	CU_ASSERT_FALSE(weir_http_fields_good((struct weir_slice){"A: \0\r\n", 6}));
}

static void test_many_fields(void)
{
	struct weir_http_request *req = make();
	char value[101];
	int n = 0, rc;

	memset(value, 'v', 100);
	value[100] = '\0';
	while ((rc = weir_http_add_field(req, "X-Field", value)) == 0 && n < 1000)
		n++;
	CU_ASSERT_EQUAL(rc, WEIR_ENOMEM);
	CU_ASSERT_EQUAL(req->n_fields, (uint32_t)n * 111);
	CU_ASSERT(n > 100);
	CU_ASSERT_EQUAL(memcmp(req->fields + (n - 1) * 111, "X-Field: vvv", 12), 0);
	drop(req);
}

/* The inline field space of a request is used to its last byte. */
static void test_inline_fields(void)
{
	struct weir_http_request *req = make();
	char value[WEIR_HTTP_FIELDS_INLINE];

	memset(value, 'v', sizeof(value));
	value[sizeof(value) - sizeof("X: \r\n") + 1] = '\0';
	CU_ASSERT_EQUAL(weir_http_add_field(req, "X", value), 0);
	CU_ASSERT_EQUAL(req->n_fields, WEIR_HTTP_FIELDS_INLINE);
	CU_ASSERT_PTR_EQUAL(req->fields, req->fields_inline);
	CU_ASSERT_EQUAL(weir_http_add_field(req, "Y", ""), 0);
	CU_ASSERT_PTR_NOT_EQUAL(req->fields, req->fields_inline);
	CU_ASSERT_EQUAL(memcmp(req->fields + WEIR_HTTP_FIELDS_INLINE, "Y: \r\n", 5), 0);
	drop(req);
}

/* A response contains the trace id when others know the trace: the client named it, or it is
 * exported. */
static void test_trace_text(void)
{
	static const char id[] = "0000000000000001000000000000000a";
	char text[WEIR_TRACE_ID_BYTES];

	for (int known = 0; known < 5; known++) {
		struct weir_trace trace = {
		    .id = {1, 10}, .parent = known & 1 ? 7 : 0, .sampled = known & 2};
		struct weir_http_request *req = make();
		weir_event_init(&req->ev, &weir_http_request_type, 0);
		if (known < 4)
			weir_event_trace_set(&req->ev, &trace);
		memset(text, 'x', sizeof(text));
		bool named = refusal_trace_text(&req->ev, text);
		CU_ASSERT_EQUAL(named, known > 0 && known < 4);
		CU_ASSERT_STRING_EQUAL(text, named ? id : "");
		drop(req);
	}
}

static void test_respond(void)
{
	struct weir_http_request *req = make();
	struct weir_slice body = {"body", 4};

	CU_ASSERT_EQUAL(weir_http_add_field(req, "X", "before"), 0);
	CU_ASSERT_EQUAL(weir_http_respond(req, 200, "text/html", body, on_release, &one), 0);
	CU_ASSERT_EQUAL(req->res.status, 200);
	CU_ASSERT_EQUAL(req->res.fd, -1);
	CU_ASSERT(fields_are(req, "X: before\r\nContent-Type: text/html\r\n"));
	CU_ASSERT_EQUAL(weir_http_respond(req, 201, NULL, body, on_release, &ten), 0);
	CU_ASSERT_EQUAL(released, 1); /* of the first response */
	CU_ASSERT(fields_are(req, ""));
	weir_http_response_reset(req);
	CU_ASSERT_EQUAL(released, 11);
	weir_http_response_reset(req);
	CU_ASSERT_EQUAL(released, 11);
	drop(req);
}

static void test_respond_bad(void)
{
	struct weir_http_request *req = make();
	struct weir_slice body = {"body", 4};

	CU_ASSERT_EQUAL(weir_http_respond(req, 199, NULL, body, on_release, &one), WEIR_EINVAL);
	CU_ASSERT_EQUAL(released, 1);
	CU_ASSERT_EQUAL(req->res.status, 500);
	CU_ASSERT_EQUAL(weir_http_respond(req, 600, NULL, body, on_release, &one), WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_http_respond(req, 200, "a\r\nb", body, on_release, &one), WEIR_EINVAL);
	CU_ASSERT_EQUAL(released, 3);
	CU_ASSERT_EQUAL(req->res.status, 500);
	CU_ASSERT_EQUAL(
	    weir_http_respond_file(req, 200, NULL, -1, 0, 1, on_release, &one), WEIR_EINVAL);
	CU_ASSERT_EQUAL(
	    weir_http_respond_file(req, 200, NULL, 1, -1, 1, on_release, &one), WEIR_EINVAL);
	CU_ASSERT_EQUAL(released, 5);
	drop(req);
}

static void test_copy_and_file(void)
{
	struct weir_http_request *req = make();
	char text[] = "text";

	CU_ASSERT_EQUAL(weir_http_respond_copy(req, 200, NULL, (struct weir_slice){text, 4}), 0);
	text[0] = 'T';
	CU_ASSERT_EQUAL(memcmp(req->res.body.p, "text", 4), 0);
	CU_ASSERT_EQUAL(weir_http_respond_copy(req, 200, NULL, (struct weir_slice){text, 0}), 0);
	CU_ASSERT_EQUAL(req->res.body.n, 0);
	CU_ASSERT_EQUAL(weir_http_respond_file(req, 206, NULL, 7, 2, 3, on_release, &one), 0);
	CU_ASSERT_EQUAL(req->res.fd, 7);
	CU_ASSERT_EQUAL(req->res.offset, 2);
	CU_ASSERT_EQUAL(req->res.length, 3);
	CU_ASSERT_EQUAL(weir_http_respond_status(req, 404), 0);
	CU_ASSERT_EQUAL(released, 1);
	CU_ASSERT_EQUAL(req->res.fd, -1);
	CU_ASSERT_EQUAL(memcmp(req->res.body.p, "404 Not Found\n", 14), 0);
	CU_ASSERT_EQUAL(weir_http_respond_status(req, 304), 0);
	CU_ASSERT(req->res.no_length);
	drop(req);
}

static void test_pieces(void)
{
	struct weir_http_request *req = make();
	struct weir_http_piece good[] = {{"text", 0, 4}, {NULL, 10, 90}},
			       wrong[] = {{"text", 0, -1}}, before[] = {{NULL, -1, 1}},
			       most[] = {{NULL, 0, INT64_MAX}, {"x", 0, 1}};

	CU_ASSERT_EQUAL(weir_http_respond_pieces(req, 206, NULL, good, 2, 7, on_release, &one), 0);
	CU_ASSERT_EQUAL(weir_http_body_bytes(&req->res), 94);
	CU_ASSERT_EQUAL(req->res.n_pieces, 2);
	CU_ASSERT_EQUAL(weir_http_respond_pieces(req, 206, NULL, good, 1, -1, on_release, &one), 0);
	CU_ASSERT_EQUAL(weir_http_body_bytes(&req->res), 4);
	CU_ASSERT_EQUAL(released, 1);
	CU_ASSERT_EQUAL(
	    weir_http_respond_pieces(req, 206, NULL, good, 2, -1, on_release, &one), WEIR_EINVAL);
	CU_ASSERT_EQUAL(released, 3);
	CU_ASSERT_EQUAL(req->res.status, 500);
	CU_ASSERT_EQUAL(req->res.n_pieces, 0);
	CU_ASSERT_EQUAL(
	    weir_http_respond_pieces(req, 206, NULL, good, 0, 7, on_release, &one), WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_http_respond_pieces(req, 206, NULL, good, 65536, 7, on_release, &one),
	    WEIR_EINVAL);
	CU_ASSERT_EQUAL(
	    weir_http_respond_pieces(req, 206, NULL, wrong, 1, 7, on_release, &one), WEIR_EINVAL);
	CU_ASSERT_EQUAL(
	    weir_http_respond_pieces(req, 206, NULL, before, 1, 7, on_release, &one), WEIR_EINVAL);
	CU_ASSERT_EQUAL(
	    weir_http_respond_pieces(req, 206, NULL, most, 2, 7, on_release, &one), WEIR_EINVAL);
	CU_ASSERT_EQUAL(released, 8);
	drop(req);
}

/* ---- finishing ---- */

struct order {
	struct weir_http_tap tap;
	int *next, seen, status, answer;
};

static void on_tap(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	struct order *o = (struct order *)tap;

	o->seen = ++*o->next;
	o->status = status;
	o->answer = req->res.status;
}

/* Finish a request of the test in the same way as an event. */
static void finish(struct weir_http_request *req, int status)
{
	req->ev.type = &weir_http_request_type;
	weir_http_request_type.finish(&req->ev, status);
}

static void test_outcomes(void)
{
	struct weir_http_request *req = make();
	struct weir_slice body = {"x", 1};

	finish(req, WEIR_OK);
	CU_ASSERT_EQUAL(req->res.status, 204);
	weir_http_respond(req, 200, NULL, body, on_release, &one);
	finish(req, WEIR_OK);
	CU_ASSERT_EQUAL(req->res.status, 200);
	CU_ASSERT_EQUAL(released, 0);
	finish(req, WEIR_EQUEUE);
	CU_ASSERT_EQUAL(req->res.status, 503);
	CU_ASSERT_EQUAL(released, 1); /* the response that a stage had begun is dropped */
	finish(req, WEIR_EFAILED);
	CU_ASSERT_EQUAL(req->res.status, 500);
	finish(req, WEIR_ECLOSED);
	CU_ASSERT_EQUAL(req->res.status, 503);
	drop(req);
}

static void test_taps(void)
{
	struct weir_http_request *req = make();
	int next = 0;
	struct order a = {.tap.fn = on_tap, .next = &next}, b = a;

	weir_http_add_tap(req, &a.tap);
	weir_http_add_tap(req, &b.tap);
	CU_ASSERT_PTR_EQUAL(weir_http_find_tap(req, on_tap), &b.tap); /* the last one */
	CU_ASSERT_PTR_NULL(weir_http_find_tap(req, NULL));
	finish(req, WEIR_EDEADLINE);
	CU_ASSERT_EQUAL(b.seen, 1);
	CU_ASSERT_EQUAL(a.seen, 2);
	CU_ASSERT_EQUAL(a.status, WEIR_EDEADLINE);
	CU_ASSERT_EQUAL(a.answer, 503); /* the default response is already set */
	finish(req, WEIR_OK);
	CU_ASSERT_EQUAL(next, 2); /* each runs once */
	drop(req);
}

static void test_lookups(void)
{
	static const struct weir_http_header headers[] = {
	    {{"Accept", 6}, {"a", 1}}, {{"X-Plan", 6}, {"gold", 4}}, {{"X-Plan", 6}, {"tin", 3}}};
	struct weir_http_request *req = make();

	req->headers = headers;
	req->n_headers = 3;
	CU_ASSERT_EQUAL(memcmp(weir_http_header(req, "x-plan").p, "gold", 4), 0);
	CU_ASSERT_PTR_NULL(weir_http_header(req, "x-pla").p);
	CU_ASSERT_STRING_EQUAL(weir_http_reason(404), "Not Found");
	CU_ASSERT_STRING_EQUAL(weir_http_reason(200), "OK");
	CU_ASSERT_STRING_EQUAL(weir_http_reason(507), "Insufficient Storage");
	CU_ASSERT_STRING_EQUAL(weir_http_reason(299), "Unknown");
	CU_ASSERT(weir_slice_is((struct weir_slice){"AbC", 3}, "aBc"));
	CU_ASSERT_FALSE(weir_slice_is((struct weir_slice){"AbC", 2}, "aBc"));
	drop(req);
}

static void test_type_fields(void)
{
	struct weir_http_request *req = make();
	const struct weir_field *f = weir_http_request_type.fields;

	req->ev.type = &weir_http_request_type;
	req->path = (struct weir_slice){"/p", 2};
	for (; f->name; f++) { /* without a connection there is no address; that must not crash */
		struct weir_slice s = f->get(&req->ev, "x");
		bool path = strcmp(f->name, "path") == 0 || strcmp(f->name, "target") == 0;
		size_t n = path ? 2 : strcmp(f->name, "scheme") == 0 ? 4 : 0;
		CU_ASSERT_EQUAL(s.n, n);
	}
	req->query = (struct weir_slice){&"/p?q=1"[3], 3};
	req->path.p = req->query.p - 3; /* path and query are adjacent, as in http.server */
	req->host = (struct weir_slice){"a:80", 4};
	for (f = weir_http_request_type.fields; f->name; f++) {
		struct weir_slice s = f->get(&req->ev, "x");
		if (strcmp(f->name, "target") == 0)
			CU_ASSERT(s.n == 6 && memcmp(s.p, "/p?q=1", 6) == 0);
		if (strcmp(f->name, "host") == 0)
			CU_ASSERT_EQUAL(s.n, 1);
	}
	drop(req);
}

CUNIT_MAIN("response", {"fields", test_fields}, {"ready-made fields", test_ready_fields},
    {"many fields", test_many_fields}, {"inline fields", test_inline_fields},
    {"a trace as text", test_trace_text}, {"respond", test_respond},
    {"bad responses", test_respond_bad}, {"copies and files", test_copy_and_file},
    {"pieces", test_pieces}, {"outcomes", test_outcomes}, {"taps", test_taps},
    {"lookups", test_lookups}, {"fields of the type", test_type_fields})
