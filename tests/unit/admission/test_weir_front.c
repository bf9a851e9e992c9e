/* SPDX-License-Identifier: MIT */
/* The policy `weir` as asked by admission upstream, and with deadlines: which events are hopeless,
 * the effects of the route to the stage and of the stages after it, and classes of equal priority.
 * States and caps: test_weir.c. */
#include "admission/admission.h"

#include <string.h>

#include "classes.h"
#include "cunit_main.h"
#include "station.h"

#define CLASSES 3

_Alignas(16) static unsigned char state[ADMISSION_STATE_MAX];
static const struct weir_admission_spec own = {.target_ns = -1, .interval_ns = -1};
static int64_t now_ms; /* virtual */

/* 4 threads, events of 5 ms, an objective of 100 ms, a predicted wait of wait_ms. */
static struct admission_view view_of(double wait_ms)
{
	return (struct admission_view){.now_ns = now_ms * MS,
	    .length = wait_ms > 0 ? 64 : 0,
	    .limit = 4096,
	    .n_classes = CLASSES,
	    .threads = 4,
	    .work_ns = (int64_t)(wait_ms * 4e6),
	    .cost_ns = 5 * MS,
	    .slo_ns = 100 * MS};
}

/* 0 if the event of `user` enters, otherwise the reason. */
static int ask(struct admission_view v, int class_id, uint16_t user)
{
	bool refused = false;
	int reason = 0;

	v.user = &user;
	int m = admission_weir.admit(state, &own, &v, class_id, 1, &refused, &reason);
	CU_ASSERT(m == 1 ? !refused && reason == 0 : refused && reason < 0);
	return reason;
}

/* The same for an event with left_ms until its deadline. */
static int ask_left(struct admission_view v, double left_ms)
{
	int64_t left_ns = (int64_t)(left_ms * 1e6);

	v.left_ns = &left_ns;
	return ask(v, 0, 0);
}

static void start(void)
{
	now_ms = 0;
	admission_weir.init(state, &own, 0);
}

/* A tick of 10 ms in which class c offered load[c] times the capacity and wants want[c] of it. */
static void tick(const double *load, const double *want, const int *priority, double wait_ms)
{
	struct admission_sample sample = {.span_ns = ADMISSION_TICK_NS,
	    .n_classes = CLASSES,
	    .threads = 4,
	    .length = 64,
	    .limit = 4096,
	    .work_ns = (int64_t)(wait_ms * 4e6),
	    .cost_ns = 5 * MS,
	    .slo_ns = 100 * MS};

	now_ms += 10;
	sample.now_ns = now_ms * MS;
	classes_default(&sample);
	for (int c = 0; c < CLASSES; c++) {
		sample.class[c].offered = (uint64_t)(load[c] * 10000); /* of 4 us each */
		sample.class[c].wanted = (uint64_t)(want[c] * 10000);
		sample.class[c].cost_ns = 4000;
		sample.class[c].priority = priority[c];
		sample.class[c].guarantee = 0;
	}
	admission_weir.tick(state, &own, &sample);
}

static void start_over(const double *load, const double *want, const int *priority)
{
	start();
	for (int t = 0; t < 200; t++)
		tick(load, want, priority, 20);
}

/* Fraction of the class that enters at this wait. */
static double part_of(int class_id, double wait_ms)
{
	int m = 0;

	for (int u = 0; u < 1024; u++)
		m += ask(view_of(wait_ms), class_id, (uint16_t)(u * 64)) == 0;
	return m / 1024.0;
}

/* ---- hopeless events ---- */

/* Wait and service may take nine tenths of the remaining time but not more: 20 + 5 of 27.8 ms. */
static void test_hopeless(void)
{
	start();
	CU_ASSERT_EQUAL(ask_left(view_of(20), 27.7), WEIR_EHOPELESS);
	CU_ASSERT_EQUAL(ask_left(view_of(20), 27.8), 0);
	CU_ASSERT_EQUAL(ask_left(view_of(0), 5.5), WEIR_EHOPELESS);
	CU_ASSERT_EQUAL(ask_left(view_of(0), 5.6), 0);
	CU_ASSERT_EQUAL(ask_left(view_of(0), -1), WEIR_EHOPELESS);
	CU_ASSERT_EQUAL(ask(view_of(20), 0, 0), 0); /* no deadline to miss */
	struct admission_view v = view_of(20);
	v.left_ns = &(const int64_t){INT64_MAX}; /* this event has none, others of its run do */
	CU_ASSERT_EQUAL(ask(v, 0, 0), 0);
}

