/* SPDX-License-Identifier: MIT */
/* Admission to a stage: limit, deadlines, policies, refusals that return to their sender. */
#include "fixture/graph/probes.h"

static void test_full_queue_refuses_the_rest(void)
{
	struct weir_spec *spec = weir_spec_new("door");
	struct weir_stage_spec *s = fixture_stage(spec, "gate", "t.gate", NULL);
	struct weir_event *ev[100];
	int reason = 0;

	fixture_set(s, "queue.limit", "40");
	fixture_set(s, "threads.max", "1");
	prepare(200);
	atomic_store(&probe_gate, 0);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *gate = weir_graph_stage(g, "gate");
	weir_thread_attach(g, "test");
	fixture_offer_all(gate, probes, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "gate").threads[WEIR_THREAD_BUSY] == 1);
	for (int i = 0; i < 100; i++) {
		weir_event_init(&probes[100 + i].ev, &probe_type, 1);
		ev[i] = &probes[100 + i].ev;
	}
	CU_ASSERT_EQUAL(weir_offer(gate, ev, 100, &reason), 40);
	CU_ASSERT_EQUAL(reason, WEIR_EQUEUE);
	for (int i = 0; i < 60; i++) { /* refused events are ours: in order and unchanged */
		CU_ASSERT_PTR_EQUAL(ev[i], &probes[140 + i].ev);
		CU_ASSERT_EQUAL(ev[i]->state, WEIR_EVENT_NEW);
	}
	CU_ASSERT_PTR_NULL(ev[60]);
	struct weir_stage_view v = stage_view(g, "gate");
	CU_ASSERT_EQUAL(v.class_view[0].shed[weir_shed_index(WEIR_EQUEUE)], 60);
	CU_ASSERT_EQUAL(v.queue_length, 40);
	CU_ASSERT_EQUAL(v.in_flight, 41);
	CU_ASSERT(llabs(v.law_residual) <= v.law_slack);
	CU_ASSERT(v.longest_running_ns > 0);
	CU_ASSERT(v.oldest_wait_ns > 0);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 41);
	for (int i = 0; i < 60; i++)
		weir_event_finish(&ev[i], reason);
	CU_ASSERT_EQUAL(atomic_load(&fixture_shed), 60);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_deadline_at_door_and_exit(void)
{
	struct weir_spec *spec = weir_spec_new("deadline");
	struct weir_stage_spec *s = fixture_stage(spec, "gate", "t.gate", NULL);
	struct weir_event *ev[2];
	int reason = 0;

	fixture_set(s, "threads.max", "1");
	prepare(10);
	atomic_store(&probe_gate, 0);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *gate = weir_graph_stage(g, "gate");
	weir_thread_attach(g, "test");
	fixture_offer_all(gate, probes, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "gate").threads[WEIR_THREAD_BUSY] == 1);
	for (int i = 0; i < 2; i++) {
		weir_event_init(&probes[1 + i].ev, &probe_type, 1);
		ev[i] = &probes[1 + i].ev;
	}
	ev[0]->deadline_ns = 5; /* long ago */
	struct weir_event **soon = &ev[1];
	CU_ASSERT_EQUAL(weir_offer(gate, ev, 1, &reason), 0);
	CU_ASSERT_EQUAL(reason, WEIR_EDEADLINE);
	CU_ASSERT_PTR_EQUAL(ev[0], &probes[1].ev);
	weir_event_finish(&ev[0], reason);
	/* A machine may stall for longer than the event has time. Then it is refused as well and
	 * gets more time in the next attempt. */
	int64_t time_ns = 10000000;
	int refused = 0;
	do {
		time_ns *= 2;
		(*soon)->deadline_ns = weir_now_ns(gate) + time_ns;
	} while (weir_offer(gate, soon, 1, &reason) == 0 && ++refused);
	FIXTURE_AWAIT(stage_view(g, "gate").oldest_wait_ns > time_ns + 5000000);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 3);
	CU_ASSERT_EQUAL(probes[2].status, WEIR_EDEADLINE);
	CU_ASSERT_EQUAL(stage_view(g, "gate").class_view[0].shed[weir_shed_index(WEIR_EDEADLINE)],
	    2 + (uint64_t)refused);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* ---- refused events return to the sender ---- */

