/* SPDX-License-Identifier: MIT */
/* Filters on answers (request/filter.h): whole answers and answers in parts, bytes held back beyond the
 * size of the ring, flushes, heads that change, errors, and clients that go. Every filter ends once. */
#include "fixture/graph/drain.h"
#include "fixture/http/parts.h"

#include "http/request/filter.h"
#include "http/request/request.h"

/* The filters that exist. */
static atomic_int live;

/* Holds back up to `most` bytes, and changes the head as the path asks. */
struct holder {
	struct http_filter filter; /* first */
	size_t most, n;
	char *held;
	bool fails;
};

static int holder_head(struct http_filter *f, struct weir_http_request *req, int64_t *length)
{
	struct holder *h = (struct holder *)f;

	if (h->fails) {
		h->fails = false;
		return WEIR_EFAILED;
	}
	if (length) /* as a filter that changes the length does */
		*length = -1;
	return weir_http_add_field(req, "X-Held", length ? "parts" : "whole");
}

static bool holder_pass(struct holder *h, struct weir_http_request *req)
{
	int64_t n =
	    h->n > 0 ? http_filter_write(&h->filter, req, (struct weir_slice){h->held, h->n}) : 0;

	if (n > 0) {
		memmove(h->held, h->held + n, h->n - (size_t)n);
		h->n -= (size_t)n;
	}
	return h->n == 0;
}

static int64_t holder_data(
    struct http_filter *f, struct weir_http_request *req, struct weir_slice data)
{
	struct holder *h = (struct holder *)f;
	size_t n = 0;

	while (n < data.n) {
		size_t m = data.n - n < h->most - h->n ? data.n - n : h->most - h->n;
		memcpy(h->held + h->n, data.p + n, m);
		h->n += m;
		n += m;
		if (h->n == h->most && !holder_pass(h, req) && h->n == h->most)
			break;
	}
	return (int64_t)n;
}

static void holder_flush(struct http_filter *f, struct weir_http_request *req)
{
	holder_pass((struct holder *)f, req);
}

static void holder_end(struct http_filter *f, struct weir_http_request *req, int status)
{
	struct holder *h = (struct holder *)f;

	if (status == WEIR_OK && req->res.streamed)
		holder_pass(h, req);
	atomic_fetch_sub(&live, 1);
	free(h->held);
	free(h);
}

static const struct http_filter_ops holder_ops = {
    .head = holder_head, .data = holder_data, .flush = holder_flush, .end = holder_end};

/* Outside of the holder: replaces whole answers, keeps their fields, and sees the bytes that pass. */
struct outer {
	struct http_filter filter; /* first */
	bool replaces;
	int heads;
	uint64_t bytes;
};

static atomic_llong outer_bytes;

static int outer_head(struct http_filter *f, struct weir_http_request *req, int64_t *length)
{
	struct outer *o = (struct outer *)f;
	struct weir_slice type = response_field(req, "content-type");

	CU_ASSERT_PTR_NULL(response_field(req, "X-Hel").p);
	o->heads++;
	if (length || !o->replaces)
		return 0;
	CU_ASSERT(weir_slice_is(type, "text/plain; charset=utf-8"));
	CU_ASSERT(weir_slice_is(response_field(req, "X-Held"), "whole"));
	req->res.status = 299;
	return response_replace_body(req, (struct weir_slice){"other", 5}, NULL, NULL);
}

static int64_t outer_data(
    struct http_filter *f, struct weir_http_request *req, struct weir_slice data)
{
	int64_t n = http_filter_write(f, req, data);

	((struct outer *)f)->bytes += n > 0 ? (uint64_t)n : 0;
	return n;
}

static void outer_end(struct http_filter *f, struct weir_http_request *req, int status)
{
	struct outer *o = (struct outer *)f;

	(void)req;
	(void)status;
	atomic_fetch_add(&outer_bytes, (long long)o->bytes);
	atomic_fetch_sub(&live, 1);
	free(o);
}

static const struct http_filter_ops outer_ops = {
    .head = outer_head, .data = outer_data, .end = outer_end};

static void add_filters(struct weir_http_request *req)
{
	struct weir_slice most = weir_http_header(req, "X-Most");
	struct outer *o = calloc(1, sizeof(*o));
	struct holder *h = calloc(1, sizeof(*h));

	o->filter.ops = &outer_ops;
	o->replaces = weir_http_header(req, "X-Replace").p != NULL;
	h->filter.ops = &holder_ops;
	h->most = most.p ? strtoul(most.p, NULL, 10) : 1000;
	h->held = malloc(h->most);
	h->fails = weir_http_header(req, "X-Fail").p != NULL;
	http_filter_add(req, &o->filter);
	http_filter_add(req, &h->filter);
	atomic_fetch_add(&live, 2);
}

