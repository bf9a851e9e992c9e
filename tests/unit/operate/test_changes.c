/* SPDX-License-Identifier: MIT */
/* Operator changes: pausing and draining at the queue, inspecting the queue, undo, and a stop while
 * stages are paused. */
#include "acts_rig.h"

#include "base/clock.h"
#include "control/control.h"
#include "operate/changes.h"
#include "sched/pool.h"

/* ---- undo ---- */

static void undo_one(struct weir_graph *g, const char *what)
{
	struct weir_change undone = {0};

	CU_ASSERT_EQUAL(weir_graph_undo(g, &undone, why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(undone.what, what);
	CU_ASSERT_TRUE(undone.undone);
	CU_ASSERT_STRING_EQUAL(newest(g).what, "undo");
}

static void test_undo_walks_back(void)
{
	struct weir_graph *g = started();

	set_for(g, "queue.limit", "100", 0);
	set_for(g, "queue.limit", "200", 3600 * NS_PER_S);
	weir_graph_unset(g, "last", "queue.limit", why, sizeof(why));
	weir_graph_steer(g, "first", WEIR_STEER_PAUSE, why, sizeof(why));
	weir_graph_set_overload(g, WEIR_ADMISSION_OFF);
	undo_one(g, "overload");
	CU_ASSERT_EQUAL(weir_graph_overload(g), WEIR_ADMISSION_ENFORCE);
	undo_one(g, "pause");
	CU_ASSERT_FALSE(queue_paused(&weir_graph_stage(g, "first")->sink.queue));
	undo_one(g, "unset");
	CU_ASSERT_STRING_EQUAL(value_of(g, "queue.limit"), "200");
	CU_ASSERT_NOT_EQUAL(layers_of(g, "queue.limit").expires_wall_ns, 0);
	undo_one(g, "set");
	CU_ASSERT_STRING_EQUAL(value_of(g, "queue.limit"), "100");
	undo_one(g, "set");
	CU_ASSERT_FALSE(layers_of(g, "queue.limit").overridden);
	CU_ASSERT_EQUAL(weir_graph_undo(g, NULL, why, sizeof(why)), WEIR_ENOENT);
	finished(g);
}

/* A temporary value replaces another one. When its time is over, neither is left to undo. */
static void test_brief_over_brief(void)
{
	struct weir_graph *g = started();
	struct weir_change undone;

	set_for(g, "cohort.max", "5", 0);
	set_for(g, "queue.limit", "200", 7200 * NS_PER_S);
	set_for(g, "queue.limit", "300", 3600 * NS_PER_S);
	graph_expire(g, clock_now_ns() + 3601 * NS_PER_S);
	CU_ASSERT_FALSE(layers_of(g, "queue.limit").overridden);
	CU_ASSERT_EQUAL(weir_graph_undo(g, &undone, why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(undone.target, "last.cohort.max");
	CU_ASSERT_EQUAL(weir_graph_undo(g, NULL, why, sizeof(why)), WEIR_ENOENT);
	/* If a temporary value is undone before it expires, the previous one returns and later
	 * expires by itself. */
	set_for(g, "queue.limit", "200", 7200 * NS_PER_S);
	set_for(g, "queue.limit", "300", 3600 * NS_PER_S);
	undo_one(g, "set");
	CU_ASSERT_STRING_EQUAL(value_of(g, "queue.limit"), "200");
	graph_expire(g, clock_now_ns() + 7201 * NS_PER_S);
	CU_ASSERT_FALSE(layers_of(g, "queue.limit").overridden);
	CU_ASSERT_EQUAL(weir_graph_undo(g, NULL, why, sizeof(why)), WEIR_ENOENT);
	finished(g);
}

/* More changes than the ring holds: the oldest cannot be undone, and nothing leaks. */
static void test_the_ring_is_bounded(void)
{
	struct weir_graph *g = started();
	char value[16];
	int undone = 0;

	for (int i = 0; i < CHANGE_LOG_SIZE + 10; i++) {
		snprintf(value, sizeof(value), "%d", 100 + i);
		CU_ASSERT_EQUAL(set_for(g, "queue.limit", value, 0), 0);
	}
	while (weir_graph_undo(g, NULL, why, sizeof(why)) == 0)
		undone++;
	/* Each undo is a change as well, so it displaces an old one. */
	CU_ASSERT_EQUAL(undone, CHANGE_LOG_SIZE / 2);
	finished(g);
}

/* ---- pause, drain, resume ---- */

static int steer(struct weir_graph *g, const char *stage, enum weir_steer how)
{
	return weir_graph_steer(g, stage, how, why, sizeof(why));
}

static const struct weir_stage_view *view_of(struct weir_graph *g, struct weir_graph_view **v)
{
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, v), 0);
	return &(*v)->stages[weir_graph_stage(g, "last")->id];
}

static void check_state(struct weir_graph *g, const char *state, uint64_t queued)
{
	struct weir_graph_view *v;
	const struct weir_stage_view *s = view_of(g, &v);

	CU_ASSERT_STRING_EQUAL(s->state, state);
	CU_ASSERT_EQUAL(s->queue_length, queued);
	CU_ASSERT_EQUAL(s->in_flight, queued);
	weir_graph_view_free(v);
}

static void test_pause_keeps(void)
{
	struct weir_graph *g = started();

	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_PAUSE), 0);
	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_PAUSE), 0); /* a repeat is not a change */
	CU_ASSERT_EQUAL(newest(g).id, 1);
	fixture_offer_all(weir_graph_stage(g, "first"), probes, MANY, MANY);
	FIXTURE_AWAIT(queue_length(&weir_graph_stage(g, "last")->sink.queue) == MANY);
	FIXTURE_AWAIT(graph_in_flight(g, weir_graph_stage(g, "first")->id) == 0);
	check_state(g, "paused", MANY);
	CU_ASSERT_EQUAL(fixture_ended(), 0);
	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_RUN), 0);
	FIXTURE_AWAIT(fixture_ended() == MANY);
	check_each_once(MANY);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), MANY);
	finished(g);
}

