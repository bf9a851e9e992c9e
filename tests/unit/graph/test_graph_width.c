/* SPDX-License-Identifier: MIT */
/* The width of a stage that holds events: no more are in work than it allows, the others wait in
 * the queue and follow when a hold ends; the time of a hold is service time, and admission knows
 * it. */
#include "width_rig.h"

/* ---- tests ---- */

static void test_bound(void)
{
	struct weir_spec *spec = weir_spec_new("width");

	spec_of(spec);
	start(spec);
	check_bound(WIDTH);
	end_all();
}

static void test_modes(void)
{
	static const int modes[] = {WEIR_MODE_EXCLUSIVE, WEIR_MODE_PARTITIONED};

	for (int i = 0; i < 2; i++) {
		struct weir_spec *spec = weir_spec_new("width");
		struct weir_stage_spec *s = spec_of(spec);
		s->mode = modes[i];
		weir_spec_text(&s->key, "event");
		start(spec);
		check_bound(WIDTH);
		end_all();
	}
}

static void test_group(void)
{
	struct weir_spec *spec = weir_spec_new("width");

	weir_spec_add_group(spec, "all");
	weir_spec_text(&spec_of(spec)->group, "all");
	weir_spec_text(&fixture_stage(spec, "end", "t.end", NULL)->group, "all");
	start(spec);
	check_bound(WIDTH);
	end_all();
}

/* Events that come back wait for their turn, and others take their place in work. */
static void test_requeued(void)
{
	struct weir_spec *spec = weir_spec_new("width");

	spec_of(spec);
	start(spec);
	offer(100);
	FIXTURE_AWAIT(is_settled(WIDTH, 100 - WIDTH));
	for (int i = 0; i < 1000; i++) {
		struct weir_event *ev = take_kept();
		if (!ev) {
			sched_yield();
			continue;
		}
		weir_requeue(stage, &ev);
		weir_thread_flush();
	}
	FIXTURE_AWAIT(is_settled(WIDTH, 100 - WIDTH));
	CU_ASSERT_EQUAL(most_kept, WIDTH);
	end_all();
}

static uint64_t served(void)
{
	struct weir_stage_view v = stage_view(g, "keep");

	return weir_hist_total(&v.class_view[0].service);
}

/* A handler that ends events itself leaves no width unused. */
static void test_not_held(void)
{
	struct weir_spec *spec = weir_spec_new("width");

	spec_of(spec);
	start(spec);
	atomic_store(&ends_odd, true);
	offer(300);
	for (int i = 0; i < 150; i++)
		end_one();
	FIXTURE_AWAIT(fixture_ended() == 300);
	atomic_store(&ends_odd, false);
	/* a handler's time is recorded when it has returned */
	FIXTURE_AWAIT(served() == 300);
	end_all();
}

/* The service time lasts from the batch to the end of the hold. */
static void test_service_time(void)
{
	struct weir_spec *spec = weir_spec_new("width");
	int64_t span_ns = 20 * NS_PER_MS;

	spec_of(spec);
	start(spec);
	offer(WIDTH);
	FIXTURE_AWAIT(is_settled(WIDTH, 0));
	int64_t since_ns = clock_now_ns();
	FIXTURE_AWAIT(clock_now_ns() - since_ns >= span_ns);
	for (int i = 0; i < WIDTH; i++)
		end_one();
	struct weir_stage_view v = stage_view(g, "keep");
	CU_ASSERT_EQUAL(weir_hist_total(&v.class_view[0].service), WIDTH);
	CU_ASSERT_TRUE((int64_t)v.class_view[0].service.sum_ns >= WIDTH * span_ns);
	CU_ASSERT_TRUE((int64_t)v.busy_ns < WIDTH * span_ns);
	CU_ASSERT_TRUE(sink_mean_cost_ns(&stage->sink) >= span_ns);
	end_all();
}

/* Events that the other side refuses have no service time. */
static void test_refused(void)
{
	struct weir_spec *spec = weir_spec_new("width");

	spec_of(spec);
	start(spec);
	offer(WIDTH);
	FIXTURE_AWAIT(is_settled(WIDTH, 0));
	struct weir_event *ev = take_kept();
	weir_hold_refused(stage, ev);
	weir_hold_refused(stage, ev); /* counts once */
	weir_event_finish(&ev, WEIR_EFAILED);
	ev = take_kept();
	weir_hold_refused(stage, ev);
	weir_requeue(stage, &ev);
	weir_thread_flush();
	FIXTURE_AWAIT(is_settled(WIDTH - 1, 0));
	struct weir_stage_view v = stage_view(g, "keep");
	CU_ASSERT_EQUAL(v.refusals, 2);
	CU_ASSERT_EQUAL(weir_hist_total(&v.class_view[0].service), 0);
	end_all();
}

