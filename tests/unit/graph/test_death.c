/* SPDX-License-Identifier: MIT */
/* Threads that end in the middle of passing events on: in an inline stage that runs while the
 * outbox of the stage before it is being flushed, and in ops->refused. All events of the thread end
 * once, and the counters balance. (Death in a plain handler: test_stage.c.) */
#include "fixture/graph/probes.h"

#include "sched/pool.h"

/* seq of the event that ends its thread. */
#define DEADLY 70

static void deadly_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq == DEADLY)
			pthread_exit(NULL);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops deadly_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.deadly",
    .summary = "ends its thread at one event",
    .accepts = &probe_type,
    .handle = deadly_handle};

static void deadly_refused(
    struct weir_stage *st, int outlet, struct weir_event **ev, int n, int reason)
{
	(void)st, (void)outlet;
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq == DEADLY)
			pthread_exit(NULL);
		weir_event_finish(&ev[i], reason);
	}
}

static const struct weir_stage_ops deadly_refused_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.deadly_refused",
    .summary = "passes on, ends its thread at one refused event",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = pass_handle,
    .refused = deadly_refused};

/* Offer the first 100 probes to `a` in one run, which is one batch. */
static void offer_all(struct weir_graph *g)
{
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "a"), probes, 100, 100);
}

static struct weir_spec *spec_of(const char *use)
{
	struct weir_spec *spec = weir_spec_new("death");
	struct weir_stage_spec *a = fixture_stage(spec, "a", use, "b");

	fixture_set(a, "threads.max", "1");
	fixture_set(a, "cohort.max", "128");
	fixture_set(a, "cohort.linger", "1ms"); /* so that the first batch is full */
	weir_log_set_fd(-1);                    /* the death is logged */
	prepare(200);
	return spec;
}

static void finish(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	CU_ASSERT_EQUAL(probes[DEADLY].status, WEIR_EDIED);
	CU_ASSERT_EQUAL(stage_view(g, "a").thread_deaths, 1);
	weir_thread_detach();
	finish_graph(g, 0);
	weir_log_set_fd(2);
}

static void test_death_in_an_inline_stage(void)
{
	struct weir_spec *spec = spec_of("t.pass");

	fixture_stage(spec, "b", "t.deadly", NULL)->inlined = true;
	struct weir_graph *g = fixture_start(spec);
	offer_all(g);
	FIXTURE_AWAIT(fixture_ended() == 100);
	CU_ASSERT_EQUAL(probes[DEADLY - 1].status, WEIR_OK);
	CU_ASSERT_EQUAL(probes[99].status, WEIR_EDIED);
	finish(g, 100);
}

static void test_death_in_an_inline_stage_that_refused_some(void)
{
	struct weir_spec *spec = spec_of("t.pass");
	struct weir_stage_spec *b = fixture_stage(spec, "b", "t.deadly", NULL);

	b->inlined = true;
	fixture_set(b, "admission.policy", "rate");
	fixture_set(b, "admission.rate", "0.001");
	fixture_set(b, "admission.burst", "80");
	struct weir_graph *g = fixture_start(spec);
	offer_all(g);
	FIXTURE_AWAIT(fixture_ended() == 100);
	CU_ASSERT_EQUAL(stage_view(g, "b").class_view[0].shed[weir_shed_index(WEIR_ERATE)], 20);
	finish(g, 100);
}

static void test_death_in_refused(void)
{
	struct weir_spec *spec = spec_of("t.deadly_refused");
	struct weir_stage_spec *b = fixture_stage(spec, "b", "t.gate", NULL);

	fixture_set(b, "queue.limit", "10");
	fixture_set(b, "threads.max", "1");
	atomic_store(&probe_gate, 0);
	struct weir_graph *g = fixture_start(spec);
	offer_all(g);
	/* The gate is closed: b keeps the 10 that fit, the others were returned to a. */
	FIXTURE_AWAIT(fixture_ended() == 90);
	CU_ASSERT_EQUAL(probes[DEADLY - 1].status, WEIR_EQUEUE);
	CU_ASSERT_EQUAL(probes[99].status, WEIR_EDIED);
	atomic_store(&probe_gate, 1);
	finish(g, 100);
}

static void test_prepare(void)
{
	fixture_register(&pass_ops);
	fixture_register(&gate_ops);
	fixture_register(&deadly_ops);
	fixture_register(&deadly_refused_ops);
}

CUNIT_MAIN("death", {"types are known", test_prepare},
    {"in an inline stage", test_death_in_an_inline_stage},
    {"in an inline stage that refused some", test_death_in_an_inline_stage_that_refused_some},
    {"in ops->refused", test_death_in_refused})
