/* SPDX-License-Identifier: MIT */
/* Admission upstream (stage/admit.h): the counts that fronts receive of the events judged for them,
 * and the work in flight to them. */
#include "admit_rig.h"

/* ---- counts ---- */

/* Asked: all events that are not past their deadline. Wanted: those of them that nothing else
 * refuses. */
static void test_counts(void)
{
	struct weir_event *ev[RUN];

	rig_start();
	answer = odd_places;
	queue_set_limit(&a->queue, 5);
	CU_ASSERT_EQUAL(offer(a, 0, RUN, ev), 5); /* 20 refused by the front, 15 by the limit */
	CU_ASSERT_EQUAL(front->decided[0].offered, RUN);
	CU_ASSERT_EQUAL(front->decided[0].refused, RUN / 2);
	CU_ASSERT_EQUAL(atomic_load(&front->wanted_ahead[0]), RUN / 2 + 5);
	CU_ASSERT_EQUAL(front->decided[0].wanted, 0); /* counts only its own admission */
	CU_ASSERT_EQUAL(atomic_load(&front->pipeline_ns), 5 * COST);
	CU_ASSERT_EQUAL(shed(a, 0, WEIR_EQUEUE), 15);
	CU_ASSERT_EQUAL(shed(a, 0, WEIR_EPRIORITY), RUN / 2);
	rig_end();
}

static void test_expired_are_not_asked_about(void)
{
	struct weir_event *ev[RUN];

	rig_start();
	for (int i = 0; i < RUN; i++) {
		memset(&probes[i].ev, 0, sizeof(probes[i].ev));
		weir_event_init(&probes[i].ev, &probe_type, 1);
		probes[i].ev.deadline_ns = i < 10 ? NOW_NS : NOW_NS + 1000;
		ev[i] = &probes[i].ev;
	}
	CU_ASSERT_EQUAL(offer_at(a, NULL, ev, RUN), RUN - 10);
	CU_ASSERT_EQUAL(asked_events, RUN - 10);
	CU_ASSERT(seen.left_ns != NULL);
	CU_ASSERT_EQUAL(front->decided[0].offered, RUN - 10);
	CU_ASSERT_EQUAL(atomic_load(&front->wanted_ahead[0]), RUN - 10);
	rig_end();
}

/* b is a front as well. Each front is asked about the events that the previous one admitted, and
 * neither wants the events that the other refuses. */
static void test_two_fronts(void)
{
	struct weir_event *ev[RUN];

	rig_start();
	front->fronts[1] = b; /* as if b's policy had `.front` */
	b->front = 1;
	b->policy = &policy;
	make_gate(a, b, true);
	answer = odd_places;
	CU_ASSERT_EQUAL(offer(a, 0, RUN, ev), RUN / 4);
	CU_ASSERT_EQUAL(asked, 2);
	CU_ASSERT_EQUAL(asked_events, RUN + RUN / 2);
	CU_ASSERT_EQUAL(front->decided[0].offered + b->decided[0].offered, 2 * RUN);
	CU_ASSERT_EQUAL(front->decided[0].refused, RUN / 2);
	CU_ASSERT_EQUAL(b->decided[0].refused, RUN / 4);
	CU_ASSERT_EQUAL(atomic_load(&front->wanted_ahead[0]), RUN / 4 + RUN / 2);
	CU_ASSERT_EQUAL(atomic_load(&b->wanted_ahead[0]), RUN / 4 + RUN / 4);
	CU_ASSERT_EQUAL(atomic_load(&front->refused_ahead[0]), RUN / 2);
	CU_ASSERT_EQUAL(atomic_load(&b->refused_ahead[0]), RUN / 4);
	rig_end();
}

/* ---- work in flight ---- */

static void test_pipeline(void)
{
	struct weir_event *ev[WEIR_BATCH_MAX];

	rig_start();
	CU_ASSERT_EQUAL(offer(a, 0, RUN, ev), RUN);
	CU_ASSERT_EQUAL(atomic_load(&front->pipeline_ns), RUN * COST);
	int n = take(a, ev);
	CU_ASSERT_EQUAL(offer_at(b, a, ev, n), RUN); /* still in flight */
	CU_ASSERT_EQUAL(atomic_load(&front->pipeline_ns), RUN * COST);
	n = take(b, ev);
	CU_ASSERT_EQUAL(offer_at(front, b, ev, n), RUN);
	CU_ASSERT_EQUAL(atomic_load(&front->pipeline_ns), 0);
	rig_end();
}

