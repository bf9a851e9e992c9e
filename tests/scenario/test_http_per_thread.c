/* SPDX-License-Identifier: MIT */
/*
 * I/O threads with at most `per_thread` connections each, with 1 a thread per connection: a handler
 * may block, and stops nobody else. Further clients wait in the backlog, also while the server drains.
 */
#include <sys/resource.h>

#include "fixture/graph/drain.h"
#include "fixture/http/per_thread.h"
#include "fixture/http/tls.h"

#define CLIENTS_MAX 300

/* ---- accepting ---- */

/* How many threads are full, how many of them have an idle client, and how many clients wait. */
static struct weir_clients clients_of(const struct server *s)
{
	struct weir_graph_view *v;
	struct weir_clients clients = {0};

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(s->graph, &v), 0);
	for (int i = 0; i < v->n_stages; i++)
		if (v->stages[i].clients.per_loop > 0)
			clients = v->stages[i].clients;
	weir_graph_view_free(v);
	return clients;
}

/* As many clients as there are threads are served; the others are, as these go. An operator sees
 * this, although all threads are in handlers. */
static void test_others_wait(void)
{
	struct server s = started("3", 1);
	int fd[5];

	for (int i = 0; i < 5; i++)
		fd[i] = dial(&s, GET("/wait/all"));
	gate_await(3);
	CU_ASSERT_EQUAL(server_metric(&s, "http_connections"), 3);
	FIXTURE_AWAIT(clients_of(&s).waiting == 2);
	CU_ASSERT_EQUAL(clients_of(&s).loops, 3);
	CU_ASSERT_EQUAL(clients_of(&s).full, 3);
	CU_ASSERT_EQUAL(clients_of(&s).idle, 0);
	gate_open("all");
	FIXTURE_AWAIT(count_readable(fd, 5) == 3);
	CU_ASSERT_EQUAL(server_offered(&s), 3);
	serve_all(fd, 5, "GET /wait/all\n");
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	stop(&s);
}

/* Of 300 clients of 256 threads, 44 wait. */
static void test_many(void)
{
	struct server s = started("256", 1);
	int fd[CLIENTS_MAX];
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	CU_ASSERT_FATAL(files.rlim_max > 4096);
	for (int i = 0; i < CLIENTS_MAX; i++)
		fd[i] = dial(&s, GET("/x"));
	FIXTURE_AWAIT(count_readable(fd, CLIENTS_MAX) == 256);
	CU_ASSERT_EQUAL(server_metric(&s, "http_connections"), 256);
	CU_ASSERT_EQUAL(server_offered(&s), 256);
	serve_all(fd, CLIENTS_MAX, "GET /x\n");
	CU_ASSERT_EQUAL(server_offered(&s), CLIENTS_MAX);
	stop(&s);
}

/* A connection stays with its thread for all of its requests, also pipelined ones. */
static void test_keep_alive(void)
{
	struct server s = started("2", 1);
	int one = dial(&s, GET("/1") GET("/2")), other = dial(&s, GET("/3"));

	CU_ASSERT(is_answered(one, "GET /1\n") && is_answered(one, "GET /2\n"));
	CU_ASSERT(is_answered(other, "GET /3\n"));
	for (int i = 0; i < 3; i++) {
		CU_ASSERT(client_say(one, GET("/4")) && is_answered(one, "GET /4\n"));
		CU_ASSERT(client_say(other, GET("/5")) && is_answered(other, "GET /5\n"));
	}
	close(one);
	close(other);
	stop(&s);
}

/* Whether the watchdog has seen the blocked call; *trouble: whether the server is not ready for it.
 * Views say that the handler may block, so that no alert is raised. */
static bool is_stuck(const struct server *s, bool *trouble)
{
	struct weir_graph_view *v;
	bool stuck = false;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(s->graph, &v), 0);
	*trouble = false;
	for (int i = 0; i < v->n_stages; i++) {
		stuck |= v->stages[i].stuck > 0;
		CU_ASSERT_EQUAL(
		    v->stages[i].blocks_alone, strcmp(v->stages[i].use, "t.alone") == 0);
		*trouble |= v->stages[i].trouble[0] != '\0';
	}
	weir_graph_view_free(v);
	return stuck;
}

