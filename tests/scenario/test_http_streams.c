/* SPDX-License-Identifier: MIT */
/* Answers in parts: chunked or until the end of the connection, complete or recognisably torn, in
 * the order of the requests, and with bounded memory however slow the client is. And both
 * directions at once, through a drain and through a reload. */
#include "fixture/graph/drain.h"
#include "fixture/http/parts.h"

/* The head of an answer in parts; its body is left unread. */
static bool head_is(int fd, int status, bool chunked)
{
	struct answer a = {0};
	bool ok = answer_read_as(fd, &a, true) && a.status == status && a.length == -1 &&
		  (strcasestr(a.head, "\r\nTransfer-Encoding: chunked\r\n") != NULL) == chunked &&
		  strcasestr(a.head, "\r\nX-Early: yes\r\n") && !strcasestr(a.head, "X-Late");

	if (!ok)
		fprintf(stderr, "got %s", a.head);
	answer_free(&a);
	return ok;
}

static bool whole_is(int fd, int64_t n, const char *trailers)
{
	char got[200] = "";

	return head_is(fd, 200, true) && chunked_read(fd, got, sizeof(got)) == n &&
	       strcmp(got, trailers) == 0;
}

static void test_chunked(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);

	for (int n = 5000000; n > 0; n /= 9) {
		CU_ASSERT(client_sayf(fd, "GET /count/%d HTTP/1.1\r\nHost: t\r\n\r\n", n));
		CU_ASSERT(whole_is(fd, n, ""));
	}
	CU_ASSERT(client_say(fd, GET("/count/0")) && whole_is(fd, 0, ""));
	CU_ASSERT_EQUAL(server_metric(&s, "http_stream_buffer_peak_bytes"), 65536);
	close(fd);
	parts_server_stop(&s);
}

static void test_old_client(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);

	CU_ASSERT(client_say(fd, "GET /count/300000 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
	CU_ASSERT(head_is(fd, 200, false));
	CU_ASSERT(pattern_read(fd, 0, 300000) && client_at_end(fd));
	close(fd);
	parts_server_stop(&s);
}

static void test_bodiless(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);

	CU_ASSERT(
	    client_say(fd, "HEAD /count/300000 HTTP/1.1\r\nHost: t\r\n\r\n" GET("/none/204")));
	CU_ASSERT(head_is(fd, 200, false));
	CU_ASSERT(head_is(fd, 204, false));
	CU_ASSERT(client_say(fd, GET("/none/304")) && head_is(fd, 304, false));
	CU_ASSERT(client_say(fd, GET("/count/10")) && whole_is(fd, 10, ""));
	close(fd);
	parts_server_stop(&s);
}

static void test_torn(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);
	char byte, got[100];

	CU_ASSERT(client_say(fd, GET("/tear")));
	while (client_recv(fd, got, sizeof(got), 0) > 0)
		CU_ASSERT_PTR_NULL(memmem(got, sizeof(got), "\r\n0\r\n", 5));
	close(fd);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, "GET /tear HTTP/1.0\r\n\r\n"));
	while (client_recv(fd, &byte, 1, 0) == 1)
		continue;
	CU_ASSERT_EQUAL(errno, ECONNRESET);
	close(fd);
	AWAIT_METRIC(&s, "http_undelivered_total", ==, 2);
	parts_server_stop(&s);
}

/* Three answers in parts and a plain one: they arrive in order, and those that wait use at most one
 * buffer each. */
static void test_in_order(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);

	CU_ASSERT(client_say(
	    fd, GET("/count/3000000") GET("/count/2000000") GET("/sum") GET("/count/1000000")));
	CU_ASSERT(whole_is(fd, 3000000, ""));
	CU_ASSERT(whole_is(fd, 2000000, ""));
	struct answer a = {0};
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "0 0\n"));
	answer_free(&a);
	CU_ASSERT(whole_is(fd, 1000000, ""));
	CU_ASSERT(server_metric(&s, "http_stream_buffer_peak_bytes") <= 3 * 65536);
	close(fd);
	parts_server_stop(&s);
}

/* ---- clients that do not read the answer ---- */

