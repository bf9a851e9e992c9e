/* SPDX-License-Identifier: MIT */
/* Admission upstream (stage/admit.h): which fronts are asked, which events are refused, and the
 * modes. For counts and work in flight see test_admit_work.c. */
#include "admit_rig.h"

/* ---- refusals ---- */

/* Events refused at the gate on behalf of the front: the gate counts them, the front knows of them,
 * and their tokens show it. */
static void test_refused_at_the_gate(void)
{
	struct weir_event *ev[RUN];
	struct shed_token t;

	rig_start();
	answer = odd_places;
	CU_ASSERT_EQUAL_FATAL(offer(a, 0, RUN, ev), RUN / 2);
	CU_ASSERT_EQUAL(asked, 1);
	CU_ASSERT_EQUAL(seen.lead_ns, LEAD);
	CU_ASSERT_EQUAL(seen.threads, 2);
	for (int i = 0; i < RUN / 2; i++) {
		CU_ASSERT_PTR_EQUAL(ev[i], &probes[2 * i + 1].ev);
		CU_ASSERT_EQUAL(reasons[i], WEIR_EPRIORITY);
		CU_ASSERT_EQUAL(ev[i]->state, WEIR_EVENT_NEW);
		CU_ASSERT_TRUE_FATAL(shed_token_unpack(ev[i]->trace_id, &t));
		CU_ASSERT_EQUAL(t.stage, front->id);
		CU_ASSERT_EQUAL(t.reason_index, weir_shed_index(WEIR_EPRIORITY));
		CU_ASSERT_EQUAL(t.part, shed_token_part(0.5));
	}
	CU_ASSERT_EQUAL(shed(a, 0, WEIR_EPRIORITY), RUN / 2);
	CU_ASSERT_EQUAL(book_read(&book[a->id].class_book[0].offered), RUN);
	CU_ASSERT_EQUAL(book_read(&book[front->id].class_book[0].offered), 0);
	CU_ASSERT_EQUAL(shed(front, 0, WEIR_EPRIORITY), 0);
	CU_ASSERT_EQUAL(atomic_load(&front->refused_ahead[0]), RUN / 2);
	CU_ASSERT_EQUAL(queue_length(&a->queue), RUN / 2);
	CU_ASSERT_EQUAL(probes[0].ev.trace_id, 0); /* admitted events have no token */
	rig_end();
}

static void test_only_the_gate_s_classes(void)
{
	struct weir_event *ev[RUN];

	rig_start();
	answer = none;
	CU_ASSERT_EQUAL(offer(a, 1, RUN, ev), RUN);
	CU_ASSERT_EQUAL(asked, 0);
	CU_ASSERT_EQUAL(atomic_load(&front->pipeline_ns), 0);
	CU_ASSERT_EQUAL(offer(b, 0, RUN, ev), 0); /* from outside: b is a gate as well */
	CU_ASSERT_EQUAL(asked, 1);
	CU_ASSERT_EQUAL(asked_class, 0);
	rig_end();
}

/* The policy is asked at a, and therefore neither at b nor at the front itself. */
static void test_not_again_on_the_way(void)
{
	struct weir_event *ev[WEIR_BATCH_MAX];

	rig_start();
	CU_ASSERT_EQUAL(offer(a, 0, RUN, ev), RUN);
	CU_ASSERT_EQUAL(asked, 1);
	answer = none;
	int n = take(a, ev);
	CU_ASSERT_EQUAL(offer_at(b, a, ev, n), RUN);
	n = take(b, ev);
	CU_ASSERT_EQUAL(offer_at(front, b, ev, n), RUN);
	CU_ASSERT_EQUAL(asked, 1);
	CU_ASSERT_EQUAL(queue_length(&front->queue), RUN);
	/* Events from elsewhere are judged at the front. */
	struct weir_event *one[1] = {&probes[RUN].ev};
	weir_event_init(one[0], &probe_type, 1);
	CU_ASSERT_EQUAL(offer_at(front, NULL, one, 1), 0);
	CU_ASSERT_EQUAL(asked, 2);
	CU_ASSERT_EQUAL(seen.lead_ns, 0);
	CU_ASSERT_EQUAL(atomic_load(&front->refused_ahead[0]), 0);
	rig_end();
}

