/* SPDX-License-Identifier: MIT */
/* Servers with `per_thread` replace each other, and servers without a limit: connections that are handed
 * over wait for a thread with room. */
#include "fixture/graph/drain.h"
#include "fixture/http/per_thread.h"

/* `next` starts beside `s`. */
static struct server begin_next(const struct server *s, struct server next)
{
	struct weir_errs errs = {0};

	next.graph = fixture_build(next.spec);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s->graph, &errs), 0);
	next.port = s->port;
	return next;
}

/* `next` takes over from `s`, which drains. */
static struct server follow(struct server *s, struct drain *d, struct server next)
{
	next = begin_next(s, next);
	drain_call(d, s->graph, DRAIN_ALL_NS);
	return next;
}

/* An idle connection goes on, one in a handler follows, one in the backlog is accepted by the new
 * server. */
static void test_reload(void)
{
	struct server s = started("2", 1);
	int idle = dial(&s, GET("/1")), blocked, waits;
	struct drain d;

	CU_ASSERT(is_answered(idle, "GET /1\n"));
	blocked = dial(&s, GET("/wait/reload"));
	gate_await(1);
	waits = dial(&s, GET("/2"));
	s = follow(&s, &d, made("2", 1));
	CU_ASSERT(client_say(idle, GET("/3")) && is_answered(idle, "GET /3\n"));
	close(idle);
	CU_ASSERT(is_answered(waits, "GET /2\n"));
	gate_open("reload");
	CU_ASSERT(is_answered(blocked, "GET /wait/reload\n"));
	CU_ASSERT(client_say(blocked, GET("/4")) && is_answered(blocked, "GET /4\n"));
	close(blocked);
	close(waits);
	drain_end(&d);
	stop(&s);
}

static void dial_four(const struct server *s, int *fd)
{
	for (int i = 0; i < 4; i++) {
		fd[i] = dial(s, GET("/1"));
		CU_ASSERT(is_answered(fd[i], "GET /1\n"));
	}
}

static void close_four(const int *fd)
{
	for (int i = 0; i < 4; i++)
		close(fd[i]);
}

/* Connections of many threads, or of one without a limit, wait for a thread of the new server. None of
 * them is in use, so each makes way for the next one. */
static void check_fewer(const char *threads, int64_t per_thread)
{
	struct server s = started(threads, per_thread);
	struct drain d;
	int fd[4], i = 0;

	dial_four(&s, fd);
	s = follow(&s, &d, made("1", 1));
	drain_end(&d);
	AWAIT_METRIC(&s, "http_evicted_total", ==, 3);
	FIXTURE_AWAIT(count_readable(fd, 4) == 3); /* their ends */
	while (is_readable(fd[i]))
		i++;
	for (int j = 0; j < 4; j++)
		CU_ASSERT(j == i || client_at_end(fd[j]));
	CU_ASSERT(client_say(fd[i], GET("/2")) && is_answered(fd[i], "GET /2\n"));
	CU_ASSERT_EQUAL(server_metric(&s, "http_refused_handed_total"), 0);
	AWAIT_METRIC(&s, "http_connections", ==, 1);
	close_four(fd);
	stop(&s);
}

static void test_fewer(void)
{
	check_fewer("4", 1);
	check_fewer("2", 0);
}

/* Connections wait while all threads are in handlers. They count as open. Each of their requests is answered
 * by the thread that returns, though no client closes its connection. */
static void check_requests_wait(int threads)
{
	struct server s = started("4", 1), next;
	struct drain d;
	int fd[4], blocked[2];

	dial_four(&s, fd);
	next = begin_next(&s, made(threads == 1 ? "1" : "2", 1));
	/* no thread of the old server has room */
	blocked[0] = dial(&next, GET("/wait/long"));
	gate_await(1);
	if (threads == 2)
		blocked[1] = dial(&next, GET("/wait/longer"));
	gate_await(threads);
	drain_call(&d, s.graph, DRAIN_ALL_NS);
	drain_end(&d);
	CU_ASSERT_EQUAL(server_metric(&next, "http_connections"), 4 + threads);
	for (int i = 0; i < 4; i++)
		CU_ASSERT(client_say(fd[i], GET("/2")));
	gate_open("long");
	CU_ASSERT(is_answered(blocked[0], "GET /wait/long\n"));
	for (int i = 0; i < 4; i++)
		CU_ASSERT(is_answered(fd[i], "GET /2\n"));
	AWAIT_METRIC(&next, "http_evicted_total", ==, 4);
	AWAIT_METRIC(&next, "http_connections", ==, threads);
	CU_ASSERT_EQUAL(server_metric(&next, "http_refused_handed_total"), 0);
	CU_ASSERT(client_at_end(blocked[0]));
	gate_open("longer");
	CU_ASSERT(threads == 1 || is_answered(blocked[1], "GET /wait/longer\n"));
	for (int i = 0; i < threads; i++)
		close(blocked[i]);
	close_four(fd);
	stop(&next);
}

static void test_requests_wait(void)
{
	check_requests_wait(1);
	check_requests_wait(2);
}

/* Without a limit, the new server gives each thread a socket of its own again. */
static void test_no_limit_any_more(void)
{
	struct server s = started("2", 1);
	int fd[6], kept = dial(&s, GET("/1"));
	struct drain d;

	CU_ASSERT(is_answered(kept, "GET /1\n"));
	s = follow(&s, &d, made("3", 0));
	drain_end(&d);
	for (int i = 0; i < 6; i++) {
		fd[i] = dial(&s, GET("/2"));
		CU_ASSERT(is_answered(fd[i], "GET /2\n"));
	}
	CU_ASSERT(client_say(kept, GET("/3")) && is_answered(kept, "GET /3\n"));
	close(kept);
	for (int i = 0; i < 6; i++)
		close(fd[i]);
	stop(&s);
}

/* The new server stops while connections wait for it. */
static void test_drain_of_waiting(void)
{
	struct server s = started("3", 1);
	struct drain d;
	int fd[3];

	for (int i = 0; i < 3; i++) {
		fd[i] = dial(&s, GET("/1"));
		CU_ASSERT(is_answered(fd[i], "GET /1\n"));
	}
	s = follow(&s, &d, made("1", 1));
	drain_end(&d);
	stop(&s);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT(client_at_end(fd[i]));
		close(fd[i]);
	}
}

CUNIT_MAIN("http_per_thread_reload", {"reload", test_reload}, {"fewer threads", test_fewer},
    {"requests wait", test_requests_wait}, {"no limit any more", test_no_limit_any_more},
    {"drain of waiting", test_drain_of_waiting})
