/* SPDX-License-Identifier: MIT */
/* Shared by the tests of weir_hold_until: a stage that holds what it gets with tickets, and a graph
 * with it. */
#ifndef WEIR_TESTS_UNIT_GRAPH_WAIT_RIG_H
#define WEIR_TESTS_UNIT_GRAPH_WAIT_RIG_H

#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "graph/graph.h"

#define M     2000
#define WIDTH 8
#define HOUR  (3600 * NS_PER_S)

static _Atomic uint64_t tickets[M];   /* by the number of the probe */
static _Atomic int64_t hold_until[M]; /* what the handler passes on */
static atomic_int handled, gave_back, in_call, overlaps, exits_at;
static atomic_bool finishes_expired, emits_expired, requeues_expired;

static inline int number_of(const struct weir_event *ev)
{
	return (int)((const struct probe *)ev - probes);
}

static inline void enter(void)
{
	if (atomic_fetch_add(&in_call, 1) > 0)
		atomic_fetch_add(&overlaps, 1);
	sched_yield();
}

static inline void wait_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	enter();
	for (int i = 0; i < n; i++) {
		int at = number_of(ev[i]);
		atomic_store(
		    &tickets[at], weir_hold_until(st, &ev[i], atomic_load(&hold_until[at])));
	}
	atomic_fetch_sub(&in_call, 1);
	atomic_fetch_add(&handled, n);
}

static inline void wait_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	enter();
	for (int i = 0; i < n; i++) {
		WEIR_ASSERT(ev[i]->state == WEIR_EVENT_HELD);
		if (atomic_fetch_add(&gave_back, 1) == atomic_load(&exits_at)) {
			atomic_fetch_sub(&in_call, 1);
			pthread_exit(NULL);
		}
		if (atomic_load(&finishes_expired))
			weir_event_finish(&ev[i], WEIR_EFAILED);
		else if (atomic_load(&emits_expired))
			weir_emit(st, 0, &ev[i]);
		else if (atomic_load(&requeues_expired)) {
			atomic_store(&hold_until[number_of(ev[i])], WEIR_NO_DEADLINE);
			weir_requeue(st, &ev[i]);
		}
	}
	atomic_fetch_sub(&in_call, 1);
}

static const struct weir_stage_ops wait_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.wait",
    .summary = "holds with tickets, and gets back what expires",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = wait_handle,
    .expired = wait_expired};

static const struct weir_stage_ops plain_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.plain",
    .summary = "holds with tickets, and has no expired",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = wait_handle};

static bool inlined; /* the stage runs in the threads of its senders */
static struct weir_graph *g;
static struct weir_stage *stage;
static int offered;

static inline struct weir_stage_spec *spec_of(struct weir_spec *spec, const char *use, int threads)
{
	fixture_stage(spec, "end", "t.end", NULL); /* moves the stages before it */
	struct weir_stage_spec *s = fixture_stage(spec, "wait", use, "end");

	fixture_set(s, "queue.limit", "2000");
	fixture_set(s, "width.policy", "static");
	fixture_set(s, "slo", "1h");
	fixture_set(s, "threads.max", threads == 1 ? "1" : "3");
	fixture_set(s, "threads.min", threads == 1 ? "1" : "3");
	s->inlined = inlined;
	return s;
}

static inline void start(struct weir_spec *spec)
{
	prepare(M);
	offered = 0;
	atomic_store(&handled, 0);
	atomic_store(&gave_back, 0);
	atomic_store(&overlaps, 0);
	atomic_store(&exits_at, -1);
	atomic_store(&finishes_expired, false);
	atomic_store(&emits_expired, false);
	atomic_store(&requeues_expired, false);
	g = fixture_start(spec);
	stage = weir_graph_stage(g, "wait");
	weir_thread_attach(g, "test");
}

static inline void start_simple(const char *use, int threads)
{
	struct weir_spec *spec = weir_spec_new("tickets");

	spec_of(spec, use, threads);
	start(spec);
}

/* Offer an event that the handler holds until `until_ns`. Returns its number. */
static inline int offer(int64_t until_ns, int64_t deadline_ns)
{
	struct weir_event *ev = &probes[offered].ev;

	atomic_store(&tickets[offered], 0);
	atomic_store(&hold_until[offered], until_ns);
	weir_event_init(ev, &probe_type, 1);
	ev->key = (uint64_t)offered;
	ev->deadline_ns = deadline_ns;
	CU_ASSERT_EQUAL_FATAL(weir_offer(stage, &ev, 1, NULL), 1);
	return offered++;
}

static inline void end(void)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)offered);
	check_each_once(offered);
	FIXTURE_AWAIT(queue_kept_all(&stage->sink.queue) == 0); /* a batch may not be settled yet */
	weir_thread_detach();
	finish_graph(g, 0);
}

static inline bool is_ended(int at)
{
	return atomic_load(&probes[at].finishes) > 0;
}

/* Claim and finish event `at`, which must be held. */
static inline void claim(int at)
{
	FIXTURE_AWAIT(atomic_load(&tickets[at]) != 0);
	struct weir_event *ev = weir_hold_claim(stage, atomic_load(&tickets[at]));
	CU_ASSERT_PTR_EQUAL_FATAL(ev, &probes[at].ev);
	CU_ASSERT(ev->state == WEIR_EVENT_HELD);
	weir_event_finish(&ev, WEIR_OK);
}

#endif
