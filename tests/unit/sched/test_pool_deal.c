/* SPDX-License-Identifier: MIT */
/* Partitions are dealt to the threads that serve, not to the configured number of threads. If a
 * thread is refused by its stage (thread_init), its partitions go to others, and no policy counts
 * on it. A partition that no thread serves shows as a test that never ends. */
#include "fixture/graph/probes.h"

#include "stage/stage.h"
#include "sched/pool.h"

#define DEADLY 7 /* seq of an event that ends its thread */

static atomic_int allowed;
static atomic_bool may_die = true; /* a deadly event waits until this is set */
static _Atomic pthread_t ran[8];   /* thread that handled the producer's last event */

static int picky_thread_init(struct weir_stage *st)
{
	(void)st;
	return atomic_fetch_sub(&allowed, 1) > 0 ? 0 : WEIR_ESYS;
}

static uint64_t producer_key(struct weir_stage *st, const struct weir_event *ev)
{
	(void)st;
	return (uint64_t)((const struct probe *)ev)->producer;
}

static void note_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct probe *p = (struct probe *)ev[i];
		if (p->seq == DEADLY) {
			FIXTURE_AWAIT(atomic_load(&may_die));
			pthread_exit(NULL);
		}
		atomic_store(&ran[p->producer], pthread_self());
	}
	end_handle(st, ev, n);
}

static const struct weir_stage_ops picky_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.picky",
    .summary = "refuses threads; the producer is the key",
    .accepts = &probe_type,
    .thread_init = picky_thread_init,
    .handle = note_handle,
    .key = producer_key};

static struct weir_graph *g;
static struct weir_stage *a;

static void start(enum weir_stage_mode mode, const char *threads, const char *max)
{
	struct weir_spec *spec = weir_spec_new("deal");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.picky", NULL);

	fixture_set(s, "threads.min", threads);
	fixture_set(s, "threads.max", max);
	fixture_set(s, "threads.policy", "static");
	fixture_set(s, "cohort.max", "1");
	s->mode = mode;
	prepare(100);
	weir_log_set_fd(-1);
	atomic_store(&allowed, atoi(threads));
	g = fixture_start(spec);
	a = weir_graph_stage(g, "a");
	weir_thread_attach(g, "test");
}

static void offer(int i, int producer, uint64_t seq)
{
	probes[i].producer = producer;
	probes[i].seq = seq;
	fixture_offer_all(a, &probes[i], 1, 1);
}

static void end(int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
	weir_log_set_fd(2);
}

static double threads_counted_on(void)
{
	struct admission_view v = {0};

	stage_look(&a->sink, ANY_RANK, &v);
	return v.threads;
}

/* A second thread is wanted and refused. All partitions stay with the first one until another
 * starts. */
static void test_refused_thread(void)
{
	char why[256];

	start(WEIR_MODE_PARTITIONED, "1", "2");
	CU_ASSERT_EQUAL_FATAL(a->sink.queue.n_parts, 2);
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "threads.min", "2", why, sizeof(why)), 0);
	FIXTURE_AWAIT(stage_view(g, "a").thread_failures > 0);
	offer(0, 0, 0);
	offer(1, 1, 1);
	FIXTURE_AWAIT(fixture_ended() == 2);
	CU_ASSERT_TRUE(pthread_equal(atomic_load(&ran[0]), atomic_load(&ran[1])));
	atomic_store(&allowed, 1000);
	FIXTURE_AWAIT(threads_counted_on() == 2);
	offer(2, 0, 0);
	offer(3, 1, 1);
	FIXTURE_AWAIT(fixture_ended() == 4);
	CU_ASSERT_FALSE(pthread_equal(atomic_load(&ran[0]), atomic_load(&ran[1])));
	end(4);
}

/* One of the threads ends and no other starts: the remaining threads take over its partitions. */
static void test_dead_thread(void)
{
	for (int dies = 0; dies < 3; dies++) {
		start(WEIR_MODE_PARTITIONED, "3", "3");
		CU_ASSERT_EQUAL_FATAL(a->sink.queue.n_parts, 3);
		offer(0, dies, DEADLY);
		FIXTURE_AWAIT(stage_view(g, "a").thread_failures > 0);
		for (int i = 1; i < 4; i++)
			offer(i, i - 1, 0);
		end(4);
	}
}

/* Events wait in three partitions of the thread that ends, which go to both of the others. Both
 * sleep, and both are woken. */
static void test_new_owners_are_woken(void)
{
	for (int dies = 0; dies < 3; dies++) {
		start(WEIR_MODE_PARTITIONED, "3", "8");
		CU_ASSERT_EQUAL_FATAL(a->sink.queue.n_parts, 8);
		atomic_store(&may_die, false);
		offer(0, dies, DEADLY);
		FIXTURE_AWAIT(stage_view(g, "a").queue_length == 0);
		int n = 1;
		for (int part = dies; part < 8; part += 3)
			offer(n++, part, 0);
		CU_ASSERT_EQUAL(stage_view(g, "a").queue_length, (uint64_t)n - 1);
		atomic_store(&may_die, true);
		end(n);
	}
}

/* Waiting times are predicted from the number of threads that serve. */
static void test_policies_count_those_that_serve(void)
{
	char why[256];

	start(WEIR_MODE_SHARED, "1", "4");
	CU_ASSERT_EQUAL(threads_counted_on(), 1);
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "threads.min", "4", why, sizeof(why)), 0);
	FIXTURE_AWAIT(stage_view(g, "a").thread_failures > 0);
	CU_ASSERT_EQUAL(threads_counted_on(), 1);
	atomic_store(&allowed, 1000);
	FIXTURE_AWAIT(threads_counted_on() == 4);
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "threads.min", "1", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "threads.max", "2", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(threads_counted_on(), 2);
	end(0);
}

static void test_prepare(void)
{
	fixture_register(&picky_ops);
}

CUNIT_MAIN("dealing", {"types are known", test_prepare}, {"refused thread", test_refused_thread},
    {"dead thread", test_dead_thread}, {"the others are woken", test_new_owners_are_woken},
    {"policies count those that serve", test_policies_count_those_that_serve})