static void filtered_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		if (!http_filter_find(req, &holder_ops))
			add_filters(req);
	}
	parts_ops.handle(st, ev, n);
}

static const struct weir_stage_ops filtered_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
    .name = "t.filtered",
    .summary = "answers through filters",
    .accepts = &weir_http_request_type,
    .handle = filtered_handle};

static struct server filtered_server(void)
{
	static bool registered;

	if (!registered)
		fixture_register(&filtered_ops);
	registered = true;
	struct server s = parts_server_of("t.filtered");
	server_start(&s);
	atomic_store(&outer_bytes, 0);
	return s;
}

static void filtered_stop(struct server *s)
{
	parts_server_stop(s);
	CU_ASSERT_EQUAL(atomic_load(&live), 0);
}

/* Read an answer in parts of `n` bytes of the pattern. */
static bool parts_are(int fd, int64_t n)
{
	struct answer a = {0};
	char trailers[100];
	bool ok = answer_read_as(fd, &a, true) && a.status == 200 &&
		  weir_slice_is((struct weir_slice){field_in(a.head, "X-Held"), 5}, "parts") &&
		  chunked_read(fd, trailers, sizeof(trailers)) == n;

	answer_free(&a);
	return ok;
}

static const size_t mosts[] = {1, 7, 1000, 65535, 65536, 65537, 200000, 1000000};
#define N_MOSTS (sizeof(mosts) / sizeof(mosts[0]))

static void test_parts(void)
{
	struct server s = filtered_server();
	int fd = client_open(s.port);
	int64_t all = 0;

	for (size_t i = 0; i < N_MOSTS; i++)
		for (int n = 0; n <= 300000; n = n * 9 + 1, all += n <= 300000 ? n : 0) {
			CU_ASSERT(client_sayf(fd,
			    "GET /count/%d HTTP/1.1\r\nHost: t\r\nX-Most: %zu\r\n\r\n", n,
			    mosts[i]));
			CU_ASSERT(parts_are(fd, n));
		}
	CU_ASSERT_EQUAL(atomic_load(&outer_bytes), all);
	close(fd);
	filtered_stop(&s);
}

/* The event is finished before the client reads a byte: what the ring has no room for is kept. */
static void test_kept(void)
{
	struct server s = filtered_server();
	int fd = client_open(s.port);

	CU_ASSERT(
	    client_say(fd, "GET /count/20000000 HTTP/1.1\r\nHost: t\r\nX-Most: 20000000\r\n\r\n"));
	FIXTURE_AWAIT(atomic_load(&outer_bytes) == 20000000 && atomic_load(&live) == 0);
	CU_ASSERT(server_metric(&s, "http_stream_buffer_bytes") > 10000000);
	CU_ASSERT(parts_are(fd, 20000000));
	close(fd);
	filtered_stop(&s);
}

/* A filter that holds bytes back passes them on when the stage waits for more of the body. */
static void test_flush(void)
{
	struct server s = filtered_server();
	int fd = client_open(s.port);
	struct answer a = {0};
	char got[200];

	CU_ASSERT(client_say(fd,
	    "POST /mirror HTTP/1.1\r\nHost: t\r\nX-Most: 100000\r\nContent-Length: 50000\r\n\r\n"));
	CU_ASSERT(client_pattern(fd, 0, 2000, false));
	CU_ASSERT(answer_read_as(fd, &a, true) && a.status == 200);
	for (uint64_t at = 2000; at <= 50000; at += 3000) {
		size_t n = 0, read = 0;
		/* the chunks until all that was sent is back */
		for (uint64_t want = at == 2000 ? 2000 : 3000; n < want; n += read) {
			for (size_t k = 0; k < sizeof(got) - 1; k++) {
				CU_ASSERT_EQUAL_FATAL(client_recv(fd, got + k, 1, 0), 1);
				if (got[k] == '\n')
					break;
			}
			read = strtoul(got, NULL, 16);
			CU_ASSERT_FATAL(read > 0 && read <= want - n);
			CU_ASSERT(pattern_read(fd, at - want + n, read));
			CU_ASSERT(client_recv(fd, got, 2, MSG_WAITALL) == 2);
		}
		if (at < 50000)
			CU_ASSERT(client_pattern(fd, at, 3000, false));
	}
	answer_free(&a);
	CU_ASSERT(chunked_read(fd, got, sizeof(got)) == 0);
	close(fd);
	filtered_stop(&s);
}

