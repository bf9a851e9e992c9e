/* SPDX-License-Identifier: MIT */
/* A source in a core group: its I/O threads are the cores. Answers go out in the thread that has read
 * the request; connections survive a handler that ends its thread, a stop of the group's stage, fewer
 * cores and a reload; clients of a thread that is held up are accepted by the others. */
#include "base/task.h"
#include "fixture/graph/drain.h"
#include "fixture/http/server.h"
#include "graph/graph.h"
#include "sched/cores.h"

enum { CLIENTS = 24 };

static atomic_int strangers;  /* handler calls outside the group's cores, or without a loop */
static atomic_int handled[2]; /* requests by core */

/* Like t.reply; /die ends its thread. */
static void core_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct thread *t = thread_self();

	if (!t->core || !weir_loop_here())
		atomic_fetch_add(&strangers, 1);
	else
		atomic_fetch_add(&handled[t->core - t->pool->cores->core], n);
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		if (target_starts(req, "/die"))
			pthread_exit(NULL);
	}
	reply_handle(st, ev, n);
}

static const struct weir_stage_ops core_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.core",
    .summary = "answers like t.reply; /die ends the thread",
    .accepts = &weir_http_request_type,
    .handle = core_handle};

static struct server group_server(int cores)
{
	static bool registered;
	struct server s;

	if (!registered)
		fixture_register(&core_ops);
	registered = true;
	s = server_new("t.core");
	fixture_set(s.app, "local", "always");
	server_group(&s, "fifo", cores);
	atomic_store(&strangers, 0);
	atomic_store(&handled[0], 0);
	atomic_store(&handled[1], 0);
	return s;
}

static void open_all(const struct server *s, int *fd)
{
	for (int i = 0; i < CLIENTS; i++)
		fd[i] = client_open(s->port);
}

static void ask_all(const int *fd)
{
	struct answer a = {0};
	int answered = 0;

	for (int i = 0; i < CLIENTS; i++)
		CU_ASSERT(client_say(fd[i], GET("/x")));
	for (int i = 0; i < CLIENTS; i++)
		answered += answer_read(fd[i], &a) && answer_is(&a, 200, "GET /x\n");
	CU_ASSERT_EQUAL(answered, CLIENTS);
	answer_free(&a);
}

static void close_all(const struct server *s, const int *fd)
{
	for (int i = 0; i < CLIENTS; i++)
		close(fd[i]);
	AWAIT_METRIC(s, "http_connections", ==, 0);
}

static uint64_t from_cells(const struct server *s)
{
	struct weir_graph_view *v;
	uint64_t n = 0;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(s->graph, &v), 0);
	for (int i = 0; i < v->n_stages; i++)
		for (int k = 0; k < v->stages[i].n_cores; k++)
			n += v->stages[i].cores[k].events - v->stages[i].cores[k].from_queue;
	weir_graph_view_free(v);
	return n;
}

/* One core: all requests pass through its cell, also those of a pipeline. */
static void test_one_core(void)
{
	struct server s = group_server(1);
	struct answer a = {0};
	int fd[CLIENTS];

	server_start(&s);
	open_all(&s, fd);
	for (int round = 0; round < 10; round++)
		ask_all(fd);
	CU_ASSERT(client_say(fd[0], GET("/1") GET("/2") GET("/3")));
	for (int i = 1; i <= 3; i++) {
		char body[16];
		snprintf(body, sizeof(body), "GET /%d\n", i);
		CU_ASSERT(answer_read(fd[0], &a) && answer_is(&a, 200, body));
	}
	CU_ASSERT_EQUAL(from_cells(&s), 10 * CLIENTS + 3);
	CU_ASSERT_EQUAL(atomic_load(&strangers), 0);
	CU_ASSERT_EQUAL(atomic_load(&handled[0]), 10 * CLIENTS + 3);
	close_all(&s, fd);
	answer_free(&a);
	server_stop(&s);
}

/* Connections are spread over the cores, each of which answers its own. */
static void test_all_cores(void)
{
	struct server s = group_server(2);
	int fd[CLIENTS];

	server_start(&s);
	for (int round = 0; round < 20; round++) {
		open_all(&s, fd);
		ask_all(fd);
		close_all(&s, fd);
	}
	CU_ASSERT_EQUAL(atomic_load(&strangers), 0);
	CU_ASSERT(atomic_load(&handled[0]) > 0);
	CU_ASSERT(task_cores() == 1 || atomic_load(&handled[1]) > 0);
	server_stop(&s);
}

/* A handler ends its thread: its request fails, all connections stay. */
static void test_a_death(void)
{
	struct server s = group_server(2);
	struct answer a = {0};
	int fd[CLIENTS];

	server_start(&s);
	open_all(&s, fd);
	ask_all(fd);
	for (int round = 1; round <= 3; round++) {
		CU_ASSERT(client_say(fd[round], GET("/die")));
		CU_ASSERT(answer_read(fd[round], &a) && a.status == 500);
		ask_all(fd);
		CU_ASSERT_EQUAL(
		    atomic_load(&weir_graph_stage(s.graph, "web")->deaths.n), (uint64_t)round);
	}
	close_all(&s, fd);
	answer_free(&a);
	server_stop(&s);
}

