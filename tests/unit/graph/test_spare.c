/* SPDX-License-Identifier: MIT */
/* Spare threads of core groups: while a core sleeps in a handler, the events in queues are served,
 * and those that belong to it wait; spares end with the sleep, the group, and its number of cores.
 * test_spare_told.c tests what is told of them. */
#include "spare_rig.h"

#define ODD 70 /* seq of the event that ends its thread in t.deadly */

static const struct weir_stage_ops holds_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.holds",
    .summary = "may hold",
    .accepts = &probe_type,
    .handle = end_handle};

static void deadly_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		if (((struct probe *)ev[i])->seq == ODD)
			pthread_exit(NULL);
	pass_handle(st, ev, n);
}

static const struct weir_stage_ops deadly_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.deadly",
    .summary = "passes on, ends its thread at one event",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = deadly_handle};

/* All events that come from outside pass both stages while the only core sleeps. */
static void test_serves(void)
{
	struct weir_graph *g = start_asleep(spec_new("1", "t.pass"));

	serve_others(g);
	CU_ASSERT_TRUE(spare_is(g, 0, HANDLER_LIVE));
	wake();
	finish(g, EVENTS);
}

/* What a sends while it is asleep waits in the cell of c; what comes for b does not. */
static void test_cells_wait(void)
{
	struct weir_spec *spec = spec_new("1", "t.pass");

	fixture_set(in_group(spec, "first", "t.pass", "c"), "cohort.max", "20");
	fixture_set(&spec->stages[3], "cohort.linger", "1s"); /* so that the batch is full */
	in_group(spec, "c", "t.sleep", NULL)->local = WEIR_LOCAL_ALWAYS;
	struct weir_graph *g = fixture_start(spec);
	weir_log_set_fd(-1);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "first"), probes, 20, 20);
	FIXTURE_AWAIT(atomic_load(&asleep_in) == 1);
	offer(g, "a", 20, 30);
	FIXTURE_AWAIT(fixture_ended() == 30);
	CU_ASSERT_EQUAL(sink_in_cells(&weir_graph_stage(g, "c")->sink), 19);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(atomic_load(&probes[i].finishes), 0);
	wake();
	finish(g, 50);
}

/* The stage of the sleeper is exclusive, serial or replicated: its events wait, others do not. */
static void test_owned(void)
{
	for (int i = 0; i < 3; i++) {
		struct weir_spec *spec = spec_new("1", "t.pass");
		if (i == 0)
			fixture_set(&spec->stages[0], "mode", "exclusive");
		else if (i == 1)
			weir_spec_text(&spec->stages[0].serial, "producer");
		else
			fixture_set(&spec->stages[0], "mode", "replicated");
		struct weir_graph *g = start_asleep(spec);
		offer(g, "w", 1, 20);
		offer(g, "a", 21, 30);
		FIXTURE_AWAIT(fixture_ended() == 30);
		for (int k = 0; k <= 20; k++)
			CU_ASSERT_EQUAL(atomic_load(&probes[k].finishes), 0);
		wake();
		finish(g, 51);
	}
}

/* The spare has the partitions of its core, and its copy of the group. */
static void test_stands_in(void)
{
	for (int i = 0; i < 2; i++) {
		struct weir_spec *spec = spec_of_two("2");
		if (!spec)
			return;
		if (i == 0) {
			fixture_set(&spec->stages[1], "mode", "partitioned");
			fixture_set(&spec->stages[1], "key", "producer");
		} else {
			spec->groups[0].replicas = 2;
		}
		for (int k = 0; k < EVENTS; k++)
			probes[k].producer = k;
		struct weir_graph *g = start_asleep(spec);
		CU_ASSERT_TRUE(weir_graph_stage(g, "a")->sink.queue.n_parts >= 2);
		serve_others(g);
		wake();
		finish(g, EVENTS);
	}
}

/* Whether the spare of a core is parked, and the other core is the first that a sender would wake. */
static bool core_is_first(struct weir_graph *g)
{
	struct core_group *group = group_of(g);
	struct pool *pool = group->pool;

	lock_take(&pool->lock);
	const struct handler *h = pool->idle;
	bool is =
	    h && h->rank < group->max && h->next_idle && h->next_idle->rank >= group->first_spare;
	lock_release(&pool->lock);
	return is;
}

/* Events of stages whose events a spare may not take, beside the serial ones and those that hold: the
 * core that is parked gets the wake-up for them. */
