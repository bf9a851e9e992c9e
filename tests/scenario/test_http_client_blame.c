/* SPDX-License-Identifier: MIT */
/* http.client: what is not the fault of an origin does not leave it out. */
#include <poll.h>
#include <sys/resource.h>

#include "fixture/http/origin.h"

/* The origin has begun to answer, and waits for the rest of the body, which the client sends late. */
static void client_pauses_within_an_answer(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	char head[2048], body[4];

	fixture_set(s.web, "with.stream", "1KiB");
	fixture_set(s.app, "with.timeout", "20ms");
	server_start(&s);
	int c = client_open(s.port);
	client_say(c, "PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 20000\r\n\r\n");
	int u = origin_accept(&o);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	client_say(u, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nsome");
	CU_ASSERT(head_read(c, head, sizeof(head)));
	CU_ASSERT(client_take(c, body, 4));
	struct pollfd p = {.fd = c, .events = POLLIN};
	CU_ASSERT_EQUAL(poll(&p, 1, 200), 0); /* it is not aborted */
	CU_ASSERT_EQUAL(server_metric(&s, "origin_timeouts_total"), 0);
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* This process has no descriptor left for a connection to the origin. */
static void no_descriptor_is_left(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	struct rlimit was, none;

	fixture_set(s.app, "with.fails", "1");
	fixture_set(s.app, "with.eject", "1h");
	server_start(&s);
	int c = client_open(s.port);
	client_say(c, "GET /no HTTP/1.1\r\nHost: t\r\nx-deadline-ms: 0\r\n\r\n");
	struct answer a = {0};
	CU_ASSERT(answer_read(c, &a)); /* the server has accepted the connection */
	answer_free(&a);
	CU_ASSERT_FATAL(getrlimit(RLIMIT_NOFILE, &was) == 0);
	none = (struct rlimit){3, was.rlim_max};
	CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &none) == 0);
	client_say(c, GET("/"));
	CU_ASSERT(client_gets(c, 502, "502 Bad Gateway\n"));
	CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &was) == 0);
	CU_ASSERT_EQUAL(server_metric(&s, "origins_out"), 0);
	int u = origin_ask(&o, c, GET("/"));
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* All origins are left out: one request at a time tries one all the same, the others fail at once. */
static void no_origin_is_left(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	struct answer a = {0};

	fixture_set(s.app, "with.fails", "1");
	fixture_set(s.app, "with.eject", "1h");
	origin_shut(&o);
	server_start(&s);
	int c = client_open(s.port), d = client_open(s.port);
	for (int i = 0; i < 3; i++) {
		client_say(c, GET("/"));
		CU_ASSERT_FATAL(answer_read(c, &a));
		CU_ASSERT(answer_is(&a, 502, "502 Bad Gateway\n"));
		CU_ASSERT_STRING_EQUAL(
		    field_in(a.head, "x-weir-failed"), "stage=app; reason=connect");
	}
	AWAIT_COUNT(&s, "origin_connect_failures_total", 3);
	CU_ASSERT_EQUAL(server_metric(&s, "origin_none_total"), 0);
	origin_open(&o);
	int u = origin_ask(&o, c, GET("/"));
	client_say(d, GET("/"));
	CU_ASSERT_FATAL(answer_read(d, &a));
	CU_ASSERT_EQUAL(a.status, 502);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "x-weir-failed"), "stage=app; reason=out");
	AWAIT_COUNT(&s, "origin_none_total", 1);
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	AWAIT_COUNT(&s, "origins_out", 0);
	answer_free(&a);
	close(c);
	close(d);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

CUNIT_MAIN("blame of origins by http.client",
    {"the client pauses within an answer", client_pauses_within_an_answer},
    {"no descriptor is left", no_descriptor_is_left}, {"no origin is left", no_origin_is_left})