static void test_whole(void)
{
	struct server s = filtered_server();
	int fd = client_open(s.port);
	struct answer a = {0};

	CU_ASSERT(client_say(fd, GET("/early/404")) && answer_read(fd, &a));
	CU_ASSERT(answer_is(&a, 404, "404 Not Found\n") && field_in(a.head, "X-Held"));
	CU_ASSERT(client_say(fd, "GET /early/404 HTTP/1.1\r\nHost: t\r\nX-Replace: y\r\n\r\n") &&
		  answer_read(fd, &a));
	CU_ASSERT(answer_is(&a, 299, "other") && field_in(a.head, "X-Held"));
	CU_ASSERT_PTR_NOT_NULL(field_in(a.head, "Content-Type"));
	CU_ASSERT(client_say(fd, "HEAD /early/404 HTTP/1.1\r\nHost: t\r\nX-Replace: y\r\n\r\n") &&
		  answer_read_as(fd, &a, true));
	CU_ASSERT(a.status == 299 && a.length == 5);
	answer_free(&a);
	close(fd);
	filtered_stop(&s);
}

/* A filter fails: a whole answer becomes a 500, and so does one that could not begin. */
static void test_fails(void)
{
	struct server s = filtered_server();
	int fd = client_open(s.port);
	struct answer a = {0};

	CU_ASSERT(client_say(fd, "GET /early/200 HTTP/1.1\r\nHost: t\r\nX-Fail: y\r\n\r\n"));
	CU_ASSERT(answer_read(fd, &a) && a.status == 500);
	CU_ASSERT(client_say(fd, "GET /count/9 HTTP/1.1\r\nHost: t\r\nX-Fail: y\r\n\r\n"));
	CU_ASSERT(answer_read(fd, &a) && a.status == 500 && field_in(a.head, "X-Held"));
	CU_ASSERT(client_say(fd, GET("/count/9")) && parts_are(fd, 9));
	answer_free(&a);
	close(fd);
	filtered_stop(&s);
}

static void test_bodiless(void)
{
	struct server s = filtered_server();
	int fd = client_open(s.port);
	struct answer a = {0};

	CU_ASSERT(
	    client_say(fd, "HEAD /count/300000 HTTP/1.1\r\nHost: t\r\n\r\n" GET("/none/204")));
	CU_ASSERT(answer_read_as(fd, &a, true) && a.status == 200);
	CU_ASSERT(answer_read_as(fd, &a, true) && a.status == 204);
	CU_ASSERT(client_say(fd, GET("/count/5")) && parts_are(fd, 5));
	answer_free(&a);
	close(fd);
	filtered_stop(&s);
}

/* An answer that is torn does not look complete, whatever a filter held back. */
static void test_torn(void)
{
	struct server s = filtered_server();
	int fd = client_open(s.port);
	char got[2000];
	size_t n = 0;
	ssize_t m;

	CU_ASSERT(client_say(fd, GET("/tear")));
	while (n < sizeof(got) && (m = client_recv(fd, got + n, sizeof(got) - n, 0)) > 0)
		n += (size_t)m;
	CU_ASSERT_PTR_NULL(memmem(got, n, "\r\n0\r\n", 5));
	close(fd);
	filtered_stop(&s);
}

static void test_client_goes(void)
{
	struct server s = filtered_server();

	for (size_t i = 0; i < N_MOSTS; i++) {
		int fd = client_open(s.port);
		CU_ASSERT(client_sayf(
		    fd, "GET /count/3000000 HTTP/1.1\r\nHost: t\r\nX-Most: %zu\r\n\r\n", mosts[i]));
		char byte;
		CU_ASSERT(client_recv(fd, &byte, 1, 0) == 1);
		close(fd);
	}
	FIXTURE_AWAIT(atomic_load(&live) == 0);
	filtered_stop(&s);
}

CUNIT_MAIN("filters on answers", {"in parts", test_parts}, {"kept behind the ring", test_kept},
    {"flush", test_flush}, {"whole", test_whole}, {"a filter fails", test_fails},
    {"without a body", test_bodiless}, {"torn", test_torn}, {"the client goes", test_client_goes})
