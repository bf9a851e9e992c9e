/* SPDX-License-Identifier: MIT */
/*
 * Wake-ups: queued events are found by a thread that may take them, and threads that have nothing
 * to wait for sleep. Each test is a lost wake-up or a busy loop that was found in a review.
 *
 * A lost wake-up shows as a test that never ends; ctest stops it. A busy loop shows as a pool that
 * polls empty queues again and again: its scheduling policy is wrapped to count those polls.
 * Threads do not spin here (threads.spin 0), so pool->n_idle is the number of parked threads.
 */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "stage/stage.h"
#include "sched/policy.h"
#include "sched/pool.h"

/* seq of an event that stays in its handler until the gate opens. */
#define HELD 1000000

/* Sleeping threads of the wake-all test. They outnumber the cores so far that the first is parked
 * again before the last is woken, but fit the thread budget of one core. */
#define SLEEPERS 30

static atomic_int entered, empty_looks;

static uint64_t producer_key(struct weir_stage *st, const struct weir_event *ev)
{
	(void)st;
	return (uint64_t)((const struct probe *)ev)->producer;
}

static void hold_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq != HELD)
			continue;
		atomic_fetch_add(&entered, 1);
		FIXTURE_AWAIT(atomic_load(&probe_gate));
	}
	end_handle(st, ev, n);
}

static const struct weir_stage_ops hold_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.hold",
    .summary = "holds some events in the handler; the producer is the key",
    .flags = WEIR_STAGE_BLOCKS,
    .accepts = &probe_type,
    .handle = hold_handle,
    .key = producer_key};

static void meet_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_fetch_add(&entered, n);
	FIXTURE_AWAIT(atomic_load(&entered) >= 2);
	end_handle(st, ev, n);
}

static const struct weir_stage_ops meet_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.meet",
    .summary = "waits for a second event in another thread",
    .flags = WEIR_STAGE_BLOCKS,
    .accepts = &probe_type,
    .handle = meet_handle};

static int counting_pick(void *state, const struct sched_view *view, int n, int64_t now_ns)
{
	int at = sched_shared.pick(state, view, n, now_ns);

	if (at < 0)
		atomic_fetch_add(&empty_looks, 1);
	return at;
}

static const struct sched_policy counting = {
    .name = "counting", .help = "shared, counted", .pick = counting_pick};

static struct weir_stage_spec *hold_stage(struct weir_spec *spec, const char *threads)
{
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.hold", NULL);

	fixture_set(s, "threads.min", threads);
	fixture_set(s, "threads.max", threads);
	fixture_set(s, "threads.spin", "0");
	fixture_set(s, "threads.policy", "static");
	return s;
}

/* Start with polls counted and wait until all `threads` of the pool of `stage` are parked. */
static struct weir_graph *start_parked(
    struct weir_spec *spec, const char *stage, int threads, struct weir_stage **out)
{
	struct weir_graph *g = fixture_build(spec);
	struct weir_stage *st = weir_graph_stage(g, stage);
	struct weir_errs *errs = calloc(1, sizeof(*errs));

	prepare(100);
	atomic_store(&probe_gate, 0);
	atomic_store(&entered, 0);
	atomic_store(&empty_looks, 0);
	st->pool->policy = &counting;
	CU_ASSERT_EQUAL_FATAL(weir_graph_start(g, errs), 0);
	free(errs);
	FIXTURE_AWAIT(atomic_load(&st->pool->n_idle) == threads);
	weir_thread_attach(g, "test");
	*out = st;
	return g;
}

static void offer_one(struct weir_stage *st, int i, int producer, uint64_t seq)
{
	probes[i].producer = producer;
	probes[i].seq = seq;
	fixture_offer_all(st, &probes[i], 1, 1);
}

