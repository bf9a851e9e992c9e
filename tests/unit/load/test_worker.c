/* SPDX-License-Identifier: MIT */
/* The outcome of a response that arrives too late, but before its timer fires, and the number of
 * writes on a connection. */
#include "load/worker.h"

#include <sys/socket.h>
#include <unistd.h>

#include "fixture/load/plan.h"
#include "load/conn_io.h"

static struct run_shared shared = {.gate_lock = PTHREAD_MUTEX_INITIALIZER,
    .gate = PTHREAD_COND_INITIALIZER,
    .exchange = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER}};
static struct worker w;

/* The outcome of a request due at second 100 and answered with `status` after `after_ns`. */
static enum load_outcome answered(int status, int64_t after_ns)
{
	const struct reply reply = {.status = status};
	struct ticket t = {.due_ns = 100 * LOAD_S, .attempt_ns = 100 * LOAD_S, .session_left = 0};
	enum load_outcome outcome = LOAD_N_OUTCOMES;

	plan_for(1, "/", 10, LOAD_S);
	plan.timeout_ns = LOAD_S;
	shared.plan = &plan;
	shared.exchange.n_running = 1;
	CU_ASSERT_FATAL(worker_init(&w, &shared, 0) == 0);
	w.now_ns = t.due_ns + after_ns;
	worker_answered(&w, &t, &reply);
	for (int o = 0; o < LOAD_N_OUTCOMES; o++)
		if (w.tally.phase[0].class[0].outcome[o] == 1)
			outcome = (enum load_outcome)o;
	worker_fini(&w);
	load_plan_fini(&plan);
	return outcome;
}

static void in_time(void)
{
	CU_ASSERT(answered(200, LOAD_S - 1) == LOAD_OK);
	CU_ASSERT(answered(503, LOAD_S - 1) == LOAD_SHED);
	CU_ASSERT(answered(404, LOAD_S - 1) == LOAD_ERROR);
}

static void too_late(void)
{
	CU_ASSERT(answered(200, LOAD_S) == LOAD_TIMEOUT);
	CU_ASSERT(answered(503, 2 * LOAD_S) == LOAD_TIMEOUT);
	CU_ASSERT(answered(404, 2 * LOAD_S) == LOAD_TIMEOUT);
}

/* A user of a session was due, and the run ends before the worker has sent its request: the request
 * counts as offered, late and gone. A user that is still thinking has offered nothing. */
static void overdue_users_count(void)
{
	struct ticket due = {.due_ns = 100 * LOAD_S, .attempt_ns = 100 * LOAD_S};
	struct ticket thinks = {.due_ns = 102 * LOAD_S, .attempt_ns = 102 * LOAD_S};

	plan_for(1, "/", 10, LOAD_S);
	shared.plan = &plan;
	shared.exchange.n_running = 1;
	CU_ASSERT_FATAL(worker_init(&w, &shared, 0) == 0);
	w.has_arrival = false;
	w.now_ns = 101 * LOAD_S;
	CU_ASSERT_TRUE(ticket_heap_push(&w.later, &due));
	CU_ASSERT_TRUE(ticket_heap_push(&w.later, &thinks));
	worker_abandon(&w);
	CU_ASSERT_EQUAL(w.tally.phase[0].class[0].offered, 1);
	CU_ASSERT_EQUAL(w.tally.phase[0].class[0].outcome[LOAD_GONE], 1);
	CU_ASSERT_EQUAL(w.tally.phase[0].lag.total, 1);
	CU_ASSERT_EQUAL(w.tally.phase[0].lag.max_ns, LOAD_S);
	worker_fini(&w);
	load_plan_fini(&plan);
}

/* Each request is a write of its own, since its deadline is one. After 16 writes the other
 * connections are served. */
static void a_long_write_is_interrupted(void)
{
	const int in_all = 40, at_once = 16;
	int fd[2];

	plan_for(1, "/", 10, LOAD_S);
	plan.pipeline = in_all;
	plan.send_deadline = true;
	shared.plan = &plan;
	shared.exchange.n_running = 1;
	CU_ASSERT_FATAL(worker_init(&w, &shared, 0) == 0);
	CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
	struct conn *c = w.list[CONN_FREE];
	c->fd = fd[0];
	c->n = in_all;
	CU_ASSERT_EQUAL(conn_io_write(&w, c), IO_AGAIN);
	CU_ASSERT_EQUAL(c->n_written, at_once);
	CU_ASSERT_TRUE(c->kicked);
	CU_ASSERT_EQUAL(conn_io_write(&w, c), IO_AGAIN);
	CU_ASSERT_EQUAL(c->n_written, 2 * at_once);
	CU_ASSERT_EQUAL(conn_io_write(&w, c), 0);
	CU_ASSERT_EQUAL(c->n_written, in_all);
	close(fd[0]);
	close(fd[1]);
	worker_fini(&w);
	load_plan_fini(&plan);
}

CUNIT_MAIN("worker", {"an answer in time", in_time}, {"an answer too late is none", too_late},
    {"overdue users count", overdue_users_count},
    {"a long write is interrupted", a_long_write_is_interrupted})
