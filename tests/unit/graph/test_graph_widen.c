/* SPDX-License-Identifier: MIT */
/* The policy of a width gets what the stage measures: with work in the queue it widens the stage,
 * and its first step says what it has seen. */
#include "fixture/graph/probes.h"

#include "graph/graph.h"

#define M 500 /* events in the graph at once */

static _Atomic(struct weir_event *) kept;
static bool offered[M];

static void keep_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_event *e = ev[i];
		weir_hold(st, &ev[i]);
		e->next = atomic_load(&kept);
		while (!atomic_compare_exchange_weak(&kept, &e->next, e))
			continue;
	}
}

static const struct weir_stage_ops keep_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.keep",
    .summary = "holds what comes",
    .accepts = &probe_type,
    .handle = keep_handle};

/* Offer every event that is not in the graph, and end what is held. */
static void work(struct weir_stage *st)
{
	struct weir_event *list = atomic_exchange(&kept, NULL);

	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		weir_event_finish(&ev, WEIR_OK);
	}
	for (int i = 0; i < M; i++) {
		struct weir_event *ev = &probes[i].ev;
		if (offered[i] && atomic_load(&probes[i].finishes) == 0)
			continue;
		offered[i] = true;
		atomic_store(&probes[i].finishes, 0);
		weir_event_init(ev, &probe_type, 1);
		if (weir_offer(st, &ev, 1, NULL) == 0)
			weir_event_finish(&ev, WEIR_EQUEUE);
	}
}

/* Find the first decision of the policy. */
static bool is_decided(struct weir_graph *g, struct weir_decision *first)
{
	struct weir_decision d[64];
	int n = weir_graph_decisions(g, d, 64);
	bool found = false;

	for (int i = 0; i < n; i++) { /* newest first */
		if (strcmp(d[i].action, "width") != 0)
			continue;
		*first = d[i];
		found = true;
	}
	return found;
}

static void test_widens(void)
{
	struct weir_spec *spec = weir_spec_new("widen");
	struct weir_stage_spec *s = fixture_stage(spec, "keep", "t.keep", NULL);
	struct weir_decision first = {0};
	unsigned queued = 0, in_work = 0;
	unsigned long long ended = 0;

	fixture_set(s, "queue.limit", "1000");
	fixture_set(s, "width.max", "200");
	fixture_set(s, "slo", "1h");
	prepare(M);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *st = weir_graph_stage(g, "keep");
	weir_thread_attach(g, "test");
	int width = atomic_load(&st->sink.queue.width);
	FIXTURE_AWAIT((work(st), is_decided(g, &first)));
	CU_ASSERT_EQUAL(first.from, width);
	CU_ASSERT(first.to > width && first.to <= 200);
	CU_ASSERT_STRING_EQUAL(first.actor, "weir");
	CU_ASSERT_STRING_EQUAL(first.limit, first.to == 200 ? "max 200" : "");
	CU_ASSERT_EQUAL(
	    sscanf(first.inputs, "queue=%u in work=%u ended=%llu", &queued, &in_work, &ended), 3);
	CU_ASSERT(queued <= M && in_work <= (unsigned)width && ended > 0);
	FIXTURE_AWAIT((work(st), atomic_load(&st->sink.queue.width) > width));
	for (bool all = false; !all;) {
		struct weir_event *ev = atomic_exchange(&kept, NULL);
		while (ev) {
			struct weir_event *next = ev->next;
			weir_event_finish(&ev, WEIR_OK);
			ev = next;
		}
		all = true;
		for (int i = 0; i < M; i++)
			all &= atomic_load(&probes[i].finishes) == 1;
	}
	weir_thread_detach();
	finish_graph(g, 0);
}

int main(void)
{
	static const struct cunit_case cases[] = {{"widens", test_widens}};

	fixture_register(&keep_ops);
	return cunit_run("graph_widen", cases, 1);
}
