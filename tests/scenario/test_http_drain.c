/* SPDX-License-Identifier: MIT */
/*
 * Stopping loses nothing. Requests in the graph are answered, idle connections may send one more
 * request, connections in the backlog are served, and clients that keep sending each get a last
 * answer that closes the connection. At the end of the grace time, remaining requests are answered
 * with 503.
 */
#include "fixture/graph/drain.h"
#include "fixture/http/server.h"

#include "net/net.h"

/* Begin a drain and wait until the I/O thread has noticed: the probe connection gets an answer that
 * closes it, or is closed. */
static void drain_begin(struct drain *d, const struct server *s, int64_t grace_ns)
{
	struct answer a = {0};

	drain_call(d, s->graph, grace_ns);
	while (client_say(s->probe, GET("/probe")) && answer_read(s->probe, &a) && !a.close)
		continue;
	close(s->probe);
	answer_free(&a);
}

static struct server start(const char *linger, const char *io_threads, const char *threads)
{
	struct server s = server_new("t.reply");

	fixture_set(s.web, "with.linger", linger);
	fixture_set(s.web, "with.threads", io_threads);
	fixture_set(s.app, "threads.max", threads);
	fixture_set(s.app, "threads.min", threads);
	fixture_set(s.app, "cohort.max", "1");
	server_start(&s);
	s.probe = client_open(s.port);
	return s;
}

static void test_in_flight(void)
{
	struct server s = start("0ms", "1", "2");
	struct answer a = {0};
	struct drain d;
	int fd = client_open(s.port);

	CU_ASSERT(client_say(fd, GET("/wait/one") GET("/two")));
	gate_await(1);
	drain_begin(&d, &s, 10000000000LL);
	gate_open("one");
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /wait/one\n"));
	CU_ASSERT_FALSE(a.close);
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /two\n"));
	CU_ASSERT(a.close);
	CU_ASSERT(client_at_end(fd));
	close(fd);
	drain_end(&d);
	CU_ASSERT_EQUAL(d.report.closed, 0);
	answer_free(&a);
}

/* Two idle connections: one sends a request while the server lingers, the other does not. */
static void test_last_request(void)
{
	struct server s = start("2s", "1", "2");
	struct answer a = {0};
	struct drain d;
	int talks = client_open(s.port), silent = client_open(s.port);

	CU_ASSERT(client_say(talks, GET("/")) && answer_read(talks, &a));
	CU_ASSERT(client_say(silent, GET("/")) && answer_read(silent, &a));
	CU_ASSERT_FALSE(a.close);
	drain_begin(&d, &s, 10000000000LL);
	CU_ASSERT(client_say(talks, GET("/last")));
	CU_ASSERT(answer_read(talks, &a) && answer_is(&a, 200, "GET /last\n"));
	CU_ASSERT(a.close);
	CU_ASSERT(client_at_end(talks));
	CU_ASSERT(client_at_end(silent));
	close(talks);
	close(silent);
	drain_end(&d);
	answer_free(&a);
}

/* Connections that the server may not have accepted when the drain begins. */
static void test_backlog(void)
{
	enum { N = 200 };
	struct server s = start("1s", "1", "2");
	struct answer a = {0};
	struct drain d;
	int fd[N];

	for (int i = 0; i < N; i++) {
		fd[i] = client_open(s.port);
		CU_ASSERT(client_say(fd[i], GET("/x")));
	}
	drain_begin(&d, &s, 10000000000LL);
	for (int i = 0; i < N; i++) {
		CU_ASSERT(answer_read(fd[i], &a) && answer_is(&a, 200, "GET /x\n"));
		close(fd[i]);
	}
	drain_end(&d);
	answer_free(&a);
}

/* ---- under load ---- */

struct asker {
	pthread_t thread;
	int port;
	_Atomic uint64_t answers;
	uint64_t torn;
};

/* Send requests on one connection until the server announces its end. A missing answer counts as
 * torn. */