/* A handler that blocks for long stops nobody else, so the server stays ready. */
static void test_blocked(void)
{
	struct server s = made("2", 1);
	bool trouble;
	int blocked;

	s.app->threads.stuck_ns = 20000000;
	server_start(&s);
	blocked = dial(&s, GET("/wait/long"));
	gate_await(1);
	FIXTURE_AWAIT(is_stuck(&s, &trouble));
	CU_ASSERT_FALSE(trouble);
	for (int i = 0; i < 20; i++) {
		int fd = dial(&s, GET("/x"));
		CU_ASSERT(is_answered(fd, "GET /x\n"));
		close(fd);
	}
	gate_open("long");
	CU_ASSERT(is_answered(blocked, "GET /wait/long\n"));
	close(blocked);
	stop(&s);
}

/* A thread is not blocked by a slow client: its time-outs run, and then the next client comes. */
static void test_slow(void)
{
	struct server s = made("1", 1);
	int slow, idle, next;

	fixture_set(s.web, "with.header_timeout", "50ms");
	server_start(&s);
	slow = dial(&s, "GET /slow HTTP/1.1\r\nHo");
	AWAIT_METRIC(&s, "http_connections", ==, 1);
	idle = client_open(s.port);
	next = dial(&s, GET("/x"));
	CU_ASSERT_EQUAL(status_of(slow), 408);
	close(slow);
	CU_ASSERT(client_at_end(idle));
	close(idle);
	CU_ASSERT(is_answered(next, "GET /x\n"));
	close(next);
	stop(&s);
}

/* A limit above 1: clients are spread over the threads that have room. */
static void test_four(void)
{
	struct server s = started("2", 4);
	int fd[10];

	for (int i = 0; i < 10; i++)
		fd[i] = dial(&s, GET("/x"));
	FIXTURE_AWAIT(count_readable(fd, 10) == 8);
	CU_ASSERT_EQUAL(server_metric(&s, "http_connections"), 8);
	serve_all(fd, 10, "GET /x\n");
	stop(&s);
}

/* Clients of several addresses wait for the same threads. */
static void test_addresses(void)
{
	struct server s = made("2", 1);
	struct server second;
	int fd[8];

	server_listen_twice(&s);
	server_start(&s);
	second = s;
	second.port = weir_http_port(weir_graph_stage(s.graph, "web"), 1);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 8; i++)
			fd[i] = dial(i % 2 ? &s : &second,
			    "GET /x HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
		for (int i = 0; i < 8; i++) {
			CU_ASSERT(is_answered(fd[i], "GET /x\n"));
			close(fd[i]);
		}
	}
	stop(&s);
}

/* ---- draining ---- */

/* All threads are busy. The clients that wait are served, one after the other, but not one that sends
 * nothing. */
static void test_drain(void)
{
	struct server s = started("2", 1);
	struct drain d;
	int fd[5], silent;

	for (int i = 0; i < 5; i++)
		fd[i] = dial(&s, GET("/wait/drain"));
	silent = client_open(s.port);
	gate_await(2);
	drain_call(&d, s.graph, DRAIN_ALL_NS);
	gate_open("drain");
	for (int i = 0; i < 5; i++) {
		CU_ASSERT(is_answered(fd[i], "GET /wait/drain\n"));
		CU_ASSERT(client_at_end(fd[i]));
		close(fd[i]);
	}
	CU_ASSERT(client_at_end(silent));
	close(silent);
	drain_end(&d);
	CU_ASSERT_EQUAL(atomic_load(&crowded), 0);
}

