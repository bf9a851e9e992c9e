/* SPDX-License-Identifier: MIT */
/* Cores that sleep in a handler, and their spare threads: what is counted, logged and shown, and
 * how a spare waits for work. */
#include "spare_rig.h"

#include "base/clock.h"

static void check_told(struct weir_graph *g)
{
	struct weir_graph_view *v;
	struct weir_decision d[4];
	int n = weir_graph_decisions(g, d, 4), told = 0;

	for (int i = 0; i < n; i++)
		told += strcmp(d[i].action, "blocked") == 0 && strcmp(d[i].stage, "core") == 0 &&
			strncmp(d[i].rule, "core 0 has slept for ", 21) == 0 &&
			strstr(d[i].rule, " ms in a handler of stage 'w'");
	CU_ASSERT_EQUAL(told, 1);
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	CU_ASSERT_EQUAL_FATAL(v->n_groups, 1);
	CU_ASSERT_EQUAL(v->groups[0].core[0].blocked, 1);
	/* the work of the spare is shown as that of its core */
	CU_ASSERT_EQUAL(v->groups[0].n_cores, 1);
	CU_ASSERT_EQUAL(v->groups[0].core[0].events, 1 + 2 * (EVENTS - 1));
	weir_graph_view_free(v);
}

/* The events that a spare serves are shown as work of its core, and the sleep is told. */
static void test_told(void)
{
	struct weir_graph *g = start_asleep(spec_new("1", "t.pass"));

	serve_others(g);
	check_told(g);
	wake();
	finish(g, EVENTS);
}

/* When the present sleep began, as views show it; 0: the core is awake. */
static int64_t asleep_since(struct weir_graph *g)
{
	return atomic_load(&group_of(g)->watched[0].own.sleep.since_ns);
}

/* Two sleeps in a call count once, and the core is blocked in both of them. */
static void test_counts_calls(void)
{
	struct weir_spec *spec = spec_new("1", "t.pass");

	atomic_store(&sleeps, 2);
	struct weir_graph *g = start_asleep(spec);
	FIXTURE_AWAIT(is_blocked(g));
	struct weir_core_view c = core_view(g);
	int64_t first_ns = asleep_since(g);
	CU_ASSERT_STRING_EQUAL(c.blocked_in, "w");
	CU_ASSERT_TRUE(c.blocked_ns >= BLOCKED_NS);
	wake();
	FIXTURE_AWAIT(asleep_since(g) != 0 && asleep_since(g) != first_ns);
	CU_ASSERT_TRUE(core_view(g).blocked_ns > c.blocked_ns);
	CU_ASSERT_EQUAL(core_view(g).blocked, 1);
	wake();
	FIXTURE_AWAIT(fixture_ended() == 1 && !is_blocked(g));
	CU_ASSERT_PTR_NULL(core_view(g).blocked_in);
	CU_ASSERT_EQUAL(core_view(g).blocked, 1);
	offer(g, "w", 0, 1); /* another call */
	FIXTURE_AWAIT(is_blocked(g));
	CU_ASSERT_EQUAL(core_view(g).blocked, 2);
	wake();
	FIXTURE_AWAIT(fixture_ended() == 2);
	weir_thread_detach();
	finish_graph(g, 0);
	sem_destroy(&bed);
	weir_log_set_fd(2);
}

/* Whether the journal says that the spare of core 0 sleeps. */
static bool spare_is_told(struct weir_graph *g)
{
	struct weir_decision d[4];
	bool told = false;

	for (int i = weir_graph_decisions(g, d, 4) - 1; i >= 0; i--)
		told |= strcmp(d[i].action, "blocked") == 0 &&
			strncmp(d[i].rule, "the spare of core 0 has slept for ", 34) == 0;
	return told;
}

/* The spare sleeps, too: that is told and shown, and nothing serves the queues until one is
 * back. */