static void test_drain_refuses_and_empties(void)
{
	struct weir_graph *g = started();
	struct weir_stage *last = weir_graph_stage(g, "last");
	struct weir_event *ev = &probes[MANY - 1].ev;
	int reason = 0;

	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_PAUSE), 0);
	fixture_offer_all(last, probes, MANY - 1, MANY - 1);
	CU_ASSERT_EQUAL(queue_length(&last->sink.queue), MANY - 1);
	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_DRAIN), 0);
	weir_event_init(ev, &probe_type, clock_now_ns());
	CU_ASSERT_EQUAL(weir_offer(last, &ev, 1, &reason), 0);
	CU_ASSERT_EQUAL(reason, WEIR_EDRAINING);
	CU_ASSERT_PTR_EQUAL_FATAL(ev, &probes[MANY - 1].ev);
	FIXTURE_AWAIT(fixture_ended() == MANY - 1);
	FIXTURE_AWAIT(graph_in_flight(g, last->id) == 0);
	check_state(g, "drained", 0);
	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_RUN), 0);
	CU_ASSERT_EQUAL(weir_offer(last, &ev, 1, &reason), 1);
	FIXTURE_AWAIT(fixture_ended() == MANY);
	check_each_once(MANY);
	finished(g);
}

static int mute_start(struct weir_stage *st, struct weir_err *err)
{
	(void)st, (void)err;
	return 0;
}

static const struct weir_stage_ops mute_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.mute",
    .summary = "a source that can not be paused",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = pass_outlets,
    .start = mute_start};

static void test_what_can_not_be_paused(void)
{
	struct weir_spec *spec = weir_spec_new("inline");

	fixture_stage(spec, "mute", "t.mute", "in");
	fixture_set(fixture_stage(spec, "in", "t.pass", "last"), "threads", "inline");
	fixture_stage(spec, "last", "t.end", NULL);
	prepare(1);
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL(steer(g, "in", WEIR_STEER_PAUSE), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "inline"));
	CU_ASSERT_EQUAL(steer(g, "mute", WEIR_STEER_PAUSE), WEIR_EINVAL);
	CU_ASSERT_EQUAL(steer(g, "mute", WEIR_STEER_DRAIN), WEIR_EINVAL);
	CU_ASSERT_EQUAL(steer(g, "lust", WEIR_STEER_PAUSE), WEIR_ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "'last'"));
	finish_graph(g, 0);
}

static void test_a_stop_resumes(void)
{
	struct weir_graph *g = started();
	struct weir_drain_report report;

	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_PAUSE), 0);
	fixture_offer_all(weir_graph_stage(g, "last"), probes, MANY, MANY);
	weir_thread_detach();
	weir_graph_drain(g, 600 * NS_PER_S, &report);
	CU_ASSERT_EQUAL(report.closed, 0);
	CU_ASSERT_EQUAL(report.law_error, 0);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), MANY);
	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_PAUSE), WEIR_EBUSY);
	CU_ASSERT_STRING_EQUAL(newest(g).actor, "drain");
	weir_graph_free(g);
}

/* A pool is not resized because of what it looks like while paused. */
static void test_a_paused_pool_is_left_alone(void)
{
	struct weir_spec *spec = weir_spec_new("alone");
	struct weir_stage_spec *s = fixture_stage(spec, "last", "t.end", NULL);

	fixture_set(s, "threads.min", "1");
	fixture_set(s, "threads.max", "8");
	fixture_set(s, "threads.policy", "seda");
	prepare(MANY);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	struct pool *pool = weir_graph_stage(g, "last")->pool;
	control_stop(g->control); /* the test makes the steps below */
	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_PAUSE), 0);
	fixture_offer_all(weir_graph_stage(g, "last"), probes, MANY, MANY);
	for (int i = 0; i < 100; i++)
		control_step(g->control, clock_now_ns() + i * 10 * NS_PER_S, 0.1);
	CU_ASSERT_EQUAL(atomic_load(&pool->target), 1);
	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_RUN), 0);
	FIXTURE_AWAIT(fixture_ended() == MANY);
	finished(g);
}

