/* SPDX-License-Identifier: MIT */
/*
 * From bytes to requests: the same requests with the same bytes at any split, which stay valid
 * while later ones are read; bodies within limits and budget; nothing is parsed after an error.
 */
#include "http/request/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http_guard.h>

#include "cunit_main.h"

#define MAX_BODY     100000
#define REQUESTS_MAX 200

/* The result of a run. Requests are kept until the end, to check that their bytes stay valid. */
struct outcome {
	int n, status;
	struct http_req *r[REQUESTS_MAX];
	struct stream s;
	struct pool pool;
	_Atomic int64_t budget;
};

static struct weir_http_header scratch[WEIR_HTTP_HEADERS_MAX];

static void outcome_init(struct outcome *o, int64_t budget)
{
	memset(o, 0, sizeof(*o));
	atomic_init(&o->budget, budget);
	pool_init(&o->pool, &o->budget);
}

static void outcome_fini(struct outcome *o, int64_t budget)
{
	for (int i = 0; i < o->n; i++)
		pool_req_drop(&o->pool, o->r[i]);
	stream_fini(&o->s, &o->pool);
	CU_ASSERT_EQUAL(atomic_load(&o->budget), budget);
	pool_fini(&o->pool);
}

static void drain_requests(struct outcome *o)
{
	for (;;) {
		struct http_req *r;
		enum stream_verdict v = stream_next(&o->s, &o->pool, MAX_BODY, scratch, &r);
		if (v == STREAM_REFUSED)
			o->status = o->s.status;
		if (v != STREAM_REQUEST)
			return;
		CU_ASSERT_FATAL(o->n < REQUESTS_MAX);
		o->r[o->n++] = r;
	}
}

/* Feed p[0..n) as one arrival, in as many reads as the buffers need. */
static void feed(struct outcome *o, const char *p, size_t n)
{
	while (n > 0 && o->status == 0) {
		char *room;
		size_t size = stream_room(&o->s, &o->pool, &room);
		if (size == 0) {
			o->status = o->s.status;
			return;
		}
		size = size < n ? size : n;
		memcpy(room, p, size);
		stream_got(&o->s, size);
		p += size;
		n -= size;
		drain_requests(o);
	}
}