static void test_client_goes(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);

	CU_ASSERT(client_say(fd, GET("/count/2000000000")));
	CU_ASSERT(head_is(fd, 200, true));
	close(fd);
	FIXTURE_AWAIT(atomic_load(&parts_error) == WEIR_EGONE);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	parts_server_stop(&s);
}

static void test_client_sleeps(void)
{
	struct server s = parts_server_new();
	fixture_set(s.web, "with.write_timeout", "100ms");
	server_start(&s);
	int fd = client_open(s.port);

	CU_ASSERT(client_say(fd, GET("/count/2000000000")));
	CU_ASSERT(head_is(fd, 200, true));
	FIXTURE_AWAIT(atomic_load(&parts_error) == WEIR_EGONE);
	CU_ASSERT_EQUAL(server_metric(&s, "http_timeouts_write_total"), 1);
	CU_ASSERT_EQUAL(server_metric(&s, "http_stream_buffer_peak_bytes"), 65536);
	close(fd);
	parts_server_stop(&s);
}

static void test_no_memory(void)
{
	struct server s = parts_server_new();
	fixture_set(s.web, "with.body_memory", "100KiB");
	fixture_set(s.web, "with.stream", "0");
	fixture_set(s.web, "with.max_body", "1MiB");
	server_start(&s);
	int fd = client_open(s.port), late = client_open(s.port);
	struct answer a = {0};

	CU_ASSERT(client_say(fd, GET("/count/2000000000")));
	CU_ASSERT(head_is(fd, 200, true));
	CU_ASSERT(client_say(late, GET("/count/10")));
	CU_ASSERT(answer_read(late, &a) && a.status == 503);
	close(fd);
	close(late);
	answer_free(&a);
	parts_server_stop(&s);
}

/* ---- both directions ---- */

struct sender {
	int fd;
	size_t n;
	bool chunked, ok;
	pthread_t thread;
};

static void *sender_main(void *arg)
{
	struct sender *t = arg;

	t->ok = client_pattern(t->fd, 0, t->n, t->chunked) &&
		(!t->chunked || client_say(t->fd, "0\r\n\r\n"));
	return NULL;
}

