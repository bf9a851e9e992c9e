/* SPDX-License-Identifier: MIT */
/* Policy `weir` with waits that are long compared with the objective: slow services, the wait
 * allowed for the highest class, and events that have waited too long to be in time. */
#include "admission/admission.h"

#include "classes.h"
#include "cunit_main.h"

#define MS 1000000LL

_Alignas(16) static unsigned char state[ADMISSION_STATE_MAX];
static const struct weir_admission_spec own = {.target_ns = -1, .interval_ns = -1};
static const uint64_t twice[] = {16}, half_and_flood[] = {4, 12},
		      three_quarters_and_flood[] = {6, 10},
		      most_and_flood[] = {7, 9}; /* events per tick; 4 threads can do 8 */

/* The last second of the stage: 4 threads, an objective of 100 ms. */
struct past {
	const uint64_t *offered;
	int n_classes;
	int64_t wait_ms, cost_ms, service_p99_ms;
};

static int ticks = 100;

static void teach(struct past p)
{
	admission_weir.init(state, &own, 0);
	for (int t = 1; t <= ticks; t++) {
		struct admission_sample sample = {.now_ns = t * 10 * MS,
		    .span_ns = 10 * MS,
		    .n_classes = p.n_classes,
		    .threads = 4,
		    .length = 16,
		    .limit = 4096,
		    .work_ns = 4 * p.wait_ms * MS,
		    .cost_ns = p.cost_ms * MS,
		    .slo_ns = 100 * MS,
		    .service_p99_ns = p.service_p99_ms * MS};
		for (int c = 0; c < p.n_classes; c++)
			sample.class[c].offered = p.offered[c];
		classes_default(&sample);
		admission_weir.tick(state, &own, &sample);
	}
}

/* The part of the only class that is admitted at a load of twice the capacity and a wait of 11 ms.
 * Services take 5 ms, the slowest of a hundred takes `p99_ms`. */
static double part_with(int64_t p99_ms)
{
	teach((struct past){twice, 1, 11, 5, p99_ms});
	return admission_weir.part(state, 0);
}

