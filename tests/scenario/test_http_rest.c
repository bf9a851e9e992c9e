/* SPDX-License-Identifier: MIT */
/* Work that remains when something ends: requests before a client's end of stream, a request in
 * progress when connections are evicted, a connection whose answer outlasts the linger time of a
 * drain. */
#include "base/clock.h"
#include "fixture/graph/drain.h"
#include "fixture/http/server.h"

/* A client sends more requests than the pipeline holds, and its end of stream. The second answer of
 * each pair does not fit into the socket buffer. */
static void test_half_closed(void)
{
	enum { PAIRS = 6 };
	struct server s = server_new("t.reply");
	struct answer a = {0};
	int fd, told = 0;

	fixture_set(s.web, "with.pipeline", "2");
	fixture_set(s.app, "threads", "inline"); /* both answers leave together */
	server_start(&s);
	fd = client_open(s.port);
	for (int i = 0; i < PAIRS; i++)
		CU_ASSERT(client_say(fd, GET("/small") GET("/big/20000000")));
	shutdown(fd, SHUT_WR);
	while (told < 2 * PAIRS && answer_read(fd, &a) && a.status == 200)
		told++;
	CU_ASSERT_EQUAL(told, 2 * PAIRS);
	CU_ASSERT(client_at_end(fd));
	answer_free(&a);
	close(fd);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	server_stop(&s);
}

/* A client with half a request after one in progress is not evicted. */
static void test_in_work_stays(void)
{
	struct server s = server_new("t.reply");
	struct answer a = {0};
	int fd;

	fixture_set(s.web, "with.max_connections", "1");
	server_start(&s);
	fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/wait/held") "GET /half HTTP/1.1\r\n"));
	gate_await(1);
	/* Connections become evictable one second after their last byte. Until then, and also after
	 * it, every other client is refused. */
	int64_t from_ns = clock_now_ns();
	bool late = false;
	for (int i = 0; i < 2; i += late) {
		late = clock_now_ns() - from_ns > 1500 * NS_PER_MS;
		int other = client_open(s.port);
		CU_ASSERT(client_say(other, GET("/")) && answer_read(other, &a));
		CU_ASSERT_EQUAL(a.status, 503);
		CU_ASSERT(client_at_end(other));
		close(other);
	}
	CU_ASSERT_EQUAL(server_metric(&s, "http_evicted_total"), 0);
	gate_open("held");
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /wait/held\n"));
	CU_ASSERT(client_say(fd, "Host: t\r\n\r\n"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /half\n"));
	answer_free(&a);
	close(fd);
	server_stop(&s);
}

/* The head of a large answer is sent before the drain, and its end after the linger time. Then the
 * connection ends at once, without waiting for its idle time-out. */
static void test_late_in_a_drain(void)
{
	enum { BYTES = 20000000 };
	static char piece[65536];
	struct server s = server_new("t.reply");
	struct answer a = {0};
	struct drain d;
	char head[4096];
	int probe, held, fd;
	size_t n = 0;
	ssize_t got;

	fixture_set(s.web, "with.idle_timeout", "1h");
	fixture_set(s.app, "threads.min", "2"); /* one of them is held */
	fixture_set(s.app, "threads.max", "2");
	fixture_set(s.app, "cohort.max", "1");
	fixture_set(s.web, "with.linger", "0ms");
	server_start(&s);
	fd = client_open(s.port);
	probe = client_open(s.port);
	held = client_open(s.port);
	CU_ASSERT(client_say(held, GET("/wait/held"))); /* keeps the drain going */
	gate_await(1);
	CU_ASSERT(client_say(fd, GET("/big/20000000")) && head_read(fd, head, sizeof(head)));
	CU_ASSERT_PTR_NULL(field_in(head, "Connection"));
	drain_call(&d, s.graph, 3600 * NS_PER_S);
	/* Idle connections are closed when the linger time is over. */
	CU_ASSERT(client_at_end(probe));
	while (n < BYTES && (got = client_recv(fd, piece, sizeof(piece), 0)) > 0)
		n += (size_t)got;
	CU_ASSERT_EQUAL(n, BYTES);
	CU_ASSERT(client_at_end(fd));
	gate_open("held");
	CU_ASSERT(answer_read(held, &a) && answer_is(&a, 200, "GET /wait/held\n") && a.close);
	drain_end(&d);
	CU_ASSERT_EQUAL(d.report.closed, 0);
	answer_free(&a);
	close(held);
	close(fd);
	close(probe);
}

CUNIT_MAIN("http rest", {"half closed", test_half_closed}, {"in work stays", test_in_work_stays},
    {"late in a drain", test_late_in_a_drain})
