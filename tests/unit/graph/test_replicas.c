/* SPDX-License-Identifier: MIT */
/* Replicated stages: a state per core that no other thread uses, events that stay on their core, and
 * what happens to a state when init fails, a core leaves or dies, or the graph ends. */
#include "kept_rig.h"

static void run_schedule(const char *schedule, int run)
{
	reset(EVENTS);
	struct weir_graph *g = fixture_start(chain(schedule));
	CU_ASSERT_EQUAL(replicas_of(weir_graph_stage(g, "a")), task_cores());
	CU_ASSERT_EQUAL(replicas_of(weir_graph_stage(g, "c")), 0);
	CU_ASSERT_STRING_EQUAL(stage_view(g, "a").mode, "replicated");
	offer(g, EVENTS, run);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	FIXTURE_AWAIT(stage_view(g, "b").class_view[0].completed == EVENTS);
	CU_ASSERT_EQUAL(at_cores(g, "a", false), EVENTS);
	CU_ASSERT_EQUAL(at_cores(g, "b", false), EVENTS);
	CU_ASSERT_EQUAL(at_cores(g, "b", true), 0); /* nothing is dealt */
	finish(g, EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&sum_handled), 2 * EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&moved), 0);
}

static void test_schedules(void)
{
	fixture_register(&kept_ops);
	fixture_register(&end_ops);
	for (int i = 0; next_policy_at(i); i++) {
		run_schedule(next_policy_at(i)->name, 64);
		run_schedule(next_policy_at(i)->name, 1);
	}
}

/* init is called downstream first, so these are inits of b and then of a. */
static void test_init_fails(void)
{
	for (int at = 1; at <= 2 * task_cores(); at++) {
		struct weir_errs errs = {0};
		struct weir_spec *spec = chain("fifo");
		struct weir_graph *g = NULL;
		reset(0);
		fail_at = at;
		CU_ASSERT_EQUAL(weir_graph_build(spec, &g, &errs), WEIR_ENOMEM);
		CU_ASSERT_EQUAL(errs.total, 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].text, "no room for another"));
		/* the other stage is built, too; init is tried for it after the failure */
		CU_ASSERT_EQUAL(atomic_load(&inits), atomic_load(&finis));
		CU_ASSERT_EQUAL(atomic_load(&shared_by_two), 0);
		weir_spec_free(spec);
	}
}

/* A drain stops each replica in the thread of its core, and what it held goes on. */
static void test_stop(void)
{
	reset(EVENTS);
	holds = true;
	struct weir_graph *g = fixture_start(chain("fifo"));
	offer(g, EVENTS, 64);
	FIXTURE_AWAIT(stage_view(g, "a").held == EVENTS);
	finish(g, EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&sum_stops), 4 * (uint64_t)task_cores());
	CU_ASSERT_EQUAL(atomic_load(&stops_elsewhere), 0);
	CU_ASSERT_EQUAL(atomic_load(&sum_handled), 2 * EVENTS);
}

/* Let all cores but the first leave. */
static void leave_cores(struct pool *pool)
{
	pool_set_target(pool, 1);
	for (int k = 1; k < task_cores(); k++) {
		struct handler *h = atomic_load(&pool->handler[k]);
		FIXTURE_AWAIT(atomic_load(&h->slot) == HANDLER_EMPTY);
	}
}

/* A core that leaves passes on what its replica holds, and finds the replica when it returns. */
static void test_leave(void)
{
	if (task_cores() < 2)
		return;
	reset(EVENTS);
	struct weir_graph *g = fixture_start(chain("fifo"));
	struct pool *pool = weir_graph_stage(g, "a")->pool;
	int max = task_cores();
	pool_set_bounds(pool, 1, max);
	offer(g, EVENTS / 2, 1);
	FIXTURE_AWAIT(fixture_ended() == EVENTS / 2);
	for (int round = 0; round < 3; round++) {
		leave_cores(pool);
		pool_set_target(pool, max);
		FIXTURE_AWAIT(atomic_load(&pool->n_seats) == max);
	}
	weir_thread_detach();
	weir_thread_attach(g, "again");
	fixture_offer_all(weir_graph_stage(g, "a"), probes + EVENTS / 2, EVENTS / 2, 64);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	finish(g, EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&sum_handled), 2 * EVENTS);
	/* each replica is left at the end, and those of other cores than the first 3 times before */
	CU_ASSERT_EQUAL(atomic_load(&sum_left), 2 * (uint64_t)(max + 3 * (max - 1)));
}

