/* SPDX-License-Identifier: MIT */
/* Which threads pause after a small batch (sched/handler.c). Every batch has one event, and the
 * next event waits before the thread looks for it, so the pauses depend on no clock. */
#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "stage/stage.h"
#include "sched/pool.h"

/* seq of an event that stays in its handler until the gate opens */
#define HELD 1000000
#define HOPS 100

static atomic_int entered, most_naps;

/* Note how often the thread pauses after a batch at present. */
static void note_naps(void)
{
	const struct handler *h = atomic_load(&thread_self()->pool->handler[0]);

	if (h->naps > atomic_load(&most_naps))
		atomic_store(&most_naps, h->naps);
}

static void round_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	note_naps();
	for (int i = 0; i < n; i++) {
		struct probe *p = (struct probe *)ev[i];
		if (p->seq-- > 0)
			weir_emit(st, 0, &ev[i]);
		else
			weir_event_finish(&ev[i], WEIR_OK);
	}
}

static void end_or_hold(struct weir_stage *st, struct weir_event **ev, int n)
{
	note_naps();
	if (((struct probe *)ev[0])->seq == HELD) {
		atomic_fetch_add(&entered, 1);
		FIXTURE_AWAIT(atomic_load(&probe_gate));
	}
	end_handle(st, ev, n);
}

static const struct weir_stage_ops round_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.round",
    .summary = "emits an event until it has made its hops",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = round_handle};
static const struct weir_stage_ops note_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.note",
    .summary = "finishes events, one of them when the gate opens",
    .flags = WEIR_STAGE_BLOCKS,
    .accepts = &probe_type,
    .handle = end_or_hold};

static void one_thread(struct weir_threads_spec *t)
{
	t->min = t->max = 1;
	t->spin_ns = 20 * NS_PER_US;
	weir_spec_text(&t->policy, "static");
}

static struct weir_graph *start(struct weir_spec *spec)
{
	prepare(10);
	atomic_store(&probe_gate, 0);
	atomic_store(&entered, 0);
	atomic_store(&most_naps, 0);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	return g;
}

static void end(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* Let the thread of the pool handle one event at `held`, while `n` further ones wait at `waits`. */
static void while_held(struct weir_graph *g, const char *held, const char *waits, int n)
{
	for (int i = 0; i <= n; i++)
		probes[i].seq = i == 0 ? HELD : (uint64_t)i;
	fixture_offer_all(weir_graph_stage(g, held), probes, 1, 1);
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	fixture_offer_all(weir_graph_stage(g, waits), &probes[1], n, n);
	atomic_store(&probe_gate, 1);
	end(g, n + 1);
}

static void test_none_between_batches_of_its_own(void)
{
	struct weir_spec *spec = weir_spec_new("round");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.round", "b");

	weir_spec_text(&s->group, "g");
	s = weir_spec_add_stage(spec, "b", "t.round");
	weir_spec_link(s, "", "a", true);
	weir_spec_text(&s->group, "g");
	one_thread(&weir_spec_add_group(spec, "g")->threads);
	struct weir_graph *g = start(spec);
	probes[0].seq = HOPS;
	fixture_offer_all(weir_graph_stage(g, "a"), probes, 1, 1);
	end(g, 1);
	CU_ASSERT_EQUAL(atomic_load(&most_naps), 0);
}

/* The sender of these events is another thread. A pause leaves the lock of the queue to that
 * thread. */
static void test_some_between_batches_of_others(void)
{
	struct weir_spec *spec = weir_spec_new("group");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.note", NULL);

	weir_spec_text(&s->group, "g");
	s = fixture_stage(spec, "b", "t.note", NULL);
	fixture_set(s, "cohort.max", "1");
	weir_spec_text(&s->group, "g");
	one_thread(&weir_spec_add_group(spec, "g")->threads);
	while_held(start(spec), "a", "b", 3);
	CU_ASSERT_EQUAL(atomic_load(&most_naps), 4); /* 1, 2, 4 after the first three batches */
}

static void test_prepare(void)
{
	fixture_register(&round_ops);
	fixture_register(&note_ops);
}

CUNIT_MAIN("pauses after small batches", {"types are known", test_prepare},
    {"none between batches of its own", test_none_between_batches_of_its_own},
    {"some between batches of others", test_some_between_batches_of_others})