static atomic_int returned;

static void offering_refused(
    struct weir_stage *st, int outlet, struct weir_event **ev, int n, int reason)
{
	CU_ASSERT_EQUAL(outlet, 0);
	CU_ASSERT_EQUAL(reason, WEIR_ETHRESHOLD);
	atomic_fetch_add(&returned, n);
	for (int i = 0; i < n; i += 2) /* emit every other one; the rest is finished for us */
		weir_emit(st, 1, &ev[i]);
}

static const struct weir_outlet offering_outlets[] = {
    {"first", &probe_type, false, ""}, {"second", &probe_type, false, ""}, {.name = NULL}};

static const struct weir_stage_ops offering_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.offering",
    .summary = "emits, then elsewhere",
    .accepts = &probe_type,
    .outlets = offering_outlets,
    .handle = pass_handle,
    .refused = offering_refused};

static void test_refused_run_returns(void)
{
	struct weir_spec *spec = weir_spec_new("refused");
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "from", "t.offering");

	s->inlined = true;
	weir_spec_link(s, "first", "gate", false);
	weir_spec_link(s, "second", "end", false);
	s = fixture_stage(spec, "gate", "t.gate", NULL);
	fixture_set(s, "threads.max", "1");
	weir_spec_text(&s->admission.policy, "threshold");
	fixture_set(s, "admission.threshold", "10");
	fixture_stage(spec, "end", "t.end", NULL);
	prepare(51);
	atomic_store(&probe_gate, 0);
	atomic_store(&returned, 0);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "gate"), probes + 50, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "gate").threads[WEIR_THREAD_BUSY] == 1);
	fixture_offer_all(weir_graph_stage(g, "from"), probes, 50, 50);
	CU_ASSERT_EQUAL(atomic_load(&returned), 40);
	FIXTURE_AWAIT(fixture_ended() == 40);
	CU_ASSERT_EQUAL(atomic_load(&fixture_shed), 20);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 20);
	/* A refused event names the stage that refused it. */
	CU_ASSERT_EQUAL(probes[11].ev.stage, 1);
	struct weir_stage_view from = stage_view(g, "from");
	/* The refusing stage counts them as shed; the sender has completed all events. */
	CU_ASSERT_EQUAL(from.class_view[0].completed, 50);
	CU_ASSERT_EQUAL(from.class_view[0].shed[weir_shed_index(WEIR_ETHRESHOLD)], 0);
	CU_ASSERT_EQUAL(
	    stage_view(g, "gate").class_view[0].shed[weir_shed_index(WEIR_ETHRESHOLD)], 40);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 51);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_shadow_counts_only(void)
{
	struct weir_spec *spec = weir_spec_new("shadow");
	struct weir_stage_spec *s = fixture_stage(spec, "end", "t.end", NULL);

	weir_spec_text(&s->admission.policy, "rate");
	fixture_set(s, "admission.rate", "0.001");
	fixture_set(s, "admission.mode", "shadow");
	prepare(100);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "end"), probes, 100, 10);
	FIXTURE_AWAIT(fixture_ended() == 100);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 100);
	CU_ASSERT_EQUAL(stage_view(g, "end").class_view[0].shadow_shed, 99);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_prepare(void)
{
	fixture_register(&gate_ops);
	fixture_register(&end_ops);
	fixture_register(&offering_ops);
	CU_ASSERT_PTR_EQUAL(weir_stage_type_find("t.gate"), &gate_ops);
}

CUNIT_MAIN("sink", {"types are known", test_prepare},
    {"a full queue refuses the rest", test_full_queue_refuses_the_rest},
    {"deadlines at the door and at the exit", test_deadline_at_door_and_exit},
    {"a refused run returns to its sender", test_refused_run_returns},
    {"shadow mode only counts", test_shadow_counts_only})
