/* SPDX-License-Identifier: MIT */
/* What a thread leaves in the counters. The note of which stage refused is cleared once the refused
 * events have been returned, a thread that dies in a handler is not counted as running forever, and
 * the link counts of a thread that left stay in the totals. */
#include "fixture/graph/probes.h"

#include "graph/graph.h"
#include "graph/reload_state.h"
#include "sched/pool.h"

/* ---- which stage refused ---- */

static void shed_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_EPRIORITY);
}

static const struct weir_stage_ops shed_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.shed",
    .summary = "sheds what it is given",
    .accepts = &probe_type,
    .handle = shed_handle};

/* The test's thread runs `from`, is refused by the full `gate`, and then runs `shed`, which sheds
 * by itself. */
static void test_refusal_is_not_remembered(void)
{
	struct weir_spec *spec = weir_spec_new("refused");

	fixture_stage(spec, "from", "t.pass", "gate")->inlined = true;
	fixture_stage(spec, "shed", "t.shed", NULL)->inlined = true;
	struct weir_stage_spec *s = fixture_stage(spec, "gate", "t.gate", NULL);
	fixture_set(s, "queue.limit", "1");
	fixture_set(s, "threads.max", "1");
	prepare(4);
	atomic_store(&probe_gate, 0);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "gate"), probes, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "gate").threads[WEIR_THREAD_BUSY] == 1);
	fixture_offer_all(weir_graph_stage(g, "gate"), probes + 1, 1, 1);
	fixture_offer_all(weir_graph_stage(g, "from"), probes + 2, 1, 1);
	CU_ASSERT_EQUAL(probes[2].status, WEIR_EQUEUE);
	CU_ASSERT_EQUAL(probes[2].ev.stage, weir_graph_stage(g, "gate")->id);
	fixture_offer_all(weir_graph_stage(g, "shed"), probes + 3, 1, 1);
	CU_ASSERT_EQUAL(probes[3].status, WEIR_EPRIORITY);
	CU_ASSERT_EQUAL(probes[3].ev.stage, weir_graph_stage(g, "shed")->id);
	struct weir_stage_view v = stage_view(g, "shed");
	CU_ASSERT_EQUAL(v.class_view[0].shed[weir_shed_index(WEIR_EPRIORITY)], 1);
	CU_ASSERT_EQUAL(v.class_view[0].completed, 0);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 4);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void split_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		weir_emit(st, ((struct probe *)ev[i])->seq % 2 == 0 ? 0 : 1, &ev[i]);
}

static void exit_refused(
    struct weir_stage *st, int outlet, struct weir_event **ev, int n, int reason)
{
	(void)st, (void)outlet, (void)ev, (void)n, (void)reason;
	pthread_exit(NULL);
}

static const struct weir_outlet split_outlets[] = {
    {"even", &probe_type, false, ""}, {"odd", &probe_type, false, ""}, {.name = NULL}};

static const struct weir_stage_ops split_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.split",
    .summary = "sends even and odd events apart; ends its thread when it is refused",
    .accepts = &probe_type,
    .outlets = split_outlets,
    .handle = split_handle,
    .refused = exit_refused};

/* The thread dies in ops->refused, and its events for another stage go on there: that stage is not
 * the one that refused. */
static void test_death_forgets_the_refusal(void)
{
	struct weir_spec *spec = weir_spec_new("refused");
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "split", "t.split");

	weir_spec_link(s, "even", "gate", false);
	weir_spec_link(s, "odd", "shed", false);
	fixture_set(s, "threads.max", "1");
	fixture_set(s, "cohort.linger", "1ms");
	fixture_stage(spec, "shed", "t.shed", NULL)->inlined = true;
	s = fixture_stage(spec, "gate", "t.gate", NULL);
	fixture_set(s, "queue.limit", "1");
	fixture_set(s, "threads.max", "1");
	prepare(12);
	atomic_store(&probe_gate, 0);
	weir_log_set_fd(-1);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "gate"), probes + 10, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "gate").threads[WEIR_THREAD_BUSY] == 1);
	fixture_offer_all(weir_graph_stage(g, "gate"), probes + 11, 1, 1);
	fixture_offer_all(weir_graph_stage(g, "split"), probes, 10, 10);
	FIXTURE_AWAIT(fixture_ended() == 10);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_EDIED);
	CU_ASSERT_EQUAL(probes[9].status, WEIR_EPRIORITY);
	CU_ASSERT_EQUAL(probes[9].ev.stage, weir_graph_stage(g, "shed")->id);
	CU_ASSERT_EQUAL(
	    stage_view(g, "shed").class_view[0].shed[weir_shed_index(WEIR_EPRIORITY)], 5);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 12);
	check_each_once(12);
	weir_thread_detach();
	finish_graph(g, 0);
	weir_log_set_fd(2);
}

