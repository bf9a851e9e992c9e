/* SPDX-License-Identifier: MIT */
/* A connection that misbehaves harms only itself: meanwhile a bystander of the same I/O thread is
 * served, and afterwards nothing is left of it. */
#include "fixture/http/server.h"

static struct server server;
static int bystander;

static void start(void)
{
	server = server_new("t.reply");
	server_start(&server);
	bystander = client_open(server.port);
}

static void bystander_is_served(void)
{
	struct answer a = {0};

	CU_ASSERT(client_say(bystander, GET("/by")));
	CU_ASSERT(answer_read(bystander, &a) && answer_is(&a, 200, "GET /by\n"));
	answer_free(&a);
}

/* Only the bystander, and what it holds, must be left. */
static void stop(void)
{
	bystander_is_served();
	AWAIT_METRIC(&server, "http_connections", ==, 1);
	close(bystander);
	AWAIT_METRIC(&server, "http_connections", ==, 0);
	AWAIT_METRIC(&server, "http_memory_bytes", ==, 0);
	server_stop(&server);
}

static void close_by_reset(int fd)
{
	struct linger now = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

static void test_resets(void)
{
	static const char *const texts[] = {"", "GET /",
	    "GET /big/300000 HTTP/1.1\r\nHost: t\r\n\r\n",
	    "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5000\r\n\r\nhalf", "rubbish\r\n\r\n",
	    GET("/a") GET("/b") GET("/c") "GET /d"};

	start();
	for (int i = 0; i < 1000; i++) {
		int fd = client_open(server.port);
		client_say(fd, texts[i % 6]);
		close_by_reset(fd);
		if (i % 50 == 0)
			bystander_is_served();
	}
	stop();
}

static void test_half_close(void)
{
	struct answer a = {0};
	int fd;

	start();
	fd = client_open(server.port);
	CU_ASSERT(client_say(fd, GET("/wait/one") GET("/two") "GET /thr"));
	gate_await(1);
	CU_ASSERT_EQUAL(shutdown(fd, SHUT_WR), 0);
	/* Processed after `fd` by the same thread, so the end of `fd` has been seen then. */
	int other = client_open(server.port);
	shutdown(other, SHUT_WR);
	CU_ASSERT(client_at_end(other));
	close(other);
	gate_open("one");
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /wait/one\n"));
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /two\n"));
	CU_ASSERT(client_at_end(fd));
	close(fd);
	answer_free(&a);
	stop();
}

/* ---- 10,000 requests before the first answer is read ---- */

enum { MANY = 10000 };

/* The length of answer `i`. Together the answers exceed the socket buffers, and consecutive ones
 * differ. */
static int length_of(int i)
{
	return 2000 + i % 100;
}

static void *ask_many(void *arg)
{
	const int *fd = arg;
	char text[64];

	for (int i = 0; i < MANY; i++) {
		snprintf(
		    text, sizeof(text), "GET /big/%d HTTP/1.1\r\nHost: t\r\n\r\n", length_of(i));
		if (!client_say(*fd, text))
			break;
	}
	return NULL;
}

static void test_pipeline(void)
{
	struct answer a = {0};
	pthread_t asker;
	int fd, i;

	start();
	fd = client_open(server.port);
	pthread_create(&asker, NULL, ask_many, &fd);
	AWAIT_METRIC(&server, "http_pipeline_full_total", >, 0);
	for (i = 0; i < 100; i++)
		bystander_is_served();
	/* docs/http.md: 28 KiB for the connection and 16 times the bytes sent for the 64 requests
	 * in progress; and their answers. */
	CU_ASSERT(
	    server_metric(&server, "http_memory_bytes") < 2 * 28 * 1024 + 64 * (16 * 40 + 2100));
	for (i = 0; i < MANY; i++) {
		if (!answer_read(fd, &a) || a.length != length_of(i))
			break;
	}
	CU_ASSERT_EQUAL(i, MANY);
	pthread_join(asker, NULL);
	close(fd);
	answer_free(&a);
	stop();
}

/* 64 KiB of a head in small pieces: refused once, at 16 KiB. */
static void test_dribble(void)
{
	struct answer a = {0};
	int fd;

	start();
	fd = client_open(server.port);
	CU_ASSERT(client_say(fd, "GET / HTTP/1.1\r\nHost: t\r\n"));
	for (int i = 0; i < 65536 / 8; i++) {
		if (!client_say(fd, "X: 7654\r"))
			break;
		if (!client_say(fd, "\n"))
			break;
		if (i % 500 == 0)
			bystander_is_served();
	}
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 431);
	const char *code = field_in(a.head, "X-Weir-Limit");
	CU_ASSERT(code && strcmp(code, "head") == 0);
	CU_ASSERT(client_at_end(fd));
	AWAIT_METRIC(&server, "http_large_heads_total", ==, 1);
	close(fd);
	answer_free(&a);
	stop();
}

CUNIT_MAIN("http misuse", {"resets", test_resets}, {"half-close", test_half_close},
    {"10,000 unread", test_pipeline}, {"a head in drops", test_dribble})
