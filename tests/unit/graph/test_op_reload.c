/* SPDX-License-Identifier: MIT */
/* Operations while a graph is replaced and drained: families that end in between, and a drain that looks
 * at the counts of events while a child ends. */
#include "op_rig.h"

#define PAR_EVENTS 20

static atomic_int n_next;

static void next_ends(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	atomic_fetch_add(&n_next, n);
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], weir_ended_status(ev[i]));
}

static void steer(struct weir_graph *graph, const char *stage, enum weir_steer how)
{
	char why[256];

	CU_ASSERT_EQUAL_FATAL(weir_graph_steer(graph, stage, how, why, sizeof(why)), 0);
}

/* ---- one graph replaces another ---- */

static void next_again(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		rig_child(st, ev[i], KID);
		weir_await(st, &ev[i], next_ends);
	}
}

static void par_twice(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, KID);
	weir_await(st, ev, next_again);
}

/* Half of the parents, which await children in a queue of the old graph, are in a family. It ends while
 * the new graph runs, before the old one is drained. Members that are offered to the new graph end, too. */
static void test_family(void)
{
	static const char *const uses[] = {"t.par", "t.loop", "t.flat"};

	for (int i = 0; i < 3; i++) {
		struct weir_errs errs = {0};
		struct weir_family *family = weir_family_new(NULL);
		struct weir_spec *second = rig_spec(uses[i]); /* resets what threads read */
		struct weir_spec *first = rig_spec(uses[i]);
		on_par = par_twice;
		rig_start(first);
		atomic_store(&n_next, 0);
		struct weir_graph *old = g;
		steer(old, "kid", WEIR_STEER_PAUSE);
		for (int k = 0; k < PAR_EVENTS + 2; k++) {
			weir_event_init(&probes[k].ev, &probe_type, clock_now_ns());
			weir_family_join(k % 2 ? family : NULL, &probes[k].ev);
		}
		for (int k = 0; k < PAR_EVENTS; k++)
			rig_offer(k);
		FIXTURE_AWAIT(
		    queue_length(&weir_graph_stage(old, "kid")->sink.queue) == PAR_EVENTS);
		struct weir_graph *next = fixture_build(second);
		CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next, old, &errs), 0);
		weir_family_end(family);
		weir_thread_detach();
		finish_graph(old, 0);
		for (int k = 0; k < PAR_EVENTS; k++)
			CU_ASSERT_EQUAL(probes[k].status, k % 2 ? WEIR_ECANCELLED : WEIR_OK);
		/* of the first awaits all children ended, of the second ones those of no family */
		CU_ASSERT_EQUAL(fixture_ended(), 2 * PAR_EVENTS + PAR_EVENTS / 2);
		CU_ASSERT_EQUAL(atomic_load(&n_next), PAR_EVENTS / 2);
		CU_ASSERT_EQUAL(weir_family_memory(family), sizeof(struct probe));
		g = next;
		par = weir_graph_stage(g, "par");
		CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
		steer(g, "kid", WEIR_STEER_RUN); /* it has inherited the pause */
		rig_offer(PAR_EVENTS);
		rig_offer(PAR_EVENTS + 1);
		rig_end(2 * PAR_EVENTS + PAR_EVENTS / 2 + 4);
		CU_ASSERT_EQUAL(probes[PAR_EVENTS].status, WEIR_OK);
		CU_ASSERT_EQUAL(probes[PAR_EVENTS + 1].status, WEIR_ECANCELLED);
		CU_ASSERT_EQUAL(weir_family_memory(family), 0);
		weir_family_put(family);
	}
}

/* ---- a drain looks while a child ends ---- */

static atomic_int batch_n;
static atomic_bool blocks, in_finish;

/* Ends its events in one call. */
static void batch_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	atomic_store(&batch_n, n);
	weir_event_finish_run(ev, n, WEIR_OK);
}

static const struct weir_stage_ops batch_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.batch",
    .summary = "ends its events in one call",
    .accepts = &probe_type,
    .handle = batch_handle};

static void block_first(struct probe *p, int status)
{
	(void)status;
	if (p != &probes[0] || !atomic_load(&blocks))
		return;
	atomic_store(&in_finish, true);
	FIXTURE_AWAIT(!atomic_load(&blocks));
}

static void *drains(void *arg)
{
	struct weir_drain_report *r = arg;

	weir_graph_drain(g, 100 * NS_PER_S, r);
	return NULL;
}

static void par_by_number(struct weir_stage *st, struct weir_event **ev)
{
	if (((struct probe *)*ev)->seq == 0) {
		weir_emit(st, KID, ev);
		return;
	}
	rig_child(st, *ev, KID);
	weir_await(st, ev, next_ends);
}

/* In one call, an event and a child end. While `finish` of the first one runs, both are counted as ended
 * and the parent of the child still as awaiting, as if it awaited a held event. The drain must not take
 * this for rest: it would close the queue before the parent gets its continuation. */
static void test_quiet(void)
{
	struct weir_spec *spec = rig_spec("t.par");
	struct weir_drain_report r;
	pthread_t drainer;

	weir_spec_text(&spec->stages[0].use, "t.batch");
	fixture_set(&spec->stages[0], "threads.max", "1");
	fixture_set(&spec->stages[0], "cohort.max", "2");
	fixture_set(&spec->stages[0], "cohort.linger", "1s"); /* so that the batch is full */
	rig_start(spec);
	on_par = par_by_number;
	atomic_store(&n_next, 0);
	atomic_store(&in_finish, false);
	atomic_store(&blocks, true);
	fixture_on_finish = block_first;
	steer(g, "kid", WEIR_STEER_PAUSE);
	struct queue *q = &weir_graph_stage(g, "kid")->sink.queue;
	for (int i = 0; i < 2; i++) {
		rig_offer(i);
		FIXTURE_AWAIT(queue_length(q) == (uint32_t)i + 1);
	}
	weir_thread_detach();
	steer(g, "kid", WEIR_STEER_RUN);
	FIXTURE_AWAIT(atomic_load(&in_finish));
	CU_ASSERT_EQUAL(atomic_load(&batch_n), 2);
	pthread_create(&drainer, NULL, drains, &r);
	/* time for the drain to look, many times; it has nothing to show for it */
	for (int64_t end_ns = clock_now_ns() + 50 * NS_PER_MS; clock_now_ns() < end_ns;)
		sched_yield();
	atomic_store(&blocks, false);
	pthread_join(drainer, NULL);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(fixture_ended(), 3);
	CU_ASSERT_EQUAL(atomic_load(&n_next), 1);
	CU_ASSERT_EQUAL(probes[1].status, WEIR_OK);
	weir_graph_free(g);
}

static void test_register(void)
{
	rig_register();
	fixture_register(&batch_ops);
}

CUNIT_MAIN("op reload", {"register", test_register}, {"family", test_family}, {"quiet", test_quiet})