/* Events that the other side has served stay in flight without a place in the width; their service is over. */
static void test_served(void)
{
	struct weir_spec *spec = weir_spec_new("width");
	struct weir_event *served[3];

	spec_of(spec);
	start(spec);
	offer(WIDTH + 5);
	FIXTURE_AWAIT(is_settled(WIDTH, 5));
	for (int i = 0; i < 3; i++) {
		served[i] = take_kept();
		weir_hold_served(stage, served[i]);
		weir_hold_served(stage, served[i]);  /* counts once */
		weir_hold_refused(stage, served[i]); /* too late */
		weir_thread_flush();
	}
	FIXTURE_AWAIT(is_settled(WIDTH, 2));
	struct weir_stage_view v = stage_view(g, "keep");
	CU_ASSERT_EQUAL(v.in_work, WIDTH);
	CU_ASSERT_EQUAL(v.held, WIDTH + 3);
	CU_ASSERT_EQUAL(v.refusals, 0);
	CU_ASSERT_EQUAL(weir_hist_total(&v.class_view[0].service), 3);
	weir_event_finish(&served[0], WEIR_OK);
	weir_emit(stage, 0, &served[1]);
	weir_event_finish(&served[2], WEIR_EFAILED);
	weir_thread_flush();
	FIXTURE_AWAIT(fixture_ended() == 3);
	CU_ASSERT(is_settled(WIDTH, 2));
	v = stage_view(g, "keep");
	CU_ASSERT_EQUAL(v.held, WIDTH);
	CU_ASSERT_EQUAL(weir_hist_total(&v.class_view[0].service), 3);
	struct weir_event *refused = take_kept();
	weir_hold_refused(stage, refused);
	weir_hold_served(stage, refused); /* no effect */
	CU_ASSERT_EQUAL(queue_kept_all(&stage->sink.queue), WIDTH);
	weir_event_finish(&refused, WEIR_EFAILED);
	end_all();
}

/* Admission counts on as many servers as the width allows. */
static void test_view(void)
{
	struct weir_spec *spec = weir_spec_new("width");
	struct admission_view view = {0};

	spec_of(spec);
	start(spec);
	stage->sink.look(&stage->sink, ANY_RANK, &view);
	CU_ASSERT_EQUAL(view.threads, WIDTH);
	offer(3);
	FIXTURE_AWAIT(is_settled(3, 0));
	FIXTURE_AWAIT((stage->sink.look(&stage->sink, ANY_RANK, &view), view.idle == WIDTH - 3));
	offer(50);
	FIXTURE_AWAIT(is_settled(WIDTH, 53 - WIDTH));
	stage->sink.look(&stage->sink, ANY_RANK, &view);
	CU_ASSERT_EQUAL(view.idle, 0);
	/* half of a service is in the handler: three threads serve six */
	atomic_store(&stage->sink.handler_share, 0.5);
	stage->sink.look(&stage->sink, ANY_RANK, &view);
	CU_ASSERT_EQUAL(view.threads, inlined ? WIDTH : 6);
	end_all();
}

/* Whether the journal's entries about the width, newest first, are `want`, such as "20 -> 2:
 * width.max is 2 now (max 2); ". */
static void check_journal(const char *want)
{
	struct weir_decision d[16];
	char text[512] = "";
	int n = weir_graph_decisions(g, d, 16);

	for (int i = 0; i < n; i++) {
		size_t at = strlen(text);
		if (strcmp(d[i].action, "width") == 0)
			snprintf(text + at, sizeof(text) - at, "%d -> %d: %s (%s); ", d[i].from,
			    d[i].to, d[i].rule, d[i].limit);
	}
	CU_ASSERT_STRING_EQUAL(text, want);
}

static void turn(const char *knob, const char *value, int want)
{
	char why[256] = "";

	CU_ASSERT_EQUAL(weir_graph_set(g, "keep", knob, value, why, sizeof(why)), want);
}

