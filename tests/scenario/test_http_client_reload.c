/* SPDX-License-Identifier: MIT */
/* A reload while http.client waits for an origin, or passes its answer on: nothing is lost. */
#include "fixture/http/origin.h"

#include "fixture/graph/drain.h"

/* Let `next` replace `s`, which drains in a thread of its own. */
static void replace(struct server *s, struct server *next, struct drain *d)
{
	struct weir_errs errs = {0};

	CU_ASSERT_EQUAL_FATAL(weir_graph_build(next->spec, &next->graph, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next->graph, s->graph, &errs), 0);
	next->port = weir_http_port(weir_graph_stage(next->graph, "web"), 0);
	CU_ASSERT_EQUAL(next->port, s->port);
	drain_call(d, s->graph, DRAIN_ALL_NS);
}

static void reload_while_waiting(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o), next = server_before(&o);
	struct drain d;

	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/old"));
	replace(&s, &next, &d);
	/* a new client is served by the new graph, which has its own connections */
	int c2 = client_open(next.port), u2 = origin_ask(&o, c2, GET("/new"));
	client_say(u2, ANSWER("Content-Length: 3\r\n", "new"));
	CU_ASSERT(client_gets(c2, 200, "new"));
	client_say(u, ANSWER("Content-Length: 3\r\n", "old"));
	CU_ASSERT(client_gets(c, 200, "old"));
	drain_end(&d);
	CU_ASSERT_EQUAL(d.report.closed, 0);
	CU_ASSERT(client_at_end(u));
	close(c);
	close(c2);
	close(u);
	close(u2);
	server_stop(&next);
	origin_free(&o);
}

/* The client has got a part of the answer, and reads the rest after the reload has begun. */
static void reload_within_an_answer(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o), next = server_before(&o);
	struct drain d;
	static char body[200001];

	memset(body, 'x', sizeof(body) - 1);
	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
	client_say(u, "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n");
	client_send(u, body, 100000);
	replace(&s, &next, &d);
	client_send(u, body, 100000);
	CU_ASSERT(client_gets(c, 200, body));
	drain_end(&d);
	CU_ASSERT_EQUAL(d.report.closed, 0);
	close(c);
	close(u);
	server_stop(&next);
	origin_free(&o);
}

/* The client goes while the old server waits for the origin. */
static void client_goes_within_a_reload(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o), next = server_before(&o);
	struct drain d;

	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
	replace(&s, &next, &d);
	close(c);
	CU_ASSERT(client_at_end(u));
	drain_end(&d);
	close(u);
	server_stop(&next);
	origin_free(&o);
}

CUNIT_MAIN("reload with http.client", {"while it waits", reload_while_waiting},
    {"within an answer", reload_within_an_answer}, {"the client goes", client_goes_within_a_reload})