/* ---- a thread that died ---- */

static void deadly_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		if (((struct probe *)ev[i])->seq == 0)
			pthread_exit(NULL);
	end_handle(st, ev, n);
}

static const struct weir_stage_ops deadly_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.deadly",
    .summary = "ends its thread at the first event",
    .accepts = &probe_type,
    .handle = deadly_handle};

/* A policy that learns counts running events: the 30 of a batch that ends its thread do not stay
 * counted. */
static void test_death_does_not_run_for_ever(void)
{
	struct weir_spec *spec = weir_spec_new("death");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.deadly", NULL);

	fixture_set(s, "threads.max", "1");
	fixture_set(s, "cohort.linger", "1ms");
	fixture_set(s, "admission.policy", "weir");
	prepare(31);
	weir_log_set_fd(-1);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *a = weir_graph_stage(g, "a");
	weir_thread_attach(g, "test");
	fixture_offer_all(a, probes, 30, 30);
	FIXTURE_AWAIT(fixture_ended() == 30);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_EDIED);
	FIXTURE_AWAIT(stage_view(g, "a").thread_deaths == 1);
	fixture_offer_all(a, probes + 30, 1, 1); /* by the replacement thread */
	FIXTURE_AWAIT(fixture_ended() == 31);
	weir_thread_detach();
	FIXTURE_AWAIT(stage_view(g, "a").threads[WEIR_THREAD_BUSY] == 0);
	CU_ASSERT_EQUAL(atomic_load(&a->sink.running), 0);
	struct weir_stage_view v = stage_view(g, "a");
	CU_ASSERT_EQUAL(v.in_flight, 0);
	CU_ASSERT_EQUAL(v.longest_running_ns, 0);
	finish_graph(g, 0);
	weir_log_set_fd(2);
}

/* ---- a thread that left ---- */

static uint64_t link_events(struct weir_graph *g)
{
	struct weir_graph_view *v = NULL;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	uint64_t n = v->stages[0].links[0].events_total;
	weir_graph_view_free(v);
	return n;
}

/* Two threads send along a link, one after the other. The events of both are counted after both
 * have left. */
static void test_links_of_a_thread_that_left(void)
{
	struct weir_spec *spec = weir_spec_new("links");
	uint64_t want = 0;

	weir_spec_add_class(spec, "one");
	weir_spec_add_class(spec, "two");
	fixture_stage(spec, "a", "t.pass", "b")->inlined = true;
	fixture_stage(spec, "b", "t.end", NULL)->inlined = true;
	prepare(12);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *a = weir_graph_stage(g, "a");
	for (int t = 0; t < 2; t++) {
		weir_thread_attach(g, "test");
		fixture_offer_all(a, probes + 6 * t, 5 + t, 3);
		want += 5 + (uint64_t)t;
		CU_ASSERT_EQUAL(link_events(g), want);
		weir_thread_detach();
		CU_ASSERT_EQUAL(link_events(g), want);
		CU_ASSERT_EQUAL(book_read(&g->gone[a->id].link_tried[0]), want);
	}
	CU_ASSERT_EQUAL(book_read(&g->gone[a->id].link_tried[1]), 0);
	finish_graph(g, 0);
}

static void test_prepare(void)
{
	static const struct weir_stage_ops *const all[] = {
	    &pass_ops, &end_ops, &gate_ops, &shed_ops, &split_ops, &deadly_ops};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		fixture_register(all[i]);
}

CUNIT_MAIN("thread books", {"types are known", test_prepare},
    {"a refusal is not remembered", test_refusal_is_not_remembered},
    {"a death forgets the refusal", test_death_forgets_the_refusal},
    {"a death does not run for ever", test_death_does_not_run_for_ever},
    {"links of a thread that left", test_links_of_a_thread_that_left})
