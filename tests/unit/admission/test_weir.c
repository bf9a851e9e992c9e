/* SPDX-License-Identifier: MIT */
/* The policy `weir` on a virtual clock: states, caps, which events are refused, and its
 * explanation. Its effect on a station is in test_weir_station.c. */
#include "admission/admission.h"

#include "classes.h"
#include "cunit_main.h"
#include "station.h"

#define CLASSES 4
#define SLO_MS  100

_Alignas(16) static unsigned char state[ADMISSION_STATE_MAX];
static const struct weir_admission_spec own = {.target_ns = -1, .interval_ns = -1};
static int64_t now_ms; /* virtual */
static int64_t p99_ms; /* of the service times; 0: unknown */
static int64_t slo_ms; /* the objective; 0: none is set */

/* A stage of 4 threads with events of 5 ms and a predicted wait of wait_ms. */
static struct admission_view view_of(double wait_ms)
{
	return (struct admission_view){.now_ns = now_ms * MS,
	    .length = wait_ms > 0 ? 64 : 0,
	    .limit = 4096,
	    .n_classes = CLASSES,
	    .threads = 4,
	    .work_ns = (int64_t)(wait_ms * 4e6),
	    .cost_ns = 5 * MS,
	    .slo_ns = slo_ms * MS};
}

/* 0 if the event of `user` enters, otherwise the reason. */
static int ask(int class_id, uint16_t user, double wait_ms)
{
	struct admission_view v = view_of(wait_ms);
	bool refused = false;
	int reason = 0;

	v.user = &user;
	int m = admission_weir.admit(state, &own, &v, class_id, 1, &refused, &reason);
	CU_ASSERT(m == 1 ? !refused && reason == 0 : refused && reason < 0);
	return reason;
}

/* A tick of 10 ms in which class c offered load[c] times the capacity of the stage. */
static void tick(const double *load, double wait_ms)
{
	struct admission_sample sample = {.span_ns = ADMISSION_TICK_NS,
	    .n_classes = CLASSES,
	    .threads = 4,
	    .length = 64,
	    .limit = 4096,
	    .work_ns = (int64_t)(wait_ms * 4e6),
	    .cost_ns = 5 * MS,
	    .slo_ns = slo_ms * MS,
	    .service_p99_ns = p99_ms * MS};

	now_ms += 10;
	sample.now_ns = now_ms * MS;
	for (int c = 0; c < CLASSES; c++) {
		/* in events of 4 us, so that they divide well */
		sample.class[c].offered = (uint64_t)(load[c] * 10000);
		sample.class[c].cost_ns = 4000;
	}
	classes_default(&sample);
	admission_weir.tick(state, &own, &sample);
}

static void start(void)
{
	now_ms = p99_ms = 0;
	slo_ms = SLO_MS;
	admission_weir.init(state, &own, 0);
}

static const double mix_2x[CLASSES] = {0.2, 0.4, 0.6, 0.8};

/* rested() means that further ticks of a stage without events change nothing. It holds once the
 * estimates have decayed, and never while the state is OVER. */
static void test_rested(void)
{
	static const double nothing[CLASSES] = {0};

	for (int c = 0; c < CLASSES; c++) {
		double one[CLASSES] = {0};
		one[c] = 0.5;
		start();
		CU_ASSERT_TRUE(admission_weir.rested(state));
		tick(one, 0);
		CU_ASSERT_FALSE(admission_weir.rested(state));
	}
	start();
	for (int i = 0; i < 100; i++)
		tick(mix_2x, 60);
	CU_ASSERT_FALSE(admission_weir.rested(state));
	tick(nothing, 60); /* still over: the queue is not empty */
	CU_ASSERT_FALSE(admission_weir.rested(state));
	for (int i = 0; i < 1000; i++)
		tick(nothing, 0);
	CU_ASSERT_TRUE(admission_weir.rested(state));
}

/* OVER, with known loads. */
static void start_over(const double *load)
{
	start();
	for (int t = 0; t < 200; t++)
		tick(load, 20);
}

