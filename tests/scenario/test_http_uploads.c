/* SPDX-License-Identifier: MIT */
/* Request bodies in parts: the stage gets exactly what the client sent, whatever the framing;
 * memory is bounded however slow the stage is; and each way in which a body can end early is
 * reported to the stage and to the client. */
#include "fixture/http/parts.h"

#define LONG 3000000

static bool sum_is(int fd, uint64_t n)
{
	struct answer a = {0};
	bool ok = answer_read(fd, &a) && answer_is(&a, 200, pattern_sum(n));

	answer_free(&a);
	return ok;
}

static bool status_is(int fd, int status, bool closes)
{
	struct answer a = {0};
	bool ok = answer_read(fd, &a) && a.status == status && a.close == closes;

	if (!ok)
		fprintf(stderr, "got %d%s\n", a.status, a.close ? ", closing" : "");
	answer_free(&a);
	return ok;
}

static void test_length(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);

	for (int n = LONG; n > 0; n /= 7) {
		CU_ASSERT(client_sayf(fd, POST_HEAD("/sum", "Content-Length: %d\r\n"), n));
		CU_ASSERT(client_pattern(fd, 0, (size_t)n, false));
		CU_ASSERT(sum_is(fd, (uint64_t)n));
	}
	CU_ASSERT(server_metric(&s, "http_streamed_bodies_total") >= 4);
	CU_ASSERT_EQUAL(server_metric(&s, "http_torn_bodies_total"), 0);
	close(fd);
	parts_server_stop(&s);
}

static void test_chunked(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);

	for (int n = LONG; n > 0; n /= 7) {
		CU_ASSERT(client_say(fd, POST_HEAD("/sum", "Transfer-Encoding: chunked\r\n")));
		CU_ASSERT(client_pattern(fd, 0, (size_t)n, true));
		CU_ASSERT(client_say(fd, "0\r\nX-Sum: 1\r\n\r\n"));
		CU_ASSERT(sum_is(fd, (uint64_t)n));
	}
	close(fd);
	parts_server_stop(&s);
}

/* A request that arrives together with the body before it; and a client of HTTP/1.0. */
static void test_pipelined(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);
	char *text = malloc(6000);
	int n = sprintf(text, POST_HEAD("/sum", "Content-Length: 5000\r\n"));

	for (int i = 0; i < 5000; i++)
		text[n++] = parts_byte((uint64_t)i);
	n += sprintf(text + n, GET("/sum"));
	for (int i = 0; i < 20; i++)
		CU_ASSERT(client_send(fd, text, (size_t)n));
	for (int i = 0; i < 20; i++) {
		CU_ASSERT(sum_is(fd, 5000));
		CU_ASSERT(sum_is(fd, 0));
	}
	CU_ASSERT(client_say(fd, "POST /sum HTTP/1.0\r\nContent-Length: 5000\r\n\r\n"));
	CU_ASSERT(client_pattern(fd, 0, 5000, false));
	CU_ASSERT(sum_is(fd, 5000));
	CU_ASSERT(client_at_end(fd));
	close(fd);
	free(text);
	parts_server_stop(&s);
}

/* ---- a slow stage ---- */

#define FLOOD (300LL << 20)

static void *flood_main(void *arg)
{
	static const char zeroes[65536];
	int fd = *(int *)arg;

	for (int64_t left = FLOOD; left > 0; left -= (int64_t)sizeof(zeroes))
		if (!client_send(fd, zeroes, sizeof(zeroes)))
			return arg;
	return NULL;
}

/* 300 MiB to a stage that does not read: the server reads one buffer of it and never holds more. */
static void test_bounded(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);
	struct answer a = {0};
	char want[64];
	pthread_t thread;
	void *failed;

	CU_ASSERT(
	    client_sayf(fd, POST_HEAD("/gate/slow", "Content-Length: %lld\r\n"), (long long)FLOOD));
	gate_await(1);
	pthread_create(&thread, NULL, flood_main, &fd);
	AWAIT_METRIC(&s, "http_received_bytes_total", >=, 65536);
	CU_ASSERT(server_metric(&s, "http_received_bytes_total") < 65536 + 4096);
	CU_ASSERT_EQUAL(server_metric(&s, "http_stream_buffer_bytes"), 65536);
	gate_open("slow");
	pthread_join(thread, &failed);
	CU_ASSERT_PTR_NULL(failed);
	snprintf(want, sizeof(want), "%lld 0\n", (long long)FLOOD);
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, want));
	CU_ASSERT_EQUAL(server_metric(&s, "http_stream_buffer_peak_bytes"), 65536);
	answer_free(&a);
	close(fd);
	parts_server_stop(&s);
}

