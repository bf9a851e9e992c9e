/* SPDX-License-Identifier: MIT */
/* State that a connection keeps across a reload: its number of requests, so that it is closed after
 * keep_alive_requests. (For the connections themselves see test_http_reload.c.) */
#include "fixture/http/server.h"

#include "fixture/graph/drain.h"

static struct server server_of(const char *requests)
{
	struct server s = server_new("t.reply");

	fixture_set(s.web, "with.keep_alive_requests", requests);
	fixture_set(s.app, "threads", "inline");
	return s;
}

/* Replace `s` by another server, which gets its connections. Returns when `s` is gone. */
static struct server follow(struct server *s, const char *requests)
{
	struct server next = server_of(requests);
	struct weir_errs errs = {0};
	struct drain d;

	CU_ASSERT_EQUAL_FATAL(weir_graph_build(next.spec, &next.graph, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s->graph, &errs), 0);
	next.port = weir_http_port(weir_graph_stage(next.graph, "web"), 0);
	drain_call(&d, s->graph, DRAIN_ALL_NS);
	drain_end(&d);
	return next;
}

/* Send a request on `fd`. *closes: does the answer close the connection? */
static bool ask(int fd, bool *closes)
{
	struct answer a = {0};
	bool ok =
	    client_say(fd, GET("/x")) && answer_read(fd, &a) && answer_is(&a, 200, "GET /x\n");

	*closes = a.close;
	answer_free(&a);
	return ok;
}

/* The fifth request of five is the last one, although each of three servers has seen only one or
 * two. */
static void test_number_of_requests(void)
{
	struct server a = server_of("5");
	bool closes;

	server_start(&a);
	int fd = client_open(a.port), fresh;
	for (int i = 0; i < 2; i++)
		CU_ASSERT(ask(fd, &closes) && !closes);
	struct server b = follow(&a, "5");
	for (int i = 0; i < 2; i++)
		CU_ASSERT(ask(fd, &closes) && !closes);
	struct server c = follow(&b, "5");
	fresh = client_open(c.port);
	CU_ASSERT(ask(fd, &closes) && closes);
	CU_ASSERT(client_at_end(fd));
	for (int i = 0; i < 4; i++)
		CU_ASSERT(ask(fresh, &closes) && !closes);
	CU_ASSERT(ask(fresh, &closes) && closes);
	close(fd);
	close(fresh);
	server_stop(&c);
}

CUNIT_MAIN("http handover", {"the number of requests", test_number_of_requests})