/* The policy sees queued work and work in flight; a negative amount counts as 0. */
static void test_work_that_is_seen(void)
{
	struct weir_event *ev[RUN], *one[1] = {&probes[RUN].ev};

	rig_start();
	CU_ASSERT_EQUAL(offer(a, 0, RUN, ev), RUN);
	CU_ASSERT_EQUAL(seen.work_ns, 0);
	weir_event_init(one[0], &probe_type, 1);
	CU_ASSERT_EQUAL(offer_at(front, NULL, one, 1), 1);
	/* At the front itself, nothing in flight arrives before the event. */
	CU_ASSERT_EQUAL(seen.work_ns, 0);
	CU_ASSERT_EQUAL(offer(b, 0, 1, ev), 1);
	CU_ASSERT_EQUAL(seen.work_ns, (RUN + 1) * COST);
	CU_ASSERT_EQUAL(seen.cost_ns, COST);
	atomic_store(&b->ahead->before[0][front->front], AHEAD_ALL / 2); /* the rest comes later */
	CU_ASSERT_EQUAL(offer(b, 0, 1, ev), 1);
	CU_ASSERT_EQUAL(seen.work_ns, (RUN + 1) * COST / 2 + COST);
	atomic_store(&front->pipeline_ns, -123456);
	CU_ASSERT_EQUAL(offer(b, 0, 1, ev), 1);
	CU_ASSERT_EQUAL(seen.work_ns, COST);
	rig_end();
}

/* Each event of class 0 brings four children to the front, each one of class 1 none, which counts as one.
 * The front counts children, and class 1 is judged behind the children of class 0. */
static void test_children(void)
{
	struct weir_event *ev[RUN + 8];

	rig_start();
	atomic_store(&a->ahead->fan[0][front->front], 4);
	atomic_store(&a->ahead->fronts[1], (uint16_t)(1U << front->front));
	for (int i = 0; i < RUN + 8; i++) {
		memset(&probes[i].ev, 0, sizeof(probes[i].ev));
		weir_event_init(&probes[i].ev, &probe_type, 1);
		probes[i].ev.class_id = i >= RUN;
		ev[i] = &probes[i].ev;
	}
	CU_ASSERT_EQUAL(offer_at(a, NULL, ev, RUN + 8), RUN + 8);
	CU_ASSERT_EQUAL(asked_class, 1);
	CU_ASSERT_EQUAL(seen.work_ns, 4 * RUN * COST);
	CU_ASSERT_EQUAL(seen.length, 4 * RUN);
	CU_ASSERT_EQUAL(front->decided[0].offered, 4 * RUN);
	CU_ASSERT_EQUAL(front->decided[1].offered, 8);
	CU_ASSERT_EQUAL(atomic_load(&front->wanted_ahead[0]), 4 * RUN);
	CU_ASSERT_EQUAL(atomic_load(&front->wanted_ahead[1]), 8);
	CU_ASSERT_EQUAL(atomic_load(&front->pipeline_ns),
	    (4 * RUN + 2 * 8) * COST); /* class 1 costs twice as much */
	answer = odd_places;
	CU_ASSERT_EQUAL(offer(a, 0, RUN, ev), RUN / 2);
	CU_ASSERT_EQUAL(front->decided[0].refused, 4 * RUN / 2);
	CU_ASSERT_EQUAL(atomic_load(&front->wanted_ahead[0]), 8 * RUN);
	CU_ASSERT_EQUAL(atomic_load(&front->refused_ahead[0]), RUN / 2); /* events at the gate */
	CU_ASSERT_EQUAL(atomic_load(&front->pipeline_ns), (6 * RUN + 2 * 8) * COST);
	rig_end();
}

/* A thread that is idle now does not count as idle if enough work is in flight to arrive first. */
static void test_idle(void)
{
	struct weir_event *ev[1];
	const int64_t enough = 2 * (LEAD + COST); /* two threads */

	rig_start();
	idle = true;
	CU_ASSERT_EQUAL(offer(a, 0, 1, ev), 1);
	CU_ASSERT_TRUE(seen.idle);
	atomic_store(&front->pipeline_ns, enough);
	CU_ASSERT_EQUAL(offer(a, 0, 1, ev), 1);
	CU_ASSERT_TRUE(seen.idle);
	atomic_store(&front->pipeline_ns, enough + 2);
	CU_ASSERT_EQUAL(offer(a, 0, 1, ev), 1);
	CU_ASSERT_FALSE(seen.idle);
	rig_end();
}

/* At the front itself nothing arrives before the event, however much is in flight. Idle threads
 * count as idle, and only the length of the queue matters. */
static void test_own_door_is_free(void)
{
	struct weir_event *ev[1];

	rig_start();
	idle = true;
	atomic_store(&front->pipeline_ns, 10000000000LL);
	CU_ASSERT_EQUAL(offer(front, 0, 1, ev), 1);
	CU_ASSERT_EQUAL(asked, 1);
	CU_ASSERT_EQUAL(seen.idle, 1);
	CU_ASSERT_EQUAL(seen.work_ns, 0);
	CU_ASSERT_EQUAL(seen.lead_ns, 0);
	rig_end();
}

CUNIT_MAIN("work ahead", {"types are known", test_prepare}, {"counts", test_counts},
    {"expired ones are not asked about", test_expired_are_not_asked_about},
    {"two fronts", test_two_fronts}, {"work on its way", test_pipeline},
    {"work that is seen", test_work_that_is_seen}, {"children", test_children}, {"idle", test_idle},
    {"the own door is free", test_own_door_is_free})
