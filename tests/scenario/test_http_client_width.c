/* SPDX-License-Identifier: MIT */
/* The width of http.client: how many requests are under way, and which of them no longer count. */
#include "fixture/graph/probes.h"
#include "fixture/http/origin.h"

/* Send what the socket takes. */
static void fill(int fd)
{
	static const char bytes[65536];

	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		continue;
}

/* A client that does not read its answer does not keep others from the origin. */
static void client_reads_slowly(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	char head[2048];

	fixture_set(s.app, "width.max", "1");
	fixture_set(s.app, "width.policy", "static");
	server_start(&s);
	int slow = client_open(s.port), u = origin_ask(&o, slow, GET("/large"));
	client_say(u, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
	CU_ASSERT(head_read(slow, head, sizeof(head)));
	CU_ASSERT_EQUAL(stage_view(s.graph, "app").in_work, 1);
	FIXTURE_AWAIT((fill(u), stage_view(s.graph, "app").in_work == 0));
	CU_ASSERT_EQUAL(stage_view(s.graph, "app").held, 1);
	int c = client_open(s.port), v = origin_ask(&o, c, GET("/"));
	client_say(v, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	/* the first request is still under way */
	char bytes[4096];
	CU_ASSERT(client_take(slow, bytes, sizeof(bytes)));
	close(slow);
	FIXTURE_AWAIT(stage_view(s.graph, "app").held == 0);
	close(c);
	close(u);
	close(v);
	server_stop(&s);
	origin_free(&o);
}

CUNIT_MAIN("width of http.client", {"a client reads slowly", client_reads_slowly})
