/* SPDX-License-Identifier: MIT */
/* Sharing a stage among classes: the learned loads, the guarantee, and the parts. */
#include "admission/weir_fill.h"

#include <string.h>

#include "classes.h"
#include "cunit_main.h"

#define TICK_NS ADMISSION_TICK_NS

/* A second of ticks of a stage with 4 threads, to which class c offers work for offered[c]
 * threads. */
static struct weir_fill learned(const double *offered, const int *priority, int n_classes)
{
	struct weir_fill f;

	memset(&f, 0, sizeof(f));
	for (int t = 0; t < 200; t++) {
		struct admission_sample sample = {
		    .span_ns = TICK_NS, .n_classes = n_classes, .threads = 4, .cost_ns = 1};
		for (int c = 0; c < n_classes; c++) {
			sample.class[c].offered = (uint64_t)(offered[c] * 1000);
			sample.class[c].cost_ns = TICK_NS / 1000;
		}
		classes_default(&sample);
		for (int c = 0; priority && c < n_classes; c++)
			sample.class[c].priority = priority[c];
		weir_fill_learn(&f, &sample);
	}
	return f;
}

static void test_learns(void)
{
	struct weir_fill f;
	struct admission_sample sample = {
	    .span_ns = TICK_NS, .n_classes = 1, .threads = 1, .cost_ns = TICK_NS / 10};

	memset(&f, 0, sizeof(f));
	CU_ASSERT_EQUAL(weir_fill_part(&f, 0, 0.1), 1); /* nothing known: all */
	sample.class[0].offered = 110;                  /* at the stage's cost, 0.1 tick each */
	sample.class[0].refused = 50;
	classes_default(&sample);
	weir_fill_learn(&f, &sample);
	CU_ASSERT_DOUBLE_EQUAL(f.offered[0], 1, 1e-9); /* weight 10 ms of 110 ms */
	CU_ASSERT_DOUBLE_EQUAL(f.refused[0], 5.0 / 11, 1e-9);
	for (int t = 0; t < 200; t++)
		weir_fill_learn(&f, &sample);
	CU_ASSERT_DOUBLE_EQUAL(f.offered[0], 11, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(f.total, 11, 1e-6);
	sample.span_ns = 500000000; /* a late tick weighs by its length */
	sample.class[0].offered = sample.class[0].wanted = 0;
	weir_fill_learn(&f, &sample);
	CU_ASSERT_DOUBLE_EQUAL(f.offered[0], 11.0 / 26, 1e-6);
	/* The rate of slow events needs more time: 40 events, here 400 ms. */
	memset(&f, 0, sizeof(f));
	sample.span_ns = sample.cost_ns = TICK_NS;
	sample.class[0].offered = sample.class[0].wanted = 41;
	weir_fill_learn(&f, &sample);
	CU_ASSERT_DOUBLE_EQUAL(f.offered[0], 1, 1e-9); /* weight 10 ms of 410 ms */
	/* If the cost of the class is known, however small, it replaces that of the stage. */
	memset(&f, 0, sizeof(f));
	sample.class[0].cost_ns = 1;
	sample.class[0].offered = sample.class[0].wanted = 41 * TICK_NS;
	weir_fill_learn(&f, &sample);
	CU_ASSERT_DOUBLE_EQUAL(f.offered[0], 1, 1e-9);
}

/* The rate of frequent events is known soon, and so is the end of a flood: after 40 events, but not
 * before two ticks. Learning slows as the estimate falls, and a class that always offered no more
 * than the stage can do is not affected. */
static void test_end_of_a_flood(void)
{
	struct weir_fill f = {0};
	struct admission_sample sample = {
	    .span_ns = TICK_NS, .n_classes = 2, .threads = 1, .cost_ns = 2 * TICK_NS / 5};

	classes_default(&sample);
	sample.class[0].offered = sample.class[0].wanted = 1;  /* 0.4 */
	sample.class[1].offered = sample.class[1].wanted = 20; /* 8: 40 events in two ticks */
	for (int t = 0; t < 400; t++)
		weir_fill_learn(&f, &sample);
	CU_ASSERT_DOUBLE_EQUAL(f.total, 8.4, 1e-3);
	sample.class[1].offered = sample.class[1].wanted = 0;
	weir_fill_learn(&f, &sample);
	CU_ASSERT_DOUBLE_EQUAL(f.offered[1], 8 * 2.0 / 3, 1e-3);
	weir_fill_learn(&f, &sample); /* two thirds of the rate: one and a half times as slow */
	CU_ASSERT_DOUBLE_EQUAL(f.offered[1], 16.0 / 3 * 3 / 4, 1e-3);
	CU_ASSERT_DOUBLE_EQUAL(f.offered[0], 0.4, 1e-3);
}

/* 4 threads, 0.8 + 1.6 + 2.4 + 3.2 offered: guarantees of 0.08 each but for the first. */
static void test_parts(void)
{
	static const double offered[] = {0.8, 1.6, 2.4, 3.2};
	struct weir_fill f = learned(offered, NULL, 4);

	CU_ASSERT_DOUBLE_EQUAL(f.total, 8, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(weir_fill_part(&f, 0, 4), 1, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(weir_fill_part(&f, 1, 4), 1, 1e-6);
	/* 4 - 0.8 - 1.6 - 0.08 for class 3 */
	CU_ASSERT_DOUBLE_EQUAL(weir_fill_part(&f, 2, 4), 1.52 / 2.4, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(weir_fill_part(&f, 3, 4), 0.08 / 3.2, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(weir_fill_part(&f, 0, 0.4), 0.16 / 0.8, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(weir_fill_part(&f, 1, 0.4), 0.08 / 1.6, 1e-6);
	for (int c = 0; c < 4; c++)
		CU_ASSERT_EQUAL(weir_fill_part(&f, c, 8.001), 1);
}

/* Whatever the capacity, the parts add up to it, above the guarantees and up to what is offered. */
static void test_parts_add_up(void)
{
	static const double offered[] = {0.3, 0, 2, 0.01, 5, 0.5, 0.04, 1};
	struct weir_fill f = learned(offered, NULL, 8);
	double guaranteed = 0;

	for (int c = 0; c < 8; c++)
		guaranteed += f.guaranteed[c];
	CU_ASSERT_DOUBLE_EQUAL(guaranteed, 4 * 0.08 + 0.01 + 0.04, 1e-6);
	for (double room = 0; room < 12; room += 0.01) {
		double sum = 0;
		for (int c = 0; c < 8; c++) {
			double part = weir_fill_part(&f, c, room);
			CU_ASSERT(part >= 0 && part <= 1);
			sum += part * offered[c];
		}
		double want = room < guaranteed ? guaranteed : room > f.total ? f.total : room;
		CU_ASSERT_DOUBLE_EQUAL(sum, want, 1e-6);
	}
}

/* A class without demand takes nothing from the others, not even its guarantee. */
static void test_idle_class(void)
{
	static const double offered[] = {0, 0, 0, 8};
	struct weir_fill f = learned(offered, NULL, 4);

	CU_ASSERT_DOUBLE_EQUAL(weir_fill_part(&f, 3, 4), 0.5, 1e-6);
	CU_ASSERT_EQUAL(weir_fill_part(&f, 0, 4), 1);
}

/* Classes of equal priority get the same part of what they want beyond their guarantees. */
static void test_equals(void)
{
	static const double offered[] = {1, 2, 6, 3};
	static const int priority[] = {0, 2, 2, 5};
	struct weir_fill f = learned(offered, priority, 4);
	int n_ranks;

	CU_ASSERT_DOUBLE_EQUAL(weir_fill_part(&f, 0, 4), 1, 1e-6);
	double part = (4 - 1 - 3 * 0.08) / (2 + 6 - 2 * 0.08);
	CU_ASSERT_DOUBLE_EQUAL(weir_fill_part(&f, 1, 4), (0.08 + part * 1.92) / 2, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(weir_fill_part(&f, 2, 4), (0.08 + part * 5.92) / 6, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(weir_fill_part(&f, 3, 4), 0.08 / 3, 1e-6);
	CU_ASSERT_EQUAL(weir_fill_rank(&f, 2, 4, &n_ranks), 1);
	CU_ASSERT_EQUAL(weir_fill_rank(&f, 3, 4, &n_ranks), 2);
	CU_ASSERT_EQUAL(n_ranks, 3);
	memset(&f, 0, sizeof(f));
	CU_ASSERT_EQUAL(weir_fill_rank(&f, 2, 4, &n_ranks), 2); /* nothing learned */
	CU_ASSERT_EQUAL(n_ranks, 4);
}

/* Events that another stage refuses cause no work here, but the part still refers to all users of
 * the class. */
static void test_wanted(void)
{
	struct weir_fill f;
	struct admission_sample sample = {
	    .span_ns = TICK_NS, .n_classes = 2, .threads = 4, .cost_ns = TICK_NS};

	memset(&f, 0, sizeof(f));
	sample.class[0].offered = 8;
	sample.class[1].offered = 4;
	sample.class[0].wanted = 2; /* six of eight are refused for another stage */
	sample.class[1].wanted = 4;
	for (int t = 0; t < 200; t++)
		weir_fill_learn(&f, &sample);
	CU_ASSERT_DOUBLE_EQUAL(f.total, 6, 1e-6);
	CU_ASSERT_EQUAL(weir_fill_part(&f, 0, 6.001), 1);
	CU_ASSERT_DOUBLE_EQUAL(weir_fill_part(&f, 0, 3), 0.5 * 2 / 8, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(weir_fill_part(&f, 1, 3), 0.5, 1e-6);
}

/* Classes have names, and the only class needs none. */
static void test_say(void)
{
	struct weir_fill f = {.n_classes = 3, .offered = {4, 10, 10}, .refused = {0, 8, 10}};
	char line[100] = "OVER";

	weir_fill_say(&f, NULL, line, sizeof(line), 4);
	CU_ASSERT_STRING_EQUAL(line, "OVER, refuses 80 % of class 1, all of class 2");
	weir_fill_say(
	    &f, (const char *const[]){"app", "bulk", "batch", NULL}, line, sizeof(line), 4);
	CU_ASSERT_STRING_EQUAL(line, "OVER, refuses 80 % of class bulk, all of class batch");
	f.n_classes = 1;
	f.refused[0] = 1;
	weir_fill_say(&f, (const char *const[]){"default", NULL}, line, sizeof(line), 4);
	CU_ASSERT_STRING_EQUAL(line, "OVER, refuses 25 %");
	weir_fill_say(&f, NULL, line, sizeof(line), 4);
	CU_ASSERT_STRING_EQUAL(line, "OVER, refuses 25 % of class 0");
}

CUNIT_MAIN("weir_fill", {"learns", test_learns}, {"parts", test_parts},
    {"parts add up", test_parts_add_up}, {"idle class", test_idle_class}, {"equals", test_equals},
    {"wanted", test_wanted}, {"says it", test_say}, {"end of a flood", test_end_of_a_flood})