static void test_tail(void)
{
	/* The target wait is 8 ms and the wait is 3 ms longer. An excess of half the objective
	 * would reduce the admitted load to 0. */
	double calm = (1 - 3.0 / 50) / 2;

	CU_ASSERT_DOUBLE_EQUAL(part_with(0), calm, 1e-3);
	CU_ASSERT_DOUBLE_EQUAL(part_with(84), calm, 1e-3); /* half of the remaining time: 8 ms */
	CU_ASSERT_DOUBLE_EQUAL(part_with(88), (1 - 5.0 / 50) / 2, 1e-3);
	CU_ASSERT_DOUBLE_EQUAL(part_with(90), (1 - 6.0 / 50) / 2, 1e-3); /* 5 ms, the minimum */
	CU_ASSERT_DOUBLE_EQUAL(part_with(99), part_with(90), 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(part_with(300), part_with(90), 1e-9);
}

/* A wait of 38 ms is 30 ms too long. The lower class gets its 2 % and nothing else: at that wait 40
 * % of the stage is admitted, and the highest class wants all of that. The highest class loses
 * nothing until the wait leaves it less than it wants. */
static void test_lower_classes_give_way_first(void)
{
	teach((struct past){half_and_flood, 2, 38, 5, 0});
	CU_ASSERT_DOUBLE_EQUAL(admission_weir.part(state, 0), 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(admission_weir.part(state, 1), 0.08 / 6, 1e-3);
	teach((struct past){half_and_flood, 2, 80, 5, 0});
	CU_ASSERT_DOUBLE_EQUAL(admission_weir.part(state, 0), (4 * 0.49 - 0.08) / 2, 0.02);
}

/* 0 if an event of the first user enters at that wait. */
static int ask(int class_id, int n_classes, double wait_ms)
{
	struct admission_view v = {.now_ns = ticks * 10 * MS,
	    .length = 64,
	    .limit = 4096,
	    .n_classes = n_classes,
	    .threads = 4,
	    .work_ns = (int64_t)(wait_ms * 4e6),
	    .cost_ns = 5 * MS,
	    .slo_ns = 100 * MS,
	    .user = (const uint16_t[]){0}};
	bool refused = false;
	int reason = 0;

	admission_weir.admit(state, &own, &v, class_id, 1, &refused, &reason);
	return reason;
}

static void test_highest_class_waits_as_long_as_it_may(void)
{
	teach((struct past){most_and_flood, 2, 20, 5, 10});
	CU_ASSERT_EQUAL(ask(0, 2, 74.9), 0); /* 90 ms less 1.5 slow services */
	CU_ASSERT_EQUAL(ask(0, 2, 75.1), WEIR_EDELAY);
	CU_ASSERT_EQUAL(ask(1, 2, 40.1), WEIR_EDELAY);
	teach((struct past){most_and_flood, 2, 20, 5, 60}); /* at least half the objective */
	CU_ASSERT_EQUAL(ask(0, 2, 49.9), 0);
	CU_ASSERT_EQUAL(ask(0, 2, 50.1), WEIR_EDELAY);
	teach((struct past){half_and_flood, 2, 20, 5, 0}); /* unknown: the same */
	CU_ASSERT_EQUAL(ask(0, 2, 50.1), WEIR_EDELAY);
	teach((struct past){twice, 1, 20, 5, 10}); /* an only class is not above others */
	CU_ASSERT_EQUAL(ask(0, 1, 50.1), WEIR_EDELAY);
}

/* If the highest class by itself offers half of the capacity, its long waits are bursts, however
 * slow the slowest services are: it waits as long as a mean service is still in time. Between 0.6
 * and 0.85 of the capacity the cap falls to the one above. */
static void test_highest_class_that_fits(void)
{
	teach((struct past){half_and_flood, 2, 20, 5, 60});
	CU_ASSERT_EQUAL(ask(0, 2, 84.9), 0); /* 90 ms less 5 */
	CU_ASSERT_EQUAL(ask(0, 2, 85.1), WEIR_EDELAY);
	CU_ASSERT_EQUAL(ask(1, 2, 30), WEIR_EPRIORITY); /* a higher class was refused */
	teach((struct past){half_and_flood, 2, 20, 5, 60});
	CU_ASSERT_EQUAL(ask(1, 2, 40.1), WEIR_EDELAY);
	teach((struct past){three_quarters_and_flood, 2, 20, 5, 60});
	CU_ASSERT_EQUAL(ask(0, 2, 63), 0); /* 50 + 0.4 * 35 = 64 ms */
	CU_ASSERT_EQUAL(ask(0, 2, 65), WEIR_EDELAY);
	ticks = 25; /* OVER for less than 200 ms */
	teach((struct past){half_and_flood, 2, 20, 5, 60});
	CU_ASSERT_EQUAL(ask(0, 2, 50.1), WEIR_EDELAY);
	ticks = 100;
}

/* In both states the cap leaves time for a service of the slowest hundredth, but is at least a
 * tenth of the objective. */
static void test_slow_services_lower_the_cap(void)
{
	teach((struct past){twice, 1, 20, 5, 70});
	CU_ASSERT_EQUAL(ask(0, 1, 29.9), 0);
	CU_ASSERT_EQUAL(ask(0, 1, 30.1), WEIR_EDELAY);
	teach((struct past){twice, 1, 20, 5, 300});
	CU_ASSERT_EQUAL(ask(0, 1, 10.1), WEIR_EDELAY);
	teach((struct past){half_and_flood, 2, 20, 5, 300});
	CU_ASSERT_EQUAL(ask(1, 2, 10.1), WEIR_EDELAY);
	teach((struct past){most_and_flood, 2, 20, 5, 300});
	CU_ASSERT_EQUAL(ask(0, 2, 49.9), 0);
	CU_ASSERT_EQUAL(ask(0, 2, 50.1), WEIR_EDELAY);
}

static void test_most_wait(void)
{
	admission_weir.init(state, &own, 0);
	CU_ASSERT_EQUAL(admission_weir.most_wait(state), INT64_MAX);
	teach((struct past){twice, 1, 1, 1, 0}); /* at rest, long waits are not limited */
	CU_ASSERT_EQUAL(admission_weir.most_wait(state), INT64_MAX);
	teach((struct past){twice, 1, 400, 5, 0});
	CU_ASSERT_EQUAL(admission_weir.most_wait(state), 100 * MS);
	teach((struct past){twice, 1, 400, 80, 0}); /* services nearly as long as the objective */
	CU_ASSERT_EQUAL(admission_weir.most_wait(state), 320 * MS);
}

CUNIT_MAIN("weir tail", {"slow services", test_tail},
    {"lower classes give way first", test_lower_classes_give_way_first},
    {"highest class waits as long as it may", test_highest_class_waits_as_long_as_it_may},
    {"highest class that fits", test_highest_class_that_fits},
    {"slow services lower the cap", test_slow_services_lower_the_cap},
    {"most wait", test_most_wait})
