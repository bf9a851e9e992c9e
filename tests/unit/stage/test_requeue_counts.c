/* SPDX-License-Identifier: MIT */
/* Counts and admission of requeued events. A policy that sheds at the head of the queue spares
 * events that were started before, and an event is handled once however often it returned, in
 * queued and inline stages. (For their order see test_requeue.c.) */
#include "graph/graph.h" /* its parameters are named like the rig's globals */

#include "admit_rig.h"

/* ---- shedding at the head ---- */

static int64_t longest_ns;

static bool drop_all(
    void *state, const struct weir_admission_spec *p, int64_t now_ns, int64_t wait_ns)
{
	(void)state, (void)p, (void)now_ns;
	longest_ns = wait_ns > longest_ns ? wait_ns : longest_ns;
	return true;
}

static const struct admission_policy drops = {
    .name = "drops", .help = "sheds all at the head", .init = test_init, .drop = drop_all};

static void test_what_was_begun_is_not_dropped(void)
{
	struct weir_event *ev[RUN];

	rig_start();
	longest_ns = 0;
	CU_ASSERT_EQUAL(offer(b, 0, 10, ev), 10);
	b->policy = &drops;
	CU_ASSERT_EQUAL(take(b, ev), 10);
	for (int i = 0; i < 10; i++)
		ev[i]->state = i % 3 == 0 ? WEIR_EVENT_AGAIN : WEIR_EVENT_QUEUED;
	CU_ASSERT_EQUAL(sink_drop(b, ev, 10, NOW_NS + 77, &book[b->id]), 6);
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(ev[i]->state, i < 6 ? WEIR_EVENT_QUEUED : WEIR_EVENT_AGAIN);
	CU_ASSERT_EQUAL(longest_ns, 77);
	CU_ASSERT_EQUAL(b->decided[0].refused, 6);
	rig_end();
}

/* In shadow mode nothing is dropped, and only events that would have been dropped are counted. */
static void test_shadow_does_not_count_what_was_begun(void)
{
	struct weir_event *ev[RUN];

	rig_start();
	set_mode(b, WEIR_ADMISSION_SHADOW);
	CU_ASSERT_EQUAL(offer(b, 0, 10, ev), 10);
	b->policy = &drops;
	CU_ASSERT_EQUAL(take(b, ev), 10);
	for (int i = 0; i < 10; i++)
		ev[i]->state = i < 4 ? WEIR_EVENT_AGAIN : WEIR_EVENT_QUEUED;
	CU_ASSERT_EQUAL(sink_drop(b, ev, 10, NOW_NS, &book[b->id]), 0);
	CU_ASSERT_EQUAL(book_read(&book[b->id].class_book[0].shadow_shed), 6);
	rig_end();
}

/* ---- counts ---- */

#define VISITS 3

static void again_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (++((struct probe *)ev[i])->seq % VISITS == 0)
			weir_event_finish(&ev[i], WEIR_OK);
		else
			weir_requeue(st, &ev[i]);
	}
}

static const struct weir_stage_ops again_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.again",
    .summary = "wants its events three times",
    .accepts = &probe_type,
    .handle = again_handle};

static void count_handled(bool inlined)
{
	struct weir_spec *spec = weir_spec_new("again");
	struct book sum = {0};

	fixture_stage(spec, "again", "t.again", NULL)->inlined = inlined;
	prepare(100);
	for (int i = 0; i < 100; i++)
		probes[i].seq = 0;
	struct weir_graph *graph = fixture_start(spec);
	weir_thread_attach(graph, "test");
	fixture_offer_all(weir_graph_stage(graph, "again"), probes, 100, 10);
	FIXTURE_AWAIT(fixture_ended() == 100);
	FIXTURE_AWAIT(inlined || stage_view(graph, "again").threads[WEIR_THREAD_BUSY] == 0);
	CU_ASSERT_EQUAL(stage_view(graph, "again").batch_events, 100 * VISITS);
	graph_sum(graph, 0, &sum, NULL, NULL, NULL, NULL);
	CU_ASSERT_EQUAL(book_read(&sum.class_book[0].handled), 100);
	CU_ASSERT_EQUAL(book_read(&sum.class_book[0].completed), 100);
	weir_thread_detach();
	finish_graph(graph, 0);
}

static void test_handled_once_queued(void)
{
	count_handled(false);
}

static void test_handled_once_inline(void)
{
	count_handled(true);
}

static void test_prepare_again(void)
{
	test_prepare();
	fixture_register(&again_ops);
}

CUNIT_MAIN("requeue counts", {"types are known", test_prepare_again},
    {"what was begun is not dropped", test_what_was_begun_is_not_dropped},
    {"shadow mode does not count what was begun", test_shadow_does_not_count_what_was_begun},
    {"handled once, queued", test_handled_once_queued},
    {"handled once, inline", test_handled_once_inline})
