/* SPDX-License-Identifier: MIT */
/* The share of a pool that each of its stages may count on. The test writes the counters, so no
 * real time is involved. */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "graph/graph.h"
#include "sched/pool.h"

#define TICK_NS (10 * NS_PER_MS)
#define THREADS 4

static struct weir_graph *g;
static struct weir_stage *a, *b;
static int64_t now_ns;

static void add(struct weir_spec *spec, const char *name)
{
	weir_spec_text(&fixture_stage(spec, name, "t.end", NULL)->group, "all");
}

static void start(void)
{
	struct weir_spec *spec = weir_spec_new("share");
	struct weir_group_spec *group = weir_spec_add_group(spec, "all");

	weir_spec_text(&group->threads.policy, "static");
	group->threads.min = group->threads.max = THREADS;
	add(spec, "a");
	add(spec, "b");
	prepare(1);
	g = fixture_build(spec);
	a = weir_graph_stage(g, "a");
	b = weir_graph_stage(g, "b");
	now_ns = NS_PER_S;
	CU_ASSERT_PTR_NOT_NULL_FATAL(g->shares);
}

/* For one tick, the handlers of a stage keep `threads` threads of the pool busy, in batches of
 * `batch_ns`. */
static void used(struct weir_stage *st, double threads, int64_t batch_ns)
{
	uint64_t busy_ns = (uint64_t)(threads * (double)TICK_NS);

	book_add(&g->gone[st->id].book.busy_ns, busy_ns);
	book_add(&g->gone[st->id].book.batches, busy_ns / (uint64_t)batch_ns);
}

static void go(int ticks, double a_uses, int64_t a_ns, double b_uses, int64_t b_ns)
{
	for (int i = 0; i < ticks; i++) {
		used(a, a_uses, a_ns);
		used(b, b_uses, b_ns);
		now_ns += TICK_NS;
		graph_share_tick(g, now_ns);
	}
}

static double share_of(const struct weir_stage *st)
{
	return atomic_load(&st->sink.share);
}

static void test_all_is_left_to_a_stage_alone(void)
{
	start();
	go(100, 0, NS_PER_MS, 0, NS_PER_MS);
	CU_ASSERT_DOUBLE_EQUAL(share_of(a), THREADS, 0.01);
	go(100, 0, NS_PER_MS, 1, NS_PER_MS);
	CU_ASSERT_DOUBLE_EQUAL(share_of(a), THREADS - 1, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(share_of(b), THREADS, 0.01);
	weir_graph_free(g);
}

/* b has all the threads while a has no work. Once it has some, each round serves a batch of
 * both. */
static void test_part_of_a_round(void)
{
	start();
	go(200, 1, NS_PER_MS, THREADS - 1, NS_PER_MS);
	CU_ASSERT_DOUBLE_EQUAL(share_of(a), THREADS / 2.0, 0.05);
	go(200, 0.5, NS_PER_MS, THREADS - 0.5, 5 * NS_PER_MS);
	CU_ASSERT_DOUBLE_EQUAL(share_of(a), THREADS / 6.0, 0.1);
	CU_ASSERT_DOUBLE_EQUAL(share_of(b), THREADS - 0.5, 0.1);
	weir_graph_free(g);
}

/* With a standing queue, the share is what the stage is seen to get. */
static void test_a_standing_queue_gets_what_it_gets(void)
{
	struct weir_event *ev = &probes[0].ev;
	struct queue_take take = {.n_ranks = 1, .max = 1, .sharers = 1};

	start();
	weir_event_init(ev, &probe_type, 1);
	lock_take(&a->sink.queue.lock);
	CU_ASSERT_EQUAL(queue_push_locked(&a->sink.queue, &ev, 1), 1);
	lock_release(&a->sink.queue.lock);
	go(200, 0.7, NS_PER_MS, 3.3, NS_PER_MS);
	CU_ASSERT_DOUBLE_EQUAL(share_of(a), 0.7, 0.05);
	CU_ASSERT_EQUAL(queue_pop(&a->sink.queue, &take, &ev), 1);
	go(1, 0.7, NS_PER_MS, 3.3, NS_PER_MS);
	CU_ASSERT_DOUBLE_EQUAL(share_of(a), THREADS / 2.0, 0.05);
	weir_graph_free(g);
}

/* A queue that waits for more events rather than for a thread (cohort.linger) is not a standing
 * queue. */
static void test_a_lingering_queue_does_not_stand(void)
{
	struct weir_event *ev = &probes[0].ev;
	struct queue_take take = {.n_ranks = 1, .max = 1, .sharers = 1};

	start();
	weir_event_init(ev, &probe_type, 1);
	lock_take(&a->sink.queue.lock);
	CU_ASSERT_EQUAL(queue_push_locked(&a->sink.queue, &ev, 1), 1);
	lock_release(&a->sink.queue.lock);
	atomic_store(&a->pool->n_idle, THREADS - 1);
	go(200, 0.1, NS_PER_MS, 0, NS_PER_MS);
	CU_ASSERT_DOUBLE_EQUAL(share_of(a), THREADS, 0.01);
	atomic_store(&a->pool->n_idle, 0);
	CU_ASSERT_EQUAL(queue_pop(&a->sink.queue, &take, &ev), 1);
	weir_graph_free(g);
}

static void test_pools_of_one_are_left_alone(void)
{
	struct weir_spec *spec = weir_spec_new("alone");

	fixture_stage(spec, "a", "t.end", NULL);
	g = fixture_build(spec);
	CU_ASSERT_PTR_NULL(g->shares);
	CU_ASSERT_EQUAL(share_of(weir_graph_stage(g, "a")), 0);
	weir_graph_free(g);
}

/* Also beside a group: the threads of such a pool have nobody to share them with. */
static void test_a_pool_of_one_beside_a_group(void)
{
	struct weir_spec *spec = weir_spec_new("beside");

	weir_spec_add_group(spec, "all");
	add(spec, "a");
	add(spec, "b");
	fixture_stage(spec, "alone", "t.end", NULL);
	g = fixture_build(spec);
	graph_share_tick(g, NS_PER_S);
	CU_ASSERT(share_of(weir_graph_stage(g, "a")) > 0);
	CU_ASSERT_EQUAL(share_of(weir_graph_stage(g, "alone")), 0);
	weir_graph_free(g);
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
}

CUNIT_MAIN("shared pools", {"types are known", test_prepare},
    {"all is left to a stage alone", test_all_is_left_to_a_stage_alone},
    {"part of a round", test_part_of_a_round},
    {"a standing queue gets what it gets", test_a_standing_queue_gets_what_it_gets},
    {"a lingering queue does not stand", test_a_lingering_queue_does_not_stand},
    {"pools of one stage are left alone", test_pools_of_one_are_left_alone},
    {"a pool of one stage beside a group", test_a_pool_of_one_beside_a_group})