static void test_live(void)
{
	struct weir_spec *spec = weir_spec_new("width");

	spec_of(spec);
	start(spec);
	offer(100);
	FIXTURE_AWAIT(is_settled(WIDTH, 100 - WIDTH));
	turn("width.max", "20", 0);
	FIXTURE_AWAIT(is_settled(20, 80));
	turn("width.max", "2", 0);
	for (int i = 0; i < 18; i++)
		end_one();
	FIXTURE_AWAIT(is_settled(2, 80));
	end_one();
	FIXTURE_AWAIT(is_settled(2, 79));
	turn("width.max", "1001", WEIR_EINVAL);
	turn("width.min", "3", WEIR_EINVAL);
	turn("queue.limit", "1", WEIR_EINVAL);
	turn("width.max", "auto", 0);
	FIXTURE_AWAIT(is_settled(81, 0));
	CU_ASSERT_EQUAL(stage_view(g, "keep").width, 1000);
	turn("queue.limit", "500", 0);
	CU_ASSERT_EQUAL(stage_view(g, "keep").width, 500);
	turn("width.min", "400", 0); /* nothing to change */
	turn("queue.limit", "399", WEIR_EINVAL);
	check_journal(
	    "1000 -> 500: width.max is 500 now (max 500); "
	    "2 -> 1000: width.max is 1000 now (max 1000); "
	    "20 -> 2: width.max is 2 now (max 2); 8 -> 20: width.max is 20 now (max 20); ");
	end_all();
}

/* A policy begins at the lower bound, and follows it when it rises. */
static void test_least(void)
{
	struct weir_spec *spec = weir_spec_new("width");
	struct weir_stage_spec *s = spec_of(spec);

	fixture_set(s, "width.policy", "weir");
	fixture_set(s, "width.max", "400");
	fixture_set(s, "width.min", "300");
	start(spec);
	CU_ASSERT_EQUAL(stage_view(g, "keep").width_min, 300);
	CU_ASSERT_EQUAL(stage_view(g, "keep").width, 300);
	turn("width.min", "350", 0);
	CU_ASSERT_EQUAL(stage_view(g, "keep").width_min, 350);
	CU_ASSERT_EQUAL(stage_view(g, "keep").width, 350);
	check_journal("300 -> 350: width.min is 350 now (min 350); ");
	end_all();
}

