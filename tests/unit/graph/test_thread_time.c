/* SPDX-License-Identifier: MIT */
/*
 * How the threads of a stage spend their time: handlers that compute, read from a pipe, wait for a
 * semaphore, or compete for one core, in a pool and inline. The tests wait until the time that they
 * expect has been counted.
 */
#include "fixture/graph/probes.h"

#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include "base/clock.h"

#define LONG_NS ((uint64_t)(300 * NS_PER_MS))

static int ends[2];
static sem_t sem;
static atomic_bool enough;
static atomic_int inside;

static void finish(struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_OK);
}

static void read_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	char c;

	(void)st;
	while (read(ends[0], &c, 1) != 1)
		;
	finish(ev, n);
}

static void wait_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	while (sem_wait(&sem) != 0)
		;
	finish(ev, n);
}

static void burn_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	atomic_fetch_add(&inside, 1);
	while (!atomic_load(&enough))
		;
	finish(ev, n);
}

static const struct weir_stage_ops types[] = {{.abi = WEIR_STAGE_ABI,
						  .name = "t.read",
						  .summary = "reads",
						  .accepts = &probe_type,
						  .handle = read_handle},
    {.abi = WEIR_STAGE_ABI,
	.name = "t.wait",
	.summary = "waits",
	.accepts = &probe_type,
	.handle = wait_handle,
	.flags = WEIR_STAGE_BLOCKS},
    {.abi = WEIR_STAGE_ABI,
	.name = "t.burn",
	.summary = "computes",
	.accepts = &probe_type,
	.handle = burn_handle}};

static struct weir_graph *start(const char *use, const char *threads)
{
	struct weir_spec *spec = weir_spec_new("times");
	struct weir_stage_spec *s = fixture_open_stage(spec, "work", use, NULL);

	prepare(10);
	fixture_set(s, "threads.min", threads);
	fixture_set(s, "threads.max", threads);
	fixture_set(s, "cohort.max", "1");
	atomic_store(&enough, false);
	atomic_store(&inside, 0);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	return g;
}

static void finish_work(struct weir_graph *g, uint64_t n)
{
	FIXTURE_AWAIT(fixture_ended() == n);
	weir_thread_detach();
	finish_graph(g, 0);
}

static bool calls_shown(void)
{
	return access("/proc/self/syscall", R_OK) == 0 ||
	       access("/proc/thread-self/syscall", R_OK) == 0;
}

static uint64_t time_of(struct weir_graph *g, enum weir_thread_time time)
{
	return stage_view(g, "work").time_ns[time];
}

static void test_io(void)
{
	enum weir_thread_time want = calls_shown() ? WEIR_TIME_IO : WEIR_TIME_BLOCKED;

	CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
	struct weir_graph *g = start("t.read", "1");
	fixture_offer_all(weir_graph_stage(g, "work"), probes, 1, 1);
	FIXTURE_AWAIT(time_of(g, want) > LONG_NS);
	CU_ASSERT_TRUE(time_of(g, WEIR_TIME_RUNNING) < time_of(g, want));
	CU_ASSERT_EQUAL(time_of(g, WEIR_TIME_DOWNSTREAM), 0);
	CU_ASSERT_EQUAL(write(ends[1], "x", 1), 1);
	FIXTURE_AWAIT(fixture_ended() == 1);
	uint64_t idle_ns = time_of(g, WEIR_TIME_IDLE);
	FIXTURE_AWAIT(time_of(g, WEIR_TIME_IDLE) > idle_ns + LONG_NS / 2);
	finish_work(g, 1);
	close(ends[0]);
	close(ends[1]);
}

static void test_lock(void)
{
	enum weir_thread_time want = calls_shown() ? WEIR_TIME_LOCK : WEIR_TIME_BLOCKED;

	sem_init(&sem, 0, 0);
	struct weir_graph *g = start("t.wait", "2");
	fixture_offer_all(weir_graph_stage(g, "work"), probes, 2, 1);
	FIXTURE_AWAIT(time_of(g, want) > LONG_NS);
	sem_post(&sem);
	sem_post(&sem);
	finish_work(g, 2);
	sem_destroy(&sem);
}

/* Two handlers compute on one core: each runs half of the time, and could run in the other half. */
static void test_no_core(void)
{
	cpu_set_t all, one;
	int cpu = 0;

	sched_getaffinity(0, sizeof(all), &all);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one); /* the threads of the graph inherit it */
	struct weir_graph *g = start("t.burn", "2");
	sched_setaffinity(0, sizeof(all), &all);
	fixture_offer_all(weir_graph_stage(g, "work"), probes, 2, 1);
	FIXTURE_AWAIT(atomic_load(&inside) == 2);
	FIXTURE_AWAIT(time_of(g, WEIR_TIME_RUNNING) > LONG_NS);
	if (stage_view(g, "work").times_known) {
		FIXTURE_AWAIT(time_of(g, WEIR_TIME_RUNNABLE) > LONG_NS / 2);
		CU_ASSERT_TRUE(
		    time_of(g, WEIR_TIME_BLOCKED) + time_of(g, WEIR_TIME_LOCK) < LONG_NS / 2);
	}
	atomic_store(&enough, true);
	finish_work(g, 2);
}

/* An inline stage sleeps in the thread of the stage before it, which shows the time as downstream. */
static void test_inline(void)
{
	enum weir_thread_time want = calls_shown() ? WEIR_TIME_IO : WEIR_TIME_BLOCKED;
	struct weir_spec *spec = weir_spec_new("times");

	CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
	fixture_open_stage(spec, "first", "t.pass", "work");
	struct weir_stage_spec *s = fixture_stage(spec, "work", "t.read", NULL);
	s->inlined = true;
	prepare(10);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "first"), probes, 1, 1);
	FIXTURE_AWAIT(time_of(g, want) > LONG_NS);
	CU_ASSERT_EQUAL(write(ends[1], "x", 1), 1);
	FIXTURE_AWAIT(fixture_ended() == 1);
	FIXTURE_AWAIT(stage_view(g, "first").time_ns[WEIR_TIME_DOWNSTREAM] > LONG_NS);
	CU_ASSERT_EQUAL(stage_view(g, "first").time_ns[WEIR_TIME_IO], 0);
	finish_work(g, 1);
	close(ends[0]);
	close(ends[1]);
}

static void test_words(void)
{
	for (int i = 0; i < WEIR_TIMES; i++)
		CU_ASSERT_PTR_NOT_NULL(weir_thread_time_words[i]);
}

static void test_prepare(void)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		fixture_register(&types[i]);
	fixture_register(&pass_ops);
}

CUNIT_MAIN("thread time", {"types are known", test_prepare}, {"io", test_io}, {"lock", test_lock},
    {"no core", test_no_core}, {"inline", test_inline}, {"words", test_words})
