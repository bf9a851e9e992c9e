/* SPDX-License-Identifier: MIT */
/* The rings: differences, quantiles of a step, wrap-around, gaps, clocks that jump, graphs that
 * change, and the memory used. */
#include "admin/history/history.h"

#include "cunit_main.h"
#include "made_up.h"

#define T0 1700000000LL /* Unix time, a multiple of 10 */

static struct made_up made_up;
static struct history *history;

static void setup(void)
{
	made_up_init(&made_up);
	history = history_new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(history);
}

/* Feed at `second` after T0 on both clocks. */
static unsigned feed(int64_t second)
{
	made_up.view.wall_ns = (T0 + second) * 1000000000LL + 3000000;
	made_up.view.now_ns = (1000000 + second) * 1000000000LL;
	return history_feed(history, &made_up.view);
}

static double value(enum history_ring ring, const char *stage, int field, int64_t label)
{
	uint16_t code;
	int series = history_find(history, stage);

	CU_ASSERT_TRUE_FATAL(series >= 0);
	history_column(history, ring, series, field, label, 1, &code);
	return compact_unpack(code);
}

static double second(const char *stage, int field, int64_t s)
{
	return value(HISTORY_1S, stage, field, T0 + s);
}

#define CLASS(class, field) (SAMPLE_FIELDS + (class) * SAMPLE_CLASS_FIELDS + SAMPLE_CLASS_##field)

static struct weir_class_view *bulk(void)
{
	return &made_up.stage[MADE_DISK].class_view[1];
}

static void test_compact(void)
{
	for (int i = 0; i <= 2048; i++)
		CU_ASSERT_EQUAL(compact_unpack(compact_pack(i)), i);
	for (double v = 6e-8; v < 5e11; v *= 1.0007)
		CU_ASSERT_TRUE(fabs(compact_unpack(compact_pack(v)) / v - 1) <= 1.0 / 2048);
	for (uint32_t code = 0; code < COMPACT_NONE; code++)
		CU_ASSERT_EQUAL(compact_pack(compact_unpack((uint16_t)code)), code);
	CU_ASSERT_EQUAL(compact_pack(NAN), COMPACT_NONE);
	CU_ASSERT_TRUE(isnan(compact_unpack(COMPACT_NONE)));
	CU_ASSERT_EQUAL(compact_pack(-1), 0);
	CU_ASSERT_EQUAL(compact_pack(INFINITY), COMPACT_MAX);
	CU_ASSERT_EQUAL(compact_pack(1e300), COMPACT_MAX);
}

/* Connections that a source turned away never became events: they are in the sum, but in no class
 * and under no reason. */
static void test_turned_away(void)
{
	static const struct weir_metric rows[] = {
	    {"http_refused_total", WEIR_METRIC_TURNED_AWAY, "connections", "over a limit"},
	    {"http_accepted_total", WEIR_METRIC_COUNTER, "connections", "accepted"},
	    {"http_refused_rate_total", WEIR_METRIC_TURNED_AWAY, "connections", "too fast"}};
	struct weir_stage_view *web;

	setup();
	web = &made_up.stage[MADE_WEB];
	web->metrics = rows;
	web->n_metrics = 3;
	web->metric[0] = 5;
	CU_ASSERT_EQUAL(feed(0), 3);
	web->metric[0] += 20;
	web->metric[1] += 1000;
	web->metric[2] += 7;
	CU_ASSERT_EQUAL(feed(1), 1 << HISTORY_1S);
	CU_ASSERT_EQUAL(second("web", SAMPLE_SHED, 1), 27);
	CU_ASSERT_EQUAL(second("web", CLASS(0, SHED), 1), 0);
	CU_ASSERT_EQUAL(feed(2), 1 << HISTORY_1S);
	CU_ASSERT_EQUAL(second("web", SAMPLE_SHED, 2), 0);
	history_free(history);
}

/* The values of a step: rates over the time that really passed, and quantiles of the events of that
 * step only. */
