/* SPDX-License-Identifier: MIT */
/*
 * The end of lingering in a drain: an idle connection that sends a request at the last moment is
 * answered. The clock of the loop stands still until the linger time is over. The iteration in
 * which the loop notices that is held up by a request in its inline stage. Meanwhile another
 * connection sends: its bytes have arrived but are unread when idle connections are closed.
 */
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "fixture/graph/drain.h"
#include "fixture/clock/held_clock.h"
#include "fixture/http/server.h"

static struct server start(void)
{
	struct server s = server_new("t.reply");

	fixture_set(s.web, "with.linger", "60s");
	fixture_set(s.web, "with.idle_timeout", "1h");
	fixture_set(s.web, "with.header_timeout", "1h");
	fixture_set(s.app, "threads", "inline");
	clock_hold_ahead(30); /* less than linger, which starts by the real clock */
	server_start(&s);
	return s;
}

/* Has everything sent arrived in the server's kernel? */
static bool has_arrived(int fd)
{
	int n = -1;

	return ioctl(fd, SIOCOUTQ, &n) == 0 && n == 0;
}

static bool ask(int fd, struct answer *a)
{
	return client_say(fd, GET("/x")) && answer_read(fd, a) && answer_is(a, 200, "GET /x\n");
}

/* Begin a drain, and return when the loop has begun to linger and is waiting, as an answer to our
 * own connection shows. */
static void begin_to_linger(struct drain *d, const struct server *s)
{
	struct answer a = {0};
	int probe = client_open(s->port);

	drain_call(d, s->graph, DRAIN_ALL_NS);
	while (ask(probe, &a) && !a.close)
		continue;
	CU_ASSERT(a.close);
	close(probe);
	AWAIT_METRIC(s, "http_connections", ==, 3);
	clock_quiet(1);
	answer_free(&a);
}

static void test_request_of_the_last_moment(void)
{
	struct server s = start();
	struct answer a = {0};
	struct drain d;
	int busy = client_open(s.port), late = client_open(s.port), idle = client_open(s.port);

	CU_ASSERT(ask(busy, &a) && ask(late, &a) && ask(idle, &a));
	begin_to_linger(&d, &s);
	held_ns += 120 * HELD_NS_PER_S;
	CU_ASSERT(client_say(busy, GET("/wait/go")));
	gate_await(1); /* the loop is in the iteration that ends the linger time */
	CU_ASSERT(client_say(late, GET("/late")));
	FIXTURE_AWAIT(has_arrived(late));
	clock_loud();
	gate_open("go");
	CU_ASSERT(answer_read(busy, &a) && answer_is(&a, 200, "GET /wait/go\n"));
	CU_ASSERT(answer_read(late, &a) && answer_is(&a, 200, "GET /late\n"));
	CU_ASSERT(a.close);
	CU_ASSERT(client_at_end(late));
	CU_ASSERT(client_at_end(idle));
	close(busy);
	close(late);
	close(idle);
	drain_end(&d);
	clock_release();
	answer_free(&a);
}

CUNIT_MAIN("http linger", {"a request of the last moment", test_request_of_the_last_moment})
