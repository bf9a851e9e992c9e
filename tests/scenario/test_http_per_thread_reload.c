/* SPDX-License-Identifier: MIT */
/* Servers with `per_thread` replace each other, and servers without a limit: connections that are handed
 * over wait for a thread with room. */
#include "fixture/graph/drain.h"
#include "fixture/http/per_thread.h"

/* `next` takes over from `s`, which drains. */
static struct server follow(struct server *s, struct drain *d, struct server next)
{
	struct weir_errs errs = {0};

	next.graph = fixture_build(next.spec);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s->graph, &errs), 0);
	next.port = s->port;
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

/* Connections of many threads, or of one without a limit, wait for a thread of the new server. */
static void check_fewer(const char *threads, int64_t per_thread)
{
	struct server s = started(threads, per_thread);
	struct drain d;
	int fd[4];

	for (int i = 0; i < 4; i++) {
		fd[i] = dial(&s, GET("/1"));
		CU_ASSERT(is_answered(fd[i], "GET /1\n"));
	}
	s = follow(&s, &d, made("1", 1));
	drain_end(&d);
	for (int i = 0; i < 4; i++)
		CU_ASSERT(client_say(fd[i], GET("/2")));
	for (int left = 4; left > 0; left--) {
		int i = 0;
		FIXTURE_AWAIT(count_readable(fd, 4) == 1);
		while (!is_readable(fd[i]))
			i++;
		CU_ASSERT(is_answered(fd[i], "GET /2\n"));
		close(fd[i]);
		fd[i] = -1;
	}
	CU_ASSERT_EQUAL(server_metric(&s, "http_refused_handed_total"), 0);
	stop(&s);
}

static void test_fewer(void)
{
	check_fewer("4", 1);
	check_fewer("2", 0);
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
    {"no limit any more", test_no_limit_any_more}, {"drain of waiting", test_drain_of_waiting})
