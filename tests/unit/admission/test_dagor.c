/* SPDX-License-Identifier: MIT */
/* The policy `dagor` on a virtual clock: the admission level over classes and users. */
#include "admission/admission.h"

#include "cunit_main.h"
#include "station.h"

_Alignas(16) static unsigned char state[ADMISSION_STATE_MAX];
static const struct weir_admission_spec own = {.target_ns = -1, .interval_ns = -1};

/* Is the event of `user` admitted? It counts as offered. */
static bool enters(int class_id, int n_classes, uint16_t user)
{
	struct admission_view v = {.n_classes = n_classes, .threads = 4, .user = &user};
	bool refused = false;
	int reason = 0;

	int m = admission_dagor.admit(state, &own, &v, class_id, 1, &refused, &reason);
	CU_ASSERT(m == 1 ? !refused && reason == 0 : refused && reason == WEIR_EPRIORITY);
	return m == 1;
}

/* Offer `n` events of users spread evenly over the class. Returns how many entered. */
static int offer(int class_id, int n_classes, int n)
{
	int m = 0;

	for (int i = 0; i < n; i++)
		m += enters(class_id, n_classes, (uint16_t)(i * 65536LL / n));
	return m;
}

static void tick(int64_t now_ms, int64_t wait_ms)
{
	struct admission_sample sample = {
	    .now_ns = now_ms * MS, .completed = 10, .wait_mean_ns = wait_ms * MS};

	admission_dagor.tick(state, &own, &sample);
}

static void test_all_at_first(void)
{
	admission_dagor.init(state, &own, 0);
	CU_ASSERT_EQUAL(offer(0, 4, 500), 500);
	CU_ASSERT_EQUAL(offer(3, 4, 500), 500);
	tick(10, 20);
	CU_ASSERT_EQUAL(offer(3, 4, 999), 999);
	tick(20, 20); /* 20 ms is not over 20 ms */
	CU_ASSERT_EQUAL(offer(3, 4, 2000), 2000);
}

/* A window ends after 2,000 requests: the level falls to 5 % less than were admitted, then rises by
 * 1 %. */
static void test_steps(void)
{
	admission_dagor.init(state, &own, 0);
	offer(0, 1, 2000);
	tick(10, 21);
	int first = offer(0, 1, 2000);
	CU_ASSERT(first >= 1899 && first <= 1901);
	tick(20, 21);
	int second = offer(0, 1, 2000);
	CU_ASSERT(second >= 1804 && second <= 1806); /* 1,900 * 0.95 = 1,805 */
	tick(30, 1);
	int third = offer(0, 1, 2000);
	CU_ASSERT(third >= 1822 && third <= 1824); /* 1,805 * 1.01 = 1,823 */
}

static void test_window_of_a_second(void)
{
	admission_dagor.init(state, &own, 0);
	offer(0, 1, 100);
	for (int64_t t = 10; t < 1000; t += 10)
		tick(t, 30);
	CU_ASSERT_EQUAL(offer(0, 1, 100), 100);
	tick(1000, 30);
	CU_ASSERT_EQUAL(offer(0, 1, 100), 95);
	/* A second without requests changes nothing. */
	offer(0, 1, 100);
	tick(2000, 1);
	int before = offer(0, 1, 1000);
	admission_dagor.init(state, &own, 0);
	offer(0, 1, 1000);
	tick(1000, 30);
	tick(2000, 30);
	tick(3000, 30);
	CU_ASSERT_EQUAL(offer(0, 1, 1000), 950);
	CU_ASSERT(before > 950);
}

/* The lowest class is refused first, and within it the highest users. A given user is always either
 * refused or admitted. */