static void *ask_main(void *arg)
{
	struct asker *k = arg;
	struct answer a = {0};
	int fd = client_open(k->port);

	while (client_say(fd, GET("/x"))) {
		if (!answer_read(fd, &a) || a.status != 200) {
			k->torn++;
			break;
		}
		k->answers++;
		if (a.close)
			break;
	}
	if (!a.close)
		k->torn++;
	close(fd);
	answer_free(&a);
	return NULL;
}

static void test_under_load(void)
{
	enum { N = 16 };
	struct server s = start("1s", "2", "2");
	struct asker k[N];
	struct drain d;

	for (int i = 0; i < N; i++) {
		k[i] = (struct asker){.port = s.port};
		pthread_create(&k[i].thread, NULL, ask_main, &k[i]);
	}
	for (int i = 0; i < N; i++)
		FIXTURE_AWAIT(atomic_load(&k[i].answers) > 0);
	AWAIT_METRIC(&s, "http_responses_2xx_total", >, 1000);
	drain_begin(&d, &s, 10000000000LL);
	for (int i = 0; i < N; i++) {
		pthread_join(k[i].thread, NULL);
		CU_ASSERT_EQUAL(k[i].torn, 0);
	}
	drain_end(&d);
	CU_ASSERT_EQUAL(d.report.closed, 0);
}

/* The grace time ends first: queued requests are answered with 503, running ones still get their
 * answer. */
static void test_grace_over(void)
{
	struct server s = start("0ms", "1", "1");
	struct answer a = {0};
	struct drain d;
	int fd = client_open(s.port), other = client_open(s.port), idle = client_open(s.port);

	CU_ASSERT(client_say(idle, GET("/")) && answer_read(idle, &a));
	CU_ASSERT(client_say(fd, GET("/wait/one")));
	gate_await(1);
	CU_ASSERT(client_say(other, GET("/queued")));
	FIXTURE_AWAIT(server_offered(&s) == 3);
	close(s.probe);
	drain_call(&d, s.graph, 50000000LL);
	CU_ASSERT(answer_read(other, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT_PTR_NOT_NULL(field_in(a.head, "Retry-After"));
	CU_ASSERT(a.close);
	gate_open("one");
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /wait/one\n"));
	CU_ASSERT(a.close);
	close(fd);
	close(other);
	close(idle);
	drain_end(&d);
	CU_ASSERT_EQUAL(d.report.closed, 1);
	answer_free(&a);
}

/* ---- requests after the grace time ---- */

#define HEAD(target) "HEAD " target " HTTP/1.1\r\nHost: t\r\n\r\n"

static void expect_late_as(int fd, bool bodiless)
{
	struct answer a = {0};

	CU_ASSERT(answer_read_as(fd, &a, bodiless));
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT_PTR_NOT_NULL(field_in(a.head, "Retry-After"));
	CU_ASSERT(a.close);
	CU_ASSERT(client_at_end(fd));
	answer_free(&a);
}

static void expect_late(int fd)
{
	expect_late_as(fd, false);
}

static void await_phase(const struct server *s, enum net_phase phase)
{
	struct net_server *srv = weir_state(weir_graph_stage(s->graph, "web"));

	FIXTURE_AWAIT(atomic_load(&srv->phase) == phase);
}

/* At the end of the grace time, a client that has begun a request gets a 503; an idle one does
 * not. */
static void test_late(void)
{
	struct server s = start("60s", "1", "2");
	struct drain d;
	int head = client_open(s.port), body = client_open(s.port), idle = client_open(s.port);

	CU_ASSERT(client_say(head, "GET /head HTTP/1.1\r\nHo"));
	CU_ASSERT(
	    client_say(body, "POST /body HTTP/1.1\r\nHost: t\r\nContent-Length: 8\r\n\r\nhalf"));
	AWAIT_METRIC(&s, "http_received_bytes_total", ==, 22 + 55);
	drain_begin(&d, &s, 50000000LL);
	expect_late(head);
	expect_late(body);
	CU_ASSERT(client_at_end(idle));
	AWAIT_METRIC(&s, "http_refused_late_total", ==, 2);
	close(head);
	close(body);
	close(idle);
	drain_end(&d);
}

/* The grace time ends before the received bytes are processed: the request `then`, after
 * `first`. */
static void come_late(const char *first, const char *then)
{
	struct server s = server_new("t.reply");
	struct answer a = {0};
	struct drain d;

	fixture_set(s.app, "threads", "inline");
	server_start(&s);
	int fd = client_open(s.port), late = client_open(s.port), idle = client_open(s.port);
	CU_ASSERT(client_say(late, first) && answer_read_as(late, &a, first[0] == 'H'));
	CU_ASSERT(client_say(fd, GET("/wait/one")));
	gate_await(1); /* the I/O thread is blocked */
	drain_call(&d, s.graph, 0);
	CU_ASSERT(client_say(late, then));
	await_phase(&s, NET_CLOSED);
	gate_open("one");
	CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "GET /wait/one\n"));
	CU_ASSERT(a.close);
	expect_late_as(late, then[0] == 'H');
	CU_ASSERT(client_at_end(idle));
	close(fd);
	close(late);
	close(idle);
	drain_end(&d);
	answer_free(&a);
}

