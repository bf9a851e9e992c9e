/* SPDX-License-Identifier: MIT */
/* http.client behind a trusted proxy: what the origin gets of what proxies say. */
#include "fixture/http/origin.h"

/* The head that the origin gets of a request with `fields`, which comes from a proxy in `trust`. */
static void ask(const char *from, const char *fields, char head[4096])
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	char text[1024];

	fixture_set(s.web, "with.trust", "127.0.0.1");
	fixture_set(s.web, "with.client_from", from);
	server_start(&s);
	int c = client_open(s.port);
	snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: shop\r\n%s\r\n", fields);
	client_say(c, text);
	int u = origin_accept(&o);
	CU_ASSERT_FATAL(head_read(u, head, 4096));
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* The proxy knows X-Forwarded-For alone: Forwarded is the client's own, and does not reach the origin. */
static void x_forwarded_for(void)
{
	char head[4096];

	ask("x-forwarded-for",
	    "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n"
	    "Forwarded: for=6.6.6.6;host=evil\r\n",
	    head);
	CU_ASSERT_PTR_NULL(strstr(head, "6.6.6.6"));
	CU_ASSERT_PTR_NOT_NULL(strstr(head, "X-Forwarded-For: 192.0.2.7\r\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(head, "X-Forwarded-For: 127.0.0.1\r\n"));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(head, "Forwarded: for=192.0.2.7;proto=https, for=127.0.0.1\r\n"));
	CU_ASSERT_PTR_NULL(strstr(head, "X-Forwarded-Proto: http\r\n"));
}

/* And the other way round. */
static void forwarded(void)
{
	char head[4096];

	ask("forwarded",
	    "Forwarded: for=\"[2001:db8::7]\";proto=https\r\nX-Forwarded-For: 6.6.6.6\r\n"
	    "X-Forwarded-Proto: 6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n",
	    head);
	CU_ASSERT_PTR_NULL(strstr(head, "6.6.6.6"));
	CU_ASSERT_PTR_NOT_NULL(strstr(head, "Forwarded: for=\"[2001:db8::7]\";proto=https\r\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(head, "Forwarded: for=127.0.0.1\r\n"));
	CU_ASSERT_STRING_EQUAL(field_in(head, "x-forwarded-for"), "2001:db8::7, 127.0.0.1");
	CU_ASSERT_STRING_EQUAL(field_in(head, "x-forwarded-proto"), "https");
	CU_ASSERT_STRING_EQUAL(field_in(head, "x-forwarded-host"), "shop");
}

/* A proxy that says nothing is a client. */
static void nothing(void)
{
	char head[4096];

	ask("x-forwarded-for", "X-Forwarded-Proto: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n", head);
	CU_ASSERT_PTR_NULL(strstr(head, "6.6.6.6"));
	CU_ASSERT_STRING_EQUAL(field_in(head, "x-forwarded-for"), "127.0.0.1");
	CU_ASSERT_STRING_EQUAL(field_in(head, "forwarded"), "for=127.0.0.1;proto=http");
}

CUNIT_MAIN("http.client behind a proxy", {"X-Forwarded-For", x_forwarded_for},
    {"Forwarded", forwarded}, {"nothing", nothing})
