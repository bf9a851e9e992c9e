/* SPDX-License-Identifier: MIT */
/* User equivalents and think times, in virtual time: an answer moves the worker's clock. */
#include "load/think.h"

#include <math.h>

#include "fixture/load/plan.h"
#include "load/worker.h"

static struct run_shared shared = {.gate_lock = PTHREAD_MUTEX_INITIALIZER,
    .gate = PTHREAD_COND_INITIALIZER,
    .exchange = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER}};
static struct worker w;

/* ---- distributions ---- */

#define DRAWS 200000

/* Draw many pauses of mean 1 s, evenly over the distribution. Returns the mean in seconds; *least
 * and *above are the least one and the share above 3 s. */
static double draw(enum load_think law, double shape, double *least, double *above)
{
	double sum = 0;
	int n = 0;

	*least = INFINITY;
	for (int i = 0; i < DRAWS; i++) {
		double u = (i + 0.5) / DRAWS, v = fmod(i * 0.6180339887498949 + 0.5, 1);
		double s = (double)load_think_ns(law, LOAD_S, shape, u, v) / 1e9;
		sum += s;
		*least = fmin(*least, s);
		n += s > 3;
	}
	*above = (double)n / DRAWS;
	return sum / DRAWS;
}

static void test_laws(void)
{
	double least, above;

	CU_ASSERT_DOUBLE_EQUAL(draw(LOAD_THINK_EXPONENTIAL, 0, &least, &above), 1, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(above, exp(-3), 0.002);
	CU_ASSERT_DOUBLE_EQUAL(draw(LOAD_THINK_EQUAL, 0, &least, &above), 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(least, 1, 1e-9);
	/* the mean of a heavy tail converges slowly */
	CU_ASSERT_DOUBLE_EQUAL(draw(LOAD_THINK_PARETO, 1.5, &least, &above), 1, 0.05);
	CU_ASSERT_DOUBLE_EQUAL(least, 1.0 / 3, 0.001);
	CU_ASSERT_DOUBLE_EQUAL(above, pow(9, -1.5), 0.002);
	CU_ASSERT_DOUBLE_EQUAL(draw(LOAD_THINK_LOGNORMAL, 1, &least, &above), 1, 0.02);
	/* ln 3 is 1.0986, and mu is -1/2 */
	CU_ASSERT_DOUBLE_EQUAL(above, 0.5 * erfc(1.5986 / sqrt(2)), 0.003);
	CU_ASSERT_EQUAL(
	    load_think_ns(LOAD_THINK_PARETO, 3600 * LOAD_S, 1.01, 1e-10, 0), LOAD_THINK_MAX_NS);
}

static void test_pages(void)
{
	int files[4] = {0};

	for (int i = 0; i < DRAWS; i++) {
		uint32_t n = load_page_files((i + 0.5) / DRAWS);
		CU_ASSERT(n >= 1 && n <= LOAD_PAGE_FILES_MAX);
		files[n < 3 ? n : 3]++;
	}
	CU_ASSERT_DOUBLE_EQUAL((double)files[1] / DRAWS, 1 - pow(2, -2.43), 0.001);
	CU_ASSERT_DOUBLE_EQUAL((double)files[3] / DRAWS, pow(3, -2.43), 0.001);
}

/* ---- users ---- */

#define USERS 200

static void begin(int64_t for_ns)
{
	plan_for(1, "/", 10, for_ns);
	plan.closed = true;
	plan.users = USERS;
	plan.think_ns = 3 * LOAD_S;
	plan.think = LOAD_THINK_EXPONENTIAL;
	plan.think_shape = 1.5;
	shared.plan = &plan;
	shared.exchange.n_running = 1;
	shared.start_ns = 100 * LOAD_S;
	shared.end_ns = shared.start_ns + for_ns;
	shared.phase_end_ns[0] = shared.end_ns;
	CU_ASSERT_FATAL(worker_init(&w, &shared, 0) == 0);
	worker_start_users(&w);
}

static void end(void)
{
	worker_fini(&w);
	load_plan_fini(&plan);
}

/* Answer all requests, each after `after_ns`, with status `status`. Returns their number. */
static int answer_all(int status, int64_t after_ns)
{
	const struct reply reply = {.status = status};
	int n = 0;

	for (; w.later.n > 0; n++) {
		struct ticket t = ticket_heap_pop(&w.later);
		CU_ASSERT(t.due_ns >= shared.start_ns && t.due_ns < shared.end_ns);
		w.now_ns = t.due_ns + after_ns;
		worker_answered(&w, &t, &reply);
	}
	return n;
}

/* Each user requests a page per think time and answer: 200 users, 3 s and 1 s make 50/s. */
static void test_rate(void)
{
	begin(1000 * LOAD_S);
	CU_ASSERT_EQUAL(w.later.n, USERS);
	CU_ASSERT_DOUBLE_EQUAL(answer_all(200, LOAD_S) / 1000.0, 50, 1.5);
	end();
	begin(1000 * LOAD_S);
	/* a slower server is asked less often: users wait for their answers */
	CU_ASSERT_DOUBLE_EQUAL(answer_all(200, 7 * LOAD_S) / 1000.0, 20, 1);
	end();
}

/* The files of a page follow one another at once, unless a request fails. */
static void test_page(void)
{
	const struct reply good = {.status = 200}, bad = {.status = 500};

	begin(1000 * LOAD_S);
	struct ticket t = ticket_heap_pop(&w.later);
	while (w.later.n > 0)
		ticket_heap_pop(&w.later);
	t.session_left = 2;
	for (int left = 1; left >= 0; left--) {
		w.now_ns = t.due_ns + LOAD_MS;
		worker_answered(&w, &t, &good);
		CU_ASSERT_EQUAL_FATAL(w.later.n, 1);
		t = ticket_heap_pop(&w.later);
		CU_ASSERT_EQUAL(t.due_ns, w.now_ns);
		CU_ASSERT_EQUAL(t.session_left, (uint32_t)left);
	}
	t.session_left = 2;
	worker_answered(&w, &t, &bad);
	t = ticket_heap_pop(&w.later);
	CU_ASSERT(t.due_ns > w.now_ns);
	CU_ASSERT_EQUAL(t.session_left, 0);
	end();
	begin(1000 * LOAD_S);
	plan.pages = true;
	int with = answer_all(200, LOAD_S);
	/* 1.4 files a page take 1.4 s: 200 users / 4.4 s, of which each requests 1.4 files */
	CU_ASSERT(with > 56 * 1000 && with < 70 * 1000);
	end();
}

/* Each class has its share of the users, and each worker its share of both. */
static void test_classes(void)
{
	int n[2] = {0};

	begin(1000 * LOAD_S);
	end();
	plan_for(1, "/", 10, LOAD_S);
	plan_class("GET", "/rest", 0);
	plan.class[0].weight = 1;
	plan.class[1].weight = 4;
	plan.closed = true;
	plan.users = USERS;
	plan.threads = 2;
	plan.connections = 4;
	for (int rank = 0; rank < 2; rank++) {
		CU_ASSERT_FATAL(worker_init(&w, &shared, rank) == 0);
		worker_start_users(&w);
		CU_ASSERT_EQUAL(w.later.n, USERS / 2);
		while (w.later.n > 0)
			n[ticket_heap_pop(&w.later).class_id]++;
		worker_fini(&w);
	}
	CU_ASSERT_EQUAL(n[0], USERS / 5);
	CU_ASSERT_EQUAL(n[1], USERS * 4 / 5);
	load_plan_fini(&plan);
}

CUNIT_MAIN("load users", {"distributions", test_laws}, {"files of a page", test_pages},
    {"the rate of users", test_rate}, {"a page", test_page}, {"classes", test_classes})