static void test_late_unread(void)
{
	come_late(GET("/"), GET("/late"));
}

/* The answer matches the method of the new request, not of the one before. */
static void test_late_methods(void)
{
	come_late(HEAD("/"), GET("/late"));
	come_late(GET("/"), HEAD("/late"));
}

static void test_hurry(void)
{
	struct server s = start("60s", "1", "2");
	struct drain d;
	int fd = client_open(s.port);
	struct answer a = {0};

	CU_ASSERT(client_say(fd, GET("/")) && answer_read(fd, &a));
	drain_begin(&d, &s, 100000000000LL);
	weir_graph_hurry(s.graph);
	CU_ASSERT(client_at_end(fd));
	close(fd);
	drain_end(&d);
	answer_free(&a);
}

static void reset(int fd)
{
	struct linger now = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

/* Clients that leave while the server drains: one resets, one shuts down its sending side and is
 * answered, one had sent half a request. None delays the drain, and the requests of the first are
 * executed. */
static void test_clients_go(void)
{
	struct server s = start("0ms", "1", "3");
	struct answer a = {0};
	struct drain d;
	int gone = client_open(s.port), shut = client_open(s.port), half = client_open(s.port);

	CU_ASSERT(client_say(half, GET("/") "GET /ha") && answer_read(half, &a));
	CU_ASSERT(client_say(gone, GET("/wait/gone")));
	CU_ASSERT(client_say(shut, GET("/wait/shut")));
	gate_await(2);
	drain_begin(&d, &s, 100000000000LL);
	reset(gone);
	shutdown(shut, SHUT_WR);
	AWAIT_METRIC(
	    &s, "http_connections", <=, 2); /* the reset is noticed before the answer is ready */
	reset(half);
	gate_open("gone");
	gate_open("shut");
	CU_ASSERT(answer_read(shut, &a) && answer_is(&a, 200, "GET /wait/shut\n"));
	CU_ASSERT(client_at_end(shut));
	close(shut);
	drain_end(&d);
	CU_ASSERT(d.report.took_ns < 50000000000LL);
	CU_ASSERT_EQUAL(d.report.closed, 0);
	answer_free(&a);
}

/* Without connections, the drain does not wait for the linger time. */
static void test_nobody(void)
{
	struct server s = start("60s", "2", "2");
	struct drain d;

	drain_begin(&d, &s, 100000000000LL);
	drain_end(&d);
	CU_ASSERT(d.report.took_ns < 50000000000LL);
}

CUNIT_MAIN("http drain", {"requests in flight", test_in_flight},
    {"a last request", test_last_request}, {"backlog", test_backlog},
    {"under load", test_under_load}, {"grace time over", test_grace_over}, {"late", test_late},
    {"late and unread", test_late_unread}, {"late, another method", test_late_methods},
    {"hurry", test_hurry}, {"clients go", test_clients_go}, {"nobody there", test_nobody})