/* In a run, the events with enough time left enter, and each waits for those admitted before it. */
static void test_hopeless_in_a_run(void)
{
	int64_t left_ns[] = {27 * MS, 28 * MS, 28 * MS, 29200000, 26 * MS, 90 * MS};
	static const bool want[] = {true, false, true, false, true, false};
	struct admission_view v = view_of(20);
	bool refused[6] = {false};
	uint16_t user[6] = {0};
	int reason = 0;

	start();
	v.left_ns = left_ns;
	v.user = user;
	CU_ASSERT_EQUAL(admission_weir.admit(state, &own, &v, 0, 6, refused, &reason), 3);
	CU_ASSERT_EQUAL(reason, WEIR_EHOPELESS);
	for (int i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(refused[i], want[i]);
}

/* The time after this stage counts against the deadline, but is not part of the wait here. */
static void test_rest_adds(void)
{
	struct admission_view v = view_of(20);

	start();
	v.rest_ns = 11 * MS;
	CU_ASSERT_EQUAL(ask_left(v, 39.9), WEIR_EHOPELESS); /* 20 + 5 + 11 of 40 */
	CU_ASSERT_EQUAL(ask_left(v, 40.1), 0);
	v.rest_ns = 10000 * MS;
	CU_ASSERT_EQUAL(ask(v, 0, 0), 0);
}

/* ---- the route to the stage ---- */

/* Part of the work that is queued now will be done when an event admitted now arrives. */
static void test_lead_subtracts(void)
{
	struct admission_view v = view_of(60);

	start();
	CU_ASSERT_EQUAL(ask(v, 0, 0), WEIR_EDELAY); /* the cap is 50 */
	v.lead_ns = 9 * MS;
	CU_ASSERT_EQUAL(ask(v, 0, 0), WEIR_EDELAY);
	v.lead_ns = 11 * MS;
	CU_ASSERT_EQUAL(ask(v, 0, 0), 0);
	v.lead_ns = 1000 * MS; /* the remaining work is 0, not negative */
	CU_ASSERT_EQUAL(ask(v, 0, 0), 0);
}

/* The time to get to the stage counts as well: lead + (wait - lead) + service. */
static void test_lead_is_time_that_passes(void)
{
	struct admission_view v = view_of(40);

	start();
	v.lead_ns = 30 * MS;
	CU_ASSERT_EQUAL(ask_left(v, 49.9), WEIR_EHOPELESS); /* 30 + 10 + 5 of 50 */
	CU_ASSERT_EQUAL(ask_left(v, 50.1), 0);
	v.lead_ns = 70 * MS;
	CU_ASSERT_EQUAL(ask_left(v, 83.2), WEIR_EHOPELESS); /* 70 + 0 + 5 of 83.3 */
	CU_ASSERT_EQUAL(ask_left(v, 83.4), 0);
}

/* ---- idle ---- */

/* I3: while a thread is idle, the first event of a run enters, however little time it has left. The
 * next one waits for the first. */
static void test_idle_admits(void)
{
	int64_t left_ns[3] = {1, 1, 1};
	uint16_t user[3] = {65535, 65535, 65535};
	bool refused[3] = {false};
	int reason = 0;
	struct admission_view v = view_of(1000);

	start();
	v.idle = true;
	v.left_ns = left_ns;
	v.user = user;
	v.lead_ns = v.rest_ns = 500 * MS;
	CU_ASSERT_EQUAL(admission_weir.admit(state, &own, &v, CLASSES - 1, 3, refused, &reason), 1);
	CU_ASSERT(!refused[0] && refused[1] && refused[2]);
	v.idle = false;
	refused[1] = refused[2] = false;
	CU_ASSERT_EQUAL(admission_weir.admit(state, &own, &v, CLASSES - 1, 3, refused, &reason), 0);
	CU_ASSERT_EQUAL(reason, WEIR_EHOPELESS);
}

/* Of a run, as many events enter as there are idle threads with nothing queued for them, whatever
 * is known of costs. I3 demands this of each event, also within a run. */
static int taken_idle(int idle, unsigned length, int n)
{
	int64_t left_ns[8];
	uint16_t user[8];
	bool refused[8] = {false};
	int reason = 0;
	struct admission_view v = view_of(1000);

	for (int i = 0; i < 8; i++) {
		left_ns[i] = 1;
		user[i] = 65535;
	}
	v.threads = 8;
	v.idle = idle;
	v.length = length;
	v.left_ns = left_ns;
	v.user = user;
	int m = admission_weir.admit(state, &own, &v, 0, n, refused, &reason);
	for (int i = 0; i < n; i++)
		CU_ASSERT_EQUAL(refused[i], i >= m);
	return m;
}

static void test_idle_threads_take_a_run(void)
{
	start();
	CU_ASSERT_EQUAL(taken_idle(8, 0, 4), 4);
	CU_ASSERT_EQUAL(taken_idle(8, 0, 8), 8);
	CU_ASSERT_EQUAL(taken_idle(3, 0, 8), 3);
	CU_ASSERT_EQUAL(taken_idle(8, 6, 4), 2); /* six of the threads have an event to fetch */
	CU_ASSERT_EQUAL(taken_idle(8, 64, 4), 1);
	CU_ASSERT_EQUAL(taken_idle(0, 0, 4), 0);
}

/* ---- minimum remaining time ---- */

static const double twice[CLASSES] = {1, 1, 0};
static const int falling[CLASSES] = {0, 1, 2}, equal[CLASSES] = {0, 0, 1};

/* Half a service time, but only if there is a standing queue. */
static void test_least_left(void)
{
	start();
	CU_ASSERT_EQUAL(admission_weir.least_left(state), 0);
	tick(twice, twice, falling, 20);
	CU_ASSERT_EQUAL(admission_weir.least_left(state), 0);
	start_over(twice, twice, falling);
	CU_ASSERT_EQUAL(admission_weir.least_left(state), 2500000);
	for (int t = 0; t < 20; t++)
		tick(twice, twice, falling, 0.1);
	CU_ASSERT_EQUAL(admission_weir.least_left(state), 0);
}

static bool is_over(void)
{
	char line[256];

	admission_weir.explain(state, &own, NULL, line, sizeof(line));
	return strncmp(line, "OVER", 4) == 0;
}

/* No minimum is set either when the queue is short but OVER has not ended: events that are not
 * started teach nothing. */
static void test_short_queue_begins_all(void)
{
	start_over(twice, twice, falling);
	CU_ASSERT_EQUAL(ask(view_of(1000), 0, 0), WEIR_EDELAY); /* stays OVER for 100 ms */
	tick(twice, twice, falling, 5.1);
	CU_ASSERT_EQUAL(admission_weir.least_left(state), 2500000);
	tick(twice, twice, falling, 4.9); /* low: a twentieth of the objective */
	CU_ASSERT(is_over());
	CU_ASSERT_EQUAL(admission_weir.least_left(state), 0);
}

/* Refusals from a run with more events than idle threads do not indicate a standing queue. */
static void test_refusals_beside_idle_threads(void)
{
	for (int idle = 0; idle < 2; idle++) {
		start_over(twice, twice, falling);
		CU_ASSERT_EQUAL(taken_idle(0, 0, 3), 0);
		for (int t = 0; t < 30; t++) {
			CU_ASSERT_EQUAL(taken_idle(idle, 0, 3), idle);
			tick(twice, twice, falling, 0.1);
		}
		CU_ASSERT_EQUAL(is_over(), idle == 0);
	}
}

/* ---- after a stall ---- */

/* A run of four events from clients that wait for 500 ms. The stage could serve each in 1 ms, but
 * the known cost stems from a stall and exceeds that wait. Only started events correct it. Returns
 * how many are started. */
static int offer_of_stall(double *cost_ns, int idle, double wait_ms)
{
	int64_t left_ns[4] = {500 * MS, 500 * MS, 500 * MS, 500 * MS};
	uint16_t user[4] = {0, 16384, 32768, 49152};
	bool refused[4] = {false};
	int reason = 0;
	struct admission_view v = view_of(wait_ms);

	v.idle = idle;
	v.slo_ns = 500 * MS;
	v.cost_ns = (int64_t)*cost_ns;
	v.left_ns = left_ns;
	v.user = user;
	int m = admission_weir.admit(state, &own, &v, 0, 4, refused, &reason);
	if (admission_weir.least_left(state) > 500 * MS) /* shed when dequeued */
		m = 0;
	for (int i = 0; i < m; i++)
		*cost_ns += 0.02 * (MS - *cost_ns); /* as in graph/meter.h */
	return m;
}

static void tick_of_stall(double cost_ns, double wait_ms)
{
	struct admission_sample sample = {.span_ns = ADMISSION_TICK_NS,
	    .n_classes = 1,
	    .threads = 4,
	    .idle = wait_ms == 0,
	    .limit = 4096,
	    .work_ns = (int64_t)(wait_ms * 4e6),
	    .cost_ns = (int64_t)cost_ns,
	    .slo_ns = 500 * MS};

	now_ms += 10;
	sample.now_ns = now_ms * MS;
	classes_default(&sample);
	sample.class[0].offered = sample.class[0].wanted = 10;
	admission_weir.tick(state, &own, &sample);
}

/* With an empty queue and all threads idle, events are admitted again and the cost is corrected. */
static void test_comes_back_after_a_stall(void)
{
	double cost_ns = 1500.0 * MS;
	int taken = 0;

	start();
	for (int t = 0; t < 20; t++) {
		CU_ASSERT_EQUAL(offer_of_stall(&cost_ns, 0, 2000), 0);
		tick_of_stall(cost_ns, 2000);
	}
	CU_ASSERT(is_over());
	for (int t = 0; t < 300; t++) { /* 3 s */
		taken = offer_of_stall(&cost_ns, 4, 0);
		tick_of_stall(cost_ns, 0);
	}
	CU_ASSERT(!is_over());
	CU_ASSERT_EQUAL(taken, 4);
	CU_ASSERT(cost_ns < 1.01 * MS);
}

/* ---- shares ---- */

/* Classes of equal priority fare alike, at each wait and for each user. */
static void test_equal_priorities(void)
{
	static const double load[CLASSES] = {3, 1, 1};

	start_over(load, load, equal);
	for (double wait_ms = 1; wait_ms < 70; wait_ms += 3)
		for (int u = 0; u < 65536; u += 512)
			CU_ASSERT_EQUAL(ask(view_of(wait_ms), 0, (uint16_t)u),
			    ask(view_of(wait_ms), 1, (uint16_t)u));
	CU_ASSERT_DOUBLE_EQUAL(part_of(0, 8), 0.25, 0.01); /* 8 ms is the target wait */
	CU_ASSERT_DOUBLE_EQUAL(part_of(1, 8), 0.25, 0.01);
	CU_ASSERT_EQUAL(part_of(2, 8), 0);
	start_over(load, load, falling);
	CU_ASSERT_DOUBLE_EQUAL(part_of(0, 8), 1.0 / 3, 0.01);
	CU_ASSERT_EQUAL(part_of(1, 8), 0);
}

/* How many events of a run of 24 from one user enter a stage in state NORMAL, at a wait just below
 * the limit that causes OVER at once. Each event adds 1.25 ms, until the cap is reached within the
 * run. */
static int taken_at_rest(const int *priority, int class_id, uint16_t user)
{
	struct admission_view v = view_of(34);
	bool refused[24] = {false};
	uint16_t users[24];
	int reason = 0;

	for (int i = 0; i < 24; i++)
		users[i] = user;
	start();
	tick(twice, twice, priority, 1);
	v.now_ns = now_ms * MS;
	v.user = users;
	int m = admission_weir.admit(state, &own, &v, class_id, 24, refused, &reason);
	CU_ASSERT(!is_over());
	CU_ASSERT_EQUAL(reason, WEIR_EDELAY);
	return m;
}

/* Classes of equal priority also have the same caps while no excess load is known. */
static void test_equal_caps(void)
{
	for (int u = 0; u < 65536; u += 256)
		CU_ASSERT_EQUAL(
		    taken_at_rest(equal, 0, (uint16_t)u), taken_at_rest(equal, 1, (uint16_t)u));
	CU_ASSERT_EQUAL(taken_at_rest(equal, 1, 0), 13);    /* up to 50 ms, half the objective */
	CU_ASSERT_EQUAL(taken_at_rest(equal, 1, 65535), 8); /* up to 43.75 ms */
	CU_ASSERT_EQUAL(taken_at_rest(equal, 2, 0), 8);     /* the lower priority starts there */
	CU_ASSERT_EQUAL(taken_at_rest(equal, 2, 65535), 3); /* up to 37.5 ms, a quarter less */
	CU_ASSERT_EQUAL(taken_at_rest(falling, 1, 0), 10);  /* up to 45.8 ms: three priorities */
	CU_ASSERT_EQUAL(taken_at_rest(falling, 2, 65535), 3);
}

/* While OVER, two classes of equal priority have the same cap, at a wait that causes OVER at
 * once. */
static void test_equal_caps_over(void)
{
	for (int u = 0; u < 65536; u += 4096)
		for (double wait_ms = 36; wait_ms < 55; wait_ms += 0.5) {
			int why[2];
			for (int c = 0; c < 2; c++) {
				start();
				tick(twice, twice, equal, 1);
				why[c] = ask(view_of(wait_ms), c, (uint16_t)u);
				CU_ASSERT(is_over());
			}
			CU_ASSERT_EQUAL(why[0], why[1]);
		}
}

/* Events that other stages refuse cause no work here, so other classes can use the capacity. The
 * events that those stages admit are from the lowest users, so this stage must not refuse them
 * while it has capacity left. */
static void test_others_refuse(void)
{
	static const double load[CLASSES] = {8, 0.5, 0}, some[CLASSES] = {0.4, 0.5, 0};

	start_over(load, load, equal);
	CU_ASSERT(part_of(1, 8) < 0.2);
	start_over(load, some, equal);
	CU_ASSERT_EQUAL(part_of(0, 8), 1);
	CU_ASSERT_EQUAL(part_of(1, 8), 1);
}

/* If the rest is still too much, the part refers to the whole class. 4 are offered, 2 of them are
 * wanted, and 1 can be done: the first quarter of the users is half of those that the other stage
 * admits. */
static void test_part_is_of_all(void)
{
	static const double load[CLASSES] = {4, 0, 0}, some[CLASSES] = {2, 0, 0};

	start_over(load, some, equal);
	CU_ASSERT_DOUBLE_EQUAL(part_of(0, 8), 0.25, 0.01);
	CU_ASSERT(admission_weir.part(state, 0) <= 0.26);
}

/* ---- tokens ---- */

static void test_part(void)
{
	start();
	CU_ASSERT_EQUAL(admission_weir.part(state, 0), 1);
	start_over(twice, twice, falling);
	ask(view_of(8), 0, 0); /* the last wait seen */
	CU_ASSERT_DOUBLE_EQUAL(admission_weir.part(state, 0), 1, 0.01);
	CU_ASSERT_DOUBLE_EQUAL(admission_weir.part(state, 1), part_of(1, 8), 0.01);
	CU_ASSERT_DOUBLE_EQUAL(admission_weir.part(state, 2), 1, 0.01); /* no events offered */
}

CUNIT_MAIN("weir ahead", {"no hope", test_hopeless}, {"no hope in a run", test_hopeless_in_a_run},
    {"rest adds", test_rest_adds}, {"lead subtracts", test_lead_subtracts},
    {"lead is time that passes", test_lead_is_time_that_passes}, {"idle admits", test_idle_admits},
    {"idle threads take a run", test_idle_threads_take_a_run}, {"least left", test_least_left},
    {"a short queue begins all", test_short_queue_begins_all},
    {"refusals beside idle threads", test_refusals_beside_idle_threads},
    {"comes back after a stall", test_comes_back_after_a_stall},
    {"equal priorities", test_equal_priorities}, {"equal caps", test_equal_caps},
    {"equal caps while OVER", test_equal_caps_over}, {"others refuse", test_others_refuse},
    {"part is of all", test_part_is_of_all}, {"part", test_part})
