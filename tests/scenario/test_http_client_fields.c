/* SPDX-License-Identifier: MIT */
/* Trailers, lengths of empty bodies and long fields through http.client. */
#include <weir/http_guard.h>

#include "fixture/http/origin.h"

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
#define WITH_TE "GET / HTTP/1.1\r\nHost: t\r\nConnection: TE\r\nTE: trailers\r\n\r\n"

/* Read up to the end of the answer, which `end` marks. */
static char *read_to(int c, const char *end)
{
	static char got[4096];
	size_t n = 0;

	memset(got, 0, sizeof(got));
	while (n < sizeof(got) - 1 && !strstr(got, end))
		if (!client_take(c, got + n++, 1))
			break;
	return got;
}

/* Trailers reach clients that take them, in whatever pieces they come; but for those that a recipient must have
 * before the body. */
static void trailers(void)
{
	static const char text[] = "2\r\nok\r\n0\r\nX-Sum: 42 \r\nSet-Cookie: a=1\r\nContent-Type: "
				   "x\r\nX-Empty:\r\n\r\n";
	struct origin o = origin_new();
	struct server s = server_before(&o);
	char head[2048];

	server_start(&s);
	int c = client_open(s.port);
	client_say(c, WITH_TE);
	int u = origin_accept(&o);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
		CU_ASSERT_STRING_EQUAL(field_in(head, "te"), "trailers");
		CU_ASSERT_STRING_EQUAL(field_in(head, "connection"), "TE");
		client_say(u, CHUNKED);
		for (size_t k = 0; text[k]; k += i == 0 ? sizeof(text) - 1 : 1)
			client_send(u, text + k, i == 0 ? sizeof(text) - 1 : 1);
		const char *got = read_to(c, "X-Empty: \r\n\r\n");
		CU_ASSERT_PTR_NOT_NULL(strstr(got, "\r\nTrailer: X-Sum\r\n"));
		CU_ASSERT_PTR_NOT_NULL(strstr(got, "\r\n0\r\nX-Sum: 42\r\nX-Empty: \r\n\r\n"));
		client_say(c, WITH_TE);
	}
	/* and no others */
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
	CU_ASSERT(client_gets(c, 200, "ok"));
	client_say(c, GET("/"));
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	CU_ASSERT_PTR_NULL(field_in(head, "te"));
	client_say(u, CHUNKED);
	client_say(u, text);
	const char *got = read_to(c, "\r\n0\r\n\r\n");
	CU_ASSERT_PTR_NULL(strstr(got, "X-Sum"));
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* A POST whose body is empty says so, however the client has. */
static void empty_bodies(void)
{
	static const char *const ask[] = {"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n",
	    "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	    "PUT / HTTP/1.1\r\nHost: t\r\n\r\n",
	    "DELETE / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"};

	for (int stream = 0; stream < 2; stream++) {
		struct origin o = origin_new();
		struct server s = server_before(&o);
		char head[2048];
		if (!stream)
			fixture_set(s.web, "with.stream", "0");
		server_start(&s);
		int c = client_open(s.port), u = -1;
		for (size_t i = 0; i < sizeof(ask) / sizeof(ask[0]); i++) {
			client_say(c, ask[i]);
			u = u < 0 ? origin_accept(&o) : u;
			CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
			const char *length = field_in(head, "content-length");
			if (field_in(head, "transfer-encoding"))
				CU_ASSERT(read_to(u, "0\r\n\r\n") != NULL)
			else
				CU_ASSERT(length && strcmp(length, "0") == 0);
			client_say(u, ANSWER("Content-Length: 2\r\n", "ok"));
			CU_ASSERT(client_gets(c, 200, "ok"));
		}
		close(c);
		close(u);
		server_stop(&s);
		origin_free(&o);
	}
}

/* Fields that fit into a head of 16 KiB only without Via: 502, with a reason. */
static void long_fields(void)
{
	struct origin o = origin_new();
	struct server s = server_before(&o);
	static char text[WEIR_HTTP_HEAD_MAX + 1];
	struct answer a = {0};

	server_start(&s);
	int c = client_open(s.port), u = origin_ask(&o, c, GET("/"));
	int n = snprintf(text, sizeof(text), "HTTP/1.1 200\r\nX: ");
	memset(text + n, 'x', sizeof(text) - (size_t)n);
	memcpy(text + WEIR_HTTP_HEAD_MAX - 4, "\r\n\r\n", 5);
	CU_ASSERT(client_send(u, text, WEIR_HTTP_HEAD_MAX));
	CU_ASSERT_FATAL(answer_read(c, &a));
	CU_ASSERT_EQUAL(a.status, 502);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "x-weir-failed"), "stage=app; reason=fields");
	answer_free(&a);
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

CUNIT_MAIN("fields through http.client", {"trailers", trailers}, {"empty bodies", empty_bodies},
    {"long fields", long_fields})