static bool same_slice(struct weir_slice a, struct weir_slice b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static bool same_request(const struct weir_http_request *a, const struct weir_http_request *b)
{
	bool same = a->method == b->method && a->minor == b->minor &&
		    a->n_headers == b->n_headers && same_slice(a->target, b->target) &&
		    same_slice(a->path, b->path) && same_slice(a->query, b->query) &&
		    same_slice(a->host, b->host) && same_slice(a->body, b->body);

	for (int i = 0; same && i < a->n_headers; i++)
		same = same_slice(a->headers[i].name, b->headers[i].name) &&
		       same_slice(a->headers[i].value, b->headers[i].value);
	return same;
}

static void compare(const struct outcome *a, const struct outcome *b)
{
	CU_ASSERT_EQUAL(a->n, b->n);
	CU_ASSERT_EQUAL(a->status, b->status);
	for (int i = 0; i < a->n && i < b->n; i++)
		CU_ASSERT(same_request(&a->r[i]->pub, &b->r[i]->pub));
}

static struct outcome *whole_of(const char *text, size_t n)
{
	struct outcome *o = malloc(sizeof(*o));

	outcome_init(o, 1 << 20);
	feed(o, text, n);
	return o;
}

/* Every split in two, byte by byte, and random splits give the same result as the whole text. */
static void check_splits(const char *text, size_t n, size_t step)
{
	struct outcome *whole = whole_of(text, n);
	struct outcome o;

	for (size_t split = 1; split < n; split += step) {
		outcome_init(&o, 1 << 20);
		feed(&o, text, split);
		feed(&o, text + split, n - split);
		compare(whole, &o);
		outcome_fini(&o, 1 << 20);
	}
	for (unsigned seed = 0; seed < 30; seed++) {
		outcome_init(&o, 1 << 20);
		srand(seed);
		for (size_t at = 0; at < n;) {
			size_t len = seed == 0 ? 1 : 1 + (size_t)rand() % (1 + n / 4);
			len = len < n - at ? len : n - at;
			feed(&o, text + at, len);
			at += len;
		}
		compare(whole, &o);
		outcome_fini(&o, 1 << 20);
	}
	outcome_fini(whole, 1 << 20);
	free(whole);
}

#define CHECK_SPLITS(text) check_splits(text, sizeof(text) - 1, 1)

static void test_splits(void)
{
	CHECK_SPLITS("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK_SPLITS("GET /p?q HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n"
		     "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world"
		     "POST /y HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: v\r\n\r\n"
		     "\r\nGET http://a HTTP/1.1\r\nHost: a\r\n\r\n"
		     "DELETE / HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
	CHECK_SPLITS("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\nHost: a\r\n\r\n"
		     "GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK_SPLITS(
	    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n");
	CHECK_SPLITS("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100001\r\n\r\nx");
}

/* Text made of parts, for texts that are too long to write out. */
static char *repeat(const char *head, const char *part, int times, const char *tail, size_t *n)
{
	size_t h = strlen(head), p = strlen(part), t = strlen(tail);
	char *text = malloc(h + p * (size_t)times + t + 1), *at = text;

	memcpy(at, head, h);
	at += h;
	for (int i = 0; i < times; i++, at += p)
		memcpy(at, part, p);
	memcpy(at, tail, t);
	*n = (size_t)(at - text) + t;
	return text;
}

static void test_long(void)
{
	size_t n;
	char *text;

	/* A head longer than a small buffer; more headers than fit inline. */
	text = repeat("GET / HTTP/1.1\r\nHost: a\r\n",
	    "X-Some-Field: with some value in it, 0123456789 "
	    "0123456789 0123456789 0123456789 0123456789\r\n",
	    60, "\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", &n);
	check_splits(text, n, 101);
	free(text);
	/* A head that is too long. */
	text = repeat("GET / HTTP/1.1\r\nHost: a\r\nX: ", "0123456789", 2000, "\r\n\r\n", &n);
	check_splits(text, n, 997);
	free(text);
	/* A long body, and pipelined requests over many buffers. */
	text = repeat("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n", "0123456789",
	    3000, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", &n);
	check_splits(text, n, 997);
	free(text);
	text =
	    repeat("", "GET /0123456789 HTTP/1.1\r\nHost: a\r\nX: 0123456789\r\n\r\n", 150, "", &n);
	check_splits(text, n, 211);
	free(text);
	text = repeat("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
	    "a\r\n0123456789\r\n", 3000, "0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", &n);
	check_splits(text, n, 1499);
	free(text);
}

static int status_of(const char *text, size_t n, int64_t budget)
{
	struct outcome o;
	int status;

	outcome_init(&o, budget);
	feed(&o, text, n);
	status = o.status ? o.status : o.n;
	outcome_fini(&o, budget);
	return status;
}

static int post(size_t length, bool chunked, int64_t budget)
{
	char *text = malloc(length + 200);
	int n = sprintf(text,
	    chunked ? "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n"
		    : "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
	    length);
	int status;

	memset(text + n, 'b', length);
	n += (int)length;
	if (chunked)
		n += sprintf(text + n, "\r\n0\r\n\r\n");
	status = status_of(text, (size_t)n, budget);
	free(text);
	return status;
}

static void test_body_limits(void)
{
	for (int chunked = 0; chunked <= 1; chunked++) {
		CU_ASSERT_EQUAL(post(MAX_BODY - 1, chunked, 1 << 20), 1);
		CU_ASSERT_EQUAL(post(MAX_BODY, chunked, 1 << 20), 1);
		CU_ASSERT_EQUAL(post(MAX_BODY + 1, chunked, 1 << 20), 413);
		CU_ASSERT_EQUAL(post(50000, chunked, 49999), 503);
		CU_ASSERT_EQUAL(post(50000, chunked, chunked ? 65536 : 50000), 1);
	}
}

/* A body that is only announced costs no memory. */
static void test_announced(void)
{
	static const char text[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx";
	struct outcome o;

	outcome_init(&o, 1 << 20);
	feed(&o, text, sizeof(text) - 1);
	CU_ASSERT_EQUAL(o.n, 0);
	CU_ASSERT((1 << 20) - atomic_load(&o.budget) <= 8192);
	CU_ASSERT(stream_partial(&o.s));
	outcome_fini(&o, 1 << 20);
}

static void test_continue(void)
{
	static const char text[] = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
				   "Content-Length: 2\r\n\r\n";
	struct outcome o;

	outcome_init(&o, 1 << 20);
	feed(&o, text, sizeof(text) - 1);
	CU_ASSERT(stream_wants_continue(&o.s));
	feed(&o, "x", 1);
	CU_ASSERT_FALSE(stream_wants_continue(&o.s));
	feed(&o, "y", 1);
	CU_ASSERT_EQUAL(o.n, 1);
	CU_ASSERT_FALSE(stream_wants_continue(&o.s));
	outcome_fini(&o, 1 << 20);
}

/* An idle stream holds no buffer; one with a part of a request does. */
static void test_rest(void)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
	struct outcome o;

	outcome_init(&o, 1 << 20);
	feed(&o, text, sizeof(text) - 1);
	stream_rest(&o.s, &o.pool);
	CU_ASSERT_PTR_NULL(o.s.in);
	CU_ASSERT_FALSE(stream_partial(&o.s));
	feed(&o, text, 5);
	stream_rest(&o.s, &o.pool);
	CU_ASSERT_PTR_NOT_NULL(o.s.in);
	CU_ASSERT(stream_partial(&o.s));
	feed(&o, text + 5, sizeof(text) - 1 - 5);
	CU_ASSERT_EQUAL(o.n, 2);
	outcome_fini(&o, 1 << 20);
}

/* Without memory for more bytes of a streamed body, the body is torn. Its request belongs to a
 * stage, so it stays. */
static void test_parts_memory(void)
{
	static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n";
	static const char chunk[] = "1\r\nx\r\n";
	struct outcome o;
	char *room;
	int reads = 0;

	outcome_init(&o, 1 << 20);
	o.pool.part_over = 1;
	o.pool.part_bytes = WEIR_HTTP_HEAD_MAX;
	feed(&o, head, sizeof(head) - 1);
	CU_ASSERT_EQUAL_FATAL(o.n, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(o.r[0]->transfer);
	o.pool.limit_bytes = o.pool.held_bytes;
	while (reads < 10000 && stream_room(&o.s, &o.pool, &room) > 0) {
		memcpy(room, chunk, sizeof(chunk) - 1);
		stream_got(&o.s, sizeof(chunk) - 1);
		drain_requests(&o);
		reads++;
	}
	CU_ASSERT(reads > 0 && reads < 10000);
	CU_ASSERT_EQUAL(stream_full(&o.s, &o.pool), STREAM_TORN);
	CU_ASSERT_EQUAL(o.s.status, 503);
	CU_ASSERT_PTR_EQUAL(o.s.filling, o.r[0]);
	stream_cut(&o.s);
	outcome_fini(&o, 1 << 20);
}

/* A refusal has its status and its reason. */
static void check_refusal(const char *text, int status, const char *why)
{
	struct outcome o;

	outcome_init(&o, 1000000);
	feed(&o, text, strlen(text));
	CU_ASSERT_EQUAL(o.status, status);
	CU_ASSERT_PTR_NOT_NULL_FATAL(o.s.why);
	CU_ASSERT_STRING_EQUAL(o.s.why, why);
	outcome_fini(&o, 1000000);
}

static void test_reasons(void)
{
	check_refusal(
	    "GET / HTTP/1.1\r\nHost: t\r\nbad\r\n\r\n", 400, "a header field is malformed");
	check_refusal("GET / HTTP/1.1\r\nHost: t\r\nX: \x01\r\n\r\n", 400, "a control byte");
}

CUNIT_MAIN("stream", {"splits", test_splits}, {"long requests", test_long},
    {"body limits", test_body_limits}, {"announced bodies", test_announced},
    {"100-continue", test_continue}, {"idle streams", test_rest},
    {"no memory for a streamed body", test_parts_memory}, {"reasons", test_reasons})
