/* SPDX-License-Identifier: MIT */
/* The policy `codel` on a virtual clock: when it is overloaded, and what it then sheds. */
#include "admission/admission.h"

#include "cunit_main.h"
#include "station.h"

_Alignas(16) static unsigned char state[ADMISSION_STATE_MAX];
static const struct weir_admission_spec own = {.target_ns = -1, .interval_ns = -1};

static bool drop_ms(const struct weir_admission_spec *spec, int64_t now_ms, int64_t wait_ms)
{
	return admission_codel.drop(state, spec, now_ms * MS, wait_ms * MS);
}

static void test_door_is_open(void)
{
	struct admission_view v = {.length = 4000, .limit = 4096, .n_classes = 1, .threads = 1};
	bool refused[64] = {false};
	int reason = 0;

	admission_codel.init(state, &own, 0);
	CU_ASSERT_EQUAL(admission_codel.admit(state, &own, &v, 0, 64, refused, &reason), 64);
	CU_ASSERT_EQUAL(reason, 0);
}

/* However long a wait is, it counts as a burst until a whole interval had no short wait. */
static void test_becomes_overloaded(void)
{
	admission_codel.init(state, &own, 0);
	CU_ASSERT(!drop_ms(&own, 1, 4)); /* as in folly, the first wait is judged alone */
	CU_ASSERT(!drop_ms(&own, 2, 3)); /* starts the first interval */
	for (int64_t t = 3; t <= 102; t++)
		CU_ASSERT(!drop_ms(&own, t, 50));
	CU_ASSERT(!drop_ms(&own, 103, 50)); /* the interval had a wait of 3 ms */
	for (int64_t t = 104; t <= 203; t++)
		CU_ASSERT(!drop_ms(&own, t, 6));
	CU_ASSERT(!drop_ms(&own, 204, 50)); /* overloaded; an interval's first event is spared */
	CU_ASSERT(!drop_ms(&own, 205, 10)); /* just twice the target */
	CU_ASSERT(drop_ms(&own, 206, 11));
}

static void test_recovers(void)
{
	admission_codel.init(state, &own, 0);
	for (int64_t t = 1; t <= 210; t++)
		drop_ms(&own, t, 50);
	CU_ASSERT(drop_ms(&own, 211, 50));
	CU_ASSERT(!drop_ms(&own, 212, 5)); /* not over the target */
	CU_ASSERT(drop_ms(&own, 213, 50)); /* the state lasts until the end of the interval */
	for (int64_t t = 214; t < 310; t++)
		drop_ms(&own, t, 50);
	CU_ASSERT(!drop_ms(&own, 310, 50));
	CU_ASSERT(!drop_ms(&own, 311, 50));
}

static void test_knobs(void)
{
	struct weir_admission_spec spec = {.target_ns = 20 * MS, .interval_ns = 50 * MS};

	admission_codel.init(state, &spec, 0);
	for (int64_t t = 1; t <= 60; t++)
		CU_ASSERT(!drop_ms(&spec, t, 30));
	CU_ASSERT(!drop_ms(&spec, 61, 40));
	CU_ASSERT(drop_ms(&spec, 62, 41));
	spec.target_ns = 1000 * MS; /* limited to the interval */
	CU_ASSERT(!drop_ms(&spec, 63, 100));
	CU_ASSERT(drop_ms(&spec, 64, 101));
}

static void test_explain(void)
{
	char line[128];

	admission_codel.init(state, &own, 0);
	admission_codel.explain(state, &own, NULL, line, sizeof(line));
	CU_ASSERT_STRING_EQUAL(
	    line, "not overloaded: the minimum wait of the last interval was within 5 ms");
	for (int64_t t = 1; t <= 210; t++)
		drop_ms(&own, t, 50);
	admission_codel.explain(state, &own, NULL, line, sizeof(line));
	CU_ASSERT_STRING_EQUAL(line,
	    "overloaded: the minimum wait of the last interval was over 5 ms; "
	    "events that waited over 10 ms are shed");
}

/* A station of 4 threads of 5 ms: it does useful work at any load, regardless of class. */
static void test_station(void)
{
	static const double load[] = {0.5, 1, 2, 10}, least[] = {0.48, 0.92, 0.97, 0.97};

	for (int i = 0; i < 4; i++) {
		struct station st = {.policy = &admission_codel, .spec = own, .load = load[i]};
		station_default(&st);
		struct station_result r = station_run(&st);
		CU_ASSERT(r.goodput > least[i]);
		CU_ASSERT(r.p99_ns < 90 * MS);
		CU_ASSERT_DOUBLE_EQUAL(station_success(&r, 0), station_success(&r, 3), 0.03);
		CU_ASSERT(i > 0 || r.refused < 0.001);
	}
}

CUNIT_MAIN("codel", {"the door is open", test_door_is_open},
    {"a standing queue is an overload", test_becomes_overloaded}, {"recovers", test_recovers},
    {"knobs", test_knobs}, {"explains itself", test_explain}, {"station", test_station})
