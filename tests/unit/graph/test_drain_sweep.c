/* SPDX-License-Identifier: MIT */
/* The end of a drain sweeps the queues twice. The first sweep skips a partition that a thread is
 * serving. Events queued after that batch are ended once the threads have gone. */
#include "fixture/graph/probes.h"

#include "stage/stage.h"
#include "sched/pool.h"

#define EVENTS 50

/* Keeps its first batch until its pool is stopped, which is after the first sweep. */
static void last_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	FIXTURE_AWAIT(atomic_load(&st->pool->stopping));
	end_handle(st, ev, n);
}

static const struct weir_stage_ops last_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.last",
    .summary = "works only when it must end",
    .flags = WEIR_STAGE_BLOCKS | WEIR_STAGE_SINGLE,
    .accepts = &probe_type,
    .handle = last_handle};

static void test_leased_partition_is_swept_at_last(void)
{
	struct weir_spec *spec = weir_spec_new("sweep");
	struct weir_stage_spec *s = fixture_stage(spec, "last", "t.last", NULL);
	struct weir_drain_report r;

	fixture_set(s, "cohort.max", "1");
	prepare(EVENTS);
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_STRING_EQUAL(stage_view(g, "last").mode, "exclusive");
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "last"), probes, EVENTS, EVENTS);
	FIXTURE_AWAIT(stage_view(g, "last").threads[WEIR_THREAD_BUSY] == 1);
	weir_thread_detach();
	weir_graph_drain(g, 0, &r);
	CU_ASSERT_EQUAL(r.closed, EVENTS - 1);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 1);
	CU_ASSERT_EQUAL(atomic_load(&fixture_failed), EVENTS - 1);
	check_each_once(EVENTS);
	CU_ASSERT_EQUAL(probes[EVENTS - 1].status, WEIR_ECLOSED);
	weir_graph_free(g);
}

static void test_prepare(void)
{
	fixture_register(&last_ops);
}

CUNIT_MAIN("drain sweep", {"types are known", test_prepare},
    {"a leased partition is swept at last", test_leased_partition_is_swept_at_last})
