/* SPDX-License-Identifier: MIT */
/*
 * Out of descriptors: idle connections are evicted for new ones, and a drain that begins then
 * leaves no connection in the backlog without an answer. The sockets of the clients are created
 * before the limit is lowered. The server's clock stands still, so nothing is retried after a
 * delay.
 */
#include "fixture/graph/descriptors.h"
#include "fixture/graph/drain.h"
#include "fixture/clock/held_clock.h"
#include "fixture/http/tls.h"
#include "fixture/http/server.h"

#define POST_HALF "POST /p HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nab"

enum { ROOM = 4, CLIENTS = 7 };

static struct server server;
static int client[CLIENTS];
static rlim_t old_limit;

static void start_server(struct server s)
{
	struct timeval limit = {.tv_sec = WAIT_MS / 1000};

	server = s;
	fixture_set(server.app, "threads", "inline");
	clock_hold();
	server_start(&server);
	for (int i = 0; i < CLIENTS; i++) {
		client[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CU_ASSERT_NOT_EQUAL_FATAL(client[i], -1);
		setsockopt(client[i], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	}
	old_limit = descriptors_leave(ROOM);
}

static void start(void)
{
	start_server(server_new("t.reply"));
}

static void come(int i, const char *text)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)server.port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	CU_ASSERT_EQUAL(connect(client[i], (struct sockaddr *)&a, sizeof(a)), 0);
	CU_ASSERT(client_say(client[i], text));
}

static void expect(int i, int status, const char *body)
{
	struct answer a = {0};

	CU_ASSERT(answer_read(client[i], &a) && answer_is(&a, status, body));
	answer_free(&a);
}

static void leave(void)
{
	for (int i = 0; i < CLIENTS; i++)
		close(client[i]);
}

static void test_the_idle_make_room(void)
{
	start();
	come(0, POST_HALF); /* the longest wait of all, but in a request */
	AWAIT_METRIC(&server, "http_received_bytes_total", ==, (int64_t)strlen(POST_HALF));
	for (int i = 1; i < ROOM; i++) {
		come(i, GET("/"));
		expect(i, 200, "GET /\n");
	}
	come(4, GET("/")); /* none has been idle for long enough */
	expect(4, 503, "");
	CU_ASSERT(client_at_end(client[4]));
	clock_move(1500);
	for (int i = 5; i < CLIENTS; i++) {
		come(i, GET("/new"));
		expect(i, 200, "GET /new\n");
		CU_ASSERT(client_at_end(client[i - 4])); /* the connection that was idle longest */
	}
	CU_ASSERT(client_say(client[3], GET("/still")));
	expect(3, 200, "GET /still\n");
	CU_ASSERT(client_say(client[0], "cd"));
	expect(0, 200, "POST /p\nabcd");
	descriptors_restore(old_limit);
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 2);
	CU_ASSERT_EQUAL(server_metric(&server, "http_refused_total"), 1);
	leave();
	server_stop(&server);
	clock_release();
}

/* Evicting a connection whose handshake is in the stage would not free its descriptor yet, so it
 * stays. */
static void test_handshakes_make_no_room(void)
{
	struct tls_wish wish = {0};
	struct tls_client k[ROOM];

	tls_begin();
	start_server(tls_server_new("t.reply", "one"));
	server_steer(&server, "shake", WEIR_STEER_PAUSE);
	for (int i = 0; i < ROOM; i++) {
		come(i, "");
		k[i] = tls_client_hello(client[i], &wish);
	}
	FIXTURE_AWAIT(server_offered_to(&server, "shake") == ROOM);
	clock_move(1500);
	come(ROOM, "");
	CU_ASSERT(client_at_end(client[ROOM]));
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 0);
	descriptors_restore(old_limit);
	server_steer(&server, "shake", WEIR_STEER_RUN);
	for (int i = 0; i < ROOM; i++) {
		CU_ASSERT_EQUAL(SSL_do_handshake(k[i].ssl), 1);
		CU_ASSERT(tls_ask(&k[i], GET("/"), "GET /\n"));
		SSL_free(k[i].ssl);
	}
	leave();
	server_stop(&server);
	clock_release();
	tls_end();
}

static void test_drain(void)
{
	struct drain d;

	start();
	for (int i = 0; i < ROOM; i++)
		come(i, POST_HALF);
	AWAIT_METRIC(&server, "http_received_bytes_total", ==, ROOM * (int64_t)strlen(POST_HALF));
	come(4, GET("/"));
	expect(4, 503, "");
	come(5, GET("/"));
	come(6, GET("/"));
	/* New connections wait in the backlog. */
	AWAIT_METRIC(&server, "http_refused_total", >=, 1);
	CU_ASSERT_EQUAL(server_metric(&server, "http_refused_total"), 1);
	drain_call(&d, server.graph, DRAIN_ALL_NS);
	for (int i = 5; i < CLIENTS; i++) {
		expect(i, 503, "");
		CU_ASSERT(client_at_end(client[i]));
	}
	for (int i = 0; i < ROOM; i++) {
		CU_ASSERT(client_say(client[i], "cd"));
		expect(i, 200, "POST /p\nabcd");
	}
	leave(); /* otherwise the server lingers for the clients */
	drain_end(&d);
	descriptors_restore(old_limit);
	clock_release();
}

CUNIT_MAIN("http descriptors", {"the idle make room", test_the_idle_make_room},
    {"handshakes make no room", test_handshakes_make_no_room}, {"drain", test_drain})
