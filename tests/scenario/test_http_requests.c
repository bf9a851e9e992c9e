/* SPDX-License-Identifier: MIT */
/* Answers to clients that do everything right: keep-alive, pipelining in order whichever request
 * finishes first, both kinds of bodies, HEAD, HTTP/1.0, 100-continue, half-close, long answers,
 * outcomes. */
#include "fixture/http/server.h"

static void start(struct server *s)
{
	*s = server_new("t.reply");
	fixture_set(s->app, "threads.min", "4");
	fixture_set(s->app, "threads.max", "4");
	server_start(s);
}

static void test_keep_alive(void)
{
	struct server s;
	struct answer a = {0};
	int fd;

	start(&s);
	fd = client_open(s.port);
	for (int i = 0; i < 100; i++) {
		CU_ASSERT(client_say(fd, GET("/x")));
		CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /x\n"));
		CU_ASSERT_FALSE(a.close);
	}
	CU_ASSERT_PTR_NOT_NULL(field_in(a.head, "Date"));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Server"), "weir");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Content-Type"), "text/plain");
	AWAIT_METRIC(&s, "http_responses_2xx_total", ==, 100);
	CU_ASSERT_EQUAL(server_metric(&s, "http_connections"), 1);
	close(fd);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	answer_free(&a);
	server_stop(&s);
}

/* The first of three is finished last. */
static void test_pipeline_order(void)
{
	struct server s;
	struct answer a = {0};
	int fd;

	start(&s);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/wait/one") GET("/wait/two") GET("/three")));
	gate_await(2);
	AWAIT_METRIC(&s, "http_received_bytes_total", >, 0);
	gate_open("two");
	gate_await(1);
	gate_open("one");
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /wait/one\n"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /wait/two\n"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /three\n"));
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

/* Far more in one write than may be in the graph at once. */
static void test_deep_pipeline(void)
{
	enum { N = 1000 };
	struct server s;
	struct answer a = {0};
	char *text = malloc(N * 100), *at = text, expected[64];
	int fd;

	start(&s);
	fd = client_open(s.port);
	for (int i = 0; i < N; i++)
		at += sprintf(at, "GET /%d HTTP/1.1\r\nHost: t\r\nX-Filler: 0123456789\r\n\r\n", i);
	CU_ASSERT(client_send(fd, text, (size_t)(at - text)));
	for (int i = 0; i < N; i++) {
		sprintf(expected, "GET /%d\n", i);
		CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, expected));
	}
	close(fd);
	free(text);
	answer_free(&a);
	server_stop(&s);
}

static void test_bodies(void)
{
	struct server s;
	struct answer a = {0};
	int fd;

	start(&s);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, "POST /l HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello"
				 "PUT /c HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
				 "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n" GET("/g")));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "POST /l\nhello"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "PUT /c\nhello world"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /g\n"));
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

/* A compressed body is passed on as it is, so it cannot grow. */
static void test_compressed(void)
{
	struct server s;
	struct answer a = {0};
	int fd;

	start(&s);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, "POST /z HTTP/1.1\r\nHost: t\r\nContent-Encoding: gzip\r\n"
				 "Content-Length: 8\r\n\r\n\x1f\x8b\x08\x08"
				 "bomb"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200,
					     "POST /z\n\x1f\x8b\x08\x08"
					     "bomb"));
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

static void test_long_body(void)
{
	enum { N = 700000 };
	struct server s;
	struct answer a = {0};
	char *text = malloc(N + 100);
	int fd, n;

	start(&s);
	fd = client_open(s.port);
	n = sprintf(text, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n", N);
	for (int i = 0; i < N; i++)
		text[n + i] = (char)('0' + i % 10);
	CU_ASSERT(client_send(fd, text, (size_t)(n + N)));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL_FATAL(a.n, N + 7);
	CU_ASSERT_EQUAL(memcmp(a.body + 7, text + n, N), 0);
	close(fd);
	free(text);
	answer_free(&a);
	server_stop(&s);
}

static void test_head(void)
{
	struct server s;
	struct answer a = {0};
	int fd;

	start(&s);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, "HEAD /big/5000 HTTP/1.1\r\nHost: t\r\n\r\n" GET("/x")));
	CU_ASSERT(answer_read_as(fd, &a, true));
	CU_ASSERT_EQUAL(a.status, 200);
	CU_ASSERT_EQUAL(a.length, 5000);
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /x\n"));
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

static void test_bodiless(void)
{
	struct server s;
	struct answer a = {0};
	int fd;

	start(&s);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/none") GET("/status/304") GET("/fail") GET("/status/404")));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 204, ""));
	CU_ASSERT_EQUAL(a.length, -1);
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 304, ""));
	CU_ASSERT_EQUAL(a.length, -1);
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 500, "500 Internal Server Error\n"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 404, "404 Not Found\n"));
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