static void test_differences(void)
{
	setup();
	CU_ASSERT_EQUAL(feed(0), 3); /* both rings begin */
	CU_ASSERT_TRUE(isnan(second("disk", SAMPLE_IN, 0)));
	bulk()->offered += 100;
	bulk()->completed += 60;
	bulk()->shed[weir_shed_index(WEIR_ETHRESHOLD)] += 30;
	bulk()->failed += 2;
	bulk()->refused_ahead += 8;
	made_up_times(&bulk()->wait, 2000000, 98);
	made_up_times(&bulk()->wait, 80000000, 2);
	made_up.stage[MADE_DISK].busy_ns += 2500000000ULL; /* half of 5 threads */
	CU_ASSERT_EQUAL(feed(1), 1 << HISTORY_1S);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_IN, 1), 100);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_DONE, 1), 60);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_SHED, 1), 30);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_FAILED, 1), 2);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_AHEAD, 1), 8);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_QUEUE, 1), 187);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_THREADS, 1), 5);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_BUSY, 1), 0.5);
	CU_ASSERT_DOUBLE_EQUAL(second("disk", SAMPLE_WAIT_P50, 1), 0.002, 0.000002);
	CU_ASSERT_DOUBLE_EQUAL(second("disk", SAMPLE_WAIT_P99, 1), 0.080, 0.00008);
	CU_ASSERT_TRUE(isnan(second("disk", SAMPLE_SERVICE_P50, 1)));
	CU_ASSERT_EQUAL(second("disk", CLASS(1, IN), 1), 100);
	CU_ASSERT_EQUAL(second("disk", CLASS(0, IN), 1), 0);
	CU_ASSERT_TRUE(isnan(second("disk", CLASS(0, WAIT_P99), 1)));
	/* the shed reasons are in the sample itself */
	const struct sample *s = &history_samples(history, HISTORY_1S)[MADE_DISK];
	CU_ASSERT_EQUAL(s->shed_by[weir_shed_index(WEIR_ETHRESHOLD)], 30);
	/* within the same second no sample is taken */
	bulk()->offered += 50;
	CU_ASSERT_EQUAL(feed(1), 0);
	/* 4 s later: a rate, not a sum, and gaps in between */
	bulk()->offered += 50;
	feed(5);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_IN, 5), 25);
	CU_ASSERT_TRUE(isnan(second("disk", SAMPLE_IN, 3)));
	/* the longer ring has all of these events at the end of its step */
	CU_ASSERT_EQUAL(feed(10), 3);
	CU_ASSERT_EQUAL(value(HISTORY_10S, "disk", SAMPLE_IN, T0 / 10 + 1), 20);
	CU_ASSERT_DOUBLE_EQUAL(
	    value(HISTORY_10S, "disk", SAMPLE_WAIT_P50, T0 / 10 + 1), 0.002, 0.000002);
	history_free(history);
}

/* Counters below their previous values belong to a stage that was created again. */
static void test_began_anew(void)
{
	setup();
	feed(0);
	memset(bulk(), 0, sizeof(*bulk()));
	bulk()->offered = 7;
	made_up_times(&bulk()->wait, 2000000, 7);
	feed(1);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_IN, 1), 7);
	CU_ASSERT_DOUBLE_EQUAL(second("disk", SAMPLE_WAIT_P99, 1), 0.002, 0.000002);
	history_free(history);
}

/* Longer than the ring: the oldest steps are dropped, and each slot has the values of its own
 * step. */
static void test_wrap(void)
{
	setup();
	for (int s = 0; s <= HISTORY_SLOTS_1S + 50; s++) {
		bulk()->offered += (uint64_t)s;
		feed(s);
	}
	CU_ASSERT_EQUAL(history_newest(history, HISTORY_1S), T0 + HISTORY_SLOTS_1S + 50);
	CU_ASSERT_TRUE(isnan(second("disk", SAMPLE_IN, 50)));
	for (int s = 51; s <= HISTORY_SLOTS_1S + 50; s++)
		CU_ASSERT_EQUAL(second("disk", SAMPLE_IN, s), s);
	CU_ASSERT_TRUE(isnan(second("disk", SAMPLE_IN, HISTORY_SLOTS_1S + 51)));
	/* a gap longer than the ring: no old value shows up in the new steps */
	feed(3 * HISTORY_SLOTS_1S);
	CU_ASSERT_FALSE(isnan(second("disk", SAMPLE_IN, 3 * HISTORY_SLOTS_1S)));
	for (int s = 2 * HISTORY_SLOTS_1S + 1; s < 3 * HISTORY_SLOTS_1S; s++)
		CU_ASSERT_TRUE(isnan(second("disk", SAMPLE_IN, s)));
	history_free(history);
}