/* Offer one probe if it is free. Returns 1 if it was admitted. */
static int offer_one(struct weir_stage *st, int i)
{
	struct weir_event *ev = &probes[i].ev;

	if (ev->state != WEIR_EVENT_NEW) /* otherwise it was refused and is unchanged */
		weir_event_init(ev, &probe_type, clock_now_ns());
	return weir_offer(st, &ev, 1, NULL);
}

/* The waits that a policy saw during a pause must not make it refuse forever afterwards. */
static void pause_with(const char *policy)
{
	struct weir_spec *spec = weir_spec_new("policy");
	struct weir_stage_spec *s = fixture_stage(spec, "last", "t.end", NULL);
	uint64_t taken = 0;

	fixture_set(s, "admission.policy", policy);
	if (strcmp(policy, "rate") == 0)
		fixture_set(s, "admission.rate", "100k");
	fixture_set(s, "queue.limit", "1000");
	prepare(2000);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *last = weir_graph_stage(g, "last");
	weir_thread_attach(g, "test");
	for (int i = 0; i < 100; i++) { /* the policy learns the cost of an event */
		taken += (uint64_t)offer_one(last, i);
		FIXTURE_AWAIT(fixture_ended() == taken);
	}
	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_PAUSE), 0);
	int64_t until_ns = clock_now_ns() + 20 * ADMISSION_TICK_NS;
	for (int i = 100; i < 1900 || clock_now_ns() < until_ns; i++)
		taken += i < 1900 ? (uint64_t)offer_one(last, i) : 0;
	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_RUN), 0);
	FIXTURE_AWAIT(fixture_ended() == taken);
	for (int in = 0; in < 20;) { /* sooner or later events are admitted again */
		int one = offer_one(last, 1900 + in);
		in += one;
		taken += (uint64_t)one;
		FIXTURE_AWAIT(fixture_ended() == taken);
	}
	finished(g);
}

static void test_policies_get_over_a_pause(void)
{
	for (int i = 0; admission_at(i); i++)
		pause_with(admission_at(i)->name);
}

/* ---- inspecting the queue ---- */

static void test_look_into_the_queue(void)
{
	struct weir_graph *g = started();
	struct weir_stage *last = weir_graph_stage(g, "last");
	struct weir_queued q[QUEUE_PEEK_MAX];

	CU_ASSERT_EQUAL(weir_graph_queue(g, "nowhere", q, 1), WEIR_ENOENT);
	CU_ASSERT_EQUAL(weir_graph_queue(g, "last", q, 5), 0);
	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_PAUSE), 0);
	for (int i = 0; i < MANY; i++) {
		struct weir_event *ev = &probes[i].ev;
		weir_event_init(ev, &probe_type, clock_now_ns());
		if (i == 1)
			ev->deadline_ns = clock_now_ns() + 3600 * NS_PER_S;
		CU_ASSERT_EQUAL(weir_offer(last, &ev, 1, NULL), 1);
	}
	CU_ASSERT_EQUAL(weir_graph_queue(g, "last", q, 5), 5);
	for (int i = 1; i < 5; i++)
		CU_ASSERT(q[i].age_ns <= q[i - 1].age_ns);
	CU_ASSERT_EQUAL(q[0].left_ns, INT64_MAX);
	CU_ASSERT(q[1].left_ns < 3600 * NS_PER_S && q[1].left_ns > 3000 * NS_PER_S);
	CU_ASSERT_STRING_EQUAL(q[0].type, "probe");
	CU_ASSERT_STRING_EQUAL(q[0].class_name, "default");
	CU_ASSERT_EQUAL(weir_graph_queue(g, "last", q, QUEUE_PEEK_MAX), MANY);
	CU_ASSERT_EQUAL(steer(g, "last", WEIR_STEER_RUN), 0);
	FIXTURE_AWAIT(fixture_ended() == MANY);
	finished(g);
}

static void test_prepare(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	fixture_register(&mute_ops);
}

CUNIT_MAIN("acts", {"types are known", test_prepare}, {"undo walks back", test_undo_walks_back},
    {"one value for a time after another", test_brief_over_brief},
    {"the ring is bounded", test_the_ring_is_bounded}, {"pause keeps", test_pause_keeps},
    {"drain refuses and empties", test_drain_refuses_and_empties},
    {"what can not be paused", test_what_can_not_be_paused},
    {"a stop resumes", test_a_stop_resumes},
    {"a paused pool is left alone", test_a_paused_pool_is_left_alone},
    {"policies get over a pause", test_policies_get_over_a_pause},
    {"a look into the queue", test_look_into_the_queue})
