/* SPDX-License-Identifier: MIT */
/*
 * Memory is short when a stage holds events with tickets: what finds no slot ends with WEIR_ENOMEM,
 * its ticket is 0, and all others are claimed or expire as usual. Later holds find memory again.
 */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "fault/inject.h"
#include "graph/graph.h"

#define EVENTS 1000
#define FIRST  64 /* slots of the first chunk */

static uint64_t tickets[EVENTS];
static atomic_int handled;
static atomic_bool starving;

/* From now on allocations of the calling thread fail, or succeed again. */
static void starve(bool on)
{
	atomic_store(&fault_of_mine, true);
	atomic_store(&fault_goes_on, on);
	fault_mine = on;
	atomic_store(&fault_alloc_in, on ? 0 : -1);
}

static void wait_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		long at = (struct probe *)ev[i] - probes;
		if (atomic_load(&starving))
			starve(true);
		tickets[at] = weir_hold_until(st, &ev[i], clock_now_ns() + 3600 * NS_PER_S);
		if (atomic_load(&starving))
			starve(false);
		WEIR_ASSERT(ev[i] == NULL);
	}
	atomic_fetch_add(&handled, n);
}

static const struct weir_stage_ops wait_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.wait",
    .summary = "holds with tickets",
    .accepts = &probe_type,
    .handle = wait_handle};

static void test_short_of_slots(void)
{
	struct weir_spec *spec = weir_spec_new("tickets");
	struct weir_stage_spec *s = fixture_stage(spec, "wait", "t.wait", NULL);

	fixture_set(s, "queue.limit", "4000");
	fixture_set(s, "slo", "1h");
	fixture_set(s, "width.policy", "static");
	fixture_set(s, "threads.min", "1");
	fixture_set(s, "threads.max", "1");
	prepare(EVENTS);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *st = weir_graph_stage(g, "wait");
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);

	fixture_offer_all(st, probes, FIRST / 2, FIRST / 2);
	FIXTURE_AWAIT(atomic_load(&handled) == FIRST / 2);
	atomic_store(&starving, true);
	fixture_offer_all(st, probes + FIRST / 2, FIRST, FIRST);
	FIXTURE_AWAIT(atomic_load(&handled) == FIRST / 2 + FIRST);
	atomic_store(&starving, false);
	CU_ASSERT_EQUAL(fixture_ended(), FIRST / 2);
	CU_ASSERT_EQUAL(stage_view(g, "wait").class_view[0].failed, FIRST / 2);
	CU_ASSERT_EQUAL(graph_tickets_out(st), FIRST);
	int left = EVENTS - FIRST / 2 - FIRST;
	fixture_offer_all(st, probes + EVENTS - left, left, 50);
	FIXTURE_AWAIT(atomic_load(&handled) == EVENTS);
	for (int i = 0; i < EVENTS; i++) {
		struct weir_event *ev = weir_hold_claim(st, tickets[i]);
		CU_ASSERT_EQUAL(ev == NULL, tickets[i] == 0);
		if (ev)
			weir_event_finish(&ev, WEIR_OK);
		else
			CU_ASSERT_EQUAL(probes[i].status, WEIR_ENOMEM);
	}
	check_each_once(EVENTS);
	CU_ASSERT_EQUAL(stage_view(g, "wait").class_view[0].completed, EVENTS - FIRST / 2);
	weir_thread_detach();
	finish_graph(g, 0);
}

int main(void)
{
	static const struct cunit_case cases[] = {{"short of slots", test_short_of_slots}};

	fixture_register(&wait_ops);
	return cunit_run("fault_tickets", cases, sizeof(cases) / sizeof(cases[0]));
}
