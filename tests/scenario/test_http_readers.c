/* SPDX-License-Identifier: MIT */
/* Clients that read their answers slowly but steadily. The server's clock moves with the bytes they
 * read, so the speed of this machine does not matter. */
#include <netinet/tcp.h>
#include <poll.h>

#include "fixture/clock/held_clock.h"
#include "fixture/http/server.h"

static struct server start(const char *write_timeout)
{
	struct server s = server_new("t.reply");

	fixture_set(s.web, "with.write_timeout", write_timeout);
	fixture_set(s.app, "threads", "inline");
	clock_hold();
	server_start(&s);
	return s;
}

static void stop(struct server *s)
{
	server_stop(s);
	clock_release();
}

/* A client that reads steadily is not cut off just because the socket's buffer, of some megabytes,
 * accepts more data only when a third of it is free: the bytes acknowledged by the client count. */
static void test_steady_reader(void)
{
	enum { PIECE = 4096, PIECES = 200, STEP_MS = 20 };
	static char piece[PIECE];
	struct server server = start("2s");
	int fd = client_open(server.port), n = 0;

	CU_ASSERT(client_say(fd, GET("/big/100000000")));
	/* 200 KB/s: about 4 s until the kernel asks for more */
	while (n < PIECES && client_take(fd, piece, PIECE)) {
		clock_move(STEP_MS);
		n++;
	}
	CU_ASSERT_EQUAL(n, PIECES);
	CU_ASSERT_EQUAL(server_metric(&server, "http_timeouts_write_total"), 0);
	CU_ASSERT_EQUAL(server_metric(&server, "http_connections"), 1);
	/* A client that stops reading is cut off, once the data in flight has come to rest. */
	for (n = 0; n < 500 && server_metric(&server, "http_timeouts_write_total") == 0; n++)
		clock_move(STEP_MS);
	CU_ASSERT_EQUAL(server_metric(&server, "http_timeouts_write_total"), 1);
	close(fd);
	stop(&server);
}

/* Sending does not count as reading: bytes of the next request keep no answer going. */
static void test_busy_sender(void)
{
	enum { STEP_MS = 20, STEPS = 250 };
	struct server server = start("300ms");
	int fd = client_open(server.port);

	CU_ASSERT(client_say(fd, GET("/big/100000000")));
	client_say(fd, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n");
	AWAIT_METRIC(&server, "http_sent_bytes_total", >, 0);
	for (int n = 0; n < STEPS && server_metric(&server, "http_timeouts_write_total") == 0;
	     n++) {
		client_say(fd, "x");
		clock_move(STEP_MS);
	}
	CU_ASSERT_EQUAL(server_metric(&server, "http_timeouts_write_total"), 1);
	close(fd);
	stop(&server);
}

/* Further complete requests do not keep an answer going either. */
static void test_busy_asker(void)
{
	enum { STEP_MS = 200, REQUESTS = 10 }; /* fewer than a pipeline holds */
	struct server server = start("300ms");
	int fd = client_open(server.port), n = 0;

	CU_ASSERT(client_say(fd, GET("/big/100000000")));
	AWAIT_METRIC(&server, "http_sent_bytes_total", >, 0);
	for (; n < REQUESTS && server_metric(&server, "http_timeouts_write_total") == 0; n++) {
		uint64_t offered = server_offered(&server);
		client_say(fd, GET("/more"));
		FIXTURE_AWAIT(server_offered(&server) > offered ||
			      server_metric(&server, "http_timeouts_write_total") > 0);
		clock_move(STEP_MS);
	}
	CU_ASSERT(n < REQUESTS);
	CU_ASSERT_EQUAL(server_metric(&server, "http_timeouts_write_total"), 1);
	close(fd);
	stop(&server);
}

/* A client whose head arrived in time is answered, however late the thread reads it. */
static void test_late_look(void)
{
	enum { CLIENTS = 5 }; /* of five events, the last is in a run of its own (loop.c) */
	struct server server = start("60s");
	int stalls = client_open(server.port), fd[CLIENTS];
	struct answer a = {0};

	for (int i = 0; i < CLIENTS; i++) {
		fd[i] = client_open(server.port);
		CU_ASSERT(client_say(fd[i], "GET /late HTTP/1.1\r\n"));
	}
	AWAIT_METRIC(&server, "http_received_bytes_total", ==, CLIENTS * 20);
	CU_ASSERT(client_say(stalls, GET("/wait/stall")));
	gate_await(1);
	for (int i = 0; i < CLIENTS; i++)
		CU_ASSERT(client_say(fd[i], "Host: t\r\n\r\n"));
	held_ns += 100 * HELD_NS_PER_S;
	gate_open("stall");
	for (int i = 0; i < CLIENTS; i++) {
		CU_ASSERT(answer_read(fd[i], &a) && answer_is(&a, 200, "GET /late\n"));
		close(fd[i]);
	}
	answer_free(&a);
	close(stalls);
	stop(&server);
}

static int port_of(int fd, int (*name)(int, struct sockaddr *, socklen_t *))
{
	struct sockaddr_in a = {0};
	socklen_t n = sizeof(a);

	return name(fd, (struct sockaddr *)&a, &n) == 0 && a.sin_family == AF_INET
		   ? ntohs(a.sin_port)
		   : -1;
}

/* The limit on unsent bytes (TCP_NOTSENT_LOWAT) that the server has set for the connection of
 * client `fd`; 0: default. The server's end is in this process. */
static unsigned unsent_of(const struct server *server, int fd)
{
	int own = port_of(fd, getsockname);
	unsigned bytes = 0;
	socklen_t n = sizeof(bytes);

	for (int other = 0; other < 1024; other++)
		if (port_of(other, getpeername) == own &&
		    port_of(other, getsockname) == server->port)
			getsockopt(other, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, &n);
	return bytes;
}

/* Request 1 MB and wait for the first bytes. */
static int ask_much(const struct server *server)
{
	int fd = client_open(server->port);
	struct pollfd p = {.fd = fd, .events = POLLIN};

	CU_ASSERT(client_say(fd, GET("/big/1000000")));
	CU_ASSERT_EQUAL(poll(&p, 1, WAIT_MS), 1);
	return fd;
}

/* The more clients leave their answers to the kernel, the less of an answer the kernel may hold,
 * even if it took a whole answer and the connection is waiting for the next request. When these
 * clients are gone, the limit is reset. */
static void test_untaken_answers(void)
{
	enum { CLIENTS = 100 };
	int fd[CLIENTS];
	struct server server = server_new("t.reply");

	fixture_set(server.web, "with.threads", "1");
	fixture_set(server.web, "with.max_per_address", "0");
	server_start(&server);
	for (int i = 0; i < CLIENTS; i++)
		fd[i] = ask_much(&server);
	CU_ASSERT_EQUAL(unsent_of(&server, fd[0]), 0);
	CU_ASSERT_EQUAL(unsent_of(&server, fd[CLIENTS - 1]), 65536);
	for (int i = 0; i < CLIENTS; i++)
		close(fd[i]);
	AWAIT_METRIC(&server, "http_connections", ==, 0);
	fd[0] = ask_much(&server);
	CU_ASSERT_EQUAL(unsent_of(&server, fd[0]), 0);
	close(fd[0]);
	server_stop(&server);
}

CUNIT_MAIN("http readers", {"steady reader", test_steady_reader}, {"busy sender", test_busy_sender},
    {"busy asker", test_busy_asker}, {"late look", test_late_look},
    {"untaken answers", test_untaken_answers})