/* Send one request; expect one answer and the end of the connection. */
static void ask_and_end(const struct server *s, const char *text)
{
	struct answer a = {0};
	int fd = client_open(s->port);

	CU_ASSERT(client_say(fd, text));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 200);
	CU_ASSERT(a.close);
	CU_ASSERT(client_at_end(fd));
	close(fd);
	answer_free(&a);
}

static void test_closing(void)
{
	struct server s;
	struct answer a = {0};
	int fd;

	start(&s);
	ask_and_end(&s, "GET / HTTP/1.0\r\n\r\n");
	ask_and_end(&s, "GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
	ask_and_end(&s, "GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n" GET("/ignored"));
	ask_and_end(&s, GET("/close") GET("/ignored"));
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "Connection"), "keep-alive");
	CU_ASSERT(client_say(fd, GET("/x")));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /x\n"));
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

static void test_keep_alive_requests(void)
{
	struct server s = server_new("t.reply");
	struct answer a = {0};
	int fd;

	fixture_set(s.web, "with.keep_alive_requests", "3");
	server_start(&s);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/1") GET("/2") GET("/3") GET("/4")));
	for (int i = 1; i <= 3; i++) {
		CU_ASSERT(answer_read(fd, &a));
		CU_ASSERT_EQUAL(a.close, i == 3);
	}
	CU_ASSERT(client_at_end(fd));
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

/* The client has shut down its sending side; every answer still arrives. */
static void test_half_close(void)
{
	struct server s;
	struct answer a = {0};
	int fd;

	start(&s);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/wait/one") GET("/two") "GET /part"));
	gate_await(1);
	shutdown(fd, SHUT_WR);
	gate_open("one");
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /wait/one\n"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /two\n"));
	CU_ASSERT(client_at_end(fd));
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

/* A client that leaves while its requests are in the graph. */
static void test_gone(void)
{
	struct server s;
	struct linger reset = {.l_onoff = 1};
	int fd;

	start(&s);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/wait/one") GET("/wait/two") GET("/three")));
	gate_await(2);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd); /* a reset */
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	gate_open("two");
	gate_open("one");
	AWAIT_METRIC(&s, "http_undelivered_total", ==, 3);
	server_stop(&s);
}

static void test_continue(void)
{
	struct server s;
	struct answer a = {0};
	int fd;

	start(&s);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, "POST / HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n"
				 "Content-Length: 2\r\n\r\n"));
	CU_ASSERT(head_read(fd, a.head, sizeof(a.head)));
	CU_ASSERT_STRING_EQUAL(a.head, "HTTP/1.1 100 Continue\r\n\r\n");
	CU_ASSERT(client_say(fd, "hi"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "POST /\nhi"));
	/* A client whose body has already arrived gets no 100 Continue, nor does one whose request
	 * must wait for an earlier one. */
	CU_ASSERT(client_say(fd, "POST / HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n"
				 "Content-Length: 2\r\n\r\nhi"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "POST /\nhi"));
	CU_ASSERT(
	    client_say(fd, GET("/wait/one") "POST / HTTP/1.1\r\nHost: t\r\n"
					    "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
	gate_await(1);
	gate_open("one");
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /wait/one\n"));
	CU_ASSERT(head_read(fd, a.head, sizeof(a.head)));
	CU_ASSERT_STRING_EQUAL(a.head, "HTTP/1.1 100 Continue\r\n\r\n");
	CU_ASSERT(client_say(fd, "hi"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "POST /\nhi"));
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

/* An answer far longer than the socket buffers, read slowly, with others after it. */
static void test_long_answer(void)
{
	enum { N = 8000000 };
	struct server s;
	struct answer a = {0};
	bool good = true;
	int fd;

	start(&s);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/small") GET("/big/8000000") GET("/after")));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /small\n"));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL_FATAL(a.n, N);
	for (int i = 0; i < N; i++)
		good = good && a.body[i] == 'a' + i % 26;
	CU_ASSERT(good);
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /after\n"));
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

/* A long answer whose bytes are in a file. */
static int file_fd = -1;
static atomic_int file_releases;

static void file_released(void *arg)
{
	(void)arg;
	atomic_fetch_add(&file_releases, 1);
}

static void file_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		int64_t length = target_number(req, "/");
		weir_http_respond_file(
		    req, 200, "text/plain", file_fd, 26, length, file_released, NULL);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops file_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.file",
    .summary = "answers with a file",
    .accepts = &weir_http_request_type,
    .handle = file_handle};