static void test_spare_sleeps(void)
{
	struct weir_graph *g = start_asleep(spec_new("1", "t.pass"));

	FIXTURE_AWAIT(spare_is(g, 0, HANDLER_LIVE));
	CU_ASSERT_EQUAL(stage_view(g, "w").spares_now, 1);
	CU_ASSERT_EQUAL(core_view(g).spare_blocked_ns, 0);
	CU_ASSERT_PTR_NULL(core_view(g).spare_blocked_in);
	probes[1].seq = SLEEPER;
	offer(g, "w", 1, 1);
	FIXTURE_AWAIT(core_view(g).spare_blocked_ns > 0);
	CU_ASSERT_STRING_EQUAL(core_view(g).spare_blocked_in, "w");
	CU_ASSERT_STRING_EQUAL(core_view(g).blocked_in, "w");
	CU_ASSERT_TRUE(spare_is_told(g));
	CU_ASSERT_EQUAL(stage_view(g, "w").spares_busy, 1);
	CU_ASSERT_EQUAL(stage_view(g, "w").threads_now, 2);
	offer(g, "a", 2, 10);
	CU_ASSERT_EQUAL(fixture_ended(), 0);
	wake();
	FIXTURE_AWAIT(fixture_ended() >= 11);
	wake();
	FIXTURE_AWAIT(core_view(g).spare_blocked_ns == 0);
	finish(g, 12);
}

static bool is_parked(struct weir_graph *g)
{
	struct core_group *group = group_of(g);
	const struct handler *h = atomic_load(&group->pool->handler[group->first_spare]);

	return atomic_load(&h->state) == WEIR_THREAD_IDLE;
}

/* A spare parks at once, although the threads of the group spin for hours: senders wake no other
 * thread while one spins, and a spare may not take all events. */
static void test_parks(void)
{
	struct weir_spec *spec = spec_new("1", "t.pass");

	spec->groups[0].threads.spin_ns = 3600 * NS_PER_S;
	struct weir_graph *g = start_asleep(spec);
	FIXTURE_AWAIT(spare_is(g, 0, HANDLER_LIVE) && is_parked(g));
	serve_others(g);
	FIXTURE_AWAIT(is_parked(g));
	wake();
	finish(g, EVENTS);
}

/* The busy time grows during the call, never decreases, and never exceeds the length of the call,
 * though a spare works as well. */
static void test_busy(void)
{
	int64_t began_ns = clock_now_ns();
	struct weir_graph *g = start_asleep(spec_new("1", "t.pass"));
	uint64_t last_ns = 0;

	for (int i = 1; i < EVENTS; i++) {
		offer(g, "a", i, 1);
		FIXTURE_AWAIT(fixture_ended() == (uint64_t)i);
		uint64_t busy_ns = core_view(g).busy_ns;
		CU_ASSERT_TRUE(busy_ns >= last_ns);
		CU_ASSERT_TRUE(busy_ns <= (uint64_t)stage_view(g, "w").longest_running_ns);
		last_ns = busy_ns;
	}
	CU_ASSERT_TRUE(last_ns > 0);
	FIXTURE_AWAIT(core_view(g).busy_ns > last_ns);
	CU_ASSERT_TRUE(core_view(g).events == 1 + 2 * (EVENTS - 1));
	last_ns = core_view(g).busy_ns;
	wake();
	FIXTURE_AWAIT(fixture_ended() == EVENTS && !is_blocked(g));
	CU_ASSERT_TRUE(core_view(g).busy_ns >= last_ns);
	CU_ASSERT_TRUE(core_view(g).busy_ns <= (uint64_t)(clock_now_ns() - began_ns));
	finish(g, EVENTS);
}

static void test_types(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	fixture_register(&sleep_ops);
}

CUNIT_MAIN("what is told of spare threads", {"types are known", test_types}, {"told", test_told},
    {"counts calls", test_counts_calls}, {"a spare sleeps", test_spare_sleeps},
    {"parks", test_parks}, {"busy time", test_busy})
