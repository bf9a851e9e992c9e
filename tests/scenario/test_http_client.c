/* SPDX-License-Identifier: MIT */
/* http.client in front of an origin that this test plays: what the origin and the client get. */
#include <poll.h>

#include <weir/http_guard.h>

#include "fixture/http/origin.h"

static void request_is_rewritten(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	char head[4096];

	server_start(&s);
	int c = client_open(s.port);
	client_say(c,
	    "GET /a/./b/../%63?x=%2e HTTP/1.1\r\nHost: Shop.Example\r\nConnection: keep-alive, "
	    "x-hop\r\n"
	    "X-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\nProxy-Connection: "
	    "close\r\n"
	    "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n"
	    "X_Forwarded_For: 6.6.6.6\r\nX-Forwarded_Host: 6.6.6.6\r\n"
	    "X-Forwarded-Prefix: /6.6.6.6\r\nContent_Length: 6\r\nX_Kept: yes\r\nVia: 1.0 "
	    "far\r\nX-Kept: yes\r\n"
	    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n");
	int u = origin_accept(&o);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	CU_ASSERT_EQUAL(strncmp(head, "GET /a/c?x=%2e HTTP/1.1\r\n", 25), 0);
	CU_ASSERT_STRING_EQUAL(field_in(head, "host"), "shop.example");
	CU_ASSERT_STRING_EQUAL(field_in(head, "x-kept"), "yes");
	CU_ASSERT_STRING_EQUAL(field_in(head, "x-forwarded-for"), "127.0.0.1");
	CU_ASSERT_STRING_EQUAL(field_in(head, "x-forwarded-proto"), "http");
	CU_ASSERT_STRING_EQUAL(field_in(head, "forwarded"), "for=127.0.0.1;proto=http");
	CU_ASSERT_PTR_NOT_NULL(strstr(head, "Via: 1.0 far\r\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(head, "Via: 1.1 weir-"));
	CU_ASSERT_PTR_NOT_NULL(strstr(head, "traceparent: 00-0af7651916cd43dd8448eb211c80319c-"));
	CU_ASSERT_PTR_NULL(strstr(head, "b7ad6b7169203331"));
	CU_ASSERT_PTR_NULL(strstr(head, "6.6.6.6"));
	CU_ASSERT_STRING_EQUAL(field_in(head, "x_kept"), "yes");
	CU_ASSERT_STRING_EQUAL(field_in(head, "connection"), "TE");
	CU_ASSERT_STRING_EQUAL(field_in(head, "te"), "trailers");
	static const char *const gone[] = {"x-hop", "keep-alive", "upgrade", "proxy-connection",
	    "content-length", "transfer-encoding", "content_length"};
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		CU_ASSERT_PTR_NULL(field_in(head, gone[i]));
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

static void answer_is_rewritten(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	struct answer a = {0};

	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
	client_say(u,
	    "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
	    "HTTP/1.1 418 I'm a teapot\r\nConnection: x-hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n"
	    "Server: o\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Type: text/tea\r\n"
	    "Content-Length: 3\r\n\r\ntea");
	CU_ASSERT_FATAL(answer_read(c, &a));
	CU_ASSERT(answer_is(&a, 418, "tea"));
	CU_ASSERT_PTR_NOT_NULL(strstr(a.head, "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n"));
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "content-type"), "text/tea");
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "server"), "weir");
	CU_ASSERT_PTR_NULL(strstr(a.head, "Server: o"));
	CU_ASSERT_PTR_NULL(field_in(a.head, "x-hop"));
	CU_ASSERT_PTR_NULL(field_in(a.head, "keep-alive"));
	CU_ASSERT_PTR_NULL(field_in(a.head, "link"));
	CU_ASSERT_PTR_NOT_NULL(strstr(a.head, "Via: 1.1 weir-"));
	answer_free(&a);
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

#define CHUNKED "Transfer-Encoding: chunked\r\n"

/* Each is answered with 502, and the connection to the origin is closed. */
static void hostile_answers_are_502(void)
{
	static const char *const hostile[] = {
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
	    "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
	    "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	    "HTTP/1.1 200 OK\r\n" CHUNKED CHUNKED "\r\n0\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 0\r\n\r\n",
	    "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
	    "HTTP/1.1 200 OK\r\nX : a\r\nContent-Length: 0\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
	    "HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n",
	    "HTTP/1.1 99 No\r\nContent-Length: 0\r\n\r\n",
	    "HTTP/1.1 600 No\r\nContent-Length: 0\r\n\r\n",
	    "HTTP/1.1 2000 No\r\nContent-Length: 0\r\n\r\n",
	    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
	    "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
	    "\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	    "SSH-2.0-OpenSSH_9.2\r\n",
	};

	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		struct origin o = origin_new();
		struct server s = server_before(&o);
		server_start(&s);
		int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
		client_say(u, hostile[i]);
		if (!client_gets(c, 502, "502 Bad Gateway\n"))
			printf("answer %zu\n", i);
		CU_ASSERT(client_at_end(u));
		AWAIT_COUNT(&s, "origin_bad_answers_total", 1);
		close(c);
		close(u);
		server_stop(&s);
		origin_free(&o);
	}
}

