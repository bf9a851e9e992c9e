/* SPDX-License-Identifier: MIT */
/* TLS connections whose answers are sent in the same steps (write_turn.c), while half of the
 * clients read nothing. The other clients get everything and keep sending requests. Clients that
 * read late get everything as well, and answers not sent to clients that leave are counted. */
#include "fixture/clock/held_clock.h"
#include "fixture/http/tls.h"

/* More than Linux buffers for a connection whose client does not read: 4 MB (tcp_wmem) and the
 * client's buffer. */
#define BIG "5000000"

static struct server server;

static void reset(int fd)
{
	struct linger now = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

enum { TALKERS = 12 };

static bool does_read(int i)
{
	return i % 2 == 0;
}

static bool tls_answers_all(struct tls_client *k)
{
	struct answer a = {0};
	bool good = tls_answer(k, &a) && answer_is(&a, 200, "GET /a\n") && tls_answer(k, &a) &&
		    a.status == 200 && a.n == (size_t)atol(BIG) && tls_answer(k, &a) &&
		    answer_is(&a, 200, "GET /b\n");

	answer_free(&a);
	return good;
}

/* Of clients that send together, half do not read; the others are served. Some of those that do not
 * read leave, the others read late. */
static void test_half_reads(void)
{
	enum { GONE = TALKERS / 4 };
	const struct tls_wish wish = {0};
	struct tls_client first, k[TALKERS];
	const int small = 65536;
	struct answer a = {0};

	tls_begin();
	server = tls_server_new("t.reply", "one");
	fixture_set(server.app, "threads", "inline");
	/*
	 * A client that does not read would be reset: by min_send_rate after 5 s, or 21 s if its
	 * kernel takes a part only after the answer began to wait; by write_timeout after 30 s, or
	 * 60 s in that case. Serving the others may take that long here, so the clock is held. All
	 * waiting answers together have 60 MB, 90 % of the smallest limit that `memory: auto` sets.
	 * At 90 % the only effect is that time-outs are shorter.
	 */
	clock_hold();
	server_start(&server);
	first = tls_client_open(server.port, &wish);
	for (int i = 0; i < TALKERS; i++) {
		k[i] = tls_client_open(server.port, &wish);
		if (!does_read(i))
			setsockopt(k[i].fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	}
	CU_ASSERT(tls_say(&first, GET("/wait/spoken")));
	gate_await(1);
	for (int i = 0; i < TALKERS; i++)
		CU_ASSERT(tls_say(&k[i], GET("/a") GET("/big/" BIG) GET("/b")));
	gate_open("spoken");
	CU_ASSERT(tls_answer(&first, &a) && answer_is(&a, 200, "GET /wait/spoken\n"));
	for (int i = 0; i < TALKERS; i++)
		if (does_read(i))
			CU_ASSERT(tls_answers_all(&k[i]) && tls_ask(&k[i], GET("/c"), "GET /c\n"));
	AWAIT_METRIC(&server, "http_responses_2xx_total", ==, 1 + 4 * TALKERS / 2 + TALKERS / 2);
	for (int i = 0; i < TALKERS; i++) {
		if (i % 4 == 1) {
			SSL_free(k[i].ssl);
			reset(k[i].fd);
			continue;
		}
		if (!does_read(i))
			CU_ASSERT(tls_answers_all(&k[i]));
		tls_client_close(&k[i]);
	}
	tls_client_close(&first);
	answer_free(&a);
	AWAIT_METRIC(&server, "http_connections", ==, 0);
	AWAIT_METRIC(&server, "http_memory_bytes", ==, 0);
	AWAIT_METRIC(&server, "http_undelivered_total", ==, 2 * GONE);
	CU_ASSERT_EQUAL(server_offered(&server), 1 + 3 * TALKERS + TALKERS / 2);
	CU_ASSERT_EQUAL(server_metric(&server, "http_responses_2xx_total"),
	    (int64_t)server_offered(&server) - 2 * GONE);
	server_stop(&server);
	clock_release();
	tls_end();
}

CUNIT_MAIN("http tls turn", {"half of the clients read", test_half_reads})
