/* SPDX-License-Identifier: MIT */
/* Requests that are complete before their time-out are answered, however long the server was busy
 * meanwhile. The I/O thread waits at a gate of its inline stage while the rest of each request
 * arrives and time passes, so it sees both in one iteration. */
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "fixture/clock/held_clock.h"
#include "fixture/http/server.h"

/* Of five events in an iteration, the last one is processed in a run of its own. Then the server
 * has read the last request, and no more, when it checks the time. */
#define CLIENTS 5

static struct server start(void)
{
	struct server s = server_new("t.reply");

	fixture_set(s.web, "with.header_timeout", "1s");
	fixture_set(s.web, "with.body_timeout", "60s");
	fixture_set(s.app, "threads", "inline");
	clock_hold();
	server_start(&s);
	return s;
}

/* Bytes that the server's kernel does not have yet; 0: everything has arrived. */
static int on_its_way(int fd)
{
	int n = -1;

	return ioctl(fd, SIOCOUTQ, &n) == 0 ? n : -1;
}

/* Each client has sent `first`. The server is busy while `rest` arrives and `ms` pass. */
static void expect_answers(const char *first, const char *rest, int64_t ms, const char *body)
{
	struct server server = start();
	struct answer a = {0};
	int fd[CLIENTS], busy = client_open(server.port);

	for (int i = 0; i < CLIENTS; i++) {
		fd[i] = client_open(server.port);
		CU_ASSERT(client_say(fd[i], first));
	}
	AWAIT_METRIC(&server, "http_received_bytes_total", ==, CLIENTS * (int64_t)strlen(first));
	CU_ASSERT(client_say(busy, GET("/wait/go")));
	gate_await(1);
	for (int i = 0; i < CLIENTS; i++) {
		CU_ASSERT(client_say(fd[i], rest));
		FIXTURE_AWAIT(on_its_way(fd[i]) == 0);
	}
	held_ns += ms * HELD_NS_PER_MS;
	gate_open("go");
	for (int i = 0; i < CLIENTS; i++) {
		CU_ASSERT(answer_read(fd[i], &a) && answer_is(&a, 200, body));
		close(fd[i]);
	}
	close(busy);
	answer_free(&a);
	server_stop(&server);
	clock_release();
}

static void test_head(void)
{
	expect_answers("GET /x HTTP/1.1\r\nHo", "st: t\r\n\r\n", 2000, "GET /x\n");
}

/* Slower than min_body_rate, but complete. */
static void test_body(void)
{
	expect_answers("POST /x HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nab", "cd", 30000,
	    "POST /x\nabcd");
}

CUNIT_MAIN("late", {"rest of a head", test_head}, {"rest of a body", test_body})