static void test_by_class_and_user(void)
{
	admission_dagor.init(state, &own, 0);
	for (int window = 1; window <= 20; window++) {
		for (int c = 0; c < 4; c++)
			offer(c, 4, 500);
		tick(window * 10, 50);
	}
	/* 2,000 * 0.95^20 = 717: all of class 0, 43 % of class 1. */
	CU_ASSERT_EQUAL(offer(0, 4, 500), 500);
	int m = offer(1, 4, 500);
	CU_ASSERT(m > 200 && m < 235);
	CU_ASSERT_EQUAL(offer(2, 4, 500), 0);
	CU_ASSERT_EQUAL(offer(3, 4, 500), 0);
	bool above = true;
	for (int user = 0; user < 65536; user += 64) {
		bool now = enters(1, 4, (uint16_t)user);
		CU_ASSERT(above || !now);
		CU_ASSERT_EQUAL(enters(1, 4, (uint16_t)user), now);
		above = now;
	}
	char line[128];
	admission_dagor.explain(state, &own, NULL, line, sizeof(line));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(line, "the mean wait is over 20 ms; admits all of the higher classes, 4"));
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "% of class 1 and none of the lower classes"));
	admission_dagor.explain(
	    state, &own, (const char *const[]){"a", "bulk", "c", "d", NULL}, line, sizeof(line));
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "% of class bulk and none of the lower classes"));
}

/* Without users, the share of a class is applied to each run. */
static void test_unknown_users(void)
{
	struct admission_view v = {.n_classes = 1, .threads = 4};
	int reason = 0;

	admission_dagor.init(state, &own, 0);
	for (int window = 1; window <= 14; window++) { /* 0.95^14 = 0.49 */
		offer(0, 1, 2000);
		tick(window * 10, 50);
	}
	for (int run = 0; run < 20; run++) {
		bool refused[64] = {false};
		int m = admission_dagor.admit(state, &own, &v, 0, 64, refused, &reason);
		CU_ASSERT(m >= 28 && m <= 35);
	}
}

/* Events refused by the full queue were not admitted: the next level is 5 % below what entered. */
static void test_give_back(void)
{
	admission_dagor.init(state, &own, 0);
	offer(0, 1, 2000);
	admission_dagor.give_back(state, 1000);
	tick(10, 50);
	int m = offer(0, 1, 2000);
	CU_ASSERT(m >= 949 && m <= 951);
	admission_dagor.give_back(state, 100000); /* not below 0 */
	tick(20, 1);
	m = offer(0, 1, 2000);
	CU_ASSERT_EQUAL(m, 1); /* at least one more */
}

/* Without a tick for a long time, counting stops, but the level is still found. */
static void test_missing_ticks(void)
{
	admission_dagor.init(state, &own, 0);
	for (int i = 0; i < 100; i++)
		offer(0, 1, 2000);
	tick(500, 50);
	int m = offer(0, 1, 2000);
	CU_ASSERT(m >= 1890 && m <= 1910);
}

/* The wait is compared with 20 ms unless the target is greater than 0. */
static void test_default_target(void)
{
	static const int64_t unset[] = {-1, 0};
	char line[128];

	for (int i = 0; i < 2; i++) {
		const struct weir_admission_spec spec = {.target_ns = unset[i], .interval_ns = -1};
		struct admission_sample sample = {
		    .now_ns = 10 * MS, .completed = 10, .wait_mean_ns = 20 * MS};
		admission_dagor.init(state, &spec, 0);
		offer(0, 1, 2000);
		admission_dagor.tick(state, &spec, &sample);
		admission_dagor.explain(state, &spec, NULL, line, sizeof(line));
		CU_ASSERT_STRING_EQUAL(line, "the mean wait is within 20 ms; admits all classes");
		admission_dagor.explain(
		    state, &spec, (const char *const[]){"default", NULL}, line, sizeof(line));
		CU_ASSERT_STRING_EQUAL(line, "the mean wait is within 20 ms; admits all");
	}
}

static void test_station(void)
{
	static const double load[] = {0.5, 0.7, 2, 10}, least[] = {0.48, 0.67, 0.6, 0.5};

	for (int i = 0; i < 4; i++) {
		struct station st = {.policy = &admission_dagor, .spec = own, .load = load[i]};
		station_default(&st);
		struct station_result r = station_run(&st);
		CU_ASSERT(r.goodput > least[i]);
		CU_ASSERT(i > 1 || r.refused < 0.001);
		CU_ASSERT(station_success(&r, 0) > 0.6);
		CU_ASSERT(i < 2 || station_success(&r, 3) < 0.05);
	}
}

CUNIT_MAIN("dagor", {"admits all at first", test_all_at_first}, {"steps", test_steps},
    {"a window of a second", test_window_of_a_second},
    {"by class and user", test_by_class_and_user}, {"unknown users", test_unknown_users},
    {"give back", test_give_back}, {"missing ticks", test_missing_ticks},
    {"default target", test_default_target}, {"station", test_station})