/* Events that were not judged upstream (class 1 here) are judged by the front's own admission. */
static void test_own_door_for_the_rest(void)
{
	struct weir_event *ev[WEIR_BATCH_MAX];

	rig_start();
	CU_ASSERT_EQUAL(offer(b, 1, RUN, ev), RUN);
	answer = none;
	int n = take(b, ev);
	CU_ASSERT_EQUAL(offer_at(front, b, ev, n), 0);
	CU_ASSERT_EQUAL(asked, 1);
	CU_ASSERT_EQUAL(shed(front, 1, WEIR_EDELAY), RUN);
	rig_end();
}

/* An invalid answer is counted at the front whose policy gave it, and ignored. */
static int below_zero(int n, bool *refused, int *reason)
{
	(void)n, (void)refused;
	*reason = WEIR_EPRIORITY;
	return -5;
}

static int too_many(int n, bool *refused, int *reason)
{
	(void)refused, (void)reason;
	return n + 1;
}

static int wrong_marks(int n, bool *refused, int *reason)
{
	refused[0] = refused[1] = true;
	*reason = WEIR_EPRIORITY;
	return n - 1;
}

static int no_reason(int n, bool *refused, int *reason)
{
	(void)refused, (void)reason;
	return n - 1;
}

static void test_nonsense(void)
{
	static int (*const answers[])(int, bool *, int *) = {
	    below_zero, too_many, wrong_marks, no_reason};

	for (size_t k = 0; k < sizeof(answers) / sizeof(answers[0]); k++) {
		struct weir_event *ev[RUN];
		rig_start();
		answer = answers[k];
		CU_ASSERT_EQUAL(offer(a, 0, RUN, ev), RUN);
		CU_ASSERT_EQUAL(atomic_load(&front->nonsense), 1);
		CU_ASSERT_EQUAL(atomic_load(&a->nonsense), 0);
		CU_ASSERT_EQUAL(atomic_load(&front->refused_ahead[0]), 0);
		CU_ASSERT_EQUAL(front->decided[0].refused, 0);
		rig_end();
	}
}

/* ---- users and their tokens ---- */

static uint16_t shown[WEIR_BATCH_MAX]; /* numbers of the users, at the last question */

static int note_none(int n, bool *refused, int *reason)
{
	memcpy(shown, seen.user, (size_t)n * sizeof(shown[0]));
	(void)refused;
	*reason = WEIR_EPRIORITY;
	return 0;
}

/* Each event without a user counts as a user by itself, for the policy and in tokens alike. */
static void test_anonymous_tokens(void)
{
	struct weir_event *ev[RUN];
	struct shed_token t;
	bool met[256] = {false};
	int different = 0;

	rig_start();
	answer = note_none;
	for (int i = 0; i < RUN; i++) {
		memset(&probes[i].ev, 0, sizeof(probes[i].ev));
		weir_event_init(&probes[i].ev, &probe_type, 1);
		ev[i] = &probes[i].ev;
	}
	CU_ASSERT_EQUAL(offer_at(a, NULL, ev, RUN), 0);
	for (int i = 0; i < RUN; i++) {
		CU_ASSERT_TRUE_FATAL(shed_token_unpack(probes[i].ev.trace_id, &t));
		CU_ASSERT_EQUAL(t.user, shown[i] >> 8);
		different += !met[t.user];
		met[t.user] = true;
	}
	CU_ASSERT(different > RUN / 4); /* by addresses: 37 on average */
	rig_end();
}

