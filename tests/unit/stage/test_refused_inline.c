/* SPDX-License-Identifier: MIT */
/* Events that reach an inline stage in a thread that the stage has refused (thread_init). Here that
 * is the thread of a drain, the only one that is certain to be refused. The events fail and leave
 * no count behind, and thread_init is called again with zeroed thread state. */
#include "fixture/graph/probes.h"

#include "graph/graph.h"

/* Calls of thread_init that succeed, and calls that found thread state in use. */
static atomic_int allowed, dirty;
static struct weir_event *_Atomic held_first, *_Atomic held_second;
static atomic_bool requeues;

static void hold(struct weir_stage *st, struct weir_event **slot, struct weir_event *_Atomic *place)
{
	struct weir_event *ev = *slot;

	weir_hold(st, slot);
	atomic_store(place, ev);
}

static void first_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	CU_ASSERT_EQUAL(n, 1);
	hold(st, &ev[0], &held_first);
}

/* Runs in the thread of the drain. */
static void first_stop(struct weir_stage *st, int64_t until_ns)
{
	struct weir_event *ev = atomic_exchange(&held_first, NULL);

	(void)until_ns;
	if (ev)
		weir_emit(st, 0, &ev);
}

static int second_thread_init(struct weir_stage *st)
{
	int *used = weir_thread_state(st);

	atomic_fetch_add(&dirty, *used != 0);
	*used = 1;
	return atomic_fetch_sub(&allowed, 1) > 0 ? 0 : WEIR_ESYS;
}

static void second_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	CU_ASSERT_EQUAL(n, 1);
	hold(st, &ev[0], &held_second);
}

static void second_stop(struct weir_stage *st, int64_t until_ns)
{
	struct weir_event *ev = atomic_exchange(&held_second, NULL);

	(void)until_ns;
	if (ev && atomic_load(&requeues))
		weir_requeue(st, &ev);
	else if (ev)
		weir_event_finish(&ev, WEIR_OK);
}

static const struct weir_stage_ops first_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.first",
    .summary = "holds an event and passes it on in the end",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = first_handle,
    .stop = first_stop};

static const struct weir_stage_ops second_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.second",
    .summary = "holds an event, refuses threads",
    .accepts = &probe_type,
    .thread_state_size = sizeof(int),
    .thread_init = second_thread_init,
    .handle = second_handle,
    .stop = second_stop};

/* first -> second, which is inline; each holds one event. From now on `second` accepts this many
 * threads. */
static struct weir_graph *start(int allowed_later)
{
	struct weir_spec *spec = weir_spec_new("refused");

	prepare(2);
	weir_log_set_fd(-1);
	atomic_store(&allowed, 1000);
	atomic_store(&dirty, 0);
	atomic_store(&requeues, false);
	fixture_set(fixture_stage(spec, "first", "t.first", "second"), "threads.max", "1");
	fixture_stage(spec, "second", "t.second", NULL)->inlined = true;
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "first"), probes, 1, 1);
	fixture_offer_all(weir_graph_stage(g, "second"), probes + 1, 1, 1);
	FIXTURE_AWAIT(atomic_load(&held_first) && atomic_load(&held_second));
	weir_thread_detach();
	atomic_store(&allowed, allowed_later);
	return g;
}

static void drain(struct weir_graph *g)
{
	struct weir_drain_report r;

	weir_graph_drain(g, 10 * 1000000000LL, &r);
	CU_ASSERT_EQUAL(r.law_error, 0);
	check_each_once(2);
}

static void end(struct weir_graph *g)
{
	weir_graph_free(g);
	weir_log_set_fd(2);
}

/* Admission counted the event as one that may be held. That count must be gone after it failed. */
static void test_no_place_is_lost(void)
{
	struct weir_graph *g = start(0);

	drain(g);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_EFAILED);
	CU_ASSERT_EQUAL(probes[1].status, WEIR_OK);
	CU_ASSERT_EQUAL(queue_kept_all(&weir_graph_stage(g, "second")->sink.queue), 0);
	end(g);
}

/* An event that returns by weir_requeue fails like one that comes for the first time. */
static void test_requeued(void)
{
	struct weir_graph *g = start(0);

	atomic_store(&requeues, true);
	drain(g);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_EFAILED);
	CU_ASSERT_EQUAL(probes[1].status, WEIR_EFAILED);
	end(g);
}

/* A failed thread_init may leave anything in the state, which must not be passed to the next
 * call. */
static void test_state_is_zeroed_again(void)
{
	struct weir_graph *g = start(0);

	drain(g);
	/* Refused at the start, and for the event. */
	CU_ASSERT_TRUE(atomic_load(&allowed) <= -2);
	CU_ASSERT_EQUAL(atomic_load(&dirty), 0);
	end(g);
}

static void test_prepare(void)
{
	fixture_register(&first_ops);
	fixture_register(&second_ops);
}

CUNIT_MAIN("refused inline", {"types are known", test_prepare},
    {"no place is lost", test_no_place_is_lost},
    {"state is zeroed again", test_state_is_zeroed_again}, {"requeued", test_requeued})
