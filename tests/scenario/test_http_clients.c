/* SPDX-License-Identifier: MIT */
/* Too many connections from one address, or too many per second, are refused by address. 127.0.0.2
 * reaches its limit and gets an answer with the reason, which is counted; 127.0.0.1 is not
 * affected. Two I/O threads, since the limits apply to both together. */
#include "fixture/clock/held_clock.h"
#include "fixture/http/server.h"

#define OTHER "127.0.0.2"

static struct server server;

static void start_with(const char *knob, const char *value)
{
	server = server_new("t.reply");
	fixture_set(server.web, "with.threads", "2");
	fixture_set(server.web, knob, value);
	fixture_set(server.app, "threads", "inline"); /* required by held_clock.h */
	server_start(&server);
}

/* A connection from `from` whose first request is answered with `status`; closed unless that is
 * 200. */
static int expect_open(const char *from, int status, const char *limit)
{
	struct answer a = {0};
	int fd = client_open_from(server.port, from);

	client_say(fd, GET("/"));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, status);
	if (limit) {
		const char *code = field_in(a.head, "X-Weir-Limit");
		CU_ASSERT(code && strcmp(code, limit) == 0);
		CU_ASSERT_PTR_NOT_NULL(field_in(a.head, "Retry-After"));
		CU_ASSERT(a.close);
		CU_ASSERT(client_at_end(fd));
	}
	answer_free(&a);
	if (status == 200)
		return fd;
	close(fd);
	return -1;
}

/* Is the connection still open and served? */
static bool is_served(int fd)
{
	struct answer a = {0};
	bool yes = client_say(fd, GET("/")) && answer_read(fd, &a) && a.status == 200;

	answer_free(&a);
	return yes;
}

static void test_cap(void)
{
	char why[256];
	int mine[5], theirs[5];

	clock_hold(); /* idle connections become evictable after a second: exclude that */
	start_with("with.max_per_address", "3");
	for (int i = 0; i < 3; i++)
		theirs[i] = expect_open(OTHER, 200, NULL);
	expect_open(OTHER, 503, "max_per_address");
	AWAIT_METRIC(&server, "http_refused_address_total", ==, 1);
	CU_ASSERT_EQUAL(server_metric(&server, "http_refused_total"), 0);
	for (int i = 0; i < 3; i++)
		mine[i] = expect_open(NULL, 200, NULL);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(is_served(theirs[i]));
	/* If one closes, another is accepted. */
	AWAIT_METRIC(&server, "http_connections", ==, 6);
	close(theirs[0]);
	AWAIT_METRIC(&server, "http_connections", ==, 5);
	theirs[0] = expect_open(OTHER, 200, NULL);
	expect_open(OTHER, 503, "max_per_address");
	/* The knob is live. */
	CU_ASSERT_EQUAL(
	    weir_graph_set(server.graph, "web", "with.max_per_address", "0", why, sizeof(why)), 0);
	clock_move(1); /* live knobs are read when the time has changed */
	for (int i = 3; i < 5; i++) {
		theirs[i] = expect_open(OTHER, 200, NULL);
		mine[i] = expect_open(NULL, 200, NULL);
	}
	for (int i = 0; i < 5; i++) {
		close(theirs[i]);
		close(mine[i]);
	}
	AWAIT_METRIC(&server, "http_connections", ==, 0);
	server_stop(&server);
	clock_release();
}

/* A quarter of max_connections, but at least 64. */
static void test_auto(void)
{
	int fd[64];

	clock_hold();
	start_with("with.max_connections", "100");
	for (int i = 0; i < 64; i++)
		fd[i] = expect_open(OTHER, 200, NULL);
	expect_open(OTHER, 503, "max_per_address");
	close(expect_open(NULL, 200, NULL));
	for (int i = 0; i < 64; i++)
		close(fd[i]);
	server_stop(&server);
	clock_release();
}

/* Refusals are limited as well: if refused clients do not go away, further ones are soon closed
 * without an answer. */
static void test_flood(void)
{
	enum { MANY = 400 };
	struct answer a = {0};
	int fd[MANY], n = 0, first, mine;
	bool told = true;

	clock_hold();
	start_with("with.max_per_address", "1");
	first = expect_open(OTHER, 200, NULL);
	while (told && n < MANY) {
		fd[n] = client_open_from(server.port, OTHER);
		told = answer_read(fd[n++], &a) && a.status == 503;
	}
	CU_ASSERT(!told);
	CU_ASSERT(n > 64);
	AWAIT_METRIC(&server, "http_refused_address_total", ==, n);
	CU_ASSERT(server_metric(&server, "http_connections") <= 65);
	mine = expect_open(NULL, 200, NULL);
	CU_ASSERT(is_served(first));
	while (n-- > 0)
		close(fd[n]);
	close(first);
	close(mine);
	answer_free(&a);
	AWAIT_METRIC(&server, "http_connections", ==, 0);
	server_stop(&server);
	clock_release();
}