/* The clock is set back by 20 s, while CLOCK_MONOTONIC continues. */
static void test_clock_back(void)
{
	setup();
	for (int s = 0; s <= 40; s++) {
		bulk()->offered += 10;
		feed(s);
	}
	made_up.view.wall_ns = (T0 + 20) * 1000000000LL;
	made_up.view.now_ns += 1000000000;
	bulk()->offered += 99;
	CU_ASSERT_EQUAL(history_feed(history, &made_up.view), 3);
	CU_ASSERT_EQUAL(history_newest(history, HISTORY_1S), T0 + 20);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_IN, 20), 99);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_IN, 19), 10);
	CU_ASSERT_TRUE(isnan(second("disk", SAMPLE_IN, 40))); /* the future */
	history_free(history);
}

/* A stage goes, another one comes, and the first comes back. */
static void test_stages_change(void)
{
	setup();
	feed(0);
	feed(1);
	uint64_t shape = history_shape(history);
	made_up.view.n_stages = MADE_LOG; /* the stages log and odd disappear */
	feed(2);
	CU_ASSERT_TRUE(isnan(second("log", SAMPLE_IN, 2)));
	CU_ASSERT_FALSE(isnan(second("log", SAMPLE_IN, 1)));
	CU_ASSERT_EQUAL(history_n_series(history), MADE_UP_STAGES);
	CU_ASSERT_EQUAL(history_shape(history), shape);
	made_up.stage[MADE_DISK].name = "ssd";
	bulk()->offered += 1000;
	feed(3);
	CU_ASSERT_TRUE(isnan(second("ssd", SAMPLE_IN, 3))); /* no rate: there is only one sample */
	CU_ASSERT_NOT_EQUAL(history_shape(history), shape);
	bulk()->offered += 5;
	feed(4);
	CU_ASSERT_EQUAL(second("ssd", SAMPLE_IN, 4), 5);
	CU_ASSERT_TRUE(isnan(second("disk", SAMPLE_IN, 4)));
	/* gone for as long as the longer ring: forgotten */
	feed(HISTORY_SLOTS_10S * 10 + 10);
	CU_ASSERT_EQUAL(history_find(history, "disk"), -1);
	CU_ASSERT_EQUAL(history_n_series(history), MADE_LOG);
	history_free(history);
}

/* A class is known by its name: its figures and totals stay when its position changes. */
static void test_classes_change(void)
{
	struct weir_class_view *class = made_up.stage[MADE_DISK].class_view;

	setup();
	feed(0);
	bulk()->offered += 30;
	feed(1);
	made_up.view.n_classes = 3;
	made_up.view.class_name[0] = "bulk";
	made_up.view.class_name[1] = "new";
	made_up.view.class_name[2] = "interactive";
	for (int i = 0; i < MADE_UP_STAGES; i++) {
		struct weir_class_view *c = made_up.stage[i].class_view;
		c[2] = c[0];
		c[0] = c[1];
		c[1] = (struct weir_class_view){0};
	}
	class[0].offered += 7;
	class[0].shed[weir_shed_index(WEIR_ETHRESHOLD)] += 2;
	class[1].offered = 5; /* in the time since the class was added */
	feed(2);
	CU_ASSERT_EQUAL(second("disk", CLASS(0, IN), 1), 30);
	CU_ASSERT_EQUAL(second("disk", CLASS(2, IN), 1), 0);
	CU_ASSERT_TRUE(isnan(second("disk", CLASS(1, IN), 1)));
	CU_ASSERT_EQUAL(second("disk", CLASS(0, IN), 2), 7);
	CU_ASSERT_EQUAL(second("disk", CLASS(1, IN), 2), 5);
	CU_ASSERT_EQUAL(second("disk", CLASS(2, IN), 2), 0);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_IN, 2), 12);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_SHED, 2), 2);
	/* The same number of classes, but others: a removed class takes nothing away, and a new one
	 * adds nothing. */
	made_up.view.class_name[0] = "other";
	class[0] = (struct weir_class_view){.offered = 3};
	feed(3);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_IN, 3), 3);
	CU_ASSERT_EQUAL(second("disk", CLASS(1, IN), 3), 0);
	history_free(history);
}