/* A pause ends with the events that were let in before it. */
static void test_pause(void)
{
	struct weir_spec *spec = weir_spec_new("width");
	char why[256] = "";

	spec_of(spec);
	start(spec);
	offer(100);
	FIXTURE_AWAIT(is_settled(WIDTH, 100 - WIDTH));
	CU_ASSERT_EQUAL(weir_graph_steer(g, "keep", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	for (int i = 0; i < WIDTH; i++)
		end_one();
	FIXTURE_AWAIT(is_settled(0, 100 - WIDTH));
	CU_ASSERT_EQUAL(weir_graph_steer(g, "keep", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(is_settled(WIDTH, 100 - 2 * WIDTH));
	end_all();
}

/* The queue and the held events share the limit. */
static void test_limit(void)
{
	struct weir_spec *spec = weir_spec_new("width");

	fixture_set(spec_of(spec), "queue.limit", "50");
	start(spec);
	offer(50);
	FIXTURE_AWAIT(is_settled(WIDTH, 50 - WIDTH));
	struct weir_event *ev = &probes[offered].ev;
	int reason = 0;
	weir_event_init(ev, &probe_type, 1);
	CU_ASSERT_EQUAL(weir_offer(stage, &ev, 1, &reason), 0);
	CU_ASSERT_EQUAL(reason, WEIR_EQUEUE);
	end_one();
	FIXTURE_AWAIT(is_settled(WIDTH, 49 - WIDTH));
	CU_ASSERT_EQUAL(weir_offer(stage, &ev, 1, &reason), 1);
	offered++;
	end_all();
}

/* ---- inline ---- */

static void test_inline(void)
{
	inlined = true; /* also for the tests below, which repeat those above */
	struct weir_spec *spec = weir_spec_new("width");
	spec_of(spec);
	start(spec);
	/* while there is width, the events are held when the offer returns, in this thread */
	for (int i = 1; i <= WIDTH; i++) {
		offer(1);
		CU_ASSERT(is_settled(i, 0));
		CU_ASSERT(pthread_equal(held_by, pthread_self()));
	}
	held_by = (pthread_t){0};
	offer(100);
	CU_ASSERT(is_settled(WIDTH, 100));
	/* the I/O thread that ends a hold takes the next event */
	thread_self()->link = &fake_link;
	end_one();
	CU_ASSERT(is_settled(WIDTH, 99));
	CU_ASSERT(pthread_equal(held_by, pthread_self()));
	/* another one leaves that to the thread of the stage */
	thread_self()->link = NULL;
	struct weir_event *ev = take_kept();
	weir_event_finish(&ev, WEIR_OK);
	FIXTURE_AWAIT(is_settled(WIDTH, 98));
	CU_ASSERT_FALSE(pthread_equal(held_by, pthread_self()));
	CU_ASSERT_STRING_EQUAL(stage_view(g, "keep").placement, "inline");
	CU_ASSERT_EQUAL(stage_view(g, "keep").class_view[0].completed, 2);
	end_all();
}

/* A batch of which only a part finds width; the rest follows in order. */
static void test_part_of_a_batch(void)
{
	struct weir_spec *spec = weir_spec_new("width");
	struct weir_event *ev[20];

	spec_of(spec);
	start(spec);
	for (int i = 0; i < 20; i++) {
		weir_event_init(&probes[i].ev, &probe_type, 1);
		probes[i].ev.key = (uint64_t)i;
		ev[i] = &probes[i].ev;
	}
	offered = 20;
	CU_ASSERT_EQUAL(weir_offer(stage, ev, 20, NULL), 20);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_PTR_NULL(ev[i]);
	CU_ASSERT(is_settled(WIDTH, 20 - WIDTH));
	thread_self()->link = &fake_link;
	for (int i = 0; i < 20; i++) {
		/* `kept` begins with the event that was let in last: the next in order while some
		 * wait */
		CU_ASSERT_EQUAL(kept->key, (uint64_t)(i <= 20 - WIDTH ? WIDTH - 1 + i : 19 - i));
		end_one();
	}
	thread_self()->link = NULL;
	end_all();
}

/* A handler dies while it runs in the thread of a sender: the events that wait in the queue
 * live. */
static void test_death_in_sender(void)
{
	struct weir_spec *spec = weir_spec_new("width");

	weir_log_set_fd(-1); /* the death is logged */
	spec_of(spec);
	struct weir_stage_spec *pass = fixture_stage(spec, "pass", "t.pass", "keep");
	fixture_set(pass, "threads.max", "1");
	fixture_set(pass, "cohort.max", "128");
	fixture_set(pass, "cohort.linger", "1ms"); /* one batch */
	start(spec);
	atomic_store(&exits_at, 5);
	struct weir_event *ev[20];
	for (int i = 0; i < 20; i++) {
		weir_event_init(&probes[i].ev, &probe_type, 1);
		probes[i].ev.key = (uint64_t)i;
		ev[i] = &probes[i].ev;
	}
	offered = 20;
	CU_ASSERT_EQUAL(weir_offer(weir_graph_stage(g, "pass"), ev, 20, NULL), 20);
	FIXTURE_AWAIT(is_settled(WIDTH, 9)); /* 5 to 7 have ended with their thread */
	CU_ASSERT_EQUAL(probes[5].status, WEIR_EDIED);
	end_all();
	weir_log_set_fd(2);
}

int main(void)
{
	static const struct cunit_case cases[] = {{"bound", test_bound}, {"modes", test_modes},
	    {"group", test_group}, {"requeued", test_requeued}, {"not held", test_not_held},
	    {"service time", test_service_time}, {"refused", test_refused}, {"served", test_served},
	    {"view", test_view}, {"live knobs", test_live}, {"least", test_least},
	    {"pause", test_pause}, {"limit", test_limit}, {"inline", test_inline},
	    {"part of a batch", test_part_of_a_batch}, {"death in a sender", test_death_in_sender},
	    {"inline: bound", test_bound}, {"inline: requeued", test_requeued},
	    {"inline: not held", test_not_held}, {"inline: service time", test_service_time},
	    {"inline: refused", test_refused}, {"inline: served", test_served},
	    {"inline: view", test_view}, {"inline: live knobs", test_live},
	    {"inline: pause", test_pause}, {"inline: limit", test_limit}};

	fixture_register(&keep_ops);
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	return cunit_run("graph_width", cases, sizeof(cases) / sizeof(cases[0]));
}