static void test_mirror(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);

	for (int i = 0; i < 2; i++) {
		struct sender t = {.fd = fd, .n = 20000000, .chunked = i == 1};
		CU_ASSERT(client_say(fd, i ? POST_HEAD("/mirror", "Transfer-Encoding: chunked\r\n")
					   : POST_HEAD("/mirror", "Content-Length: 20000000\r\n")));
		pthread_create(&t.thread, NULL, sender_main, &t);
		CU_ASSERT(whole_is(fd, 20000000, "X-Bytes: 20000000\r\n"));
		pthread_join(t.thread, NULL);
		CU_ASSERT(t.ok);
	}
	CU_ASSERT(server_metric(&s, "http_stream_buffer_peak_bytes") <= 2 * 65536);
	/* Half of the body comes back, then the client stops sending: the answer is not
	 * complete. */
	CU_ASSERT(client_say(fd, POST_HEAD("/mirror", "Content-Length: 20000\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 10000, false));
	CU_ASSERT(head_is(fd, 200, true));
	shutdown(fd, SHUT_WR);
	char trailers[100];
	CU_ASSERT_EQUAL(chunked_read(fd, trailers, sizeof(trailers)), -1);
	close(fd);
	parts_server_stop(&s);
}

/* Both directions within the I/O thread, without a handover between threads. */
static void test_inline(void)
{
	struct server s = parts_server_new();
	weir_spec_text(&s.app->threads.policy, "static");
	s.app->inlined = true;
	server_start(&s);
	int fd = client_open(s.port);
	struct sender t = {.fd = fd, .n = 3000000};

	CU_ASSERT(client_say(fd, POST_HEAD("/mirror", "Content-Length: 3000000\r\n")));
	pthread_create(&t.thread, NULL, sender_main, &t);
	CU_ASSERT(whole_is(fd, 3000000, "X-Bytes: 3000000\r\n"));
	pthread_join(t.thread, NULL);
	CU_ASSERT(client_say(fd, GET("/count/3000000")) && whole_is(fd, 3000000, ""));
	close(fd);
	parts_server_stop(&s);
}

/* ---- the example stages ---- */

static void test_digest(void)
{
	struct server s = server_new("digest");
	fixture_set(s.web, "with.stream", "1KiB");
	fixture_set(s.web, "with.max_body", "1MiB");
	server_start(&s);
	int fd = client_open(s.port);
	struct answer a = {0};

	/* sha256sum of "hello", and of the first 1,000,000 bytes of "abc...zabc..." */
	CU_ASSERT(client_say(fd, POST_HEAD("/", "Content-Length: 5\r\n") "hello"));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT(answer_is(
	    &a, 200, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\n"));
	CU_ASSERT(client_say(fd, POST_HEAD("/", "Content-Length: 1000000\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 1000000, false) && answer_read(fd, &a));
	CU_ASSERT(answer_is(
	    &a, 200, "1fa51eae26c4db865aca1af630e5fa892611eb6dad42accaf4e9c8745f7177bf\n"));
	CU_ASSERT_EQUAL(server_metric(&s, "http_streamed_bodies_total"), 1);
	AWAIT_METRIC(&s, "digest_bytes_total", ==, 1000005);
	CU_ASSERT(client_say(fd, POST_HEAD("/", "Transfer-Encoding: chunked\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 5000, true) && client_say(fd, "x\r\n"));
	CU_ASSERT(answer_read(fd, &a) && a.status == 400);
	answer_free(&a);
	close(fd);
	server_stop(&s);
}

static void test_shipped_mirror(void)
{
	struct server s = server_new("mirror");
	fixture_set(s.web, "with.stream", "1KiB");
	fixture_set(s.web, "with.max_body", "100MiB");
	server_start(&s);
	int fd = client_open(s.port);
	struct sender t = {.fd = fd, .n = 9000000};
	struct answer a = {0};
	char trailers[100];

	CU_ASSERT(client_say(fd, POST_HEAD("/", "Content-Length: 9000000\r\n")));
	pthread_create(&t.thread, NULL, sender_main, &t);
	CU_ASSERT(answer_read_as(fd, &a, true) && a.status == 200);
	CU_ASSERT_PTR_NOT_NULL(strstr(a.head, "\r\nTrailer: X-Bytes\r\n"));
	CU_ASSERT_EQUAL(chunked_read(fd, trailers, sizeof(trailers)), 9000000);
	CU_ASSERT_STRING_EQUAL(trailers, "X-Bytes: 9000000\r\n");
	pthread_join(t.thread, NULL);
	CU_ASSERT(client_say(fd, GET("/")) && answer_read_as(fd, &a, true) && a.status == 200);
	CU_ASSERT_EQUAL(chunked_read(fd, trailers, sizeof(trailers)), 0);
	answer_free(&a);
	close(fd);
	server_stop(&s);
}

/* A malformed chunk after good ones: 400, as long as the answer has not begun. */
static void test_mirror_broken(void)
{
	static const char *const bad[] = {"x\r\n", "3\r\nabcd\r\n", "-1\r\n", "0\r\nX y\r\n\r\n"};
	struct server s = server_new("mirror");
	struct answer a = {0};

	fixture_set(s.web, "with.stream", "1KiB");
	server_start(&s);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int fd = client_open(s.port);
		int64_t before = server_metric(&s, "http_streamed_bodies_total");
		CU_ASSERT(client_say(fd, POST_HEAD("/", "Transfer-Encoding: chunked\r\n")));
		CU_ASSERT(client_pattern(fd, 0, 2000, true));
		AWAIT_METRIC(&s, "http_streamed_bodies_total", ==, before + 1); /* some arrived */
		CU_ASSERT(client_say(fd, bad[i]));
		CU_ASSERT(answer_read(fd, &a) && a.status == 400);
		CU_ASSERT_PTR_NULL(field_in(a.head, "X-Weir-Limit"));
		CU_ASSERT(client_at_end(fd));
		close(fd);
	}
	answer_free(&a);
	server_stop(&s);
}

/* A limit that tears a body is named and counted like one that refuses a request. */
static void check_limit(
    const char *knob, const char *value, const char *then, int status, const char *metric)
{
	struct server s = server_new("mirror");
	struct answer a = {0};

	fixture_set(s.web, "with.stream", "1KiB");
	fixture_set(s.web, knob, value);
	server_start(&s);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, POST_HEAD("/", "Transfer-Encoding: chunked\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 2000, true));
	AWAIT_METRIC(&s, "http_streamed_bodies_total", ==, 1);
	CU_ASSERT(client_say(fd, then));
	CU_ASSERT(answer_read(fd, &a) && a.status == status);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "X-Weir-Limit"), strchr(knob, '.') + 1);
	CU_ASSERT_EQUAL(server_metric(&s, metric), 1);
	CU_ASSERT(client_at_end(fd));
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

static void test_mirror_limits(void)
{
	check_limit("with.max_body", "4KiB", "2000\r\n", 413, "http_large_bodies_total");
	check_limit("with.body_timeout", "1s", "", 408, "http_timeouts_body_total");
}

/* HTTP/1.0 has no trailers, so none is announced. */
static void test_mirror_old(void)
{
	struct server s = server_new("mirror");
	char head[1000], byte[6] = "";

	server_start(&s);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, "POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello"));
	CU_ASSERT(head_read(fd, head, sizeof(head)));
	CU_ASSERT_PTR_NULL(strstr(head, "Trailer"));
	CU_ASSERT_PTR_NULL(strstr(head, "Transfer-Encoding"));
	CU_ASSERT_PTR_NOT_NULL(strstr(head, "Content-Type: application/octet-stream\r\n"));
	CU_ASSERT(client_take(fd, byte, 5) && memcmp(byte, "hello", 5) == 0);
	CU_ASSERT(client_at_end(fd));
	close(fd);
	server_stop(&s);
}

/* ---- the end of the graph ---- */

/* Wait until a drain has begun: new connections are closed at once. */
static void await_drain(const struct server *s)
{
	struct answer a = {0};
	int fd;

	do {
		fd = client_open(s->port);
		if (fd != -1 && (!client_say(fd, GET("/sum")) || !answer_read(fd, &a)))
			a.close = true;
		if (fd != -1)
			close(fd);
	} while (fd != -1 && !a.close);
	answer_free(&a);
}

static void test_drain_waits(void)
{
	struct server s = parts_server();
	struct drain d;
	int fd = client_open(s.port), mirror = client_open(s.port);

	CU_ASSERT(client_say(fd, POST_HEAD("/sum", "Content-Length: 100000\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 50000, false));
	CU_ASSERT(client_say(mirror, POST_HEAD("/mirror", "Content-Length: 100000\r\n")));
	CU_ASSERT(client_pattern(mirror, 0, 50000, false));
	CU_ASSERT(head_is(mirror, 200, true));
	drain_call(&d, s.graph, 20000000000LL);
	await_drain(&s);
	CU_ASSERT(client_pattern(fd, 50000, 50000, false));
	struct answer a = {0};
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, pattern_sum(100000)) && a.close);
	CU_ASSERT(client_at_end(fd));
	CU_ASSERT(client_pattern(mirror, 50000, 50000, false));
	char got[100];
	CU_ASSERT_EQUAL(chunked_read(mirror, got, sizeof(got)), 100000);
	CU_ASSERT(client_at_end(mirror));
	answer_free(&a);
	close(fd);
	close(mirror);
	drain_end(&d);
	CU_ASSERT_EQUAL(atomic_load(&parts_states), 0);
	CU_ASSERT_EQUAL(d.report.closed, 0);
}

/* The grace time is over: an unfinished body is answered with 503, an unfinished answer is torn. */
static void test_drain_forced(void)
{
	struct server s = parts_server();
	struct answer a = {0};
	struct drain d;
	int fd = client_open(s.port), mirror = client_open(s.port), count = client_open(s.port);
	int old = client_open(s.port);
	char got[100];

	CU_ASSERT(client_say(fd, POST_HEAD("/sum", "Content-Length: 100000\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 50000, false));
	CU_ASSERT(client_say(mirror, POST_HEAD("/mirror", "Content-Length: 100000\r\n")));
	CU_ASSERT(client_pattern(mirror, 0, 50000, false));
	CU_ASSERT(head_is(mirror, 200, true));
	CU_ASSERT(client_say(count, GET("/count/2000000000")) && head_is(count, 200, true));
	CU_ASSERT(client_say(old, "GET /count/2000000000 HTTP/1.0\r\n\r\n"));
	CU_ASSERT(head_is(old, 200, false));
	AWAIT_METRIC(&s, "http_streamed_bodies_total", ==, 2);
	drain_call(&d, s.graph, 0);
	CU_ASSERT(answer_read(fd, &a) && a.status == 503 && a.close);
	CU_ASSERT_PTR_NOT_NULL(field_in(a.head, "Retry-After"));
	CU_ASSERT_PTR_NULL(field_in(a.head, "X-Weir-Limit"));
	CU_ASSERT_EQUAL(chunked_read(mirror, got, sizeof(got)), -1);
	CU_ASSERT_EQUAL(chunked_read(count, got, sizeof(got)), -1);
	while (client_recv(old, got, sizeof(got), 0) > 0)
		continue;
	CU_ASSERT_EQUAL(errno, ECONNRESET); /* nothing else shows that it is incomplete */
	close(old);
	answer_free(&a);
	close(fd);
	close(mirror);
	close(count);
	drain_end(&d);
	CU_ASSERT_EQUAL(atomic_load(&parts_states), 0);
}

/* The body continues in the graph where it began; then the connection is handed over. */
static void test_reload(void)
{
	struct server s = parts_server(), next = parts_server_new();
	struct weir_errs errs = {0};
	struct answer a = {0};
	struct drain d;
	int fd = client_open(s.port), early = client_open(s.port);

	CU_ASSERT(client_say(fd, POST_HEAD("/mirror", "Content-Length: 100000\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 50000, false) && head_is(fd, 200, true));
	CU_ASSERT(client_say(early, POST_HEAD("/early/404", "Content-Length: 60000\r\n")));
	CU_ASSERT(answer_read(early, &a) && a.status == 404 && !a.close);
	CU_ASSERT_EQUAL_FATAL(weir_graph_build(next.spec, &next.graph, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s.graph, &errs), 0);
	drain_call(&d, s.graph, 20000000000LL);
	CU_ASSERT(client_pattern(fd, 50000, 50000, false));
	char got[100];
	CU_ASSERT_EQUAL(chunked_read(fd, got, sizeof(got)), 100000);
	CU_ASSERT(client_pattern(early, 0, 60000, false)); /* skipped, here as well */
	drain_end(&d);
	CU_ASSERT_EQUAL(atomic_load(&parts_states), 0);
	CU_ASSERT(client_say(fd, GET("/count/5")) && whole_is(fd, 5, ""));
	CU_ASSERT(client_say(early, GET("/sum")) && answer_read(early, &a));
	CU_ASSERT(answer_is(&a, 200, "0 0\n"));
	/* No client had to reconnect. */
	CU_ASSERT_EQUAL(server_metric(&next, "http_accepted_total"), 2);
	answer_free(&a);
	close(fd);
	close(early);
	parts_server_stop(&next);
}

CUNIT_MAIN("answers in parts", {"chunked", test_chunked}, {"HTTP/1.0", test_old_client},
    {"without a body", test_bodiless}, {"torn", test_torn}, {"in order", test_in_order},
    {"the client goes", test_client_goes}, {"the client sleeps", test_client_sleeps},
    {"no memory", test_no_memory}, {"both directions", test_mirror}, {"inline", test_inline},
    {"digest", test_digest}, {"mirror", test_shipped_mirror},
    {"mirror: a broken chunk", test_mirror_broken}, {"mirror: limits", test_mirror_limits},
    {"mirror: HTTP/1.0", test_mirror_old}, {"a drain waits", test_drain_waits},
    {"a drain is forced", test_drain_forced}, {"a reload", test_reload})
