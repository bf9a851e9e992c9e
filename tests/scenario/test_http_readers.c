/* SPDX-License-Identifier: MIT */
/* Clients that take their answers slowly, but steadily. */
#include "http_fixture.h"

/* Who takes an answer steadily is not cut off because the socket's buffer, of megabytes, asks for more only when a third of it is
 * free: what the client has acknowledged counts. */
static void test_steady_reader(void)
{
	enum { PIECE = 4096, PIECES = 200 };
	static char piece[PIECE];
	/* 200 KB/s: some 4 s until the kernel asks for more */
	struct timespec rest = {.tv_nsec = 20000000};
	int fd, n = 0;
	struct server server = server_new("t.reply");
	fixture_set(server.web, "with.write_timeout", "2s");
	server_start(&server);
	fd = client_open(server.port);
	CU_ASSERT(client_say(fd, GET("/big/100000000")));
	while (n < PIECES && recv(fd, piece, PIECE, MSG_WAITALL) == PIECE) {
		nanosleep(&rest, NULL);
		n++;
	}
	CU_ASSERT_EQUAL(n, PIECES);
	CU_ASSERT_EQUAL(server_metric(&server, "http_timeouts_write_total"), 0);
	CU_ASSERT_EQUAL(server_metric(&server, "http_connections"), 1);
	/* And who stops is. */
	AWAIT_METRIC(&server, "http_timeouts_write_total", ==, 1);
	close(fd);
	server_stop(&server);
}

/* Sending does not stand for reading: bytes of the next request keep no answer going. */
static void test_busy_sender(void)
{
	struct timespec rest = {.tv_nsec = 20000000};
	struct server server = server_new("t.reply");
	int fd, n = 0;

	fixture_set(server.web, "with.write_timeout", "300ms");
	server_start(&server);
	fd = client_open(server.port);
	CU_ASSERT(client_say(fd, GET("/big/100000000")));
	client_say(fd, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n");
	while (server_metric(&server, "http_timeouts_write_total") == 0 && n < 250) {
		client_say(fd, "x");
		nanosleep(&rest, NULL);
		n++;
	}
	CU_ASSERT_EQUAL(server_metric(&server, "http_timeouts_write_total"), 1);
	close(fd);
	server_stop(&server);
}

CUNIT_MAIN("http readers", {"steady reader", test_steady_reader}, {"busy sender", test_busy_sender})
