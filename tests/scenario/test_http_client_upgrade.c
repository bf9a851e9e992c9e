/* SPDX-License-Identifier: MIT */
/* Upgrades to WebSocket through http.client, and what only looks like one. */
#include "base/clock.h"
#include "fixture/http/origin.h"

#define ASK                                                                                        \
	"GET /chat HTTP/1.1\r\nHost: t\r\nConnection: keep-alive, Upgrade\r\nUpgrade: "            \
	"websocket\r\n"                                                                            \
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
#define SWITCH                                                                                     \
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"        \
	"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

static struct server upgrade_server(const struct origin *o, const char *upgrades)
{
	struct server s = server_before(o);

	fixture_set(s.app, "with.upgrades", upgrades);
	return s;
}

/* Whether these bytes arrive next. */
static bool gets(int fd, const char *text)
{
	char got[256];
	size_t n = strlen(text);

	return client_take(fd, got, n) && memcmp(got, text, n) == 0;
}

/* Open a tunnel over `c`. Returns the connection of the origin. */
static int upgrade(struct origin *o, int c)
{
	char head[2048];
	int u = origin_ask(o, c, ASK);

	client_say(u, SWITCH);
	CU_ASSERT_FATAL(head_read(c, head, sizeof(head)));
	CU_ASSERT_EQUAL(strncmp(head, "HTTP/1.1 101 ", 13), 0);
	return u;
}

