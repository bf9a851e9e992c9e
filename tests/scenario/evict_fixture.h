/* SPDX-License-Identifier: MIT */
/*
 * A server with two I/O threads, and clients that reach a chosen one of them; for scenario tests.
 * Header-only, include it once per program.
 *
 * The kernel selects the I/O thread by a hash of addresses and ports, so a client that reconnects
 * from the same port reaches the same thread. The server answers with the name of its thread. Its
 * clock stands still unless it is moved.
 */
#ifndef WEIR_TESTS_EVICT_FIXTURE_H
#define WEIR_TESTS_EVICT_FIXTURE_H

#include "fixture/descriptors.h"
#include "fixture/held_clock.h"
#include "http_fixture.h"

#define POST_HALF "POST /p HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nab"

static struct server server;
static int n_open; /* connections opened by open_at */

/* ---- which thread answers ---- */

static void where_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	char name[16];

	(void)st;
	pthread_getname_np(pthread_self(), name, sizeof(name));
	for (int i = 0; i < n; i++) {
		if (target_starts(weir_http_request(ev[i]), "/wait/"))
			gate_pass(weir_http_request(ev[i])->target.p + 6, 4);
		weir_http_respond_copy(weir_http_request(ev[i]), 200, "text/plain",
		    (struct weir_slice){name, strlen(name)});
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops where_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.where",
    .summary = "answers with the name of its thread",
    .accepts = &weir_http_request_type,
    .handle = where_handle};

/* Two I/O threads; set knobs before the start. */
static void new_where(void)
{
	static bool registered;

	if (!registered)
		fixture_register(&where_ops);
	registered = true;
	n_open = 0;
	server = server_new("t.where");
	fixture_set(server.web, "with.threads", "2");
}

/* ---- clients ---- */

/* A socket bound to `port` of 127.0.0.1, 0: any. */
static int socket_at(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval limit = {.tv_sec = WAIT_MS / 1000};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static int port_at(int fd)
{
	struct sockaddr_in a;
	socklen_t n = sizeof(a);

	CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	return ntohs(a.sin_port);
}

static void come(int fd)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)server.port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	CU_ASSERT_EQUAL_FATAL(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

static bool is_answered_by(int fd, const char *thread)
{
	struct answer a = {0};
	bool yes = client_say(fd, GET("/")) && answer_read(fd, &a) && a.status == 200 &&
		   strcmp(a.body, thread) == 0;

	answer_free(&a);
	return yes;
}

/* Reset the connection, so that its port is free at once. */
static void drop(int fd)
{
	struct linger none = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
}

/* An idle connection of this thread. */
static int open_at(const char *thread)
{
	for (;;) {
		int fd = socket_at(0);
		come(fd);
		bool good = is_answered_by(fd, thread);
		n_open += good;
		if (!good)
			drop(fd);
		AWAIT_METRIC(&server, "http_connections", ==, n_open);
		if (good)
			return fd;
	}
}

/* A socket whose connection will go to this thread. */
static int newcomer_of(const char *thread)
{
	int fd = open_at(thread), port = port_at(fd);

	drop(fd);
	n_open--;
	AWAIT_METRIC(&server, "http_connections", ==, n_open);
	return socket_at(port);
}

/* ---- two I/O threads ---- */

#define A "web/io0"
#define B "web/io1"

struct clients {
	int busy[2], idle[2], newcomer;
};

static void start_empty(const char *max_connections)
{
	new_where();
	fixture_set(server.web, "with.max_connections", max_connections);
	fixture_set(server.web, "with.min_body_rate", "0"); /* busy connections are not evicted */
	fixture_set(server.web, "with.body_timeout", "1h");
	fixture_set(server.app, "threads", "inline");
	clock_hold();
	server_start(&server);
}

/* Two connections of A in the middle of a request, two of B idle for more than a moment, and a
 * socket whose connection will go to A. */
static struct clients fill(void)
{
	struct clients k = {.newcomer = newcomer_of(A)};

	for (int i = 0; i < 2; i++) {
		k.busy[i] = open_at(A);
		CU_ASSERT(client_say(k.busy[i], POST_HALF));
		k.idle[i] = open_at(B);
	}
	return k;
}

static struct clients start(const char *max_connections)
{
	start_empty(max_connections);
	return fill();
}

static void end(struct clients *k)
{
	for (int i = 0; i < 2; i++) {
		struct answer a = {0};
		CU_ASSERT(client_say(k->busy[i], "cd") && answer_read(k->busy[i], &a));
		CU_ASSERT_EQUAL(a.status, 200);
		answer_free(&a);
		close(k->busy[i]);
		close(k->idle[i]);
	}
	close(k->newcomer);
	server_stop(&server);
	clock_release();
}

#endif