/* A paused stage: requests wait in its cells, and clients still connect. */
static void test_a_pause(void)
{
	struct server s = group_server(2);
	struct answer a = {0};
	int fd[CLIENTS], answered = 0;

	server_start(&s);
	open_all(&s, fd);
	ask_all(fd);
	server_steer(&s, "app", WEIR_STEER_PAUSE);
	for (int i = 0; i < CLIENTS; i++)
		CU_ASSERT(client_say(fd[i], GET("/x")));
	FIXTURE_AWAIT(server_offered_to(&s, "app") == 2 * CLIENTS);
	CU_ASSERT_EQUAL(atomic_load(&handled[0]) + atomic_load(&handled[1]), CLIENTS);
	server_steer(&s, "app", WEIR_STEER_RUN);
	for (int i = 0; i < CLIENTS; i++)
		answered += answer_read(fd[i], &a) && a.status == 200;
	CU_ASSERT_EQUAL(answered, CLIENTS);
	server_steer(&s, "web", WEIR_STEER_PAUSE);
	CU_ASSERT(client_say(fd[0], GET("/x")));
	server_steer(&s, "web", WEIR_STEER_RUN);
	CU_ASSERT(answer_read(fd[0], &a) && a.status == 200);
	close_all(&s, fd);
	answer_free(&a);
	server_stop(&s);
}

/* The group has fewer cores than before: the thread that is too many keeps its connections, whose
 * requests the other core handles. */
static void test_fewer_cores(void)
{
	struct server s = group_server(2);
	struct pool *pool;
	int fd[CLIENTS];

	server_start(&s);
	pool = weir_graph_stage(s.graph, "app")->pool;
	open_all(&s, fd);
	for (int round = 0; round < 3 && task_cores() > 1; round++) {
		pool_set_bounds(pool, 1, 2);
		CU_ASSERT_EQUAL(pool_set_target(pool, 1), 1);
		FIXTURE_AWAIT(atomic_load(&pool->handler[1]->slot) == HANDLER_APART);
		int before = atomic_load(&handled[1]);
		ask_all(fd);
		CU_ASSERT_EQUAL(atomic_load(&handled[1]), before);
		CU_ASSERT_EQUAL(pool_set_target(pool, 2), 2);
		FIXTURE_AWAIT(atomic_load(&pool->handler[1]->slot) == HANDLER_LIVE);
		ask_all(fd);
	}
	CU_ASSERT_EQUAL(atomic_load(&strangers), 0);
	close_all(&s, fd);
	server_stop(&s);
}

/* Requests in progress end in the old graph; idle connections and new clients are served by the new
 * one, whose source is in a group, too, or not. */
static void reload(bool grouped)
{
	struct server s = group_server(2), next;
	struct weir_errs errs = {0};
	struct answer a = {0};
	struct drain d;
	int fd[CLIENTS], held;

	server_start(&s);
	open_all(&s, fd);
	ask_all(fd);
	held = client_open(s.port);
	CU_ASSERT(client_say(held, GET("/wait/reload")));
	gate_await(1);
	if (grouped) {
		next = group_server(2);
	} else {
		next = server_new("t.reply");
		fixture_set(next.web, "with.threads", "2");
	}
	next.graph = fixture_build(next.spec);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, s.graph, &errs), 0);
	next.port = s.port;
	drain_call(&d, s.graph, DRAIN_ALL_NS);
	gate_open("reload");
	CU_ASSERT(answer_read(held, &a) && a.status == 200);
	close(held);
	drain_end(&d);
	ask_all(fd);
	close_all(&next, fd);
	open_all(&next, fd);
	ask_all(fd);
	close_all(&next, fd);
	answer_free(&a);
	server_stop(&next);
}

static void test_a_reload(void)
{
	reload(true);
	reload(false);
}

/* A drain under load: each request that was read is answered. */
static void test_a_drain(void)
{
	struct server s = group_server(2);
	struct answer a = {0};
	struct drain d;
	int fd[CLIENTS], answered = 0;

	server_start(&s);
	open_all(&s, fd);
	ask_all(fd);
	for (int i = 0; i < CLIENTS; i++)
		CU_ASSERT(client_say(fd[i], GET("/x")));
	FIXTURE_AWAIT(server_offered_to(&s, "app") == 2 * CLIENTS);
	drain_call(&d, s.graph, DRAIN_ALL_NS);
	for (int i = 0; i < CLIENTS; i++) {
		answered += answer_read(fd[i], &a) && a.status == 200;
		close(fd[i]);
	}
	CU_ASSERT_EQUAL(answered, CLIENTS);
	drain_end(&d);
	CU_ASSERT_EQUAL(d.report.closed, 0);
	answer_free(&a);
}

/* The requests of a held core's connections wait; the other core accepts all new clients. */
static void test_a_held_core(void)
{
	struct server s = group_server(2);
	struct answer a = {0};
	int fd[CLIENTS];

	s.spec->groups[0].threads.stuck_ns = 20000000;
	server_start(&s);
	int held = client_open(s.port);
	CU_ASSERT(client_say(held, GET("/wait/core")));
	gate_await(1);
	if (task_cores() > 1) {
		FIXTURE_AWAIT(weir_loops_held(weir_graph_stage(s.graph, "web")) == 1);
		open_all(&s, fd);
		ask_all(fd);
		for (int i = 0; i < CLIENTS; i++)
			close(fd[i]);
	}
	gate_open("core");
	CU_ASSERT(answer_read(held, &a) && a.status == 200);
	close(held);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	answer_free(&a);
	server_stop(&s);
}

CUNIT_MAIN("http group", {"one core", test_one_core}, {"all cores", test_all_cores},
    {"a death", test_a_death}, {"a pause", test_a_pause}, {"fewer cores", test_fewer_cores},
    {"a reload", test_a_reload}, {"a drain", test_a_drain}, {"a held core", test_a_held_core})
