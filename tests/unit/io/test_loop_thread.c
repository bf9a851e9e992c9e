/* SPDX-License-Identifier: MIT */
/* The thread of a loop ends inside an inline stage. Another thread takes over at whatever point of
 * the iteration that happens, and every event finishes once. Also: a held loop is visible as held
 * to the other loops of its source. */
#include <stdatomic.h>
#include <unistd.h>

#include <weir/io.h>

#include "fixture/graph/probes.h"

enum { LOOPS = 2, EVENTS = 300 };

static struct weir_loop *_Atomic loop[LOOPS];
static atomic_int emitted, wanted, told_held, told_free, stops;
static atomic_int tids[EVENTS + 1];

/* The first loop emits one event per iteration; the second notes whether the first is held. */
static void on_turn_end(struct weir_loop *l)
{
	struct weir_stage *st = weir_loop_stage(l);

	if (l == loop[1]) {
		struct weir_loop *first = atomic_load(&loop[0]);
		if (weir_loop_held(first) && weir_loops_held(st) == 1)
			atomic_store(&told_held, 1);
		else if (atomic_load(&told_held) && weir_loops_held(st) == 0)
			atomic_store(&told_free, 1);
		return;
	}
	if (atomic_load(&emitted) == atomic_load(&wanted))
		return;
	struct weir_event *ev = &probes[atomic_fetch_add(&emitted, 1)].ev;
	weir_event_init(ev, &probe_type, 1);
	weir_emit(st, 0, &ev);
}

static void on_mail(struct weir_loop *l, struct weir_event *list)
{
	(void)l, (void)list;
}

static int on_start(struct weir_loop *l)
{
	loop[loop[0] ? 1 : 0] = l;
	return 0;
}

/* The last event ends the thread in the last flush. */
static void on_stop(struct weir_loop *l)
{
	atomic_fetch_add(&stops, 1);
	if (l != loop[0])
		return;
	struct weir_event *ev = &probes[EVENTS].ev;
	weir_event_init(ev, &probe_type, 1);
	weir_emit(weir_loop_stage(l), 0, &ev);
}

static const struct weir_loop_ops loop_ops = {
    .start = on_start, .stop = on_stop, .mail = on_mail, .turn_end = on_turn_end};

static int source_start(struct weir_stage *st, struct weir_err *err)
{
	struct weir_loop *l;
	int rc = 0;

	(void)err;
	for (int i = 0; i < LOOPS && rc == 0; i++)
		rc = weir_loop_start(st, i, &loop_ops, NULL, &l);
	return rc;
}

static void source_fini(struct weir_stage *st)
{
	(void)st;
	for (int i = 0; i < LOOPS; i++)
		weir_loop_stop(loop[i]);
	while (atomic_load(&stops) < LOOPS) /* the loops access each other */
		sched_yield();
	for (int i = 0; i < LOOPS; i++)
		weir_loop_join(loop[i]);
	loop[0] = loop[1] = NULL;
}

static const struct weir_stage_ops source_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_SOURCE,
    .name = "t.loops",
    .summary = "runs two loops",
    .outlets = pass_outlets,
    .start = source_start,
    .fini = source_fini};

/* Ends its thread at every third event. */
static void third_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		uint64_t seq = ((struct probe *)ev[i])->seq;
		atomic_store(&tids[seq], (int)gettid());
		if (seq % 3 == 0)
			pthread_exit(NULL);
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops third_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.third",
    .summary = "ends its thread",
    .accepts = &probe_type,
    .handle = third_handle};

static void held_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	if (((struct probe *)ev[0])->seq == 0)
		FIXTURE_AWAIT(atomic_load(&probe_gate));
	end_handle(st, ev, n);
}

static const struct weir_stage_ops held_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.held",
    .summary = "holds its thread",
    .accepts = &probe_type,
    .handle = held_handle};

static struct weir_graph *begin(const char *use)
{
	struct weir_spec *spec = weir_spec_new("loops");
	struct weir_stage_spec *end;

	prepare(EVENTS + 1);
	atomic_store(&emitted, 0);
	atomic_store(&wanted, 0);
	atomic_store(&stops, 0);
	weir_log_set_fd(-1);
	fixture_stage(spec, "src", "t.loops", "end");
	end = fixture_stage(spec, "end", use, NULL);
	end->inlined = true;
	end->threads.stuck_ns = 20000000;
	return fixture_start(spec);
}

/* Wait until `n` events have been emitted in total. */
static void emit(int n)
{
	atomic_store(&wanted, n);
	while (atomic_load(&emitted) < n) {
		weir_loop_wake(loop[0]);
		sched_yield();
	}
}

static void finish(struct weir_graph *g)
{
	finish_graph(g, 0);
	CU_ASSERT_EQUAL(atomic_load(&stops), LOOPS);
	check_each_once(EVENTS + 1);
	weir_log_set_fd(2);
}

static void test_another_thread_takes_its_place(void)
{
	struct weir_graph *g = begin("t.third");

	emit(EVENTS);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	FIXTURE_AWAIT(stage_view(g, "src").thread_deaths == EVENTS / 3);
	for (int i = 0; i < EVENTS; i++)
		CU_ASSERT_EQUAL(probes[i].status, i % 3 == 0 ? WEIR_EDIED : WEIR_OK);
	for (int i = 0; i + 1 < EVENTS; i++) /* the same thread until it ends, then another */
		CU_ASSERT_EQUAL(atomic_load(&tids[i]) == atomic_load(&tids[i + 1]), i % 3 != 0);
	finish(g);
	CU_ASSERT_EQUAL(probes[EVENTS].status, WEIR_EDIED);
}

static void test_a_held_loop_is_told(void)
{
	struct weir_graph *g;

	atomic_store(&told_held, 0);
	atomic_store(&told_free, 0);
	atomic_store(&probe_gate, 0);
	g = begin("t.held");
	emit(1);
	FIXTURE_AWAIT(atomic_load(&told_held));
	FIXTURE_AWAIT(strstr(stage_view(g, "end").trouble, "I/O thread 'src/io0'") != NULL);
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(atomic_load(&told_free));
	FIXTURE_AWAIT(stage_view(g, "end").trouble[0] == '\0');
	emit(EVENTS);
	finish(g);
}

static void test_prepare(void)
{
	fixture_register(&source_ops);
	fixture_register(&third_ops);
	fixture_register(&held_ops);
}

CUNIT_MAIN("loop thread", {"types are known", test_prepare},
    {"another thread takes its place", test_another_thread_takes_its_place},
    {"a held loop is told", test_a_held_loop_is_told})