/* There is no time: the clients that wait get a 503. */
static void test_drain_now(void)
{
	struct server s = started("2", 1);
	int half[2], fd[3];
	struct drain d;

	for (int i = 0; i < 2; i++)
		half[i] = dial(&s, "GET /half HTTP/1.1\r\nHo");
	AWAIT_METRIC(&s, "http_connections", ==, 2);
	for (int i = 0; i < 3; i++)
		fd[i] = dial(&s, GET("/x"));
	drain_call(&d, s.graph, 0);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(status_of(half[i]), 503);
		close(half[i]);
	}
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(status_of(fd[i]), 503);
		close(fd[i]);
	}
	drain_end(&d);
}

/* ---- the rest ---- */

static void test_pause(void)
{
	struct server s = started("2", 1);
	int first = dial(&s, GET("/1")), second, third;

	CU_ASSERT(is_answered(first, "GET /1\n"));
	server_steer(&s, "web", WEIR_STEER_PAUSE);
	second = dial(&s, GET("/2"));
	third = dial(&s, GET("/3"));
	CU_ASSERT_EQUAL(server_metric(&s, "http_connections"), 1);
	server_steer(&s, "web", WEIR_STEER_RUN);
	FIXTURE_AWAIT(is_readable(second) || is_readable(third));
	close(first);
	CU_ASSERT(is_answered(second, "GET /2\n"));
	close(second);
	CU_ASSERT(is_answered(third, "GET /3\n"));
	close(third);
	stop(&s);
}

/* At the limit of the server, a connection that is idle is evicted, whichever thread has it. */
static void test_max_connections(void)
{
	struct server s = made("4", 1);
	int fd[4];

	fixture_set(s.web, "with.max_connections", "2");
	server_start(&s);
	for (int i = 0; i < 2; i++) {
		fd[i] = dial(&s, GET("/1"));
		CU_ASSERT(is_answered(fd[i], "GET /1\n"));
	}
	fd[2] = dial(&s, GET("/2")); /* none has been idle for long enough */
	CU_ASSERT_EQUAL(status_of(fd[2]), 503);
	close(fd[2]);
	close(fd[0]);
	AWAIT_METRIC(&s, "http_connections", ==, 1);
	fd[3] = dial(&s, GET("/3"));
	CU_ASSERT(is_answered(fd[3], "GET /3\n"));
	close(fd[1]);
	close(fd[3]);
	stop(&s);
}

/* Handshakes are done in the thread of the connection. */
static void test_tls(void)
{
	static const struct tls_wish plain_wish;
	struct server s;
	struct tls_client k[2];
	int waits;

	if (!weir_stage_type_find("t.alone"))
		fixture_register(&alone_ops);
	s = tls_server_new("t.alone", "one");
	s.web = &s.spec->stages[0];
	s.app = &s.spec->stages[1];
	set_up(&s, "2", 1);
	s.spec->stages[2].inlined = true;
	server_start(&s);
	for (int i = 0; i < 2; i++) {
		k[i] = tls_client_open(s.port, &plain_wish);
		CU_ASSERT(tls_ask(&k[i], GET("/x"), "GET /x\n"));
	}
	waits = client_open(s.port);
	struct tls_client third = tls_client_hello(waits, &plain_wish);
	CU_ASSERT(tls_ask(&k[1], GET("/y"), "GET /y\n"));
	CU_ASSERT_EQUAL(server_metric(&s, "http_tls_connections"), 2);
	tls_client_close(&k[0]);
	CU_ASSERT(tls_shake_hands(&third) && tls_ask(&third, GET("/z"), "GET /z\n"));
	tls_client_close(&k[1]);
	tls_client_close(&third);
	stop(&s);
}

CUNIT_MAIN("http_per_thread", {"others wait", test_others_wait}, {"many", test_many},
    {"keep-alive", test_keep_alive}, {"a blocked handler", test_blocked},
    {"slow clients", test_slow}, {"four each", test_four}, {"several addresses", test_addresses},
    {"drain", test_drain}, {"drain without time", test_drain_now}, {"pause", test_pause},
    {"max_connections", test_max_connections}, {"make files", tls_begin}, {"tls", test_tls},
    {"remove files", tls_end})
