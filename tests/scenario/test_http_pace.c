/* SPDX-License-Identifier: MIT */
/* Sending or reading a byte now and then does not gain a client time. The test moves the server's
 * clock. */
#include <poll.h>

#include "fixture/clock/held_clock.h"
#include "fixture/http/server.h"

static struct server server;

static void start_held(const char *const knobs[][2], int n)
{
	server = server_new("t.reply");
	for (int i = 0; i < n; i++)
		fixture_set(server.web, knobs[i][0], knobs[i][1]);
	fixture_set(server.app, "threads", "inline");
	clock_hold();
	server_start(&server);
}

static void stop_held(void)
{
	server_stop(&server);
	clock_release();
}

/* Send one more byte, wait until the server has read it, then advance the time. */
static void trickle(int fd, int64_t ms)
{
	int64_t n = server_metric(&server, "http_received_bytes_total");

	CU_ASSERT(client_send(fd, "x", 1));
	AWAIT_METRIC(&server, "http_received_bytes_total", >, n);
	clock_move(ms);
}

/* A byte now and then does not extend the deadline, which is for the whole head. */
static void test_trickle(void)
{
	static const char *const knobs[][2] = {{"with.header_timeout", "1s"}};
	static const char text[] = "GET /";
	struct answer a = {0};
	struct pollfd p = {.events = POLLIN};

	start_held(knobs, 1);
	p.fd = client_open(server.port);
	CU_ASSERT(client_say(p.fd, text));
	AWAIT_METRIC(&server, "http_received_bytes_total", ==, (int64_t)strlen(text));
	for (int i = 0; i < 6; i++) {
		trickle(p.fd, 160);
		CU_ASSERT_EQUAL(poll(&p, 1, 0), 0);
	}
	trickle(p.fd, 160);
	CU_ASSERT(answer_read(p.fd, &a));
	CU_ASSERT_EQUAL(a.status, 408);
	close(p.fd);
	answer_free(&a);
	stop_held();
}

static bool limit_is(const struct answer *a, const char *code)
{
	const char *said = field_in(a->head, "X-Weir-Limit");

	return said && strcmp(said, code) == 0;
}

/* A byte now and then does not keep a body going for longer than RATE_GRACE (5 s), nor does the
 * part that the client's kernel takes first keep an answer going: the pauses are short enough, but
 * the rate is too low. */
static void test_rates(void)
{
	static const char *const knobs[][2] = {{"with.min_send_rate", "20k"},
	    {"with.body_timeout", "1h"}, {"with.write_timeout", "1h"}};
	struct answer a = {0};
	struct pollfd p = {.events = POLLIN};
	int reader, n = 0;

	start_held(knobs, 3);
	reader = client_open(server.port);
	CU_ASSERT(client_say(reader, GET("/big/100000000")));
	p.fd = client_open(server.port);
	CU_ASSERT(
	    client_say(p.fd, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n"));
	AWAIT_METRIC(&server, "http_received_bytes_total", ==,
	    (int64_t)strlen(GET(
		"/big/100000000") "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n"));
	for (; poll(&p, 1, 0) == 0 && n < 100; n++)
		trickle(p.fd, 500);
	CU_ASSERT(n >= 10 && n <= 11); /* RATE_GRACE, and the time that the bytes may take */
	CU_ASSERT(answer_read(p.fd, &a));
	CU_ASSERT_EQUAL(a.status, 408);
	CU_ASSERT(limit_is(&a, "min_body_rate"));
	AWAIT_METRIC(&server, "http_slow_bodies_total", ==, 1);
	for (n = 0; n < 100 && server_metric(&server, "http_slow_readers_total") == 0; n++)
		clock_move(500);
	AWAIT_METRIC(&server, "http_slow_readers_total", ==, 1);
	CU_ASSERT_EQUAL(server_metric(&server, "http_timeouts_body_total"), 0);
	CU_ASSERT_EQUAL(server_metric(&server, "http_timeouts_write_total"), 0);
	close(p.fd);
	close(reader);
	answer_free(&a);
	stop_held();
}

/* A body that arrives at twice min_body_rate is read to its end, however long that takes. */
static void test_fast_enough(void)
{
	enum { PART = 1000, PARTS = 40 };
	static const char *const knobs[][2] = {
	    {"with.min_body_rate", "1k"}, {"with.body_timeout", "1h"}};
	static const char head[] = "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 40000\r\n\r\n";
	static char part[PART];
	struct answer a = {0};

	start_held(knobs, 2);
	int fd = client_open(server.port);
	CU_ASSERT(client_say(fd, head));
	for (int i = 1; i <= PARTS; i++) {
		CU_ASSERT(client_send(fd, part, PART));
		AWAIT_METRIC(&server, "http_received_bytes_total", ==,
		    (int64_t)(sizeof(head) - 1 + (size_t)i * PART));
		clock_move(500);
	}
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 200);
	CU_ASSERT_EQUAL(server_metric(&server, "http_slow_bodies_total"), 0);
	close(fd);
	answer_free(&a);
	stop_held();
}

CUNIT_MAIN("http pace", {"a trickle buys no time", test_trickle}, {"rates", test_rates},
    {"fast enough", test_fast_enough})