/* A request that comes when the memory for bodies is used up is refused, and no other is
 * affected. */
static void test_no_memory(void)
{
	struct server s = parts_server_new();
	fixture_set(s.web, "with.body_memory", "100KiB");
	server_start(&s);
	int fd = client_open(s.port), late = client_open(s.port);

	CU_ASSERT(client_say(fd, POST_HEAD("/sum", "Content-Length: 2000000\r\n")));
	AWAIT_METRIC(&s, "http_stream_buffer_bytes", ==, 65536);
	CU_ASSERT(client_say(late, POST_HEAD("/sum", "Content-Length: 2000000\r\n")));
	CU_ASSERT(status_is(late, 503, true));
	CU_ASSERT(client_pattern(fd, 0, 2000000, false));
	CU_ASSERT(sum_is(fd, 2000000));
	close(fd);
	close(late);
	parts_server_stop(&s);
}

/* ---- bodies that end early ---- */

static void test_client_goes(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);

	CU_ASSERT(client_say(fd, POST_HEAD("/sum", "Content-Length: 2000000\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 1000000, false));
	close(fd);
	FIXTURE_AWAIT(atomic_load(&parts_error) == WEIR_EGONE);
	AWAIT_METRIC(&s, "http_torn_bodies_total", ==, 1);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	fd = client_open(s.port); /* this client stops sending, but still reads */
	CU_ASSERT(client_say(fd, POST_HEAD("/sum", "Transfer-Encoding: chunked\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 1000000, true));
	shutdown(fd, SHUT_WR);
	CU_ASSERT(status_is(fd, 400, true));
	CU_ASSERT(client_at_end(fd));
	close(fd);
	parts_server_stop(&s);
}

static void test_bad_chunk(void)
{
	struct server s = parts_server_new();
	fixture_set(s.web, "with.max_body", "1MiB");
	server_start(&s);
	int fd = client_open(s.port);

	CU_ASSERT(client_say(fd, POST_HEAD("/sum", "Transfer-Encoding: chunked\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 200000, true) && client_say(fd, "zz\r\n"));
	CU_ASSERT(status_is(fd, 400, true));
	CU_ASSERT_EQUAL(atomic_load(&parts_error), WEIR_EINVAL);
	CU_ASSERT(client_at_end(fd));
	close(fd);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, POST_HEAD("/sum", "Transfer-Encoding: chunked\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 1 << 20, true) && client_say(fd, "1\r\n"));
	CU_ASSERT(status_is(fd, 413, true));
	CU_ASSERT(client_at_end(fd));
	close(fd);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, POST_HEAD("/sum", "Content-Length: 1048577\r\n")));
	CU_ASSERT(status_is(fd, 413, true));
	close(fd);
	parts_server_stop(&s);
}

static void test_too_slow(void)
{
	struct server s = parts_server_new();
	fixture_set(s.web, "with.body_timeout", "50ms");
	server_start(&s);
	int fd = client_open(s.port);

	CU_ASSERT(client_say(fd, POST_HEAD("/sum", "Content-Length: 200000\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 100000, false));
	CU_ASSERT(status_is(fd, 408, true));
	CU_ASSERT(client_at_end(fd));
	CU_ASSERT_EQUAL(server_metric(&s, "http_timeouts_body_total"), 1);
	close(fd);
	parts_server_stop(&s);
}

/* ---- answers before the end of the body ---- */

#define CHUNKED "Transfer-Encoding: chunked\r\n"

static void test_early_answer(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);

	/* Little of the body is left: it is skipped, and the connection continues. */
	CU_ASSERT(client_say(fd, POST_HEAD("/early/404", "Content-Length: 60000\r\n")));
	CU_ASSERT(status_is(fd, 404, false));
	CU_ASSERT(client_pattern(fd, 0, 60000, false));
	CU_ASSERT(client_say(fd, GET("/sum")) && sum_is(fd, 0));
	/* Much is left: there is an answer, and then the connection ends. */
	CU_ASSERT(client_say(fd, POST_HEAD("/early/403", "Content-Length: 60000000\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 50000, false));
	CU_ASSERT(status_is(fd, 403, true));
	CU_ASSERT(client_at_end(fd));
	close(fd);
	parts_server_stop(&s);
}

/* An answer before the end of a chunked body, whose length is not known in advance: the framing is
 * checked, and errors end the connection. */
static void test_early_answer_to_chunks(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);

	CU_ASSERT(client_say(fd, POST_HEAD("/early/404", CHUNKED)));
	CU_ASSERT(client_pattern(fd, 0, 20000, true));
	CU_ASSERT(status_is(fd, 404, false));
	CU_ASSERT(client_pattern(fd, 0, 30000, true));
	CU_ASSERT(
	    client_say(fd, "5\r\n0\r\n\r\n\r\n0\r\nX: y\r\n\r\n" GET("/sum")) && sum_is(fd, 0));
	/* Beyond 64 KiB: discarded for a moment, so that the answer is not lost; then the
	 * connection ends. */
	CU_ASSERT(client_say(fd, POST_HEAD("/early/403", CHUNKED)));
	CU_ASSERT(client_pattern(fd, 0, 20000, true));
	CU_ASSERT(status_is(fd, 403, false));
	CU_ASSERT(client_pattern(fd, 0, 200000, true));
	CU_ASSERT(client_at_end(fd));
	close(fd);
	/* Malformed: no byte after it is taken as a request. */
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, POST_HEAD("/early/403", CHUNKED)));
	CU_ASSERT(client_pattern(fd, 0, 20000, true));
	CU_ASSERT(status_is(fd, 403, false));
	CU_ASSERT(client_say(fd, "5\r\nhelloX\r\n0\r\n\r\n" GET("/sum")));
	CU_ASSERT(client_at_end(fd));
	close(fd);
	parts_server_stop(&s);
}

#define EXPECT "Expect: 100-continue\r\n"

static void test_continue(void)
{
	struct server s = parts_server();
	struct answer a = {0};
	int fd = client_open(s.port);

	/* "100 Continue" is sent after another answer, and also for a body of unknown length. */
	CU_ASSERT(
	    client_say(fd, GET("/gate/go") POST_HEAD("/sum", EXPECT "Content-Length: 9000\r\n")));
	gate_await(1);
	gate_open("go");
	CU_ASSERT(sum_is(fd, 0));
	CU_ASSERT(answer_read(fd, &a) && a.status == 100);
	CU_ASSERT(client_pattern(fd, 0, 9000, false));
	CU_ASSERT(sum_is(fd, 9000));
	CU_ASSERT(client_say(fd, POST_HEAD("/sum", EXPECT "Transfer-Encoding: chunked\r\n")));
	CU_ASSERT(answer_read(fd, &a) && a.status == 100);
	CU_ASSERT(client_pattern(fd, 0, 9000, true) && client_say(fd, "0\r\n\r\n"));
	CU_ASSERT(sum_is(fd, 9000));
	/* A client that does not wait for "100 Continue" does not get it if the body arrives
	 * first. */
	CU_ASSERT(client_say(
	    fd, GET("/gate/later") POST_HEAD("/sum", EXPECT "Content-Length: 9000\r\n")));
	gate_await(1);
	CU_ASSERT(client_pattern(fd, 0, 9000, false));
	AWAIT_METRIC(&s, "http_received_bytes_total", >=, 27000);
	gate_open("later");
	CU_ASSERT(sum_is(fd, 0));
	CU_ASSERT(sum_is(fd, 9000));
	/* Answered without the body: no 100, and it is unknown what comes next, so the connection
	 * ends. */
	CU_ASSERT(client_say(fd, POST_HEAD("/early/401", EXPECT "Content-Length: 9000\r\n")));
	CU_ASSERT(status_is(fd, 401, true));
	CU_ASSERT(client_at_end(fd));
	close(fd);
	answer_free(&a);
	parts_server_stop(&s);
}

/* A streamed answer to a client that waits for "100 Continue" and never gets it: its next bytes may
 * be its body or its next request, so they are read as neither. */
static void test_continue_streamed(void)
{
	char trailers[100];
	static const char *const bodies[] = {"Content-Length: 2000\r\n", CHUNKED};
	struct server s = parts_server();
	struct answer a = {0};

	for (int i = 0; i < 2; i++) {
		int fd = client_open(s.port);
		CU_ASSERT(client_sayf(fd, POST_HEAD("/count/5", EXPECT "%s"), bodies[i]));
		CU_ASSERT(answer_read(fd, &a) && a.status == 200 && a.close);
		CU_ASSERT_EQUAL(chunked_read(fd, trailers, sizeof(trailers)), 5);
		(void)client_say(fd, GET("/sum")); /* the server may have closed already */
		CU_ASSERT(client_at_end(fd));
		close(fd);
	}
	answer_free(&a);
	parts_server_stop(&s);
}

/* An operator pauses the source, then the stage, and drains the stage, in the middle of a body. The
 * body continues as soon as possible, and a drained stage still gets the rest of what it had
 * begun. */
static void test_steered(void)
{
	struct server s = parts_server();
	int fd = client_open(s.port);

	CU_ASSERT(client_say(fd, POST_HEAD("/sum", "Content-Length: 90000\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 20000, false));
	AWAIT_METRIC(&s, "http_received_bytes_total", >=, 20000);
	server_steer(&s, "web", WEIR_STEER_PAUSE);
	CU_ASSERT(client_pattern(fd, 20000, 20000, false));
	CU_ASSERT(server_metric(&s, "http_received_bytes_total") < 40000);
	server_steer(&s, "web", WEIR_STEER_RUN);
	AWAIT_METRIC(&s, "http_received_bytes_total", >=, 40000);
	server_steer(&s, "app", WEIR_STEER_PAUSE);
	/* In total less than the 64 KiB that are buffered, since the stage may have been paused
	 * before it read anything. */
	CU_ASSERT(client_pattern(fd, 40000, 20000, false));
	AWAIT_METRIC(&s, "http_received_bytes_total", >=, 60000);
	server_steer(&s, "app", WEIR_STEER_RUN);
	server_steer(&s, "app", WEIR_STEER_DRAIN);
	int late = client_open(s.port);
	CU_ASSERT(client_say(late, GET("/sum")) && status_is(late, 503, false));
	CU_ASSERT(client_pattern(fd, 60000, 30000, false));
	CU_ASSERT(sum_is(fd, 90000));
	server_steer(&s, "app", WEIR_STEER_RUN);
	CU_ASSERT(client_say(late, GET("/sum")) && sum_is(late, 0));
	close(fd);
	close(late);
	parts_server_stop(&s);
}

/* The knob is off: a long body is awaited completely, and one that is too long is refused, as
 * usual. */
static void test_off(void)
{
	struct server s = parts_server_new();
	fixture_set(s.web, "with.stream", "0");
	fixture_set(s.web, "with.max_body", "1MiB");
	server_start(&s);
	int fd = client_open(s.port);

	CU_ASSERT(client_say(fd, POST_HEAD("/sum", "Content-Length: 500000\r\n")));
	CU_ASSERT(client_pattern(fd, 0, 500000, false));
	CU_ASSERT(sum_is(fd, 500000));
	CU_ASSERT_EQUAL(server_metric(&s, "http_streamed_bodies_total"), 0);
	close(fd);
	parts_server_stop(&s);
}

CUNIT_MAIN("uploads in parts", {"of known length", test_length}, {"chunked", test_chunked},
    {"pipelined, HTTP/1.0", test_pipelined}, {"memory has a bound", test_bounded},
    {"no memory", test_no_memory}, {"the client goes", test_client_goes},
    {"bad chunks, too long", test_bad_chunk}, {"too slow", test_too_slow},
    {"early answers", test_early_answer}, {"early answers to chunks", test_early_answer_to_chunks},
    {"100-continue", test_continue}, {"100 Continue and a streamed answer", test_continue_streamed},
    {"paused and drained", test_steered}, {"off", test_off})
