/* SPDX-License-Identifier: MIT */
/*
 * Clients that take their answers slowly, but steadily. The server's clock moves with what they take, so how fast this
 * machine is does not matter.
 */
#include "fixture/held_clock.h"
#include "http_fixture.h"

static struct server start(const char *write_timeout)
{
	struct server s = server_new("t.reply");

	fixture_set(s.web, "with.write_timeout", write_timeout);
	fixture_set(s.app, "threads", "inline");
	clock_hold();
	server_start(&s);
	return s;
}

static void stop(struct server *s)
{
	server_stop(s);
	clock_release();
}

/* Who takes an answer steadily is not cut off because the socket's buffer, of megabytes, asks for more only when a third of it is
 * free: what the client has acknowledged counts. */
static void test_steady_reader(void)
{
	enum { PIECE = 4096, PIECES = 200, STEP_MS = 20 };
	static char piece[PIECE];
	struct server server = start("2s");
	int fd = client_open(server.port), n = 0;

	CU_ASSERT(client_say(fd, GET("/big/100000000")));
	/* 200 KB/s: some 4 s until the kernel asks for more */
	while (n < PIECES && client_take(fd, piece, PIECE)) {
		clock_move(STEP_MS);
		n++;
	}
	CU_ASSERT_EQUAL(n, PIECES);
	CU_ASSERT_EQUAL(server_metric(&server, "http_timeouts_write_total"), 0);
	CU_ASSERT_EQUAL(server_metric(&server, "http_connections"), 1);
	/* And who stops is, when what was on its way has come to rest. */
	for (n = 0; n < 500 && server_metric(&server, "http_timeouts_write_total") == 0; n++)
		clock_move(STEP_MS);
	CU_ASSERT_EQUAL(server_metric(&server, "http_timeouts_write_total"), 1);
	close(fd);
	stop(&server);
}

/* Sending does not stand for reading: bytes of the next request keep no answer going. */
static void test_busy_sender(void)
{
	enum { STEP_MS = 20, STEPS = 250 };
	struct server server = start("300ms");
	int fd = client_open(server.port);

	CU_ASSERT(client_say(fd, GET("/big/100000000")));
	client_say(fd, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n");
	AWAIT_METRIC(&server, "http_sent_bytes_total", >, 0);
	for (int n = 0; n < STEPS && server_metric(&server, "http_timeouts_write_total") == 0;
	     n++) {
		client_say(fd, "x");
		clock_move(STEP_MS);
	}
	CU_ASSERT_EQUAL(server_metric(&server, "http_timeouts_write_total"), 1);
	close(fd);
	stop(&server);
}

/* Nor do whole requests behind it. */
static void test_busy_asker(void)
{
	enum { STEP_MS = 200, REQUESTS = 10 }; /* fewer than a pipeline holds */
	struct server server = start("300ms");
	int fd = client_open(server.port), n = 0;

	CU_ASSERT(client_say(fd, GET("/big/100000000")));
	AWAIT_METRIC(&server, "http_sent_bytes_total", >, 0);
	for (; n < REQUESTS && server_metric(&server, "http_timeouts_write_total") == 0; n++) {
		uint64_t offered = server_offered(&server);
		client_say(fd, GET("/more"));
		FIXTURE_AWAIT(server_offered(&server) > offered ||
			      server_metric(&server, "http_timeouts_write_total") > 0);
		clock_move(STEP_MS);
	}
	CU_ASSERT(n < REQUESTS);
	CU_ASSERT_EQUAL(server_metric(&server, "http_timeouts_write_total"), 1);
	close(fd);
	stop(&server);
}

CUNIT_MAIN("http readers", {"steady reader", test_steady_reader}, {"busy sender", test_busy_sender},
    {"busy asker", test_busy_asker})
