/* SPDX-License-Identifier: MIT */
/*
 * A thread that reaches a stage for the first time allocates its counters (struct book) there. Here
 * that allocation always fails: the thread uses the stage's common counters, or the event ends with
 * WEIR_ENOMEM. Each event is counted once.
 * The last test is about a queue whose lane cannot grow.
 */
#include "fixture/graph/probes.h"

#include "fault/inject.h"
#include "graph/graph.h"
#include "stage/shed_token.h"

#define EVENTS 100

static struct weir_event *kept[EVENTS];
static atomic_int n_kept;

static void hold_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_event *e = ev[i];
		weir_hold(st, &ev[i]);
		kept[atomic_load(&n_kept)] = e;
		atomic_fetch_add(&n_kept, 1);
	}
}

static const struct weir_metric hold_metrics[] = {
    {.name = "seen", .kind = WEIR_METRIC_COUNTER, .unit = "events", .help = "what the test saw"},
    {.name = NULL}};

static const struct weir_stage_ops hold_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.hold",
    .summary = "keeps events for the test",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .metrics = hold_metrics,
    .handle = hold_handle};

static struct weir_graph *g;

/* first (which holds) -> then (inline when `inlined`). */
static struct weir_stage *start(const char *use, bool inlined)
{
	struct weir_spec *spec = weir_spec_new("books");

	prepare(EVENTS);
	atomic_store(&n_kept, 0);
	struct weir_stage_spec *s = fixture_stage(spec, "first", use, "then");
	fixture_set(s, "threads.min", "1");
	fixture_set(s, "threads.max", "1");
	fixture_stage(spec, "then", "t.end", NULL)->inlined = inlined;
	g = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	return weir_graph_stage(g, "first");
}

/* From now on allocations of the calling thread fail (`on`) or succeed. */
static void starve(bool on)
{
	atomic_store(&fault_of_mine, true);
	atomic_store(&fault_goes_on, on);
	fault_mine = on;
	atomic_store(&fault_alloc_in, on ? 0 : -1);
}

static void end(void)
{
	starve(false);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void check(const char *name, uint64_t offered, uint64_t completed, uint64_t failed)
{
	starve(false);
	const struct weir_stage_view v = stage_view(g, name);

	CU_ASSERT_EQUAL(v.class_view[0].offered, offered);
	CU_ASSERT_EQUAL(v.class_view[0].completed, completed);
	CU_ASSERT_EQUAL(v.class_view[0].failed, failed);
	CU_ASSERT_EQUAL(v.in_flight, 0);
	CU_ASSERT_EQUAL(v.law_residual, 0);
}

static void hold_all(struct weir_stage *first)
{
	fixture_offer_all(first, probes, EVENTS, EVENTS);
	FIXTURE_AWAIT(atomic_load(&n_kept) == EVENTS);
}

static void test_offers(void)
{
	struct weir_stage *first = start("t.pass", false);

	starve(true);
	fixture_offer_all(first, probes, EVENTS, EVENTS);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	check("first", EVENTS, EVENTS, 0);
	check_each_once(EVENTS);
	end();
}

static void test_ends_what_is_held(void)
{
	struct weir_stage *first = start("t.hold", false);

	/* Held through another thread, so that this one has no counters there. */
	hold_all(first);
	weir_thread_detach();
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "other"), 0);
	starve(true);
	for (int i = 0; i < EVENTS; i++) {
		weir_count(first, 0, 1);
		weir_event_finish(&kept[i], WEIR_OK);
	}
	check("first", EVENTS, EVENTS, 0);
	CU_ASSERT_EQUAL(stage_view(g, "first").metric[0], EVENTS);
	check_each_once(EVENTS);
	end();
}

/* An outbox for the thread cannot be allocated either. */
static void test_emits_what_is_held(void)
{
	struct weir_stage *first = start("t.hold", false);

	hold_all(first);
	weir_thread_detach();
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "other"), 0);
	starve(true);
	for (int i = 0; i < EVENTS; i += 2)
		weir_emit(first, 0, &kept[i]);
	for (int i = 1; i < EVENTS; i += 2)
		weir_requeue(first, &kept[i]);
	weir_thread_flush();
	check("first", EVENTS, 0, EVENTS);
	CU_ASSERT_EQUAL(atomic_load(&fixture_failed), EVENTS);
	for (int i = 0; i < EVENTS; i++)
		CU_ASSERT_EQUAL(probes[i].status, WEIR_ENOMEM);
	end();
}

/* Offers to a queue are counted although the counters for admission cannot be allocated. */
static void test_sends_on(void)
{
	struct weir_stage *first = start("t.hold", false);

	hold_all(first);
	for (int i = 0; i < EVENTS; i++)
		weir_emit(first, 0, &kept[i]); /* its outbox exists already */
	starve(true);
	weir_thread_flush();
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	check("first", EVENTS, EVENTS, 0);
	FIXTURE_AWAIT(stage_view(g, "then").in_flight == 0);
	check("then", EVENTS, EVENTS, 0);
	check_each_once(EVENTS);
	end();
}

/* The lane of a class other than the last grows when its first event comes. Events that are refused
 * because it cannot are marked like those that a full queue refuses. */
static void test_lane_cannot_grow(void)
{
	struct weir_spec *spec = weir_spec_new("books");
	struct weir_event *ev[EVENTS];
	struct shed_token t;
	int reason = 0;

	prepare(EVENTS);
	weir_spec_add_class(spec, "first");
	weir_spec_add_class(spec, "last");
	fixture_stage(spec, "end", "t.end", NULL);
	g = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	for (int i = 0; i < EVENTS; i++) {
		weir_event_init(&probes[i].ev, &probe_type, 1);
		ev[i] = &probes[i].ev;
	}
	starve(true);
	CU_ASSERT_EQUAL(weir_offer(weir_graph_stage(g, "end"), ev, EVENTS, &reason), 0);
	starve(false);
	CU_ASSERT_EQUAL(reason, WEIR_EQUEUE);
	for (int i = 0; i < EVENTS; i++) {
		CU_ASSERT_TRUE_FATAL(shed_token_unpack(ev[i]->trace_id, &t));
		CU_ASSERT_EQUAL(t.reason_index, weir_shed_index(WEIR_EQUEUE));
		CU_ASSERT_EQUAL(t.stage, 0);
		weir_event_finish(&ev[i], reason);
	}
	CU_ASSERT_EQUAL(
	    stage_view(g, "end").class_view[0].shed[weir_shed_index(WEIR_EQUEUE)], EVENTS);
	end();
}

static void setup(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	fixture_register(&hold_ops);
	test_offers();
}

CUNIT_MAIN("books without memory", {"offers", setup}, {"ends what is held", test_ends_what_is_held},
    {"emits what is held", test_emits_what_is_held}, {"sends on", test_sends_on},
    {"a lane cannot grow", test_lane_cannot_grow})