/* Bytes behind an answer were asked for by nobody: they are not the answer to the next request. */
static void bytes_behind_an_answer(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);

	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/1"));
	client_say(
	    u, ANSWER("Content-Length: 3\r\n", "one") ANSWER("Content-Length: 4\r\n", "evil"));
	CU_ASSERT(client_gets(c, 200, "one"));
	CU_ASSERT(client_at_end(u));
	int v = origin_ask(&o, c, GET("/2"));
	client_say(v, ANSWER("Content-Length: 3\r\n", "two"));
	CU_ASSERT(client_gets(c, 200, "two"));
	/* also if they come later */
	client_say(v, ANSWER("Content-Length: 4\r\n", "evil"));
	CU_ASSERT(client_at_end(v));
	close(c);
	close(u);
	close(v);
	server_stop(&s);
	origin_free(&o);
}

/* The same, if the answer ends where the buffer of the connection is full: the bytes behind it are still
 * in the kernel, and epoll has reported them already. */
static void bytes_behind_a_full_buffer(void)
{
	enum { BODY = 16000 };
	static char text[WEIR_HTTP_HEAD_MAX + 256];
	struct origin o = origin_new();
	struct server s = server_before(&o);
	struct answer a = {0};

	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/1"));
	int n = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX: ", BODY);
	memset(text + n, 'x', sizeof(text) - (size_t)n);
	memcpy(text + WEIR_HTTP_HEAD_MAX - BODY - 4, "\r\n\r\n", 4);
	n = snprintf(text + WEIR_HTTP_HEAD_MAX, 256, ANSWER("Content-Length: 4\r\n", "evil"));
	CU_ASSERT(client_send(u, text, (size_t)(WEIR_HTTP_HEAD_MAX + n)));
	CU_ASSERT_FATAL(answer_read(c, &a));
	CU_ASSERT_EQUAL(a.n, BODY);
	CU_ASSERT(client_at_end(u));
	int v = origin_ask(&o, c, GET("/2"));
	client_say(v, ANSWER("Content-Length: 3\r\n", "two"));
	CU_ASSERT(client_gets(c, 200, "two"));
	answer_free(&a);
	close(c);
	close(u);
	close(v);
	server_stop(&s);
	origin_free(&o);
}