static void finish(struct weir_graph *g, int n)
{
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* `threads` threads of the stage are parked and stay so. While others work (each view does), they
 * poll at most twice each, for a deadline that had not passed yet. */
static void check_parked(struct weir_graph *g, const char *stage, int threads)
{
	FIXTURE_AWAIT(stage_view(g, stage).threads[WEIR_THREAD_IDLE] == threads);
	int before = atomic_load(&empty_looks);
	for (int i = 0; i < 500; i++)
		stage_view(g, stage);
	CU_ASSERT(atomic_load(&empty_looks) - before <= 2 * threads);
}

/* ---- partitions ---- */

static void test_linger_wakes_the_partition_touched(void)
{
	struct weir_spec *spec = weir_spec_new("linger");
	struct weir_stage_spec *s = hold_stage(spec, "2");
	struct weir_stage *st;

	s->mode = WEIR_MODE_PARTITIONED;
	fixture_set(s, "cohort.linger", "1ms");
	struct weir_graph *g = start_parked(spec, "a", 2, &st);
	offer_one(st, 0, 0, HELD);
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	offer_one(st, 1, 0, 1); /* waits after it: the queue is no longer empty */
	offer_one(st, 2, 1, 2); /* in the other partition, whose thread sleeps */
	FIXTURE_AWAIT(atomic_load(&probes[2].finishes) == 1);
	CU_ASSERT_EQUAL(atomic_load(&probes[1].finishes), 0);
	finish(g, 3);
}

static void test_partition_of_a_surplus_rank(void)
{
	struct weir_spec *spec = weir_spec_new("surplus");
	struct weir_stage_spec *s = hold_stage(spec, "3");
	struct weir_stage *st;
	char why[200];

	s->mode = WEIR_MODE_PARTITIONED;
	fixture_set(s, "cohort.max", "1");
	struct weir_graph *g = start_parked(spec, "a", 3, &st);
	offer_one(st, 0, 2, HELD);
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	offer_one(st, 1, 2, 1);
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "threads.min", "1", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "threads.max", "2", why, sizeof(why)), 0);
	FIXTURE_AWAIT(atomic_load(&st->pool->n_idle) == 2);
	/* Rank 1 parks last, so a leaving thread wakes it, but partition 2 belongs to rank 0
	 * now. */
	offer_one(st, 2, 1, 2);
	FIXTURE_AWAIT(atomic_load(&probes[2].finishes) == 1);
	FIXTURE_AWAIT(atomic_load(&st->pool->n_idle) == 2);
	finish(g, 3);
}

static void test_linger_ignores_the_backlog_of_others(void)
{
	struct weir_spec *spec = weir_spec_new("backlog");
	struct weir_stage_spec *s = hold_stage(spec, "2");
	struct weir_stage *st;

	s->mode = WEIR_MODE_PARTITIONED;
	fixture_set(s, "cohort.max", "4");
	fixture_set(s, "cohort.linger", "500ms");
	struct weir_graph *g = start_parked(spec, "a", 2, &st);
	for (int i = 0; i < 12; i++) {
		probes[i].producer = 0;
		probes[i].seq = HELD;
	}
	fixture_offer_all(st, probes, 12, 12); /* 4 in the handler and 8 queued: full batches */
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	int before = atomic_load(&empty_looks);
	offer_one(st, 12, 1, 12);
	check_parked(g, "a", 1);
	/* The thread did not poll often before either: even a thread that never sleeps looks parked
	 * at its deadline. */
	CU_ASSERT(atomic_load(&empty_looks) - before <= 4);
	finish(g, 13);
}

/* ---- lingering ---- */

static void test_thread_forgets_a_batch_others_took(void)
{
	struct weir_spec *spec = weir_spec_new("forget");
	struct weir_stage_spec *s = hold_stage(spec, "2");
	struct weir_stage *st;

	fixture_set(s, "cohort.max", "2");
	fixture_set(s, "cohort.linger", "50ms");
	struct weir_graph *g = start_parked(spec, "a", 2, &st);
	offer_one(st, 0, 0, 0);
	int64_t due_ns = clock_now_ns() + 50 * NS_PER_MS;
	FIXTURE_AWAIT(atomic_load(&st->pool->n_idle) == 2);
	pool_wake_all(st->pool); /* both wait for the batch to fill */
	FIXTURE_AWAIT(atomic_load(&st->pool->n_idle) == 2);
	offer_one(st, 1, 0, 1); /* full: one thread takes it */
	FIXTURE_AWAIT(fixture_ended() == 2);
	FIXTURE_AWAIT(clock_now_ns() > due_ns);
	check_parked(g, "a", 2);
	finish(g, 2);
}

/* A group of two threads with two stages whose handlers wait for each other. */
static struct weir_graph *start_meeting(const char *linger, struct weir_stage **x)
{
	struct weir_spec *spec = weir_spec_new("meet");
	struct weir_group_spec *group = weir_spec_add_group(spec, "g");

	group->threads.min = group->threads.max = 2;
	group->threads.spin_ns = 0;
	weir_spec_text(&group->threads.policy, "static");
	struct weir_stage_spec *s = fixture_stage(spec, "x", "t.meet", NULL);
	weir_spec_text(&s->group, "g");
	s = fixture_stage(spec, "y", "t.meet", NULL);
	weir_spec_text(&s->group, "g");
	fixture_set(s, "cohort.linger", linger);
	return start_parked(spec, "x", 2, x);
}

static void test_minder_of_a_linger_is_replaced(void)
{
	struct weir_stage *x;
	struct weir_graph *g = start_meeting("200ms", &x);

	offer_one(weir_graph_stage(g, "y"), 0, 0, 0);
	FIXTURE_AWAIT(atomic_load(&x->pool->n_idle) == 2);
	offer_one(x, 1, 0, 1); /* wakes the thread that parked last, which watches y's deadline */
	finish(g, 2);
}

