/* SPDX-License-Identifier: MIT */
/*
 * Threads of a pool that cannot be created, on a virtual clock: the pool retries after a back-off
 * that doubles from 100 ms to 10 s, and starts at 100 ms again after a thread has started.
 */
#include "fixture/graph/probes.h"

#include <malloc.h>

#include "base/clock.h"
#include "fault/inject.h"
#include "stage/stage.h"
#include "sched/pool.h"

#define FIRST_NS (100 * NS_PER_MS)
#define LAST_NS  (10 * NS_PER_S)

/* A pool of two threads, none of which exists yet. */
static struct weir_graph *build(struct pool **pool)
{
	struct weir_spec *spec = weir_spec_new("pool");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.end", NULL);

	fixture_set(s, "threads.min", "2");
	fixture_set(s, "threads.max", "2");
	struct weir_graph *g = fixture_build(spec);
	*pool = weir_graph_stage(g, "a")->pool;
	(*pool)->started = true; /* without threads */
	return g;
}

static void stop(struct weir_graph *g, struct pool *pool)
{
	pool_close(pool);
	CU_ASSERT_EQUAL(pool_join(pool, INT64_MAX), 0);
	weir_graph_free(g);
}

static void refuse_threads(bool refused)
{
	atomic_store(&fault_goes_on, refused);
	atomic_store(&fault_thread_in, refused ? 0 : -1);
}

/* A thread is tried at `at_ns`, not before, and cannot be created. Returns when the next is
 * tried. */
static int64_t fail_at(struct pool *pool, int64_t at_ns)
{
	struct pool_repairs r = pool_repair(pool, at_ns - 1);

	CU_ASSERT(r.spawned == 0 && r.failed == 0);
	r = pool_repair(pool, at_ns);
	CU_ASSERT(r.spawned == 0 && r.failed == 1 && r.joined == 0);
	return pool->backoff.retry_ns;
}

static void test_backoff(void)
{
	struct pool *pool;
	struct weir_graph *g = build(&pool);
	int64_t now_ns = NS_PER_S, want_ns = FIRST_NS;

	pool->backoff.retry_ns = now_ns;
	refuse_threads(true);
	for (int i = 0; i < 12; i++) {
		int64_t next_ns = fail_at(pool, now_ns);
		CU_ASSERT_EQUAL(next_ns - now_ns, want_ns);
		now_ns = next_ns;
		want_ns = want_ns * 2 < LAST_NS ? want_ns * 2 : LAST_NS;
	}
	CU_ASSERT_EQUAL(atomic_load(&pool->failures), 12);
	refuse_threads(false);
	CU_ASSERT_EQUAL(pool_repair(pool, now_ns).spawned, 2);
	FIXTURE_AWAIT(atomic_load(&pool->begun) == 2);
	CU_ASSERT_EQUAL(pool->backoff.ns, FIRST_NS);
	stop(g, pool);
}

/* A slot whose thread could not be created does not affect the other slots. */
static void test_empty_slot(void)
{
	struct pool *pool;
	struct weir_graph *g = build(&pool);
	int64_t now_ns = NS_PER_S;

	pool->backoff.retry_ns = now_ns;
	refuse_threads(true);
	atomic_store(&fault_thread_in, 1);
	struct pool_repairs r = pool_repair(pool, now_ns);
	CU_ASSERT(r.spawned == 1 && r.failed == 1);
	CU_ASSERT_EQUAL(pool->backoff.retry_ns - now_ns, FIRST_NS);
	struct schedstat_sample one, both;
	bool known = pool_sched(pool, &one);
	refuse_threads(false);
	CU_ASSERT_EQUAL(pool_repair(pool, now_ns + FIRST_NS).spawned, 1);
	CU_ASSERT_EQUAL(pool_sched(pool, &both), known);
	stop(g, pool);
}

static size_t heap_bytes(void)
{
	return mallinfo2().uordblks; /* 0 with a sanitizer, which finds leaks itself */
}

/* A thread that cannot be created for lack of memory leaks nothing, whichever of its three
 * allocations fails. */
static void test_no_memory_for_a_thread(void)
{
	struct pool *pool;
	struct weir_graph *g = build(&pool);
	int64_t now_ns = pool->backoff.retry_ns = NS_PER_S;
	size_t before = 0;

	for (int i = 0; i < 30; i++, now_ns = pool->backoff.retry_ns) {
		atomic_store(&fault_alloc_in, i % 3);
		before = i == 3 ? heap_bytes() : before; /* malloc's caches are filled by now */
		struct pool_repairs r = pool_repair(pool, now_ns);
		CU_ASSERT(r.spawned == 0 && r.failed == 1 && r.refusal.code == WEIR_ENOMEM);
	}
	atomic_store(&fault_alloc_in, -1);
	CU_ASSERT_EQUAL(heap_bytes(), before);
	stop(g, pool);
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
	weir_log_set_fd(-1);
}

CUNIT_MAIN("fault pool", {"types are known", test_prepare},
    {"the back-off doubles up to a bound", test_backoff},
    {"the back-off begins anew", test_empty_slot},
    {"no memory for a thread", test_no_memory_for_a_thread})