static void connections_are_kept(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);

	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/1"));
	client_say(u, ANSWER("Content-Length: 3\r\n", "one"));
	CU_ASSERT(client_gets(c, 200, "one"));
	client_say(c, "POST /2 HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nbody");
	char head[2048], body[4];
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	CU_ASSERT_STRING_EQUAL(field_in(head, "content-length"), "4");
	CU_ASSERT(client_take(u, body, 4) && memcmp(body, "body", 4) == 0);
	client_say(u, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n");
	CU_ASSERT(chunks_are(c, "two"));
	AWAIT_COUNT(&s, "origin_connects_total", 1);
	AWAIT_COUNT(&s, "origin_reuses_total", 1);
	/* not after an answer that says so */
	client_say(c, GET("/3"));
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	client_say(u, ANSWER("Connection: close\r\nContent-Length: 5\r\n", "three"));
	CU_ASSERT(client_gets(c, 200, "three"));
	CU_ASSERT(client_at_end(u));
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* The origin closes a kept connection when a request arrives: GET is sent again, POST is not. */
static void kept_connection_is_stale(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	char head[2048];

	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/1"));
	client_say(u, ANSWER("Content-Length: 3\r\n", "one"));
	CU_ASSERT(client_gets(c, 200, "one"));
	client_say(c, GET("/2"));
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	close(u);
	u = origin_accept(&o);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	client_say(u, ANSWER("Content-Length: 3\r\n", "two"));
	CU_ASSERT(client_gets(c, 200, "two"));
	client_say(c, "POST /3 HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n");
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	close(u);
	CU_ASSERT(client_gets(c, 502, "502 Bad Gateway\n"));
	AWAIT_COUNT(&s, "origin_stale_total", 2);
	AWAIT_COUNT(&s, "origin_retries_total", 0);
	close(c);
	server_stop(&s);
	origin_free(&o);
}

static void answers_without_a_body(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	struct answer a = {0};
	char head[2048];

	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, "HEAD / HTTP/1.1\r\nHost: t\r\n\r\n");
	client_say(u, ANSWER("Content-Length: 1234\r\n", ""));
	CU_ASSERT_FATAL(answer_read_as(c, &a, true));
	CU_ASSERT_EQUAL(a.status, 200);
	CU_ASSERT_EQUAL(a.length, 1234);
	client_say(c, GET("/204"));
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	client_say(u, "HTTP/1.1 204 No Content\r\nETag: \"e\"\r\n\r\n");
	CU_ASSERT_FATAL(answer_read(c, &a));
	CU_ASSERT_EQUAL(a.status, 204);
	client_say(c, GET("/304"));
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	client_say(u, "HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nContent-Length: 99\r\n\r\n");
	CU_ASSERT_FATAL(answer_read_as(c, &a, true));
	CU_ASSERT_EQUAL(a.status, 304);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "etag"), "\"e\"");
	answer_free(&a);
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* A long answer keeps its length, and both connections are used again. */
static void long_answers(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	struct answer a = {0};
	static char body[300001];

	server_start(&s);
	memset(body, 'x', sizeof(body) - 1);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/1"));
	client_say(u, "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n");
	client_say(u, body);
	CU_ASSERT_FATAL(answer_read(c, &a));
	CU_ASSERT_EQUAL(a.length, 300000);
	CU_ASSERT_FALSE(a.close);
	CU_ASSERT(answer_is(&a, 200, body));
	answer_free(&a);
	/* the end of the connection ends the next one */
	client_say(c, GET("/2"));
	char head[2048];
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	client_say(u, "HTTP/1.1 200 OK\r\n\r\nthe end");
	close(u);
	CU_ASSERT(chunks_are(c, "the end"));
	close(c);
	server_stop(&s);
	origin_free(&o);
}