/* Without an objective, half a second is assumed: 20 ms of wait are short beside it. */
static void test_no_objective(void)
{
	static const double half[CLASSES] = {0.05, 0.1, 0.15, 0.2};

	start();
	slo_ms = 0;
	for (int t = 0; t < 200; t++) {
		tick(half, 20);
		CU_ASSERT_EQUAL(ask(CLASSES - 1, 0, 20), 0);
	}
}

static void test_unknown_cost(void)
{
	struct admission_view v = view_of(100000);
	bool refused[64] = {false};
	int reason = 0;

	start_over(mix_2x);
	v.cost_ns = 0;
	CU_ASSERT_EQUAL(admission_weir.admit(state, &own, &v, 3, 64, refused, &reason), 64);
	CU_ASSERT_EQUAL(reason, 0);
}

/* I3: while a thread is idle an event enters, whatever the state and the numbers. */
static void test_never_refuses_when_idle(void)
{
	for (int over = 0; over < 2; over++)
		for (int c = 0; c < CLASSES; c++) {
			struct admission_view v = view_of(100000);
			uint16_t user = 65535;
			bool refused = false;
			int reason = 0;
			start();
			if (over)
				start_over(mix_2x);
			v.idle = true;
			v.user = &user;
			CU_ASSERT_EQUAL(
			    admission_weir.admit(state, &own, &v, c, 1, &refused, &reason), 1);
			CU_ASSERT_EQUAL(reason, 0);
		}
}

/* NORMAL: the cap is half the objective for the first user, and a quarter less for the last. */
static void test_caps_at_rest(void)
{
	start();
	CU_ASSERT_EQUAL(ask(0, 0, 34), 0); /* below 35, where OVER starts */
	CU_ASSERT_EQUAL(ask(3, 65535, 34), 0);
	CU_ASSERT_EQUAL(ask(3, 65535, 51), WEIR_EDELAY);
	start();
	CU_ASSERT_EQUAL(ask(1, 0, 40), 0);
	CU_ASSERT_EQUAL(ask(1, 0, 40.1), WEIR_EDELAY);
	CU_ASSERT_EQUAL(ask(0, 0, 50), 0);
	CU_ASSERT_EQUAL(ask(0, 0, 50.1), WEIR_EDELAY);
}

/* Once a class was refused for delay, lower classes are refused until the wait is down to the
 * target wait, since they would lengthen the queue in which the higher class waits. */
static void test_lower_classes_wait_for_the_end_of_a_delay(void)
{
	start();
	CU_ASSERT_EQUAL(ask(1, 0, 40.1), WEIR_EDELAY);
	CU_ASSERT_EQUAL(ask(2, 0, 35), WEIR_EPRIORITY);
	CU_ASSERT_EQUAL(ask(1, 0, 35), 0);
	CU_ASSERT_EQUAL(ask(0, 0, 50.1), WEIR_EDELAY);
	CU_ASSERT_EQUAL(ask(1, 0, 35), WEIR_EPRIORITY);
	CU_ASSERT_EQUAL(ask(2, 0, 35), WEIR_EPRIORITY);
	CU_ASSERT_EQUAL(ask(0, 0, 35), 0);
	CU_ASSERT_EQUAL(ask(1, 0, 30.1), WEIR_EPRIORITY);
	/* 30 ms is the target wait while no more is offered than can be done. */
	CU_ASSERT_EQUAL(ask(1, 0, 29.9), 0);
	CU_ASSERT_EQUAL(ask(2, 0, 35), 0);
}

/* While OVER, the only class of a stage has the cap of the highest class: no other class comes
 * first. */
static void test_cap_of_the_only_class(void)
{
	struct admission_view v = view_of(49.9);
	uint16_t user = 0;
	bool refused = false;
	int reason = 0;

	start(); /* such a wait is OVER at once */
	v.n_classes = 1;
	v.user = &user;
	CU_ASSERT_EQUAL(admission_weir.admit(state, &own, &v, 0, 1, &refused, &reason), 1);
	v.work_ns += MS; /* another 0.25 ms over 4 threads */
	CU_ASSERT_EQUAL(admission_weir.admit(state, &own, &v, 0, 1, &refused, &reason), 0);
	CU_ASSERT_EQUAL(reason, WEIR_EDELAY);
}