/* A full queue states how long its work takes, if the policy of the stage learns service times. */
static void test_wait_of_full_queue(void)
{
	struct weir_event *ev[RUN];
	struct shed_token t;
	const int64_t slo_ns = 32LL * COST;

	rig_start();
	queue_set_limit(&front->queue, 10);
	front->slo_ns = slo_ns;
	CU_ASSERT_EQUAL(offer(front, 0, RUN, ev), 10);
	for (int i = 0; i < RUN - 10; i++) {
		CU_ASSERT_EQUAL(reasons[i], WEIR_EQUEUE);
		CU_ASSERT_TRUE_FATAL(shed_token_unpack(ev[i]->trace_id, &t));
		CU_ASSERT_EQUAL(t.reason_index, weir_shed_index(WEIR_EQUEUE));
		/* ten events, two threads; a wait of COST is one unit of the token */
		CU_ASSERT_EQUAL(t.wait, 5);
		CU_ASSERT_EQUAL(shed_token_retry_ns(&t, true, slo_ns), 5 * COST);
	}
	atomic_store(&front->mean_cost_ns, 0); /* as before the first batch */
	CU_ASSERT_EQUAL(offer_at(front, NULL, ev, 1), 0);
	CU_ASSERT_TRUE_FATAL(shed_token_unpack(ev[0]->trace_id, &t));
	CU_ASSERT_EQUAL(t.wait, SHED_TOKEN_WAIT_UNKNOWN);
	rig_end();
	rig_start();
	queue_set_limit(&a->queue, 10);
	CU_ASSERT_EQUAL(offer(a, 0, RUN, ev), 10);
	CU_ASSERT_TRUE_FATAL(shed_token_unpack(ev[0]->trace_id, &t));
	CU_ASSERT_EQUAL(t.stage, a->id);
	CU_ASSERT_EQUAL(t.wait, SHED_TOKEN_WAIT_UNKNOWN);
	rig_end();
}

/* The user number that the policy sees for probe 0, offered as `session` at now_ns. */
static uint16_t number_at(uint32_t session, int64_t now_ns)
{
	struct weir_event *ev[1] = {&probes[0].ev};

	memset(ev[0], 0, sizeof(*ev[0]));
	weir_event_init(ev[0], &probe_type, 1);
	ev[0]->session = session;
	CU_ASSERT_EQUAL(sink_offer(a, ev, 1, WEIR_NO_STAGE, now_ns, &book[a->id], reasons), 0);
	return shown[0];
}

/* Half of the class is served (test_part in admit_rig.h). A client refused at its first attempt or
 * at a retry is served if it comes back at the time its token states, and would hardly have been
 * served any earlier. */
static void test_back_when_told(void)
{
	/* A token stores the user in units of 1/256 of a rotation and the part in units of 1/127,
	 * rounded. */
	const int64_t slack_ns = SHED_TOKEN_TURN_NS / 256 + SHED_TOKEN_TURN_NS / 254;
	const uint32_t flags[] = {0, WEIR_SESSION_RETRY};
	const uint16_t theta = 32768;
	int refused[2] = {0, 0};

	rig_start();
	answer = note_none;
	for (int k = 0; k < 2; k++)
		for (uint32_t id = 1; id < 400; id++) {
			struct shed_token t;
			bool served = number_at(id | flags[k], NOW_NS) < theta;
			CU_ASSERT_TRUE_FATAL(shed_token_unpack(probes[0].ev.trace_id, &t));
			int64_t told_ns = shed_token_retry_ns(&t, true, 0);
			if (served || told_ns <= slack_ns)
				continue;
			refused[k]++;
			uint32_t again = id | WEIR_SESSION_RETRY;
			CU_ASSERT(number_at(again, NOW_NS + told_ns + slack_ns) < theta);
			CU_ASSERT(number_at(again, NOW_NS + told_ns - slack_ns) >= theta);
		}
	CU_ASSERT(refused[0] > 150 && refused[1] > 250); /* a half, three quarters */
	rig_end();
}