static void test_leave_holding(void)
{
	if (task_cores() < 2)
		return;
	reset(EVENTS);
	holds = true;
	struct weir_graph *g = fixture_start(chain("fifo"));
	struct pool *pool = weir_graph_stage(g, "a")->pool;
	pool_set_bounds(pool, 1, task_cores());
	offer(g, EVENTS, 1);
	FIXTURE_AWAIT(stage_view(g, "a").held == EVENTS);
	leave_cores(pool);
	finish(g, EVENTS); /* replicas without a thread hold nothing */
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), EVENTS);
}

static void test_death(void)
{
	weir_log_set_fd(-1); /* the death is logged */
	reset(1000);
	dies = true;
	struct weir_graph *g = fixture_start(chain("fifo"));
	offer(g, 1000, 100);
	FIXTURE_AWAIT(fixture_ended() == 1000);
	CU_ASSERT_TRUE(atomic_load(&fixture_done) < 1000);
	finish(g, 1000);
	weir_log_set_fd(2);
}

/* A requeued event comes back to the same replica. */
static void test_requeue(void)
{
	reset(EVENTS);
	requeues = true;
	struct weir_graph *g = fixture_start(chain("fifo"));
	offer(g, EVENTS, 64);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	CU_ASSERT_EQUAL(at_cores(g, "a", true), EVENTS); /* once each */
	finish(g, EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&moved), 0);
	CU_ASSERT_EQUAL(atomic_load(&sum_again), EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&sum_handled), 2 * EVENTS);
}

static void told(void *arg, const char *stage, const char *text)
{
	char want[32];

	CU_ASSERT_TRUE(strcmp(stage, "a") == 0 || strcmp(stage, "b") == 0);
	snprintf(want, sizeof(want), "replica %d", task_cores() - 1);
	CU_ASSERT_STRING_EQUAL(text, want);
	(*(int *)arg)++;
}

static void test_refresh(void)
{
	struct weir_errs errs = {0};
	struct weir_graph *wanted;
	int told_n = 0;

	reset(100);
	struct weir_graph *g = fixture_start(chain("fifo"));
	CU_ASSERT_EQUAL_FATAL(weir_graph_build(chain("fifo"), &wanted, &errs), 0);
	weir_graph_renewed(g, wanted, told, &told_n);
	CU_ASSERT_EQUAL(told_n, 2);
	CU_ASSERT_EQUAL(weir_graph_configure(g, wanted, NULL), 0);
	for (int k = 0; k < task_cores(); k++) {
		int before = replica_enter(k);
		CU_ASSERT_EQUAL(((struct own *)weir_state(g->stages[0]))->refreshes, 1);
		replica_enter(before);
	}
	weir_graph_free(wanted);
	inits = finis = 0;
	atomic_store(&inits, 2 * task_cores()); /* those of g */
	offer(g, 100, 1);
	FIXTURE_AWAIT(fixture_ended() == 100);
	finish(g, 100);
}

static void test_registry(void)
{
	static const unsigned never[] = {WEIR_STAGE_SOURCE, WEIR_STAGE_SINGLE, WEIR_STAGE_BLOCKS,
	    WEIR_STAGE_HOLDS, WEIR_STAGE_LOOP | WEIR_STAGE_HOLDS};

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		struct weir_stage_ops ops = kept_ops;
		struct weir_err err = {0};
		ops.flags |= never[i];
		ops.name = "t.never";
		ops.thread_init = NULL;
		ops.start = never[i] == WEIR_STAGE_SOURCE ? kept_init : NULL;
		CU_ASSERT_EQUAL(weir_stage_register(&ops, &err), WEIR_EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "can be replicated"));
	}
}

CUNIT_MAIN("replicas", {"registry", test_registry}, {"schedules", test_schedules},
    {"init_fails", test_init_fails}, {"stop", test_stop}, {"leave", test_leave},
    {"leave_holding", test_leave_holding}, {"death", test_death}, {"requeue", test_requeue},
    {"refresh", test_refresh})
