/* SPDX-License-Identifier: MIT */
/* Pausing, draining and resuming with clients on real sockets. Waiting requests are answered after
 * the pause, requests refused by a draining stage get an answer, and a paused source loses nothing
 * that was sent to it. */
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "fixture/clock/held_clock.h"
#include "fixture/http/server.h"

#include "stage/stage.h"
#include "net/net.h"

static char why[300];

static int steer(struct server *s, const char *stage, enum weir_steer how)
{
	return weir_graph_steer(s->graph, stage, how, why, sizeof(why));
}

static int queued(struct server *s)
{
	struct weir_queued q[10];

	return weir_graph_queue(s->graph, "app", q, 10);
}

static uint64_t offered(struct server *s)
{
	struct weir_graph_view *v;
	uint64_t n;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(s->graph, &v), 0);
	n = v->stages[weir_graph_stage(s->graph, "app")->id].class_view[0].offered;
	weir_graph_view_free(v);
	return n;
}

static void test_a_paused_stage(void)
{
	struct server s = server_new("t.reply");
	struct answer a = {0};

	server_start(&s);
	CU_ASSERT_EQUAL(steer(&s, "app", WEIR_STEER_PAUSE), 0);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/x") GET("/y")));
	FIXTURE_AWAIT(queued(&s) == 2);
	CU_ASSERT_EQUAL(steer(&s, "app", WEIR_STEER_RUN), 0);
	CU_ASSERT(answer_read(fd, &a) && a.status == 200);
	CU_ASSERT(answer_read(fd, &a) && a.status == 200);
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

static void test_a_draining_stage(void)
{
	struct server s = server_new("t.reply");
	struct answer a = {0};

	server_start(&s);
	int slow = client_open(s.port), late = client_open(s.port);
	CU_ASSERT(client_say(slow, GET("/wait/go")));
	gate_await(1);
	CU_ASSERT_EQUAL(steer(&s, "app", WEIR_STEER_DRAIN), 0);
	CU_ASSERT(client_say(late, GET("/x")));
	CU_ASSERT(answer_read(late, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT_PTR_NOT_NULL(strstr(field_in(a.head, "X-Weir-Shed"), "reason=draining"));
	gate_open("go");
	CU_ASSERT(answer_read(slow, &a) && a.status == 200);
	CU_ASSERT_EQUAL(steer(&s, "app", WEIR_STEER_RUN), 0);
	CU_ASSERT(client_say(late, GET("/x")));
	CU_ASSERT(answer_read(late, &a) && a.status == 200);
	close(slow);
	close(late);
	answer_free(&a);
	server_stop(&s);
}

/* Open connections, half a request, and new connections: all wait, all are answered. Reading them
 * late loses nothing and triggers no time-out. */
static void test_a_paused_source(void)
{
	struct server s = server_new("t.reply");
	struct answer a = {0};

	fixture_set(s.web, "with.header_timeout", "1500ms");
	fixture_set(s.web, "with.idle_timeout", "1500ms");
	fixture_set(s.app, "threads", "inline");
	clock_hold();
	server_start(&s);
	int open = client_open(s.port), half = client_open(s.port);
	CU_ASSERT(client_say(open, GET("/x")));
	CU_ASSERT(answer_read(open, &a) && a.status == 200);
	CU_ASSERT(client_say(half, GET("/x") "GET /half HTTP/1.1\r\n"));
	CU_ASSERT(answer_read(half, &a) && a.status == 200);
	CU_ASSERT_EQUAL(steer(&s, "web", WEIR_STEER_PAUSE), 0);
	int fresh = client_open(s.port); /* the kernel accepts it */
	CU_ASSERT(client_say(open, GET("/x") GET("/x")));
	CU_ASSERT(client_say(fresh, GET("/x")));
	clock_move(10000);
	CU_ASSERT_EQUAL(offered(&s), 2);
	CU_ASSERT_EQUAL(steer(&s, "web", WEIR_STEER_RUN), 0);
	CU_ASSERT(client_say(half, "Host: x\r\n\r\n"));
	CU_ASSERT(answer_read(half, &a) && a.status == 200);
	CU_ASSERT(answer_read(open, &a) && a.status == 200);
	CU_ASSERT(answer_read(open, &a) && a.status == 200);
	CU_ASSERT(answer_read(fresh, &a) && a.status == 200);
	CU_ASSERT_EQUAL(offered(&s), 6);
	close(open);
	close(half);
	close(fresh);
	answer_free(&a);
	server_stop(&s);
	clock_release();
}

/* ---- a pause in the middle of an iteration ---- */

/* The server whose next read returns only after it was paused. */
static struct net_server *_Atomic pausing;
static atomic_bool was_read;

ssize_t recv(int fd, void *p, size_t n, int flags)
{
	ssize_t got = syscall(SYS_recvfrom, fd, p, n, flags, NULL, NULL);
	struct net_server *srv = pausing;

	if (srv && got > 0 && !atomic_exchange(&was_read, true))
		while (!atomic_load(&srv->paused))
			sched_yield();
	return got;
}

/* A request that was read when the pause comes is answered during the pause. */
static void test_a_pause_behind_a_read(void)
{
	struct server s = server_new("t.reply");
	struct answer a = {0};

	server_start(&s);
	int fd = client_open(s.port);
	CU_ASSERT(client_say(fd, GET("/x")));
	CU_ASSERT(answer_read(fd, &a) && a.status == 200);
	pausing = weir_state(weir_graph_stage(s.graph, "web"));
	CU_ASSERT(client_say(fd, GET("/x")));
	FIXTURE_AWAIT(was_read);
	CU_ASSERT_EQUAL(steer(&s, "web", WEIR_STEER_PAUSE), 0);
	pausing = NULL;
	CU_ASSERT(answer_read(fd, &a) && a.status == 200);
	CU_ASSERT_EQUAL(steer(&s, "web", WEIR_STEER_RUN), 0);
	CU_ASSERT(client_say(fd, GET("/x")));
	CU_ASSERT(answer_read(fd, &a) && a.status == 200);
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

/* A stop while the source and the stage are paused: requests already sent are answered. */
static void test_a_stop_while_paused(void)
{
	struct server s = server_new("t.reply");
	struct weir_drain_report report = {0};
	struct answer a = {0};

	server_start(&s);
	int waits = client_open(s.port), unread = client_open(s.port);
	CU_ASSERT_EQUAL(steer(&s, "app", WEIR_STEER_PAUSE), 0);
	CU_ASSERT(client_say(waits, GET("/x")));
	FIXTURE_AWAIT(queued(&s) == 1);
	CU_ASSERT_EQUAL(steer(&s, "web", WEIR_STEER_PAUSE), 0);
	CU_ASSERT(client_say(unread, GET("/x")));
	weir_graph_drain(s.graph, 60000000000LL, &report);
	CU_ASSERT_EQUAL(report.closed, 0);
	CU_ASSERT_EQUAL(report.law_error, 0);
	CU_ASSERT(answer_read(waits, &a) && a.status == 200);
	CU_ASSERT(answer_read(unread, &a) && a.status == 200);
	close(waits);
	close(unread);
	answer_free(&a);
	weir_graph_free(s.graph);
}

CUNIT_MAIN("acts", {"a paused stage", test_a_paused_stage},
    {"a draining stage", test_a_draining_stage}, {"a paused source", test_a_paused_source},
    {"a pause behind a read", test_a_pause_behind_a_read},
    {"a stop while paused", test_a_stop_while_paused})
