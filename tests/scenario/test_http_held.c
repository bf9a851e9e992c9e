/* SPDX-License-Identifier: MIT */
/* A handler of an inline stage holds an I/O thread. The other threads accept in its place, also
 * across a pause and a reload, and stop doing so when it continues. The kernel spreads clients over
 * the threads, so each check uses many of them. */
#include "fixture/graph/descriptors.h"
#include "fixture/graph/drain.h"
#include "fixture/http/server.h"

#include "graph/graph.h"

enum { CLIENTS = 40 };

static struct server held_server(const char *io_threads)
{
	struct server s = server_new("t.reply");

	fixture_set(s.web, "with.threads", io_threads);
	fixture_set(s.web, "with.linger", "0ms");
	s.app->inlined = true;
	s.app->threads.stuck_ns = 20000000;
	return s;
}

static bool in_trouble(const struct server *s)
{
	struct weir_graph_view *v;
	bool is = false;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(s->graph, &v), 0);
	for (int i = 0; i < v->n_stages; i++)
		is |= v->stages[i].trouble[0] != '\0';
	weir_graph_view_free(v);
	return is;
}

/* A client whose request holds its I/O thread until gate_open(name). */
static int hold(const struct server *s, const char *name, int nth)
{
	char request[128];
	int fd = client_open(s->port);

	snprintf(request, sizeof(request), "GET /wait/%s HTTP/1.1\r\nHost: t\r\n\r\n", name);
	CU_ASSERT(client_say(fd, request));
	gate_await(nth);
	FIXTURE_AWAIT(in_trouble(s));
	return fd;
}

/* Let the held thread continue. When as many sockets are open as before, the other threads have
 * closed their duplicates of its listening sockets. */
static void let_go(const struct server *s, const char *name, int fd, int sockets)
{
	struct answer a = {0};

	gate_open(name);
	CU_ASSERT(answer_read(fd, &a) && a.status == 200);
	free(a.body);
	close(fd);
	FIXTURE_AWAIT(!in_trouble(s));
	AWAIT_METRIC(s, "http_connections", ==, 0);
	FIXTURE_AWAIT(sockets_open() == sockets);
}

static void begin_all(const struct server *s, int *fd)
{
	for (int i = 0; i < CLIENTS; i++) {
		fd[i] = client_open(s->port);
		CU_ASSERT(
		    client_say(fd[i], "GET /x HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"));
	}
}

static void check_answered(const int *fd)
{
	struct answer a = {0};
	int answered = 0;

	for (int i = 0; i < CLIENTS; i++) {
		answered += answer_read(fd[i], &a) && a.status == 200;
		close(fd[i]);
	}
	CU_ASSERT_EQUAL(answered, CLIENTS);
	free(a.body);
}

static void test_others_accept(void)
{
	static const char *const names[] = {"first", "second"};
	struct server s = held_server("3");
	int fd[CLIENTS];

	server_start(&s);
	int sockets = sockets_open();
	for (int round = 0; round < 2; round++) {
		int holder = hold(&s, names[round], 1);
		begin_all(&s, fd);
		check_answered(fd);
		let_go(&s, names[round], holder, sockets);
		begin_all(&s, fd);
		check_answered(fd);
	}
	server_stop(&s);
}

/* The source is paused while clients reach the held thread. After the pause the other threads serve
 * them. */
static void test_across_a_pause(void)
{
	struct server s = held_server("2");
	int fd[CLIENTS];

	server_start(&s);
	int sockets = sockets_open();
	int holder = hold(&s, "pause", 1);
	server_steer(&s, "web", WEIR_STEER_PAUSE);
	begin_all(&s, fd);
	CU_ASSERT_EQUAL(server_offered(&s), 1);
	server_steer(&s, "web", WEIR_STEER_RUN);
	check_answered(fd);
	let_go(&s, "pause", holder, sockets);
	server_stop(&s);
}

/* The new graph accepts from all sockets. The old one ends when its handler has returned. */
static void test_across_a_reload(void)
{
	struct server s = held_server("2"), next;
	struct weir_errs errs = {0};
	struct answer a = {0};
	struct drain d;
	int fd[CLIENTS], holder;

	server_start(&s);
	holder = hold(&s, "reload", 1);
	begin_all(&s, fd);
	check_answered(fd);
	next = held_server("2");
	next.graph = fixture_build(next.spec);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s.graph, &errs), 0);
	next.port = s.port;
	drain_call(&d, s.graph, DRAIN_ALL_NS);
	begin_all(&next, fd);
	check_answered(fd);
	gate_open("reload");
	CU_ASSERT(answer_read(holder, &a) && a.status == 200);
	free(a.body);
	close(holder);
	drain_end(&d);
	server_stop(&next);
}

/* The server stops while a thread is held: clients in its backlog are answered or refused by the
 * other threads, and the stop waits for none of them. */
static void test_a_stop(void)
{
	struct server s = held_server("2");
	struct drain d;
	int holder, fd[CLIENTS];

	server_start(&s);
	int sockets = sockets_open();
	holder = hold(&s, "stop", 1);
	/* The other thread has duplicates of the held thread's sockets. */
	FIXTURE_AWAIT(sockets_open() > sockets + 2);
	server_steer(&s, "web", WEIR_STEER_PAUSE);
	begin_all(&s, fd);
	drain_call(&d, s.graph, DRAIN_ALL_NS);
	check_answered(fd);
	weir_graph_hurry(s.graph);
	pthread_join(d.thread, NULL);
	CU_ASSERT_EQUAL(d.report.left, 1);
	CU_ASSERT_EQUAL(d.report.lost, 1);
	CU_ASSERT_EQUAL(d.report.law_error, 0);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(d.report.left_text, "stage 'app' (t.reply) in thread 'web/io"));
	gate_open("stop");
	weir_graph_free(s.graph);
	close(holder);
}

CUNIT_MAIN("http held", {"others accept", test_others_accept},
    {"across a pause", test_across_a_pause}, {"across a reload", test_across_a_reload},
    {"a stop", test_a_stop})
