/* SPDX-License-Identifier: MIT */
/* The share of a pool that each of its stages may count on. The test writes the counters, so no
 * real time is involved. */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "graph/graph.h"
#include "sched/pool.h"

#define TICK_NS (10 * NS_PER_MS)
#define THREADS 4
#define WAITING 20 /* events at the other stage */

static struct weir_graph *g;
static struct weir_stage *a, *b;
static int64_t now_ns;

static void add(struct weir_spec *spec, const char *name)
{
	weir_spec_text(&fixture_stage(spec, name, "t.end", NULL)->group, "all");
}

static void build(struct weir_spec *spec)
{
	add(spec, "a");
	add(spec, "b");
	prepare(WAITING);
	g = fixture_build(spec);
	a = weir_graph_stage(g, "a");
	b = weir_graph_stage(g, "b");
	now_ns = NS_PER_S;
	CU_ASSERT_PTR_NOT_NULL_FATAL(g->shares);
}

static void start(void)
{
	struct weir_spec *spec = weir_spec_new("share");
	struct weir_group_spec *group = weir_spec_add_group(spec, "all");

	weir_spec_text(&group->threads.policy, "static");
	group->threads.min = group->threads.max = THREADS;
	build(spec);
}

/* For one tick, the handlers of a stage keep `threads` threads of the pool busy, in batches of
 * `batch_ns`. */
static void used(struct weir_stage *st, double threads, int64_t batch_ns)
{
	uint64_t busy_ns = (uint64_t)(threads * (double)TICK_NS);

	book_add(&g->gone[st->id].book.busy_ns, busy_ns);
	book_add(&g->gone[st->id].book.batches, busy_ns / (uint64_t)batch_ns);
	book_add(&g->gone[st->id].book.batch_events, busy_ns / (uint64_t)batch_ns);
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

/* b has all the threads while a has no work. Once a has some, each round serves a batch of both. */
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

/* A call of b that lasts for an hour does not make the batches of b seem longer than they are. */
static void test_long_call(void)
{
	start();
	go(200, 1, NS_PER_MS, 1, NS_PER_MS);
	double before_ns = pool_turn_ns(&a->sink, 1e6, 1.5);
	atomic_store(&g->gone[b->id].book.running_since_ns, now_ns);
	go(360000, 1, NS_PER_MS, 0, NS_PER_MS);
	CU_ASSERT_DOUBLE_EQUAL(atomic_load(&b->sink.rotation.used), 1, 0.01);
	CU_ASSERT(atomic_load(&b->sink.rotation.batch_ns) < 1.1e6);
	CU_ASSERT(pool_turn_ns(&a->sink, 1e6, 1.5) < 2 * before_ns);
	weir_graph_free(g);
}

/* An event behind ten batches of a waits for these, and for the work of b in ten and a half
 * rounds. */
static void test_wait_in_turn(void)
{
	struct queue_take take = {.n_ranks = 1, .max = WAITING, .sharers = 1};
	struct admission_view view = {.threads = 2, .work_ns = 10 * NS_PER_MS};
	struct weir_event *ev[WEIR_BATCH_MAX];
	const struct sink *k;

	start();
	k = &a->sink;
	CU_ASSERT_EQUAL(stage_beside(k, &view), view.work_ns); /* nothing is known yet */
	go(200, 1, NS_PER_MS, 2, NS_PER_MS);
	/* b does what it is offered, with two of the four threads */
	CU_ASSERT_DOUBLE_EQUAL(pool_turn_ns(k, 10e6, 10.5), 10e6 / 2, 0.05e6);
	CU_ASSERT_DOUBLE_EQUAL((double)stage_beside(k, &view), 10e6, 0.1e6);
	for (int i = 0; i < WAITING; i++) {
		ev[i] = &probes[i].ev;
		weir_event_init(ev[i], &probe_type, 1);
	}
	lock_take(&b->sink.queue.lock);
	CU_ASSERT_EQUAL(queue_push_locked(&b->sink.queue, ev, WAITING), WAITING);
	lock_release(&b->sink.queue.lock);
	/* now it has more work than it can do in these rounds */
	CU_ASSERT_DOUBLE_EQUAL(pool_turn_ns(k, 10e6, 10.5), 20.5e6 / 4, 0.05e6);
	CU_ASSERT_DOUBLE_EQUAL((double)stage_beside(k, &view), 10.25e6, 0.1e6);
	/* less, if few batches of a wait */
	CU_ASSERT_DOUBLE_EQUAL(pool_turn_ns(k, 10e6, 2.5), 12.5e6 / 4, 0.05e6);
	/* an absurdly long wait is limited, so that it fits the type */
	atomic_store(&b->sink.rotation.batch_ns, 1e300);
	atomic_store(&b->sink.rotation.event_ns, 1e200);
	CU_ASSERT_EQUAL(stage_beside(k, &view), 2 * 1000000 * NS_PER_S);
	view.idle = 1;
	CU_ASSERT_EQUAL(stage_beside(k, &view), view.work_ns);
	CU_ASSERT_EQUAL(queue_pop(&b->sink.queue, &take, ev), WAITING);
	weir_graph_free(g);
}

/* In a core group, all that waits counts. */
static void test_wait_in_core_group(void)
{
	struct queue_take take = {.n_ranks = 1, .max = WAITING, .sharers = 1};
	struct admission_view view = {.threads = 1, .work_ns = 10 * NS_PER_MS};
	struct weir_event *ev[WEIR_BATCH_MAX];
	struct weir_spec *spec = weir_spec_new("cores");
	struct weir_group_spec *group = weir_spec_add_group(spec, "all");

	weir_spec_text(&group->schedule, "fifo");
	weir_spec_text(&group->cores, "1");
	build(spec);
	go(200, 0.5, NS_PER_MS, 0.5, NS_PER_MS);
	CU_ASSERT_DOUBLE_EQUAL((double)stage_beside(&a->sink, &view), 10e6, 0.1e6);
	for (int i = 0; i < WAITING; i++) {
		ev[i] = &probes[i].ev;
		weir_event_init(ev[i], &probe_type, 1);
	}
	lock_take(&b->sink.queue.lock);
	CU_ASSERT_EQUAL(queue_push_locked(&b->sink.queue, ev, WAITING), WAITING);
	lock_release(&b->sink.queue.lock);
	CU_ASSERT_DOUBLE_EQUAL((double)stage_beside(&a->sink, &view), 30e6, 0.3e6);
	view.work_ns = 0; /* an event at an empty stage waits for the other one, too */
	CU_ASSERT_DOUBLE_EQUAL((double)stage_beside(&a->sink, &view), 20e6, 0.2e6);
	view.idle = 1;
	CU_ASSERT_EQUAL(stage_beside(&a->sink, &view), 0);
	CU_ASSERT_EQUAL(queue_pop(&b->sink.queue, &take, ev), WAITING);
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

/* A pool that has only one stage shares its threads with nobody, also in a graph with a group. */
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
    {"the wait in turn", test_wait_in_turn}, {"the wait in a core group", test_wait_in_core_group},
    {"a long call", test_long_call},
    {"pools of one stage are left alone", test_pools_of_one_are_left_alone},
    {"a pool of one stage beside a group", test_a_pool_of_one_beside_a_group})
