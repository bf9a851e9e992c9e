/* SPDX-License-Identifier: MIT */
/* Response times of an http.server (weir_answered): by class and outcome, from the arrival of a request
 * to its last byte; requests that have none; totals over a reload. */
#include <weir/clock.h>

#include "fixture/graph/drain.h"
#include "fixture/http/server.h"

static struct server two_classes(void)
{
	struct server s = server_new("t.reply");
	struct weir_class_spec *slow = weir_spec_add_class(s.spec, "slow");

	slow->match = calloc(1, sizeof(*slow->match));
	slow->match[0].field = strdup("path");
	slow->match[0].pattern = strdup("/wait/*");
	slow->n_match = 1;
	weir_spec_add_class(s.spec, "rest");
	return s;
}

static struct weir_hist times(const struct server *s, int class_id, enum weir_outcome o)
{
	struct weir_graph_view *v;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(s->graph, &v), 0);
	int web = 0;
	while (strcmp(v->stages[web].name, "web") != 0)
		web++;
	struct weir_hist h = v->stages[web].answers[class_id].by[o];
	weir_graph_view_free(v);
	return h;
}

static uint64_t answered(const struct server *s, int class_id, enum weir_outcome o)
{
	struct weir_hist h = times(s, class_id, o);

	return weir_hist_total(&h);
}

#define AWAIT_ANSWERED(s, class_id, ok, shed, failed)                                              \
	FIXTURE_AWAIT(answered(s, class_id, WEIR_OUTCOME_DONE) == (ok) &&                          \
		      answered(s, class_id, WEIR_OUTCOME_SHED) == (shed) &&                        \
		      answered(s, class_id, WEIR_OUTCOME_FAILED) == (failed))

static void ask(int port, const char *request, int status)
{
	struct answer a = {0};
	int fd = client_open(port);

	CU_ASSERT(client_say(fd, request));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, status);
	answer_free(&a);
	close(fd);
}

static void test_outcomes(void)
{
	struct server s = two_classes();

	server_start(&s);
	ask(s.port, GET("/a"), 200);
	ask(s.port, GET("/big/3000000"), 200);
	ask(s.port, GET("/none"), 204);
	ask(s.port, GET("/status/404"), 404);
	AWAIT_ANSWERED(&s, 1, 4, 0, 0);
	ask(s.port, GET("/status/500"), 500);
	ask(s.port, GET("/fail"), 500);
	AWAIT_ANSWERED(&s, 1, 4, 0, 2);
	server_steer(&s, "app", WEIR_STEER_DRAIN);
	ask(s.port, GET("/a"), 503);
	server_steer(&s, "app", WEIR_STEER_RUN);
	AWAIT_ANSWERED(&s, 1, 4, 1, 2);
	/* the parser refuses this one, so it has no class */
	ask(s.port, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400);
	ask(s.port, GET("/a"), 200);
	AWAIT_ANSWERED(&s, 1, 5, 1, 2);
	CU_ASSERT_EQUAL(answered(&s, 0, WEIR_OUTCOME_DONE), 0);
	server_stop(&s);
}

/* Requests that were sent together on one connection, and were answered together. */
static void test_pipelined(void)
{
	struct server s = two_classes();
	struct answer a = {0};

	server_start(&s);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/a") GET("/status/500") GET("/b")));
	for (int i = 0; i < 3; i++)
		CU_ASSERT(answer_read(fd, &a));
	AWAIT_ANSWERED(&s, 1, 2, 0, 1);
	answer_free(&a);
	close(fd);
	server_stop(&s);
}

/* The time contains the wait for a stage. */
static void test_waits(void)
{
	const int64_t wait_ns = 3000000;
	struct server s = two_classes();
	struct answer a = {0};

	server_start(&s);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/wait/long")));
	gate_await(1);
	int64_t from_ns = weir_clock_ns(CLOCK_MONOTONIC);
	FIXTURE_AWAIT(weir_clock_ns(CLOCK_MONOTONIC) - from_ns >= wait_ns);
	gate_open("long");
	CU_ASSERT(answer_read(fd, &a) && a.status == 200);
	AWAIT_ANSWERED(&s, 0, 1, 0, 0);
	struct weir_hist h = times(&s, 0, WEIR_OUTCOME_DONE);
	CU_ASSERT(h.sum_ns >= (uint64_t)wait_ns);
	CU_ASSERT(
	    h.sum_ns <= (uint64_t)(weir_clock_ns(CLOCK_MONOTONIC) - from_ns) + 20 * 1000000000ULL);
	answer_free(&a);
	close(fd);
	server_stop(&s);
}

/* A client that goes away before its answer is not counted. */
static void test_gone(void)
{
	struct server s = two_classes();

	server_start(&s);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/wait/gone")));
	gate_await(1);
	struct linger none = {.l_onoff = 1};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	gate_open("gone");
	AWAIT_METRIC(&s, "http_undelivered_total", ==, 1);
	ask(s.port, GET("/a"), 200);
	AWAIT_ANSWERED(&s, 1, 1, 0, 0);
	CU_ASSERT_EQUAL(answered(&s, 0, WEIR_OUTCOME_DONE), 0);
	server_stop(&s);
}

static void test_reload(void)
{
	struct drain d;
	struct server s = two_classes(), next = two_classes();
	struct weir_errs errs = {0};

	server_start(&s);
	ask(s.port, GET("/a"), 200);
	AWAIT_ANSWERED(&s, 1, 1, 0, 0);
	next.graph = fixture_build(next.spec);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s.graph, &errs), 0);
	drain_call(&d, s.graph, DRAIN_ALL_NS);
	drain_end(&d);
	next.port = s.port;
	ask(next.port, GET("/b"), 200);
	AWAIT_ANSWERED(&next, 1, 2, 0, 0);
	server_stop(&next);
}

CUNIT_MAIN("answers", {"outcomes", test_outcomes}, {"pipelined", test_pipelined},
    {"waits", test_waits}, {"gone", test_gone}, {"reload", test_reload})