static void test_barred(void)
{
	for (int i = 0; i < 2; i++) {
		struct weir_spec *spec = spec_of_two("2");
		if (!spec)
			return;
		if (i == 0) {
			fixture_set(in_group(spec, "it", "t.sleep", NULL), "mode", "replicated");
		} else {
			weir_spec_text(&in_group(spec, "k", "t.holds", NULL)->serial, "producer");
			fixture_set(&spec->stages[3], "width.max", "100");
			fixture_set(in_group(spec, "it", "t.holds", NULL), "width.max", "100");
		}
		struct weir_graph *g = start_asleep(spec);
		FIXTURE_AWAIT(core_is_first(g));
		offer(g, "it", 1, 1);
		FIXTURE_AWAIT(fixture_ended() == 1);
		wake();
		finish(g, 2);
	}
}

/* A handler ends the thread of the spare: another one takes its place. */
static void test_death(void)
{
	struct weir_graph *g = start_asleep(spec_new("1", "t.deadly"));

	serve_others(g);
	CU_ASSERT_EQUAL(probes[ODD].status, WEIR_EDIED);
	wake();
	finish(g, EVENTS);
}

/* Choose a key with which the probe gets into this partition of w. */
static void to_partition(struct weir_graph *g, struct probe *p, int part)
{
	const struct sink *s = &weir_graph_stage(g, "w")->sink;

	while (queue_part(&s->queue, sink_key(s, &p->ev)) != part)
		p->producer++;
}

/* The group loses core 1, which sleeps: it needs no spare any more, and the other core goes on. */
static void test_fewer_cores(void)
{
	struct weir_spec *spec = spec_of_two("1..2");

	if (!spec)
		return;
	weir_spec_text(&spec->groups[0].threads.policy, "static");
	fixture_set(&spec->stages[0], "mode", "partitioned");
	fixture_set(&spec->stages[0], "key", "producer");
	weir_log_set_fd(-1);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	struct pool *pool = group_of(g)->pool;
	pool_set_target(pool, 2);
	FIXTURE_AWAIT(pool_seats(pool) == 2);
	to_partition(g, &probes[0], 1);
	offer(g, "w", 0, 1);
	FIXTURE_AWAIT(spare_is(g, 1, HANDLER_LIVE));
	CU_ASSERT_EQUAL(atomic_load(&asleep_in), 1);
	pool_set_target(pool, 1);
	FIXTURE_AWAIT(all_gone(g));
	serve_others(g);
	wake();
	finish(g, EVENTS);
}

static void *wake_when_closed(void *arg)
{
	FIXTURE_AWAIT(atomic_load(&group_of(arg)->pool->stopping));
	wake();
	return NULL;
}

/* A drain without time, while the core sleeps. */
static void test_drain(void)
{
	struct weir_graph *g = start_asleep(spec_new("1", "t.pass"));
	struct weir_drain_report r;
	pthread_t t;

	FIXTURE_AWAIT(spare_is(g, 0, HANDLER_LIVE));
	offer(g, "a", 1, 100);
	weir_thread_detach();
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, wake_when_closed, g), 0);
	weir_graph_drain(g, 0, &r);
	pthread_join(t, NULL);
	CU_ASSERT_EQUAL(r.law_error, 0);
	weir_graph_free(g);
	CU_ASSERT_EQUAL(fixture_ended(), 101);
	check_each_once(101);
	sem_destroy(&bed);
	weir_log_set_fd(2);
}

/* A paused stage waits, and goes on with the spare. */
static void test_pause(void)
{
	struct weir_graph *g = start_asleep(spec_new("1", "t.pass"));
	char why[200];

	FIXTURE_AWAIT(spare_is(g, 0, HANDLER_LIVE));
	CU_ASSERT_EQUAL(weir_graph_steer(g, "b", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	offer(g, "a", 1, 50);
	FIXTURE_AWAIT(stage_view(g, "b").queue_length == 50);
	CU_ASSERT_EQUAL(fixture_ended(), 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "b", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(fixture_ended() == 50);
	wake();
	finish(g, 51);
}

static void test_types(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	fixture_register(&sleep_ops);
	fixture_register(&holds_ops);
	fixture_register(&deadly_ops);
}

CUNIT_MAIN("spare threads", {"types are known", test_types}, {"serves queues", test_serves},
    {"cells wait", test_cells_wait}, {"what is owned waits", test_owned},
    {"stands in", test_stands_in}, {"barred", test_barred}, {"death", test_death},
    {"fewer cores", test_fewer_cores}, {"drain", test_drain}, {"pause", test_pause})