/* However long services take, two events may wait. */
static void test_cap_of_long_services(void)
{
	struct admission_view v = view_of(0);
	bool refused = false;
	int reason = 0;

	start();
	v.cost_ns = 500 * MS;
	v.work_ns = 2 * 500 * MS;
	CU_ASSERT_EQUAL(admission_weir.admit(state, &own, &v, 0, 1, &refused, &reason), 1);
	v.work_ns += 4 * MS;
	CU_ASSERT_EQUAL(admission_weir.admit(state, &own, &v, 0, 1, &refused, &reason), 0);
	CU_ASSERT_EQUAL(reason, WEIR_EDELAY);
}

/* OVER by a burst: all classes together offer `total` times the capacity, and slow services take 20
 * ms. */
static void start_burst(double total)
{
	const double load[CLASSES] = {total / 4, total / 4, total / 4, total / 4};

	start();
	p99_ms = 20;
	for (int t = 0; t < 200; t++)
		tick(load, 20);
}

/* If the stage can do what is offered, all events may wait as long as nearly all will be in
 * time. */
static void test_bursts_go_by(void)
{
	start_burst(0.7);
	CU_ASSERT_EQUAL(ask(3, 0, 73.9), 0);
	CU_ASSERT_EQUAL(ask(3, 0, 74.1), WEIR_EDELAY);
	CU_ASSERT_EQUAL(ask(1, 65535, 72.1), 0);
	CU_ASSERT_EQUAL(ask(0, 65535, 84.9), 0);
	CU_ASSERT_EQUAL(ask(0, 0, 85.1), WEIR_EDELAY);
	CU_ASSERT_EQUAL(ask(1, 0, 72.1), WEIR_EPRIORITY);
	CU_ASSERT_EQUAL(ask(3, 65535, 71.9), 0);
	start_burst(0.85);
	CU_ASSERT_EQUAL(ask(3, 0, 73.9), 0);
	now_ms += 30;
	CU_ASSERT_EQUAL(ask(3, 0, 73.9), 0);
	now_ms++; /* the tick is late: the current load is unknown */
	CU_ASSERT_EQUAL(ask(3, 0, 40.1), WEIR_EDELAY);
	start_burst(0.925); /* half of that extra wait */
	CU_ASSERT_EQUAL(ask(3, 0, 56.9), 0);
	CU_ASSERT_EQUAL(ask(3, 0, 57.1), WEIR_EDELAY);
	start_burst(1);
	CU_ASSERT_EQUAL(ask(3, 0, 40.1), WEIR_EDELAY);
	start_burst(1.075); /* more than the capacity takes nothing off the cap */
	CU_ASSERT_EQUAL(ask(3, 0, 39.9), 0);
	CU_ASSERT_EQUAL(ask(3, 0, 40.1), WEIR_EDELAY);
	start_burst(0.7);
	const double load[CLASSES] = {0.1};
	p99_ms = 0; /* service times are unknown */
	tick(load, 20);
	CU_ASSERT_EQUAL(ask(3, 0, 40.1), WEIR_EDELAY);
}

static bool is_over(void)
{
	char line[256];

	admission_weir.explain(state, &own, NULL, line, sizeof(line));
	return strncmp(line, "OVER", 4) == 0;
}

/* OVER starts when the wait was not low for more than 100 ms; low is 5 % of the objective. */
static void test_goes_over(void)
{
	static const double load[CLASSES] = {0.9};

	start();
	for (int t = 0; t < 10; t++)
		tick(load, 20);
	CU_ASSERT_EQUAL(now_ms, 100);
	CU_ASSERT(!is_over());
	tick(load, 5); /* low */
	for (int t = 0; t < 10; t++)
		tick(load, 5.1);
	CU_ASSERT(!is_over());
	tick(load, 5.1);
	CU_ASSERT(is_over());
	start();
	tick(load, 35);
	CU_ASSERT(!is_over());
	tick(load, 35.1); /* high: at once */
	CU_ASSERT(is_over());
}

