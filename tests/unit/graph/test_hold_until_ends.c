/* SPDX-License-Identifier: MIT */
/* Events held with tickets: what a stage does with those that expire, in which threads it gets
 * them, and how they end with a thread or with the graph. (Claims and deadlines:
 * test_hold_until.c.) */
#include "wait_rig.h"

#include "stage/thread.h"

/* ---- what the stage does with them ---- */

static void test_finished(void)
{
	start_simple("t.wait", 1);
	atomic_store(&finishes_expired, true);
	int a = offer(clock_now_ns(), WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(is_ended(a));
	CU_ASSERT_EQUAL(probes[a].status, WEIR_EFAILED);
	end();
}

static void test_emitted(void)
{
	start_simple("t.wait", 1);
	atomic_store(&emits_expired, true);
	int a = offer(clock_now_ns(), WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(is_ended(a));
	CU_ASSERT_EQUAL(probes[a].status, WEIR_OK);
	CU_ASSERT_EQUAL(stage_view(g, "end").class_view[0].completed, 1);
	end();
}

static void test_requeued(void)
{
	start_simple("t.wait", 1);
	atomic_store(&requeues_expired, true);
	int a = offer(clock_now_ns(), WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(atomic_load(&handled) == 2);
	claim(a);
	CU_ASSERT_EQUAL(atomic_load(&gave_back), 1);
	CU_ASSERT_EQUAL(stage_view(g, "wait").class_view[0].offered, 1);
	end();
}

/* An event that expires makes room for a waiting one. */
static void test_width(void)
{
	struct weir_spec *spec = weir_spec_new("tickets");

	fixture_set(spec_of(spec, "t.wait", 3), "width.max", "8");
	start(spec);
	for (int i = 0; i < 100; i++)
		offer(clock_now_ns(), WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(fixture_ended() == 100);
	CU_ASSERT_EQUAL(atomic_load(&gave_back), 100);
	end();
}

/* A pause keeps events in the queue. It does not keep those that wait for somebody else from
 * expiring. */
static void test_pause(void)
{
	char why[256] = "";

	start_simple("t.wait", 3);
	int a = offer(WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(atomic_load(&tickets[a]) != 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "wait", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	int b = offer(WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
	struct weir_event *ev = weir_hold_claim(stage, atomic_load(&tickets[a]));
	weir_hold_until(stage, &ev, clock_now_ns() + NS_PER_MS);
	FIXTURE_AWAIT(is_ended(a));
	CU_ASSERT_EQUAL(atomic_load(&handled), 1);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "wait", WEIR_STEER_RUN, why, sizeof(why)), 0);
	claim(b);
	end();
}

/* Expired events obey the mode: in exclusive mode there is one call at a time. */
static void test_modes(void)
{
	static const int modes[] = {WEIR_MODE_EXCLUSIVE, WEIR_MODE_PARTITIONED};

	for (int i = 0; i < 2; i++) {
		struct weir_spec *spec = weir_spec_new("tickets");
		struct weir_stage_spec *s = spec_of(spec, "t.wait", 3);
		s->mode = modes[i];
		weir_spec_text(&s->key, "event");
		start(spec);
		for (int k = 0; k < M; k++)
			offer(clock_now_ns() + k % 7 * NS_PER_MS, WEIR_NO_DEADLINE);
		FIXTURE_AWAIT(fixture_ended() == M);
		CU_ASSERT_EQUAL(atomic_load(&gave_back), M);
		if (modes[i] == WEIR_MODE_EXCLUSIVE)
			CU_ASSERT_EQUAL(atomic_load(&overlaps), 0);
		end();
	}
}

/* ---- ends ---- */

static void test_death(void)
{
	start_simple("t.wait", 1);
	weir_log_set_fd(-1); /* the death is logged */
	atomic_store(&exits_at, 50);
	int64_t at_ns = clock_now_ns() + 20 * NS_PER_MS;
	for (int i = 0; i < 300; i++)
		offer(at_ns, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(fixture_ended() == 300);
	FIXTURE_AWAIT(stage_view(g, "wait").thread_deaths == 1);
	struct weir_stage_view v = stage_view(g, "wait");
	CU_ASSERT(v.class_view[0].failed >= 1); /* the rest of that batch */
	CU_ASSERT_EQUAL(
	    v.class_view[0].failed + v.class_view[0].shed[weir_shed_index(WEIR_EDEADLINE)], 300);
	end();
	weir_log_set_fd(2);
}

static void *claim_all(void *arg)
{
	(void)arg;
	weir_thread_attach(g, "claims");
	FIXTURE_AWAIT(!weir_graph_ready(g)); /* the drain has begun */
	for (int i = 0; i < 100; i++)
		claim(i);
	weir_thread_detach();
	return NULL;
}

/* A drain waits for the events that are held. */
static void test_drain_waits(void)
{
	pthread_t thread;

	start_simple("t.wait", 3);
	for (int i = 0; i < 100; i++)
		offer(WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
	for (int i = 0; i < 20; i++) /* these expire during the drain */
		offer(clock_now_ns() + 100 * NS_PER_MS, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(atomic_load(&handled) == 120);
	weir_thread_detach();
	pthread_create(&thread, NULL, claim_all, NULL);
	struct weir_drain_report r;
	weir_graph_drain(g, 600 * NS_PER_S, &r);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(r.closed, 0);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 100);
	CU_ASSERT_EQUAL(atomic_load(&fixture_shed), 20);
	check_each_once(120);
	weir_graph_free(g);
}

/* At the end of its grace time a drain ends the held events, and what is queued behind them. */
static void test_drain_ends(int64_t grace_ns, int mode)
{
	struct weir_spec *spec = weir_spec_new("tickets");
	struct weir_stage_spec *s = spec_of(spec, "t.wait", 3);

	fixture_set(s, "width.max", "50");
	s->mode = mode;
	if (mode != WEIR_MODE_SHARED)
		weir_spec_text(&s->key, "event");
	start(spec);
	for (int i = 0; i < 100; i++)
		offer(i % 2 ? WEIR_NO_DEADLINE : clock_now_ns() + HOUR, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(atomic_load(&handled) == 50);
	weir_thread_detach();
	struct weir_drain_report r;
	weir_graph_drain(g, grace_ns, &r);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT(r.closed >= 50); /* handlers may still take what is queued, and hold it in vain */
	CU_ASSERT_EQUAL(atomic_load(&gave_back), 0);
	check_each_once(100);
	for (int i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL(probes[i].status, WEIR_ECLOSED);
		CU_ASSERT_PTR_NULL(weir_hold_claim(stage, atomic_load(&tickets[i])));
	}
	weir_graph_free(g);
}

static void test_drain_without_grace(void)
{
	static const int modes[] = {WEIR_MODE_SHARED, WEIR_MODE_EXCLUSIVE, WEIR_MODE_PARTITIONED};

	for (int i = 0; i < 3; i++) {
		test_drain_ends(0, modes[i]);
		test_drain_ends(30 * NS_PER_MS, modes[i]);
	}
}

/* An event that is held again after the graph has closed ends at once. */
static void test_held_after_close(void)
{
	start_simple("t.wait", 1);
	int a = offer(WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(atomic_load(&tickets[a]) != 0);
	struct weir_event *ev = weir_hold_claim(stage, atomic_load(&tickets[a]));
	CU_ASSERT_PTR_NULL(graph_tickets_close(stage));
	CU_ASSERT_FALSE(is_ended(a));
	weir_hold_until(stage, &ev, WEIR_NO_DEADLINE);
	CU_ASSERT_PTR_NULL(ev);
	CU_ASSERT(is_ended(a));
	CU_ASSERT_EQUAL(probes[a].status, WEIR_ECLOSED);
	end();
}

/* All threads of a partitioned stage sleep without a deadline. Another thread sets one, and each
 * partition must notice it. */
static void test_partitions_sleep(void)
{
	struct weir_spec *spec = weir_spec_new("tickets");
	struct weir_stage_spec *s = spec_of(spec, "t.wait", 3);

	s->mode = WEIR_MODE_PARTITIONED;
	weir_spec_text(&s->key, "event");
	start(spec);
	for (int round = 0; round < 20; round++) {
		int first = offered;
		for (int i = 0; i < 3; i++)
			offer(WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
		FIXTURE_AWAIT(atomic_load(&handled) == offered);
		FIXTURE_AWAIT(stage_view(g, "wait").threads[WEIR_THREAD_IDLE] == 3);
		int64_t at_ns = clock_now_ns() + 5 * NS_PER_MS;
		for (int i = first; i < offered; i++) {
			struct weir_event *ev = weir_hold_claim(stage, atomic_load(&tickets[i]));
			weir_hold_until(stage, &ev, at_ns);
		}
		FIXTURE_AWAIT(fixture_ended() == (uint64_t)offered);
	}
	end();
}

/* A thread that parks while another one runs the timers does not miss what that one finds. */
static void test_parks_meanwhile(void)
{
	_Atomic int64_t *expires_ns;

	start_simple("t.wait", 1);
	expires_ns = &stage->sink.expires_ns;
	atomic_store(expires_ns, EXPIRES_UNKNOWN); /* as the thread that runs the timers does */
	int a = offer(WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(atomic_load(&tickets[a]) != 0);
	FIXTURE_AWAIT(stage_view(g, "wait").threads[WEIR_THREAD_IDLE] == 1);
	int64_t at_ns = clock_now_ns();
	atomic_store(expires_ns, at_ns);
	FIXTURE_AWAIT(atomic_load(expires_ns) != at_ns);
	claim(a);
	end();
}

static void wake_nobody(struct thread_link *link)
{
	(void)link;
}

static struct thread_link fake_link = {.wake = wake_nobody};

/* Events whose deadline passes in the queue of an inline stage leave their width to others. */
static void test_dropped(void)
{
	struct weir_spec *spec = weir_spec_new("tickets");

	fixture_set(spec_of(spec, "t.wait", 3), "width.max", "8");
	start(spec);
	for (int i = 0; i < 8; i++)
		offer(WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(atomic_load(&handled) == 8);
	int64_t at_ns = clock_now_ns() + 20 * NS_PER_MS;
	for (int i = 0; i < 5; i++) {
		/* if the machine stalls, admission refuses them, which is right, too */
		struct weir_event *ev = &probes[offered++].ev;
		weir_event_init(ev, &probe_type, 1);
		ev->deadline_ns = at_ns;
		if (weir_offer(stage, &ev, 1, NULL) == 0)
			weir_event_finish(&ev, WEIR_EDEADLINE);
	}
	FIXTURE_AWAIT(clock_now_ns() > at_ns);
	weir_thread_detach();
	thread_enter(g, "test", stage, &fake_link); /* this thread takes what is queued */
	claim(0);
	weir_thread_flush();
	weir_thread_detach();
	weir_thread_attach(g, "test");
	FIXTURE_AWAIT(fixture_ended() == 6);
	CU_ASSERT_EQUAL(probes[12].status, WEIR_EDEADLINE);
	CU_ASSERT_EQUAL(queue_kept_all(&stage->sink.queue), 7);
	for (int i = 1; i < 8; i++)
		claim(i);
	end();
}

static void test_inline(void)
{
	inlined = true; /* for the tests below, too, which repeat some of those above */
	test_drain_ends(0, WEIR_MODE_SHARED);
}

int main(void)
{
	static const struct cunit_case cases[] = {{"finished", test_finished},
	    {"emitted", test_emitted}, {"requeued", test_requeued}, {"width", test_width},
	    {"pause", test_pause}, {"modes", test_modes},
	    {"partitions sleep", test_partitions_sleep}, {"parks meanwhile", test_parks_meanwhile},
	    {"death", test_death}, {"drain waits", test_drain_waits},
	    {"drain without grace", test_drain_without_grace},
	    {"held after close", test_held_after_close}, {"inline", test_inline},
	    {"inline: dropped", test_dropped}, {"inline: emitted", test_emitted},
	    {"inline: requeued", test_requeued}, {"inline: width", test_width},
	    {"inline: pause", test_pause}, {"inline: death", test_death},
	    {"inline: drain waits", test_drain_waits}};

	fixture_register(&wait_ops);
	fixture_register(&plain_ops);
	fixture_register(&end_ops);
	return cunit_run("hold_until_ends", cases, sizeof(cases) / sizeof(cases[0]));
}