/* The number of series is limited; those of stages that are gone are evicted first. */
static void test_many(void)
{
	enum { MANY = HISTORY_SERIES_MAX + 10 };
	static struct weir_stage_view many[MANY];
	static char name[2 * MANY][16];

	setup();
	made_up.view.stages = many;
	made_up.view.n_stages = MANY;
	for (int i = 0; i < MANY; i++) {
		snprintf(name[i], sizeof(name[i]), "a%d", i);
		snprintf(name[MANY + i], sizeof(name[i]), "b%d", i);
		many[i] = (struct weir_stage_view){.name = name[i], .placement = "pool"};
	}
	feed(0);
	feed(1);
	CU_ASSERT_EQUAL(history_n_series(history), HISTORY_SERIES_MAX);
	CU_ASSERT_EQUAL(second("a0", SAMPLE_IN, 1), 0);
	for (int i = 0; i < MANY; i++)
		many[i].name = name[MANY + i];
	feed(2);
	feed(3);
	CU_ASSERT_EQUAL(history_n_series(history), HISTORY_SERIES_MAX);
	CU_ASSERT_EQUAL(history_find(history, "a0"), -1);
	CU_ASSERT_EQUAL(second("b0", SAMPLE_IN, 3), 0);
	history_free(history);
}

static void test_memory(void)
{
	enum { STAGES = 30 };
	static struct weir_stage_view stage[STAGES];
	static char name[STAGES][16];

	setup();
	made_up.view.stages = stage;
	made_up.view.n_stages = STAGES;
	made_up.view.n_classes = 4;
	made_up.view.class_name[2] = "c";
	made_up.view.class_name[3] = "d";
	for (int i = 0; i < STAGES; i++) {
		snprintf(name[i], sizeof(name[i]), "s%d", i);
		stage[i].name = name[i];
	}
	feed(0);
	feed(10);
	CU_ASSERT_TRUE(history_bytes(history) <= 9600000); /* 49 columns a stage */
	CU_ASSERT_TRUE(history_bytes(history) > 5000000);  /* the size is really counted */
	history_free(history);
}

/* A reused slot contains nothing of its previous step: a stage that is gone does not show an old
 * value in a new step. */
static void test_slots_taken_anew_are_empty(void)
{
	setup();
	feed(0);
	for (int s = 1; s <= 30; s++) {
		bulk()->offered += 10;
		feed(s);
	}
	CU_ASSERT_EQUAL(second("disk", SAMPLE_IN, 25), 10);
	/* The stage goes; its series stays for as long as the longer ring. */
	made_up.view.n_stages = MADE_DISK;
	for (int s = 31; s <= HISTORY_SLOTS_1S + 30; s++)
		feed(s);
	for (int s = 31; s <= HISTORY_SLOTS_1S + 30; s++)
		CU_ASSERT_TRUE(isnan(second("disk", SAMPLE_IN, s)));
	CU_ASSERT_EQUAL(second("web", SAMPLE_IN, HISTORY_SLOTS_1S + 25), 0);
	history_free(history);
}

/* The p50 and p99 of `fast` events of 2 ms and `slow` ones of 80 ms. */
static void check_ranks(uint64_t fast, uint64_t slow, bool slow_p50, bool slow_p99)
{
	setup();
	feed(0);
	made_up_times(&bulk()->wait, 2000000, fast);
	made_up_times(&bulk()->wait, 80000000, slow);
	feed(1);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_WAIT_P50, 1) > 0.01, slow_p50);
	CU_ASSERT_EQUAL(second("disk", SAMPLE_WAIT_P99, 1) > 0.01, slow_p99);
	CU_ASSERT_EQUAL(second("disk", CLASS(1, WAIT_P99), 1) > 0.01, slow_p99);
	history_free(history);
}

/* The value of rank ceil(q n): q n is rounded up when it is not a whole number. */
static void test_ranks(void)
{
	check_ranks(99, 1, false, false); /* the 99th of 100 */
	check_ranks(98, 2, false, true);
	check_ranks(148, 2, false, true); /* the 149th of 150, for 148.5 */
	check_ranks(149, 1, false, false);
	check_ranks(9, 1, false, true); /* the last of 10, for 9.9 */
	check_ranks(1, 1, false, true); /* the first and the last of 2 */
	check_ranks(1, 2, true, true);  /* the second of 3, for 1.5 */
	check_ranks(2, 1, false, true);
	check_ranks(0, 1, true, true);
}

CUNIT_MAIN("history", {"16 bits", test_compact}, {"differences", test_differences},
    {"turned away", test_turned_away}, {"counters that begin anew", test_began_anew},
    {"wrap-around", test_wrap}, {"clock set back", test_clock_back},
    {"stages change", test_stages_change}, {"classes change", test_classes_change},
    {"many stages", test_many}, {"memory", test_memory},
    {"slots taken anew are empty", test_slots_taken_anew_are_empty}, {"ranks", test_ranks})