static void test_comes_back(void)
{
	static const double load[CLASSES] = {0.9};

	start_over(mix_2x);
	CU_ASSERT_EQUAL(ask(3, 65535, 20), WEIR_EPRIORITY);
	for (int t = 0; t < 10; t++)
		tick(load, 1);
	CU_ASSERT(is_over()); /* refused 100 ms ago */
	tick(load, 6);
	CU_ASSERT(is_over()); /* refused long ago, but the wait is not low */
	tick(load, 5);
	CU_ASSERT(!is_over());
}

/* At the target wait, 8 % of the objective at twice the load, exactly the capacity is admitted. */
static void test_serves_what_it_can(void)
{
	static const double part[CLASSES] = {1, 1, 0.38 / 0.6, 0.02 / 0.8};

	start_over(mix_2x);
	for (int c = 0; c < CLASSES; c++) {
		int m = 0;
		for (int u = 0; u < 1024; u++)
			m += ask(c, (uint16_t)(u * 64), 8) == 0;
		CU_ASSERT_DOUBLE_EQUAL(m / 1024.0, part[c], 0.01);
	}
}

/* Within a class, users below some number enter and none above it, so each user fares the same each
 * time. */
static void test_by_user(void)
{
	start_over(mix_2x);
	for (double wait_ms = 2; wait_ms < 60; wait_ms += 3)
		for (int c = 0; c < CLASSES; c++) {
			bool above = true;
			for (int u = 0; u < 65536; u += 128) {
				bool enters = ask(c, (uint16_t)u, wait_ms) == 0;
				CU_ASSERT(above || !enters);
				CU_ASSERT_EQUAL(ask(c, (uint16_t)u, wait_ms) == 0, enters);
				above = enters;
			}
		}
}

/* Fraction of the class that enters at this wait. */
static double part_of(int class_id, double wait_ms)
{
	int m = 0;

	for (int u = 0; u < 512; u++)
		m += ask(class_id, (uint16_t)(u * 128), wait_ms) == 0;
	return m / 512.0;
}

/* I5: at any instant a class is refused only if lower ones get no more than their guarantee, and a
 * longer wait never admits more. */
static void test_monotone(void)
{
	static const double loads[][CLASSES] = {{0.2, 0.4, 0.6, 0.8}, {1, 2, 3, 4}, {0, 0, 0.1, 3},
	    {0.3, 0.3, 0.3, 0.2}, {5, 0.001, 0.001, 0.001}};

	for (size_t l = 0; l < sizeof(loads) / sizeof(loads[0]); l++) {
		double before[CLASSES] = {1, 1, 1, 1};
		start_over(loads[l]);
		for (double wait_ms = 1; wait_ms < 70; wait_ms += 2) {
			double above = 1;
			for (int c = 0; c < CLASSES; c++) {
				double part = part_of(c, wait_ms);
				double guaranteed = loads[l][c] > 0.02 ? 0.02 / loads[l][c] : 1;
				CU_ASSERT(part <= before[c]);
				CU_ASSERT(above >= 1 || part <= guaranteed + 0.005);
				before[c] = part;
				above = part;
			}
		}
	}
}

/* The guarantee: 2 % of the stage, whatever higher classes offer, up to the cap of the wait. */
static void test_guarantee(void)
{
	static const double load[CLASSES] = {10, 0.1, 0.1, 0.1};

	start_over(load);
	for (double wait_ms = 1; wait_ms <= 40; wait_ms += 3)
		for (int c = 1; c < CLASSES; c++)
			CU_ASSERT(part_of(c, wait_ms) >= 0.195);
	CU_ASSERT_EQUAL(part_of(1, 41), 0);
}

/* With an empty queue everything enters, however high the load was a moment ago. */
static void test_empty_queue(void)
{
	static const double load[CLASSES] = {10, 10, 10, 10};

	start_over(load);
	CU_ASSERT_EQUAL(ask(3, 65535, 20), WEIR_EPRIORITY);
	CU_ASSERT_EQUAL(ask(3, 65535, 0), 0);
	CU_ASSERT_EQUAL(ask(3, 65535, 4), WEIR_EPRIORITY);
}