/* Bytes go both ways, also those that either side sends too early, and so do the ends. */
static void bytes_go_both_ways(void)
{
	struct origin o = origin_new();
	struct server s = upgrade_server(&o, "10");
	char head[2048];

	server_start(&s);
	int c = client_open(s.port);
	client_say(c, ASK "early\1\2");
	int u = origin_accept(&o);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	CU_ASSERT_STRING_EQUAL(field_in(head, "connection"), "Upgrade");
	CU_ASSERT_STRING_EQUAL(field_in(head, "upgrade"), "websocket");
	CU_ASSERT_STRING_EQUAL(field_in(head, "sec-websocket-key"), "dGhlIHNhbXBsZSBub25jZQ==");
	client_say(u, SWITCH "first");
	CU_ASSERT_FATAL(head_read(c, head, sizeof(head)));
	CU_ASSERT_EQUAL(strncmp(head, "HTTP/1.1 101 Switching Protocols\r\n", 34), 0);
	CU_ASSERT_STRING_EQUAL(field_in(head, "connection"), "Upgrade");
	CU_ASSERT_STRING_EQUAL(field_in(head, "upgrade"), "websocket");
	CU_ASSERT_STRING_EQUAL(
	    field_in(head, "sec-websocket-accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	CU_ASSERT(gets(c, "first"));
	CU_ASSERT(gets(u, "early\1\2"));
	AWAIT_COUNT(&s, "origin_upgrades", 1);
	AWAIT_COUNT(&s, "http_connections", 0);
	for (int i = 0; i < 10; i++) {
		client_say(c, "GET / HTTP/1.1\r\n\r\n");
		CU_ASSERT(gets(u, "GET / HTTP/1.1\r\n\r\n"));
		client_say(u, "HTTP/1.1 200 OK\r\n\r\n");
		CU_ASSERT(gets(c, "HTTP/1.1 200 OK\r\n\r\n"));
	}
	/* the end of one side: the other one may go on */
	shutdown(c, SHUT_WR);
	CU_ASSERT(client_at_end(u));
	client_say(u, "bye");
	close(u);
	CU_ASSERT(gets(c, "bye"));
	CU_ASSERT(client_at_end(c));
	AWAIT_COUNT(&s, "origin_upgrades", 0);
	AWAIT_COUNT(&s, "origin_connections", 0);
	CU_ASSERT_EQUAL(server_metric(&s, "origin_upgrades_total"), 1);
	CU_ASSERT_EQUAL(
	    server_metric(&s, "origin_upgrade_bytes_total"), 7 + 5 + 3 + 10 * (18 + 19));
	close(c);
	server_stop(&s);
	origin_free(&o);
}

/* The time-out of the request does not end the tunnel. */
static void longer_than_the_timeout(void)
{
	struct origin o = origin_new();
	struct server s = upgrade_server(&o, "10");

	fixture_set(s.app, "with.timeout", "20ms");
	server_start(&s);
	int c = client_open(s.port), u = upgrade(&o, c);
	int64_t since_ns = clock_now_ns();
	FIXTURE_AWAIT(clock_now_ns() - since_ns >= 60000000);
	client_say(c, "still");
	CU_ASSERT(gets(u, "still"));
	client_say(u, "there");
	CU_ASSERT(gets(c, "there"));
	AWAIT_COUNT(&s, "origin_upgrades", 1);
	close(c);
	CU_ASSERT(client_at_end(u));
	close(u);
	server_stop(&s);
	origin_free(&o);
}

#define MANY 8000000

static void *send_many(void *arg)
{
	static char text[MANY];

	memset(text, 'x', MANY);
	return (void *)(intptr_t)client_send(*(int *)arg, text, MANY);
}

/* A side that does not read slows the other one down, and nothing is lost. */
static void much_goes_both_ways(void)
{
	struct origin o = origin_new();
	struct server s = upgrade_server(&o, "10");
	static char got[MANY];

	server_start(&s);
	int c = client_open(s.port), u = upgrade(&o, c), *ways[2][2] = {{&c, &u}, {&u, &c}};
	for (int i = 0; i < 2; i++) {
		pthread_t thread;
		void *sent;
		pthread_create(&thread, NULL, send_many, ways[i][0]);
		CU_ASSERT(client_take(*ways[i][1], got, MANY));
		CU_ASSERT(got[0] == 'x' && memcmp(got, got + 1, MANY - 1) == 0);
		pthread_join(thread, &sent);
		CU_ASSERT(sent != NULL);
	}
	close(c);
	CU_ASSERT(client_at_end(u));
	close(u);
	server_stop(&s);
	origin_free(&o);
}

/* The origin does not switch: the connection stays HTTP, and what the client has sent behind its request is
 * the next request, under the rules of http.server. */
static void origin_does_not_switch(void)
{
	static const char *const answer[] = {ANSWER("Content-Length: 2\r\n", "ok"),
	    ("HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: "
	     "Upgrade\r\nContent-Length: 2\r\n\r\nok"),
	    "HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\nok"};
	static const int status[] = {200, 426, 400};

	for (int i = 0; i < 3; i++) {
		struct origin o = origin_new();
		struct server s = upgrade_server(&o, "10");
		char head[2048];
		server_start(&s);
		int c = client_open(s.port),
		    u = origin_ask(&o, c,
			ASK "GET /./admin HTTP/1.1\r\nHost: t\r\nX-Real-IP: 6.6.6.6\r\n\r\n");
		client_say(u, answer[i]);
		CU_ASSERT(client_gets(c, status[i], "ok"));
		CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
		CU_ASSERT_EQUAL(strncmp(head, "GET /admin HTTP/1.1\r\n", 21), 0);
		CU_ASSERT_PTR_NULL(field_in(head, "x-real-ip"));
		CU_ASSERT_PTR_NULL(field_in(head, "upgrade"));
		client_say(u, ANSWER("Content-Length: 3\r\n", "two"));
		CU_ASSERT(client_gets(c, 200, "two"));
		/* what is no request is refused, and does not reach the origin */
		client_say(c, ASK "\x81\x85");
		CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
		client_say(u, answer[i]);
		CU_ASSERT(client_gets(c, status[i], "ok"));
		CU_ASSERT(client_say(c, "junk\r\n\r\n"));
		struct answer a = {0};
		CU_ASSERT(answer_read(c, &a));
		CU_ASSERT_EQUAL(a.status, 400);
		answer_free(&a);
		AWAIT_COUNT(&s, "origin_upgrades", 0);
		CU_ASSERT_EQUAL(server_metric(&s, "origin_upgrades_total"), 0);
		close(c);
		close(u);
		server_stop(&s);
		origin_free(&o);
	}
}

/* A 101 that is none, or that nobody has asked for. */
static void bad_switches(void)
{
	static const char *const answer[] = {"HTTP/1.1 101 S\r\nConnection: Upgrade\r\n\r\n",
	    "HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n",
	    "HTTP/1.1 101 S\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
	    "HTTP/1.1 101 S\r\nUpgrade: websocket, h2c\r\nConnection: Upgrade\r\n\r\n",
	    "HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: "
	    "0\r\n\r\n",
	    "HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nTransfer-Encoding: "
	    "chunked\r\n\r\n0\r\n\r\n",
	    "HTTP/1.0 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", SWITCH, SWITCH,
	    SWITCH, SWITCH};
	static const char *const ask[] = {ASK, ASK, ASK, ASK, ASK, ASK, ASK, GET("/"),
	    "GET / HTTP/1.1\r\nHost: t\r\nUpgrade: websocket\r\n\r\n",
	    ("POST / HTTP/1.1\r\nHost: t\r\nUpgrade: websocket\r\nConnection: "
	     "upgrade\r\nContent-Length: 0\r\n\r\n"),
	    "GET / HTTP/1.1\r\nHost: t\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"};

	for (size_t i = 0; i < sizeof(answer) / sizeof(answer[0]); i++) {
		struct origin o = origin_new();
		struct server s = upgrade_server(&o, "10");
		server_start(&s);
		int c = client_open(s.port), u = origin_ask(&o, c, ask[i]);
		client_say(u, answer[i]);
		if (!client_gets(c, 502, "502 Bad Gateway\n"))
			CU_FAIL(answer[i]);
		CU_ASSERT(client_at_end(u));
		AWAIT_COUNT(&s, "origin_upgrades", 0);
		close(c);
		close(u);
		server_stop(&s);
		origin_free(&o);
	}
}

/* `upgrades` bounds them, `upgrade_idle` ends them, and the end of the server, too. */
static void limits(void)
{
	struct origin o = origin_new();
	struct server s = upgrade_server(&o, "1");
	struct answer a = {0};

	server_start(&s);
	int c = client_open(s.port), d = client_open(s.port), u = upgrade(&o, c);
	client_say(d, ASK);
	CU_ASSERT_FATAL(answer_read(d, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT_STRING_EQUAL(field_in(a.head, "x-weir-failed"), "stage=app; reason=upgrades");
	CU_ASSERT_EQUAL(server_metric(&s, "origin_upgrades_refused_total"), 1);
	answer_free(&a);
	close(u);
	CU_ASSERT(client_at_end(c));
	close(c);
	AWAIT_COUNT(&s, "origin_upgrades", 0);
	u = upgrade(&o, d);
	struct weir_drain_report report = {0};
	weir_graph_drain(s.graph, 50000000, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	CU_ASSERT(client_at_end(u));
	CU_ASSERT(client_at_end(d));
	weir_graph_free(s.graph);
	close(d);
	close(u);
	s = upgrade_server(&o, "1");
	fixture_set(s.app, "with.upgrade_idle", "20ms");
	server_start(&s);
	c = client_open(s.port);
	u = upgrade(&o, c);
	CU_ASSERT(client_at_end(u));
	CU_ASSERT(client_at_end(c));
	close(c);
	close(u);
	server_stop(&s);
	/* 0: the origin is asked without the upgrade */
	s = upgrade_server(&o, "0");
	server_start(&s);
	c = client_open(s.port);
	client_say(c, ASK);
	char head[2048];
	u = origin_accept(&o);
	CU_ASSERT_FATAL(head_read(u, head, sizeof(head)));
	CU_ASSERT_PTR_NULL(field_in(head, "upgrade"));
	client_say(u, "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n");
	CU_ASSERT(client_gets(c, 426, ""));
	close(c);
	close(u);
	server_stop(&s);
	origin_free(&o);
}

CUNIT_MAIN("upgrades by http.client", {"bytes go both ways", bytes_go_both_ways},
    {"longer than the time-out", longer_than_the_timeout},
    {"much goes both ways", much_goes_both_ways},
    {"the origin does not switch", origin_does_not_switch}, {"bad switches", bad_switches},
    {"limits", limits})
