/* SPDX-License-Identifier: MIT */
/* A sink and its admission policy: what the policy is charged for, what changing a knob resets, and
 * the smallest queue. For the policies themselves see tests/unit/admission. */
#include "fixture/graph/probes.h"

#include "stage/stage.h"

/* Events per run. The buckets here hold half as many and take 100,000 s to refill. */
#define RUN 200

static struct weir_stage_spec *rated(struct weir_spec *spec, const char *use)
{
	struct weir_stage_spec *s = fixture_stage(spec, "a", use, NULL);

	fixture_set(s, "admission.policy", "rate");
	fixture_set(s, "admission.rate", "0.001");
	fixture_set(s, "admission.burst", "100");
	return s;
}

/* Offer probes[at..at + n) once, of one class; refused ones are finished. Returns how many were
 * admitted. */
static int offer_class(struct weir_stage *st, int at, int n, uint8_t class_id)
{
	struct weir_event *ev[RUN];
	int reason = WEIR_OK;

	for (int i = 0; i < n; i++) {
		weir_event_init(&probes[at + i].ev, &probe_type, 1);
		probes[at + i].ev.class_id = class_id;
		ev[i] = &probes[at + i].ev;
	}
	int taken = weir_offer(st, ev, n, &reason);
	for (int i = 0; i < n - taken; i++)
		weir_event_finish(&ev[i], reason);
	return taken;
}

static int offer_once(struct weir_stage *st, int at, int n)
{
	return offer_class(st, at, n, 0);
}

static void finish(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* In shadow mode a full queue refunds what the policy was charged, but no more. */
static void test_shadow_gives_back_what_was_charged(void)
{
	struct weir_spec *spec = weir_spec_new("shadow");
	struct weir_stage_spec *s = rated(spec, "t.gate");

	fixture_set(s, "admission.mode", "shadow");
	fixture_set(s, "queue.limit", "100");
	fixture_set(s, "threads.max", "1");
	fixture_set(s, "cohort.max", "1");
	prepare(1 + 10 * RUN);
	atomic_store(&probe_gate, 0);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *st = weir_graph_stage(g, "a");
	weir_thread_attach(g, "test");
	CU_ASSERT_EQUAL(offer_once(st, 0, 1), 1);
	FIXTURE_AWAIT(stage_view(g, "a").threads[WEIR_THREAD_BUSY] == 1);
	CU_ASSERT_EQUAL(offer_once(st, 1, RUN), 100);
	for (int i = 1; i < 10; i++)
		CU_ASSERT_EQUAL(offer_once(st, 1 + i * RUN, RUN), 0);
	CU_ASSERT_EQUAL(stage_view(g, "a").class_view[0].shadow_shed, 1 + 10 * RUN - 100);
	atomic_store(&probe_gate, 1);
	finish(g, 1 + 10 * RUN);
}

/* Other knobs leave the bucket as it is; the policy's own knobs reset it. */
static void test_other_knobs_do_not_refill(void)
{
	struct weir_spec *spec = weir_spec_new("refill");
	char why[200];

	rated(spec, "t.end");
	prepare(6 * RUN);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *st = weir_graph_stage(g, "a");
	weir_thread_attach(g, "test");
	CU_ASSERT_EQUAL(offer_once(st, 0, RUN), 100);
	for (int i = 1; i < 5; i++) {
		CU_ASSERT_EQUAL(weir_graph_set(g, "a", "cohort.max", "32", why, sizeof(why)), 0);
		CU_ASSERT_EQUAL(offer_once(st, i * RUN, RUN), 0);
	}
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "admission.burst", "50", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(offer_once(st, 5 * RUN, RUN), 50);
	finish(g, 6 * RUN);
}

static void test_rate_of_zero_is_refused_live(void)
{
	struct weir_spec *spec = weir_spec_new("zero");
	char why[200] = "", before[64], after[64];

	rated(spec, "t.end");
	prepare(0);
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL(weir_graph_get(g, "a", "admission.rate", before, sizeof(before)), 0);
	CU_ASSERT_EQUAL(
	    weir_graph_set(g, "a", "admission.rate", "0", why, sizeof(why)), WEIR_EINVAL);
	CU_ASSERT(why[0] != '\0');
	CU_ASSERT_EQUAL(weir_graph_get(g, "a", "admission.rate", after, sizeof(after)), 0);
	CU_ASSERT_STRING_EQUAL(before, after);
	finish_graph(g, 0);
}

/* Half of a queue of one event is one, not zero. */
static void test_threshold_auto_of_the_smallest_queue(void)
{
	struct weir_spec *spec = weir_spec_new("smallest");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.end", NULL);

	fixture_set(s, "admission.policy", "threshold");
	fixture_set(s, "queue.limit", "1");
	prepare(1);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	CU_ASSERT_EQUAL(offer_once(weir_graph_stage(g, "a"), 0, 1), 1);
	finish(g, 1);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_OK);
}

/* The sink passes the number of classes to the policy: the last slots are for the high class. */
static void test_threshold_keeps_places_for_the_high_class(void)
{
	struct weir_spec *spec = weir_spec_new("classes");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.gate", NULL);

	weir_spec_add_class(spec, "high");
	weir_spec_add_class(spec, "low");
	fixture_set(s, "admission.policy", "threshold");
	fixture_set(s, "admission.threshold", "8");
	fixture_set(s, "threads.max", "1");
	fixture_set(s, "cohort.max", "1");
	prepare(31);
	atomic_store(&probe_gate, 0);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *st = weir_graph_stage(g, "a");
	weir_thread_attach(g, "test");
	CU_ASSERT_EQUAL(offer_once(st, 0, 1), 1);
	FIXTURE_AWAIT(stage_view(g, "a").threads[WEIR_THREAD_BUSY] == 1);
	CU_ASSERT_EQUAL(offer_class(st, 1, 10, 1), 6);
	CU_ASSERT_EQUAL(offer_class(st, 11, 10, 0), 2);
	CU_ASSERT_EQUAL(offer_class(st, 21, 10, 1), 0);
	atomic_store(&probe_gate, 1);
	finish(g, 31);
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
	fixture_register(&gate_ops);
}

CUNIT_MAIN("sink policy", {"types are known", test_prepare},
    {"shadow gives back what was charged", test_shadow_gives_back_what_was_charged},
    {"other knobs do not refill a bucket", test_other_knobs_do_not_refill},
    {"a rate of 0 is refused live", test_rate_of_zero_is_refused_live},
    {"threshold auto of a queue of 1", test_threshold_auto_of_the_smallest_queue},
    {"threshold keeps places for the high class", test_threshold_keeps_places_for_the_high_class})