/* A run counts what it admits: its first events enter until the wait that they cause is too
 * long. */
static void test_run(void)
{
	struct admission_view v = view_of(0);
	uint16_t user[256] = {0};
	bool refused[256] = {false};
	int reason = 0;

	start();
	v.idle = true;
	v.user = user;
	int m = admission_weir.admit(state, &own, &v, 0, 256, refused, &reason);
	CU_ASSERT_EQUAL(m, 41); /* 40 times 5 ms over 4 threads are 50 ms */
	CU_ASSERT_EQUAL(reason, WEIR_EDELAY);
	CU_ASSERT(!refused[40] && refused[41] && refused[255]);
}

/* Unknown users: the refused part is taken from each run. */
static void test_unknown_users(void)
{
	start_over(mix_2x);
	for (int i = 0; i < 20; i++) {
		struct admission_view v = view_of(8);
		bool refused[8] = {false};
		int reason = 0;
		v.threads = 4;
		v.cost_ns = 1; /* the run itself causes no wait */
		int m = admission_weir.admit(state, &own, &v, 2, 8, refused, &reason);
		CU_ASSERT(m >= 4 && m <= 6); /* 63 % */
		CU_ASSERT(m == 8 || reason == WEIR_EPRIORITY);
	}
}

/* No work waits for the thread of this event, however much waits for others. */
static void test_no_work_is_no_wait(void)
{
	struct admission_view v = view_of(0);
	bool refused = false;
	int reason = 0;

	start();
	v.length = 100;
	CU_ASSERT_EQUAL(admission_weir.admit(state, &own, &v, 0, 1, &refused, &reason), 1);
}

static void test_explain(void)
{
	char line[256];
	struct admission_sample sample = {.span_ns = ADMISSION_TICK_NS,
	    .n_classes = 4,
	    .threads = 4,
	    .work_ns = 244 * MS,
	    .cost_ns = 5 * MS,
	    .slo_ns = SLO_MS * MS};

	start();
	struct admission_view v = view_of(3.1);
	bool refused = false;
	int reason = 0;
	admission_weir.admit(state, &own, &v, 0, 1, &refused, &reason);
	admission_weir.explain(state, &own, NULL, line, sizeof(line));
	CU_ASSERT_STRING_EQUAL(line, "NORMAL: predicted wait 3.1 ms of at most 50 ms, admits all");
	sample.class[2].offered = sample.class[3].offered = sample.class[3].refused = 10;
	sample.class[2].refused = 8;
	classes_default(&sample);
	for (int t = 1; t <= 121; t++) {
		sample.now_ns = t * 10 * MS;
		admission_weir.tick(state, &own, &sample);
	}
	admission_weir.explain(state, &own, NULL, line, sizeof(line));
	CU_ASSERT_STRING_EQUAL(
	    line, "OVER for 1.2 s: predicted wait 61 ms, refuses 80 % of class 2, all of class 3");
}

CUNIT_MAIN("weir", {"unknown cost", test_unknown_cost},
    {"never refuses when idle", test_never_refuses_when_idle}, {"caps at rest", test_caps_at_rest},
    {"lower classes wait for the end of a delay", test_lower_classes_wait_for_the_end_of_a_delay},
    {"cap of the only class", test_cap_of_the_only_class},
    {"cap of long services", test_cap_of_long_services}, {"bursts go by", test_bursts_go_by},
    {"goes over", test_goes_over}, {"comes back", test_comes_back},
    {"serves what it can", test_serves_what_it_can}, {"by user", test_by_user},
    {"monotone", test_monotone}, {"guarantee", test_guarantee}, {"empty queue", test_empty_queue},
    {"a run counts itself", test_run}, {"unknown users", test_unknown_users},
    {"no work is no wait", test_no_work_is_no_wait}, {"explains itself", test_explain},
    {"rests", test_rested}, {"no objective", test_no_objective})
