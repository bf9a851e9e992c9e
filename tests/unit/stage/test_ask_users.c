/* SPDX-License-Identifier: MIT */
/* What policies learn about users at a sink (admission/fair.h): when they learn it, which events
 * count as the same user's, and the part that a token contains. */
#include "admit_rig.h"

#include "admission/fair.h"

static float demand[WEIR_BATCH_MAX]; /* as seen by the policy at the last call */
static bool shown;
static int64_t at_ns;

static int admit(void *state, const struct weir_admission_spec *p, const struct admission_view *v,
    int class_id, int n, bool *refused, int *reason)
{
	shown = v->fair != NULL;
	for (int i = 0; i < n && shown; i++) {
		demand[i] = v->demand[i];
		fair_decided(v->fair, class_id, 0.5);
	}
	return test_admit(state, p, v, class_id, n, refused, reason);
}

static struct admission_policy fair_policy;

static void start_fair(void)
{
	rig_start();
	fair_policy = policy;
	fair_policy.fair = true;
	fair_policy.admit = admit;
	front->policy = &fair_policy;
	at_ns = NOW_NS;
	shown = false;
}

static void tick(void)
{
	sink_tick(front, &(struct admission_sample){.now_ns = at_ns += 10000000});
}

/* Offer one event for each session in session[0..n). Returns how many were refused; those are in
 * ev. */
static int offer_sessions(const uint32_t *session, int n, struct weir_event **ev)
{
	struct weir_event *taken[WEIR_BATCH_MAX];

	while (take(front, taken))
		;
	for (int i = 0; i < n; i++) {
		memset(&probes[i].ev, 0, sizeof(probes[i].ev));
		weir_event_init(&probes[i].ev, &probe_type, 1);
		probes[i].ev.session = session[i];
		ev[i] = &probes[i].ev;
	}
	return n - sink_offer(front, ev, n, WEIR_NO_STAGE, at_ns, &book[front->id], reasons);
}

/* A server without users, or with idle threads, does not pay for shares. */
static void test_learned_only_when_needed(void)
{
	static const uint32_t nobody[] = {0, 0, WEIR_SESSION_RETRY}, one[] = {7};
	struct weir_event *ev[WEIR_BATCH_MAX];

	start_fair();
	offer_sessions(nobody, 3, ev);
	tick();
	CU_ASSERT_PTR_NULL(front->fair);
	idle = true;
	offer_sessions(one, 1, ev);
	tick();
	CU_ASSERT_PTR_NULL(front->fair);
	idle = false;
	offer_sessions(one, 1, ev);
	CU_ASSERT_FALSE(shown);
	tick();
	CU_ASSERT_PTR_NOT_NULL_FATAL(front->fair);
	offer_sessions(one, 1, ev);
	CU_ASSERT_TRUE(shown);
	idle = true;
	offer_sessions(one, 1, ev);
	CU_ASSERT_FALSE(shown);
	rig_end();
}

/* A retry belongs to the same user; all events without a user belong to one. */
static void test_whose(void)
{
	static const uint32_t first[] = {7},
			      run[] = {7, 8, 7 | WEIR_SESSION_RETRY, 0, 0, WEIR_SESSION_RETRY};
	static const float expected[] = {1, 1, 2, 1, 2, 3};
	struct weir_event *ev[WEIR_BATCH_MAX];

	start_fair();
	offer_sessions(first, 1, ev);
	tick(); /* creates the shares */
	tick(); /* creates the table of users */
	offer_sessions(run, 6, ev);
	for (int i = 0; i < 6; i++)
		CU_ASSERT_DOUBLE_EQUAL(demand[i], expected[i], 1e-3);
	rig_end();
}

/* Half is served, so the part of the class is 0.5. Users 1 to 9 send one request each, user 10
 * sends 91. */
static void test_tokens_name_the_user_s_part(void)
{
	uint32_t session[100];
	struct weir_event *ev[WEIR_BATCH_MAX];
	struct shed_token t;

	start_fair();
	for (int i = 0; i < 100; i++)
		session[i] = i < 9 ? (uint32_t)i + 1 : 10;
	for (int i = 0; i < 5000; i++) {
		offer_sessions(session, 64, ev);
		tick();
		offer_sessions(session + 36, 64, ev);
	}
	answer = none;
	CU_ASSERT_EQUAL_FATAL(offer_sessions(session, 20, ev), 20);
	for (int i = 0; i < 20; i++) {
		CU_ASSERT_TRUE_FATAL(shed_token_unpack(ev[i]->trace_id, &t));
		if (i < 9)
			CU_ASSERT_EQUAL(t.part, shed_token_part(1));
		if (i >= 9)
			CU_ASSERT(t.part > shed_token_part(0.35) && t.part < shed_token_part(0.5));
	}
	rig_end();
}

CUNIT_MAIN("users at a sink", {"types are known", test_prepare},
    {"learned only when needed", test_learned_only_when_needed}, {"whose events", test_whose},
    {"tokens name the user's part", test_tokens_name_the_user_s_part})