/* ---- modes ---- */

static void check_shadow(void)
{
	struct weir_event *ev[RUN];

	answer = odd_places;
	CU_ASSERT_EQUAL(offer(a, 0, RUN, ev), RUN);
	CU_ASSERT_EQUAL(asked, 1);
	CU_ASSERT_EQUAL(front->decided[0].refused, RUN / 2);
	CU_ASSERT_EQUAL(atomic_load(&front->refused_ahead[0]), 0);
	CU_ASSERT_EQUAL(atomic_load(&front->pipeline_ns), RUN * COST);
	rig_end();
}

static void check_off(void)
{
	struct weir_event *ev[RUN];

	answer = none;
	CU_ASSERT_EQUAL(offer(a, 0, RUN, ev), RUN);
	CU_ASSERT_EQUAL(asked, 0);
	CU_ASSERT_EQUAL(front->decided[0].offered, 0);
	CU_ASSERT_EQUAL(atomic_load(&front->wanted_ahead[0]), 0);
	CU_ASSERT_EQUAL(atomic_load(&front->pipeline_ns), 0);
	rig_end();
}

static void test_modes(void)
{
	rig_start();
	set_mode(front, WEIR_ADMISSION_SHADOW);
	check_shadow();
	rig_start();
	set_mode(front, WEIR_ADMISSION_OFF);
	check_off();
	rig_start(); /* the gate's own mode does not matter */
	set_mode(a, WEIR_ADMISSION_OFF);
	answer = none;
	struct weir_event *ev[RUN];
	CU_ASSERT_EQUAL(offer(a, 0, RUN, ev), 0);
	rig_end();
}

/* Events that would have been refused at the gate are counted by the front, like refused ones. */
static void test_shadow_is_counted(void)
{
	struct weir_event *ev[RUN];

	rig_start();
	set_mode(front, WEIR_ADMISSION_SHADOW);
	answer = odd_places;
	for (int i = 1; i <= 2; i++) {
		CU_ASSERT_EQUAL(offer(a, 0, RUN, ev), RUN);
		CU_ASSERT_EQUAL(atomic_load(&front->shadow_ahead[0]), (uint64_t)i * RUN / 2);
		for (int n = take(a, ev); n > 0; n--)
			ev[n - 1]->state = WEIR_EVENT_IDLE;
	}
	CU_ASSERT_EQUAL(stage_view(g, "front").class_view[0].shadow_shed, RUN);
	set_mode(front, WEIR_ADMISSION_ENFORCE);
	CU_ASSERT_EQUAL(offer(a, 0, RUN, ev), RUN / 2);
	CU_ASSERT_EQUAL(atomic_load(&front->shadow_ahead[0]), RUN);
	rig_end();
}

/* The mode of the graph limits that of the stage. */
static void test_mode_cap(void)
{
	rig_start();
	atomic_store(&front->mode_cap, WEIR_ADMISSION_SHADOW);
	check_shadow();
	rig_start();
	atomic_store(&front->mode_cap, WEIR_ADMISSION_OFF);
	check_off();
	rig_start();
	set_mode(front, WEIR_ADMISSION_SHADOW);
	atomic_store(&front->mode_cap, WEIR_ADMISSION_ENFORCE);
	check_shadow();
}

CUNIT_MAIN("asking ahead", {"types are known", test_prepare},
    {"refused at the gate", test_refused_at_the_gate},
    {"only the gate's classes", test_only_the_gate_s_classes},
    {"not again on the way", test_not_again_on_the_way},
    {"the own door for the rest", test_own_door_for_the_rest}, {"nonsense", test_nonsense},
    {"wait of a full queue", test_wait_of_full_queue}, {"anonymous tokens", test_anonymous_tokens},
    {"back when told", test_back_when_told}, {"modes", test_modes},
    {"shadow is counted", test_shadow_is_counted}, {"mode cap", test_mode_cap})
