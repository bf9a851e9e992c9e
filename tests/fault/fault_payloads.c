/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation fails in the life of a graph whose stage makes payloads and sets variables. A
 * payload for which there is no memory is NULL, and counted; what was reserved is given back, also in
 * the family of which the events are members; all events end once.
 */
#include <weir/op.h>

#include "fixture/graph/payloads.h"

#include "fixture/graph/probes.h"

#include "event/payload.h"
#include "fault/inject.h"
#include "graph/graph.h"

#define M 20

static struct laden laden[M];
static atomic_int refused;

/* Fill the variables of an event. Returns false if memory is short. */
static bool set_vars(struct weir_stage *st, struct weir_event *ev)
{
	static const char text[] = "longer than what fits into the payload itself";
	struct weir_vars *vars = weir_vars(st, ev);

	if (!vars)
		atomic_fetch_add(&refused, 1);
	return vars && weir_vars_set(vars, "a", (struct weir_slice){text, sizeof(text) - 1}) == 0 &&
	       weir_vars_set(vars, "b", (struct weir_slice){text, sizeof(text) - 1}) == 0;
}

static void handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		void *image = image_new(st, ev[i], 1);
		void *large = weir_payload_new(st, ev[i], &large_type);
		if (!image || !large)
			atomic_fetch_add(&refused, !image + !large);
		bool good = image && large && set_vars(st, ev[i]);
		weir_event_finish(&ev[i], good ? WEIR_OK : WEIR_ENOMEM);
	}
}

static const struct weir_stage_ops maker_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.maker",
    .summary = "makes payloads",
    .accepts = &laden_type,
    .handle = handle};

/* Returns whether an allocation has failed. */
static bool sweep(long nth)
{
	struct weir_spec *spec = weir_spec_new("payloads");
	struct weir_graph_view *v = NULL;

	fixture_reset();
	laden_init(laden, M);
	fixture_set(fixture_stage(spec, "maker", "t.maker", NULL), "slo", "1h");
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	struct weir_family *family = weir_family_new(NULL);
	for (int i = 0; i < M; i++)
		CU_ASSERT_EQUAL(weir_family_join(family, &laden[i].p.ev), 0);
	atomic_store(&refused, 0);
	atomic_store(&fault_fired, 0);
	atomic_store(&fault_alloc_in, nth);
	for (int i = 0; i < M; i++) {
		struct weir_event *ev = &laden[i].p.ev;
		int why;
		if (weir_offer(g->stages[0], &ev, 1, &why) == 0)
			weir_event_finish(&ev, why);
	}
	weir_thread_flush();
	FIXTURE_AWAIT(fixture_ended() == M);
	FIXTURE_AWAIT(atomic_load(&payloads_alive) == 0);
	atomic_store(&fault_alloc_in, -1);
	bool fired = atomic_load(&fault_fired) > 0;
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	CU_ASSERT_EQUAL(
	    v->stages[0].payload_refused[WEIR_PAYLOAD_MEMORY], (uint64_t)atomic_load(&refused));
	CU_ASSERT_TRUE(atomic_load(&refused) <= fired);
	weir_graph_view_free(v);
	weir_thread_detach();
	weir_graph_drain(g, 100000000000, NULL);
	CU_ASSERT_EQUAL(atomic_load(&g->payloads->used), 0);
	CU_ASSERT_EQUAL(weir_family_memory(family), 0);
	weir_family_put(family);
	weir_graph_free(g);
	return fired;
}

static void test_sweep(void)
{
	long n = 0;

	fixture_register(&maker_ops);
	while (sweep(n))
		n++;
	CU_ASSERT_TRUE(n >= 3 * M);
}

CUNIT_MAIN("payloads without memory", {"the n-th allocation", test_sweep})
