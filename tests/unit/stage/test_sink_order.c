/* SPDX-License-Identifier: MIT */
/* Admission of a mixed run: the highest class is judged first and therefore gets the last slots,
 * whatever the order in the run. Nothing but the test moves events here (admit_rig.h). */
#include "admit_rig.h"

/* Offer a run of alternating classes, the lower one first. */
static int offer_mixed(struct sink *s, int n, struct weir_event **ev)
{
	for (int i = 0; i < n; i++) {
		memset(&probes[i].ev, 0, sizeof(probes[i].ev));
		weir_event_init(&probes[i].ev, &probe_type, 1);
		probes[i].ev.class_id = i % 2 == 0;
		ev[i] = &probes[i].ev;
	}
	return offer_at(s, NULL, ev, n);
}

static void test_high_class_has_the_last_places(void)
{
	struct weir_event *ev[RUN], *out[WEIR_BATCH_MAX];

	rig_start();
	queue_set_limit(&b->queue, 7);
	CU_ASSERT_EQUAL(offer_mixed(b, 10, ev), 7);
	CU_ASSERT_EQUAL(shed(b, 0, WEIR_EQUEUE), 0);
	CU_ASSERT_EQUAL(shed(b, 1, WEIR_EQUEUE), 3);
	CU_ASSERT_EQUAL(take(b, out), 7);
	for (int i = 0; i < 7; i++)
		CU_ASSERT_EQUAL(out[i]->class_id, i >= 5);
	/* The first two of the low class enter; the later ones are refused. */
	CU_ASSERT_PTR_EQUAL(out[5], &probes[0].ev);
	CU_ASSERT_PTR_EQUAL(out[6], &probes[2].ev);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_PTR_EQUAL(ev[i], &probes[4 + 2 * i].ev);
	rig_end();
}

static void test_more_of_the_high_class_than_places(void)
{
	struct weir_event *ev[RUN];

	rig_start();
	queue_set_limit(&b->queue, 3);
	CU_ASSERT_EQUAL(offer_mixed(b, 10, ev), 3);
	CU_ASSERT_EQUAL(shed(b, 0, WEIR_EQUEUE), 2);
	CU_ASSERT_EQUAL(shed(b, 1, WEIR_EQUEUE), 5);
	rig_end();
}

/* For each class, the policy sees the length of the queue including the events admitted before. */
static void test_policy_sees_what_the_higher_class_got(void)
{
	struct weir_event *ev[RUN];

	rig_start();
	CU_ASSERT_EQUAL(offer_mixed(front, 10, ev), 10);
	CU_ASSERT_EQUAL(asked, 2);
	CU_ASSERT_EQUAL(asked_class, 1);
	CU_ASSERT_EQUAL(seen.length, 5);
	rig_end();
}

CUNIT_MAIN("sink order", {"types are known", test_prepare},
    {"the high class has the last places", test_high_class_has_the_last_places},
    {"more of the high class than places", test_more_of_the_high_class_than_places},
    {"a policy sees what the higher class got", test_policy_sees_what_the_higher_class_got})
