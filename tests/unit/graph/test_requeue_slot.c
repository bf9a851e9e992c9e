/* SPDX-License-Identifier: MIT */
/* An event that a handler requeues uses a slot of the limit and of the width until it is in the queue
 * again, even while the thread first runs an inline stage. */
#include "fixture/graph/probes.h"

#include "graph/graph.h"

static struct weir_event *kept;
static struct weir_stage *first;
static bool came_back;
static int64_t seen;

/* Holds event 0. Requeues event 1 once, and emits event 0 then. */
static void first_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (ev[i]->key == 0) {
			kept = ev[i];
			weir_hold(st, &ev[i]);
		} else if (came_back) {
			weir_event_finish(&ev[i], WEIR_OK);
		} else {
			came_back = true;
			weir_emit(st, 0, &kept);
			weir_requeue(st, &ev[i]);
		}
	}
}

static void look_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		seen = queue_kept_all(&first->sink.queue);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops first_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.first",
    .summary = "holds an event, and requeues one",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = first_handle};

static const struct weir_stage_ops look_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.look",
    .summary = "reads the count of the stage before it",
    .accepts = &probe_type,
    .handle = look_handle};

static void check(bool inlined)
{
	struct weir_spec *spec = weir_spec_new("slot");

	fixture_stage(spec, "look", "t.look", NULL)->inlined = true;
	struct weir_stage_spec *s = fixture_stage(spec, "first", "t.first", "look");
	fixture_set(s, "width.policy", "static");
	fixture_set(s, "slo", "1h");
	fixture_set(s, "threads.max", "1");
	s->inlined = inlined;
	prepare(2);
	came_back = false;
	kept = NULL;
	seen = -1;
	struct weir_graph *g = fixture_start(spec);
	first = weir_graph_stage(g, "first");
	weir_thread_attach(g, "test");
	for (int i = 0; i < 2; i++) {
		struct weir_event *ev = &probes[i].ev;
		weir_event_init(ev, &probe_type, 1);
		ev->key = (uint64_t)i;
		CU_ASSERT_EQUAL_FATAL(weir_offer(first, &ev, 1, NULL), 1);
	}
	FIXTURE_AWAIT(fixture_ended() == 2);
	FIXTURE_AWAIT(queue_kept_all(&first->sink.queue) == 0);
	check_each_once(2);
	CU_ASSERT_EQUAL(seen, 1);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_queued(void)
{
	fixture_register(&first_ops);
	fixture_register(&look_ops);
	check(false);
}

static void test_inline(void)
{
	check(true);
}

CUNIT_MAIN("requeue_slot", {"queued", test_queued}, {"inline", test_inline})