static void test_one_wakeup_for_two_stages(void)
{
	struct weir_stage *x;
	struct weir_graph *g = start_meeting("0", &x);

	/* As if a thread were spinning, so that none is woken. */
	atomic_fetch_add(&x->pool->n_spinning, 1);
	offer_one(x, 0, 0, 0);
	offer_one(weir_graph_stage(g, "y"), 1, 0, 1);
	CU_ASSERT_EQUAL(atomic_load(&x->pool->n_idle), 2);
	atomic_fetch_sub(&x->pool->n_spinning, 1);
	CU_ASSERT(pool_wake(x->pool)); /* the woken thread finds both events */
	finish(g, 2);
}

/* ---- waking all threads ---- */

static void test_wake_all_wakes_each_once(void)
{
	struct weir_spec *spec = weir_spec_new("all");
	struct weir_stage *st;
	char threads[8];
	int wrong = 0;

	snprintf(threads, sizeof(threads), "%d", SLEEPERS);
	hold_stage(spec, threads);
	struct weir_graph *g = start_parked(spec, "a", SLEEPERS, &st);
	CU_ASSERT_EQUAL(atomic_load(&empty_looks), SLEEPERS);
	for (int round = 2; round < 50; round++) {
		pool_wake_all(st->pool);
		FIXTURE_AWAIT(atomic_load(&st->pool->n_idle) == SLEEPERS);
		wrong += atomic_load(&empty_looks) != round * SLEEPERS;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	finish(g, 0);
}

/* ---- which partition is next (single-threaded) ---- */

static void push_one(struct queue *q, int i, uint64_t key, int64_t queued_ns)
{
	struct weir_event *ev = &probes[i].ev;

	*ev = (struct weir_event){.key = key, .queued_ns = queued_ns};
	lock_take(&q->lock);
	CU_ASSERT_EQUAL(queue_push_locked(q, &ev, 1), 1);
	lock_release(&q->lock);
}

/* Take a batch of at most `max` and release the lease. */
static int take(struct queue *q, struct queue_take *t, int max)
{
	struct weir_event *out[WEIR_BATCH_MAX];

	t->n_ranks = t->sharers = 1;
	t->max = max;
	int n = queue_pop(q, t, out);
	if (n > 0)
		queue_release(q, t->part);
	return n;
}

static void test_short_partition_does_not_starve(void)
{
	struct queue q;
	int served = -1;

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 2, 4096, false, true), 0);
	push_one(&q, 0, 0, 0);
	for (int i = 0; i < 10; i++) {
		struct queue_take t = {.rank = 0};
		for (int k = 0; k < 4; k++)
			push_one(&q, 1 + 4 * i + k, 1, 0);
		CU_ASSERT(take(&q, &t, 4) > 0);
		if (t.part == 0 && served < 0)
			served = i;
	}
	CU_ASSERT(served == 0 || served == 1);
	while (take(&q, &(struct queue_take){.rank = 0}, WEIR_BATCH_MAX) > 0)
		;
	queue_fini(&q);
}

static void test_overdue_partition_before_a_longer_one(void)
{
	struct queue q;
	struct queue_take t = {.linger_ns = 100000, .now_ns = 60000};

	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 2, 4096, false, true), 0);
	push_one(&q, 0, 0, 1000);
	for (int i = 1; i < 4; i++)
		push_one(&q, i, 1, 50000);
	CU_ASSERT_EQUAL(take(&q, &t, 64), 0);
	CU_ASSERT_EQUAL(t.ready_ns, 101000);
	t.now_ns = 101000;
	CU_ASSERT_EQUAL(take(&q, &t, 64), 1);
	CU_ASSERT_EQUAL(t.part, 0);
	CU_ASSERT_EQUAL(take(&q, &t, 64), 0);
	CU_ASSERT_EQUAL(t.ready_ns, 150000);
	t.now_ns = 150000;
	CU_ASSERT_EQUAL(take(&q, &t, 64), 3);
	queue_fini(&q);
}

static void test_prepare(void)
{
	fixture_register(&hold_ops);
	fixture_register(&meet_ops);
}

CUNIT_MAIN("wakeups", {"types are known", test_prepare},
    {"linger wakes the thread of the partition touched", test_linger_wakes_the_partition_touched},
    {"what a surplus rank leaves behind is found", test_partition_of_a_surplus_rank},
    {"lingering over others' backlog sleeps", test_linger_ignores_the_backlog_of_others},
    {"a batch that others took is forgotten", test_thread_forgets_a_batch_others_took},
    {"the minder of a linger is replaced", test_minder_of_a_linger_is_replaced},
    {"one wake-up for two stages is passed on", test_one_wakeup_for_two_stages},
    {"wake all wakes each sleeper once", test_wake_all_wakes_each_once},
    {"a short partition does not starve", test_short_partition_does_not_starve},
    {"an overdue partition goes first", test_overdue_partition_before_a_longer_one})
