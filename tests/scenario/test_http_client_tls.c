/* SPDX-License-Identifier: MIT */
/* http.client before an origin with TLS, another server in this process. */
#include "fixture/http/origin.h"
#include "fixture/http/tls.h"

/* A server before `tls`, which has the certificate "one" for localhost. */
static struct server server_before_tls(const struct server *tls)
{
	struct server s = server_new("http.client");
	char text[64];

	snprintf(text, sizeof(text), "https://127.0.0.1:%d", tls->port);
	fixture_set(s.app, "with.origins", text);
	fixture_set(s.app, "with.tls.ca", tls_path("one.pem"));
	fixture_set(s.app, "with.tls.name", "localhost");
	fixture_set(s.app, "with.fails", "0");
	fixture_set(s.web, "with.stream", "1KiB");
	return s;
}

static void is_verified_and_resumed(void)
{
	struct server tls = tls_server_start("t.reply"), s = server_before_tls(&tls);

	server_start(&s);
	int c = client_open(s.port);
	for (int i = 0; i < 3; i++) {
		client_say(c, "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nbody");
		CU_ASSERT(client_gets(c, 200, "POST /a\nbody"));
	}
	AWAIT_COUNT(&s, "origin_connects_total", 1);
	AWAIT_COUNT(&s, "origin_reuses_total", 2);
	client_say(c, GET("/close"));
	CU_ASSERT(client_gets(c, 200, "GET /close\n"));
	client_say(c, GET("/b"));
	CU_ASSERT(client_gets(c, 200, "GET /b\n"));
	AWAIT_COUNT(&s, "origin_connects_total", 2);
	AWAIT_COUNT(&s, "origin_tls_resumed_total", 1);
	AWAIT_COUNT(&s, "origin_tls_failures_total", 0);
	close(c);
	server_stop(&s);
	server_stop(&tls);
}

static void long_bodies(void)
{
	struct server tls = tls_server_new("t.reply", "one");
	struct answer a = {0};
	static char body[300000];

	fixture_set(tls.web, "with.max_body", "1MiB");
	server_start(&tls);
	struct server s = server_before_tls(&tls);
	server_start(&s);
	memset(body, 'b', sizeof(body));
	int c = client_open(s.port);
	client_say(c, "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 300000\r\n\r\n");
	client_send(c, body, sizeof(body));
	CU_ASSERT_FATAL(answer_read(c, &a));
	CU_ASSERT_EQUAL(a.status, 200);
	CU_ASSERT_EQUAL(a.n, 300000 + 8);
	CU_ASSERT(a.n == 300008 && memcmp(a.body + 8, body, sizeof(body)) == 0);
	answer_free(&a);
	close(c);
	server_stop(&s);
	server_stop(&tls);
}

/* One request to an origin that is not the one it should be, or with another setting. */
static void asks_once(const char *knob, const char *value, int status, int failures)
{
	struct server tls = tls_server_start("t.reply"), s = server_before_tls(&tls);

	fixture_set(s.app, knob, value);
	server_start(&s);
	int c = client_open(s.port);
	client_say(c, GET("/a"));
	CU_ASSERT(client_gets(c, status, status == 200 ? "GET /a\n" : "502 Bad Gateway\n"));
	AWAIT_COUNT(&s, "origin_tls_failures_total", failures);
	close(c);
	server_stop(&s);
	server_stop(&tls);
}

static void another_name(void)
{
	asks_once("with.tls.name", "other.example", 502, 1);
}

/* The certificate is not for the address. */
static void no_name(void)
{
	asks_once("with.tls.name", "", 502, 1);
}

static void another_authority(void)
{
	tls_make("two", "DNS:localhost", false, 30);
	asks_once("with.tls.ca", tls_path("two.pem"), 502, 1);
}

static void not_verified(void)
{
	struct server tls = tls_server_start("t.reply"), s = server_before_tls(&tls);

	fixture_set(s.app, "with.tls.ca", "");
	fixture_set(s.app, "with.tls.name", "");
	fixture_set(s.app, "with.tls.verify", "false");
	server_start(&s);
	int c = client_open(s.port);
	client_say(c, GET("/a"));
	CU_ASSERT(client_gets(c, 200, "GET /a\n"));
	close(c);
	server_stop(&s);
	server_stop(&tls);
}

static void not_tls(void)
{
	struct server plain = server_new("t.reply");

	server_start(&plain);
	struct server s = server_before_tls(&plain);
	server_start(&s);
	int c = client_open(s.port);
	client_say(c, GET("/a"));
	CU_ASSERT(client_gets(c, 502, "502 Bad Gateway\n"));
	AWAIT_COUNT(&s, "origin_tls_failures_total", 1);
	close(c);
	server_stop(&s);
	server_stop(&plain);
}

CUNIT_MAIN("http.client with TLS", {"make files", tls_begin},
    {"verified and resumed", is_verified_and_resumed}, {"long bodies", long_bodies},
    {"another name", another_name}, {"no name", no_name}, {"another authority", another_authority},
    {"not verified", not_verified}, {"not TLS", not_tls}, {"remove files", tls_end})