/* An answer that stops short never looks complete to the client. */
static void torn_answers(void)
{
	static const struct {
		const char *text;
		bool begun; /* the client gets the head, and its connection is aborted; else 502 */
	} torn[] = {
	    {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", false},
	    {"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nshort", true},
	    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", true},
	    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nxyz\r\n", true},
	    {"HTTP/1.1 200 OK\r\nContent-Le", false},
	};

	for (size_t i = 0; i < sizeof(torn) / sizeof(torn[0]); i++) {
		struct origin o = origin_new();
		struct server s = server_before(&o);
		struct answer a = {0};
		server_start(&s);
		int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
		client_say(u, torn[i].text);
		close(u);
		if (torn[i].begun) {
			CU_ASSERT_FALSE(chunks_are(c, "short"));
		} else {
			CU_ASSERT_FATAL(answer_read(c, &a));
			CU_ASSERT(answer_is(&a, 502, "502 Bad Gateway\n"));
			answer_free(&a);
		}
		AWAIT_COUNT(&s, "origin_bad_answers_total", 1);
		close(c);
		server_stop(&s);
		origin_free(&o);
	}
}

/* What the origin says of its own answer is not said of the 502. */
static void fields_of_a_torn_answer(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	struct answer a = {0};

	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
	client_say(
	    u, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\nshort");
	close(u);
	CU_ASSERT_FATAL(answer_read(c, &a));
	CU_ASSERT_EQUAL(a.status, 502);
	CU_ASSERT_PTR_NULL(field_in(a.head, "content-encoding"));
	answer_free(&a);
	close(c);
	server_stop(&s);
	origin_free(&o);
}

static void uploads_in_parts(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	static char body[200001], got[200001];
	char head[2048];

	fixture_set(s.web, "with.stream", "1KiB");
	server_start(&s);
	memset(body, 'u', sizeof(body) - 1);
	int c = client_open(s.port);
	client_say(c, "PUT /1 HTTP/1.1\r\nHost: t\r\nContent-Length: 200000\r\n\r\n");
	client_say(c, "uu");
	int u = origin_accept(&o);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head))); /* before the body has arrived */
	CU_ASSERT_STRING_EQUAL(field_in(head, "content-length"), "200000");
	client_send(c, body, 199998);
	CU_ASSERT(client_take(u, got, 200000) && memcmp(got, body, 200000) == 0);
	client_say(u, ANSWER("Content-Length: 3\r\n", "one"));
	CU_ASSERT(client_gets(c, 200, "one"));
	/* a body of unknown length goes on in chunks */
	client_say(c, "PUT /2 HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nTransfer-Encoding: "
		      "chunked\r\n\r\n");
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	CU_ASSERT_STRING_EQUAL(field_in(head, "transfer-encoding"), "chunked");
	CU_ASSERT_PTR_NULL(field_in(head, "expect"));
	CU_ASSERT_FATAL(head_read(c, head, sizeof(head)));
	CU_ASSERT_EQUAL(strncmp(head, "HTTP/1.1 100 ", 13), 0);
	client_say(c, "4\r\nbody\r\n0\r\n\r\n");
	CU_ASSERT(client_take(u, got, 14) && memcmp(got, "4\r\nbody\r\n0\r\n\r\n", 14) == 0);
	client_say(u, ANSWER("Content-Length: 3\r\n", "two"));
	CU_ASSERT(client_gets(c, 200, "two"));
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* The origin answers before it has got the body, which it does not want. */
static void answer_before_the_body(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);

	fixture_set(s.web, "with.stream", "1KiB");
	server_start(&s);
	int c = client_open(s.port);
	client_say(c, "PUT /1 HTTP/1.1\r\nHost: t\r\nContent-Length: 2000\r\n\r\nbeginning");
	int u = origin_accept(&o);
	char head[2048];
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	client_say(u, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
	CU_ASSERT(client_gets(c, 413, "no"));
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* The origin answers while the client still sends, and the client does not read until it has sent all. */
static void answer_within_the_body(void)
{
	static char bytes[65536];
	struct origin o = origin_new();
	struct server s = server_before(&o);
	char head[2048];

	fixture_set(s.web, "with.stream", "1KiB");
	server_start(&s);
	int c = client_open(s.port);
	client_say(c, "PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 20000\r\n\r\n");
	int u = origin_accept(&o);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	client_say(u, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8000000\r\n");
	struct pollfd p = {.fd = u, .events = POLLOUT};
	while (poll(&p, 1, 100) == 1) /* until nothing between the two has room */
		send(u, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(client_send(c, bytes, 10000));
		CU_ASSERT(client_take(u, bytes, 10000));
	}
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* NTLM and Negotiate log a whole connection in, which no other client may use then. */
static void login_of_a_connection(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);

	server_start(&s);
	int c = client_open(s.port);
	int u = origin_ask(
	    &o, c, "GET /1 HTTP/1.1\r\nHost: t\r\nAuthorization: negotiate YII=\r\n\r\n");
	client_say(u, ANSWER("Content-Length: 3\r\n", "one"));
	CU_ASSERT(client_gets(c, 200, "one"));
	CU_ASSERT(client_at_end(u));
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* No route leads to the origin, so connecting fails before anything is sent. */
static void check_without_a_route(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);

	fixture_set(s.app, "with.origins", "255.255.255.255:80");
	fixture_set(s.app, "with.health.path", "/up");
	fixture_set(s.app, "with.health.every", "5ms");
	fixture_set(s.app, "with.eject", "1h");
	server_start(&s);
	AWAIT_COUNT(&s, "origins_out", 1);
	CU_ASSERT(server_metric(&s, "origin_checks_failed_total") >= 3);
	server_stop(&s);
	origin_free(&o);
}

CUNIT_MAIN("http.client", {"the request is rewritten", request_is_rewritten},
    {"the answer is rewritten", answer_is_rewritten},
    {"hostile answers are 502", hostile_answers_are_502},
    {"bytes behind an answer", bytes_behind_an_answer},
    {"bytes behind a full buffer", bytes_behind_a_full_buffer},
    {"connections are kept", connections_are_kept},
    {"a kept connection is stale", kept_connection_is_stale},
    {"answers without a body", answers_without_a_body}, {"long answers", long_answers},
    {"torn answers", torn_answers}, {"fields of a torn answer", fields_of_a_torn_answer},
    {"uploads in parts", uploads_in_parts}, {"an answer before the body", answer_before_the_body},
    {"an answer within the body", answer_within_the_body},
    {"a login of a connection", login_of_a_connection},
    {"a check without a route", check_without_a_route})