static void make_file(int n)
{
	char name[] = "/tmp/weir_test_XXXXXX", *mem = malloc((size_t)n);

	file_fd = mkstemp(name);
	unlink(name);
	for (int i = 0; i < n; i++)
		mem[i] = (char)('a' + i % 26);
	CU_ASSERT_EQUAL_FATAL(write(file_fd, mem, (size_t)n), n);
	free(mem);
}

static void test_file(void)
{
	enum { N = 5000000 };
	struct server s;
	struct answer a = {0};
	bool good = true;
	int fd;

	make_file(N + 26);
	fixture_register(&file_ops);
	s = server_new("t.file");
	server_start(&s);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd,
	    GET("/100") GET("/5000000") GET("/0") "HEAD /7 HTTP/1.1\r\nHost: t\r\n\r\n" GET("/3")));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.n, 100);
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL_FATAL(a.n, N);
	for (int i = 0; i < N; i++)
		good = good && a.body[i] == 'a' + i % 26;
	CU_ASSERT(good);
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, ""));
	CU_ASSERT(answer_read_as(fd, &a, true));
	CU_ASSERT_EQUAL(a.length, 7);
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "abc"));
	CU_ASSERT_EQUAL(atomic_load(&file_releases), 5);
	/* A file that is shorter than announced: the client must not take it for complete. */
	CU_ASSERT_EQUAL(ftruncate(file_fd, 50), 0);
	CU_ASSERT(client_say(fd, GET("/100")));
	CU_ASSERT_FALSE(answer_read(fd, &a));
	close(fd);
	close(file_fd);
	answer_free(&a);
	server_stop(&s);
	CU_ASSERT_EQUAL(atomic_load(&file_releases), 6);
}

/* The queue is full: a refused client gets the stage and the reason. */
static void test_shed(void)
{
	struct server s = server_new("t.reply");
	struct answer a = {0};
	int fd, shed = 0;

	fixture_set(s.app, "threads.min", "1");
	fixture_set(s.app, "threads.max", "1");
	fixture_set(s.app, "cohort.max", "1");
	fixture_set(s.app, "queue.limit", "2");
	fixture_set(s.web, "with.retry_after", "1500ms");
	server_start(&s);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/wait/one")));
	gate_await(1);
	CU_ASSERT(client_say(fd, GET("/2") GET("/3") GET("/4") GET("/5")));
	FIXTURE_AWAIT(server_offered(&s) == 5);
	gate_open("one");
	for (int i = 1; i <= 5; i++) {
		CU_ASSERT(answer_read(fd, &a));
		if (a.status != 503)
			continue;
		shed++;
		const char *again = field_in(a.head, "Retry-After");
		CU_ASSERT_PTR_NOT_NULL_FATAL(again); /* 1.5 s and up to half as much again */
		CU_ASSERT(strcmp(again, "2") == 0 || strcmp(again, "3") == 0);
		const char *why = field_in(a.head, "X-Weir-Shed");
		CU_ASSERT_PTR_NOT_NULL_FATAL(why);
		CU_ASSERT_STRING_EQUAL(why, "stage=app; reason=queue_full; class=default");
		CU_ASSERT_FALSE(a.close);
	}
	CU_ASSERT_EQUAL(shed, 2);
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

static void test_inline_and_threads(void)
{
	struct server s = server_new("t.reply");
	struct answer a = {0};
	int fd[32];

	s.app->inlined = true;
	fixture_set(s.web, "with.threads", "3");
	server_start(&s);
	for (int i = 0; i < 32; i++)
		fd[i] = client_open(s.port);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 32; i++)
			CU_ASSERT(client_say(fd[i], GET("/a") GET("/b")));
		for (int i = 0; i < 32; i++) {
			CU_ASSERT(answer_read(fd[i], &a) && answer_is(&a, 200, "GET /a\n"));
			CU_ASSERT(answer_read(fd[i], &a) && answer_is(&a, 200, "GET /b\n"));
		}
	}
	for (int i = 0; i < 32; i++)
		close(fd[i]);
	answer_free(&a);
	server_stop(&s);
}

CUNIT_MAIN("http requests", {"keep-alive", test_keep_alive},
    {"pipelined answers in order", test_pipeline_order}, {"deep pipeline", test_deep_pipeline},
    {"bodies", test_bodies}, {"compressed body", test_compressed}, {"long body", test_long_body},
    {"HEAD", test_head}, {"answers without body", test_bodiless}, {"closing", test_closing},
    {"requests per connection", test_keep_alive_requests}, {"half-close", test_half_close},
    {"client gone", test_gone}, {"100-continue", test_continue}, {"long answer", test_long_answer},
    {"file", test_file}, {"shed", test_shed}, {"inline, several threads", test_inline_and_threads})