/* At its limit, an address evicts only its own idle connections. There is one I/O thread, since
 * each thread evicts only its own connections. */
static void test_own_eviction(void)
{
	int mine, theirs[3] = {-1, -1, -1};

	start_with("with.max_per_address", "2");
	server_stop(&server);
	server = server_new("t.reply");
	fixture_set(server.web, "with.max_per_address", "2");
	server_start(&server);
	mine = expect_open(NULL, 200, NULL); /* idle for longer than all others */
	for (int i = 0; i < 2; i++)
		theirs[i] = expect_open(OTHER, 200, NULL);
	while (theirs[2] == -1) {
		struct answer a = {0};
		theirs[2] = client_open_from(server.port, OTHER);
		client_say(theirs[2], GET("/"));
		if (!answer_read(theirs[2], &a) || a.status != 200) {
			close(theirs[2]);
			theirs[2] = -1;
		}
		answer_free(&a);
	}
	CU_ASSERT(client_at_end(theirs[0]));
	CU_ASSERT(is_served(theirs[1]));
	CU_ASSERT(is_served(mine));
	AWAIT_METRIC(&server, "http_evicted_total", ==, 1);
	for (int i = 0; i < 3; i++)
		close(theirs[i]);
	close(mine);
	server_stop(&server);
}

static void test_rate(void)
{
	start_with("with.accept_rate", "0.001"); /* 10 at once, then one per 1,000 s */
	for (int i = 0; i < 10; i++)
		close(expect_open(OTHER, 200, NULL));
	expect_open(OTHER, 503, "accept_rate");
	AWAIT_METRIC(&server, "http_refused_rate_total", ==, 1);
	close(expect_open(NULL, 200, NULL));
	server_stop(&server);
}

/* An address that opens connections too fast and leaves them open takes no slots from others. */
static void test_rate_flood(void)
{
	enum { MANY = 300, MOST = 150 };
	char why[256];
	int fd[MANY];

	start_with("with.accept_rate", "0.001");
	CU_ASSERT_EQUAL(
	    weir_graph_set(server.graph, "web", "with.max_per_address", "0", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(
	    weir_graph_set(server.graph, "web", "with.max_connections", "150", why, sizeof(why)),
	    0);
	for (int i = 0; i < MANY; i++)
		fd[i] = client_open_from(server.port, OTHER);
	AWAIT_METRIC(&server, "http_refused_rate_total", ==, MANY - 10);
	CU_ASSERT(server_metric(&server, "http_connections") < MOST);
	close(expect_open(NULL, 200, NULL));
	for (int i = 0; i < MANY; i++)
		close(fd[i]);
	AWAIT_METRIC(&server, "http_connections", ==, 0);
	server_stop(&server);
}

/* All connections belong to clients that send bytes slowly: they are evicted like idle ones. */
static void test_slow_make_room(void)
{
	static const char body[] = "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\nx";
	int slow[2], kept[2], n_kept = 0, fd;

	server = server_new("t.reply");
	fixture_set(server.web, "with.max_connections", "2");
	server_start(&server);
	slow[0] = client_open(server.port);
	CU_ASSERT(client_say(slow[0], body));
	slow[1] = client_open(server.port);
	CU_ASSERT(client_say(slow[1], GET("/big/100000000")));
	AWAIT_METRIC(&server, "http_connections", ==, 2);
	/* An accepted connection stays; the next one needs another slot. */
	for (int i = 0, n = 0; n < 2; i++) {
		fd = client_open(server.port);
		client_say(fd, GET("/wait/held"));
		FIXTURE_AWAIT(server_metric(&server, "http_evicted_total") +
				  server_metric(&server, "http_refused_total") ==
			      i + 1);
		n = (int)server_metric(&server, "http_evicted_total");
		if (n == n_kept)
			close(fd);
		else
			kept[n_kept++] = fd;
	}
	gate_open("held");
	CU_ASSERT(client_at_end(slow[0]));
	for (int i = 0; i < 2; i++) {
		close(slow[i]);
		close(kept[i]);
	}
	server_stop(&server);
}

CUNIT_MAIN("http by address", {"cap", test_cap}, {"rate flood", test_rate_flood},
    {"auto", test_auto}, {"flood", test_flood}, {"own eviction", test_own_eviction},
    {"rate", test_rate}, {"the slow make room", test_slow_make_room})
