/* SPDX-License-Identifier: MIT */
/* The memory of TLS connections is included in the total: idle, and with half a record read. */
#include "fixture/clock/held_clock.h"
#include "fixture/http/tls.h"
#include "http/conn/conn.h"
#include "net/tls/tls_conn.h"

enum { N = 10, HALF = 8000 };

#define IDLE ((int64_t)(sizeof(struct conn) + TLS_CONN_BYTES))

static struct tls_client client[N];

static struct server start(void)
{
	struct server s = tls_server_new("t.reply", "one");
	struct tls_wish wish = {0};

	server_start(&s);
	for (int i = 0; i < N; i++) {
		client[i] = tls_client_open(s.port, &wish);
		CU_ASSERT(tls_ask(&client[i], GET("/x"), "GET /x\n"));
	}
	AWAIT_METRIC(&s, "http_memory_bytes", ==, N * IDLE);
	return s;
}

static void stop(struct server *s)
{
	for (int i = 0; i < N; i++)
		tls_client_close(&client[i]);
	AWAIT_METRIC(s, "http_memory_bytes", ==, 0);
	server_stop(s);
}

static void test_half_a_record(void)
{
	struct server s = start();
	char half[HALF] = {23, 3, 3, 0x40, 0}; /* application data, of 16 KiB */

	for (int i = 0; i < N; i++)
		CU_ASSERT(client_send(client[i].fd, half, sizeof(half)));
	AWAIT_METRIC(&s, "http_memory_bytes", ==, N * (IDLE + TLS_READ_BYTES));
	stop(&s);
}

/* A record that was processed leaves no memory behind. */
static void test_records(void)
{
	struct server s = start();

	for (int i = 0; i < N; i++)
		CU_ASSERT(tls_ask(&client[i], GET("/y"), "GET /y\n"));
	AWAIT_METRIC(&s, "http_memory_bytes", ==, N * IDLE);
	stop(&s);
}

/* Idle connections alone fill the memory: those that have been idle for a moment are evicted, and
 * requests are answered again. */
static void test_idle_alone(void)
{
	enum { MANY = 60 }; /* 96 % of 1 MiB: the step at which requests are refused */
	struct server s = tls_server_new("t.reply", "one");
	struct tls_wish wish = {0};
	struct tls_client idle[MANY], k;

	fixture_set(s.web, "with.memory", "1MiB");
	fixture_set(s.app, "threads", "inline");
	clock_hold();
	server_start(&s);
	for (int i = 0; i < MANY; i++)
		idle[i] = tls_client_open(s.port, &wish);
	AWAIT_METRIC(&s, "http_memory_step", ==, 3);
	clock_move(1500);
	AWAIT_METRIC(&s, "http_memory_step", ==, 0);
	CU_ASSERT_EQUAL(server_metric(&s, "http_evicted_total"), 16); /* no more than necessary */
	CU_ASSERT(tls_at_end(&idle[0]));
	k = tls_client_open(s.port, &wish);
	CU_ASSERT(tls_ask(&k, GET("/x"), "GET /x\n"));
	CU_ASSERT(tls_ask(&idle[MANY - 1], GET("/x"), "GET /x\n"));
	tls_client_close(&k);
	for (int i = 0; i < MANY; i++)
		tls_client_close(&idle[i]);
	server_stop(&s);
	clock_release();
}

/* When memory is short, too, a connection with a long handshake counts as idle only from the end of
 * the handshake on. */
static void test_idle_since_the_handshake(void)
{
	enum { MANY = 60 };
	struct server s = tls_server_new("t.reply", "one");
	struct tls_wish wish = {0};
	struct tls_client idle[MANY], slow;

	fixture_set(s.web, "with.memory", "1MiB");
	fixture_set(s.app, "threads", "inline");
	clock_hold();
	server_start(&s);
	slow = tls_client_hello(client_open(s.port), &wish);
	AWAIT_METRIC(&s, "http_connections", ==, 1);
	clock_move(1500);
	CU_ASSERT_EQUAL(SSL_do_handshake(slow.ssl), 1);
	AWAIT_METRIC(&s, "http_tls_connections", ==, 1);
	for (int i = 0; i < MANY; i++)
		idle[i] = tls_client_open(s.port, &wish);
	AWAIT_METRIC(&s, "http_memory_step", ==, 3);
	clock_move(500);
	CU_ASSERT_EQUAL(server_metric(&s, "http_evicted_total"), 0);
	clock_move(600);
	AWAIT_METRIC(&s, "http_memory_step", ==, 0);
	CU_ASSERT(tls_at_end(&slow));
	tls_client_close(&slow);
	for (int i = 0; i < MANY; i++)
		tls_client_close(&idle[i]);
	server_stop(&s);
	clock_release();
}

CUNIT_MAIN("http tls memory", {"make files", tls_begin}, {"half a record", test_half_a_record},
    {"records", test_records}, {"idle ones alone", test_idle_alone},
    {"idle since the handshake", test_idle_since_the_handshake}, {"remove files", tls_end})
