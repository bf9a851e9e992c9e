/* SPDX-License-Identifier: MIT */
/* The search and the sweep of `weir bench`: late generators, a machine that changes, a capacity that
 * was too low. */
#include <stdlib.h>
#include <string.h>

#include "bench_world.h"
#include "cunit_main.h"

static char low[] = "0.5x,1x,2x", none[] = "0.5x,1x";

/* ---- tests ---- */

static void test_quiet(void)
{
	bench_begin();
	struct verdict v = bench_whole();
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	CU_ASSERT_DOUBLE_EQUAL(b->capacity_per_s, 1000, 40);
	CU_ASSERT_EQUAL(v.n_held, 4);
	CU_ASSERT_FALSE(b->realtime);
	CU_ASSERT_EQUAL(b->relaxed[0], '\0');
	CU_ASSERT_PTR_NULL(strstr(b->capacity_note, "noisy"));
	bench_begin();
	world.kept = 0.3;
	CU_ASSERT_EQUAL(bench_whole().kind, VERDICT_COLLAPSES);
}

/* Late trials are set aside, and the generator asks for priority; three in a row end the search. */
static void test_late(void)
{
	bench_begin();
	world.late_from = 5;
	world.late = 3; /* a trial, its warm-up, a trial */
	CU_ASSERT_EQUAL(bench_whole().kind, VERDICT_KEPT);
	CU_ASSERT_TRUE(b->realtime);
	CU_ASSERT(bench_named("late ") >= 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(b->capacity_note, "the generator was late in"));
	bench_begin();
	req.opt.priority = BENCH_PRIORITY_NORMAL;
	world.late_from = 1;
	world.late = 1000;
	CU_ASSERT_EQUAL(bench_whole().kind, VERDICT_VOID);
	CU_ASSERT_FALSE(b->realtime);
	CU_ASSERT_EQUAL(b->capacity_per_s, 0);
	CU_ASSERT_EQUAL(bench_named("late "), 3);
	CU_ASSERT_PTR_NOT_NULL(strstr(b->side[0].result.voided, "3 trials in a row"));
}

/* A generator that can send up to a rate, and is late at each higher one: the search goes on with the
 * highest rate that met the objective. Each run on such a machine has the same verdict: that of the
 * overload, if the generator can send one, or else that the generator is the limit. */
static void test_limited(void)
{
	int kept = 0;

	for (int i = 0; i < 40; i++) {
		bench_begin();
		world.key = (uint64_t)i * 977 + 1;
		world.noise = 0.05;
		world.sends_per_s = 900;
		struct verdict v = bench_whole();
		CU_ASSERT_EQUAL(v.kind, VERDICT_GENERATOR);
		CU_ASSERT_STRING_EQUAL(b->side[0].result.voided, "");
		CU_ASSERT_DOUBLE_EQUAL(b->capacity_per_s, 800, 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(b->capacity_note,
		    "at least 800/s met p99=100ms, the generator could not send 1600/s in time"));
		CU_ASSERT_DOUBLE_EQUAL(bench_highest(), 10, 1e-9); /* more is not tried */
		bench_begin();
		world.key = (uint64_t)i * 977 + 1;
		world.noise = 0.05;
		world.sends_per_s = 1500;
		world.overloads = true;
		v = bench_whole();
		kept += v.kind == VERDICT_KEPT;
		CU_ASSERT_PTR_NOT_NULL(strstr(b->capacity_note, "at least 800/s"));
		CU_ASSERT_EQUAL(v.n_late, 0);
	}
	CU_ASSERT(kept >= 38);
}

/* If a noisy machine hides the objective at every rate, the search asks for less, step by step. */
static void test_relaxed(void)
{
	bench_begin();
	world.failing = 0.03;
	world.lag_s = 0.002;
	struct verdict v = bench_whole();
	CU_ASSERT_STRING_EQUAL(b->relaxed, "p95=100ms");
	CU_ASSERT_DOUBLE_EQUAL(b->objective.quantile, 0.95, 1e-9);
	CU_ASSERT(b->capacity_per_s > 900);
	CU_ASSERT_PTR_NOT_NULL(strstr(b->capacity_note, "p95=100ms"));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(b->capacity_note, "noisy: relaxed from p99=100ms, which no rate met"));
	CU_ASSERT_DOUBLE_EQUAL(b->side[0].plan.held_ratio, 0.91, 1e-9);
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	bench_begin();
	world.failing = 0.08;
	world.lag_s = 0.002;
	v = bench_whole();
	CU_ASSERT_STRING_EQUAL(b->relaxed, "p90=100ms");
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	bench_begin();
	b->slo = "p90=100ms"; /* nothing below that is worth a search */
	CU_ASSERT_EQUAL(load_objective_parse(b->slo, &b->objective, &err), 0);
	world.failing = 0.2;
	world.lag_s = 0.002;
	bench_whole();
	CU_ASSERT_EQUAL(b->relaxed[0], '\0');
	CU_ASSERT_PTR_NOT_NULL(strstr(b->capacity_note, "served in overload"));
}

/* Requests are late at every rate: what is served in overload is the capacity. */
static void test_saturated(void)
{
	bench_begin();
	world.stalls = 0.3;
	world.lag_s = 0.002;
	world.noise = 0.05;
	struct verdict v = bench_whole();
	CU_ASSERT_STRING_EQUAL(b->relaxed, "p90=100ms");
	CU_ASSERT_DOUBLE_EQUAL(b->capacity_per_s, 1000, 100);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(b->capacity_note, "served in overload (median of 5 trials); noisy: no rate met "
				     "p99=100ms, nor p90=100ms"));
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	bench_begin();
	world.stalls = 0.3;
	world.lag_s = 0.002;
	world.late_from = 18; /* the generator cannot send an overload */
	world.late = 1000;
	bench_whole();
	CU_ASSERT_EQUAL(b->capacity_per_s, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(b->capacity_note, "no rate met"));
	bench_begin();
	world.stalls = 0.3;
	world.lag_s = 0.002;
	world.capacity_per_s =
	    60; /* 100/s and 50/s fail because of the load: ask for less load first */
	bench_whole();
	CU_ASSERT_DOUBLE_EQUAL(b->capacity_per_s, 60, 3);
}

/* On a quiet machine the objective stays: the server misses it, not the machine. */
static void test_not_relaxed(void)
{
	bench_begin();
	world.failing = 0.03;
	bench_whole();
	CU_ASSERT_EQUAL(b->relaxed[0], '\0');
	CU_ASSERT(b->capacity_per_s < 50); /* so few requests that none of them fails */
	CU_ASSERT_PTR_NULL(strstr(b->capacity_note, "noisy"));
}

/* A machine that becomes slower after the search: the search is repeated from half the rate, and
 * what was measured before is set aside. */
static void test_start_over(void)
{
	bench_begin();
	int rc = bench_search(b, 100, &err);
	CU_ASSERT_EQUAL(rc, 0);
	world.slow_from = world.runs + 1;
	world.slow = 0.4;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_DOUBLE_EQUAL(b->capacity_per_s, 400, 20);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(b->capacity_note, "found again, since the machine changed after"));
	CU_ASSERT(bench_named("before ") >= 12);
	CU_ASSERT_EQUAL(bench_verdict().kind, VERDICT_KEPT);
	CU_ASSERT(bench_verdict().best_per_s < 450);
}

/* With a given capacity there is nothing to search for: loads are repeated, and that is all. */
static void test_given_capacity(void)
{
	bench_begin();
	req.opt.find_capacity = false;
	b->capacity_per_s = 3000;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_EQUAL(bench_verdict().kind, VERDICT_CHANGED);
	CU_ASSERT_EQUAL(bench_named("before "), 0);
	CU_ASSERT_EQUAL(bench_named("0.5x"), 3);
	CU_ASSERT_EQUAL(bench_named("2x"), 1);
}

/* Late loads of a sweep are repeated. */
static void test_late_loads(void)
{
	bench_begin();
	CU_ASSERT_EQUAL(bench_search(b, 100, &err), 0);
	world.late_from = world.runs + 1;
	world.late = 3;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_EQUAL(bench_named("0.5x"), 2);
	CU_ASSERT_EQUAL(bench_named("0.8x"), 2);
	CU_ASSERT_EQUAL(bench_named("0.9x"), 1);
	CU_ASSERT_TRUE(b->realtime);
	struct verdict v = bench_verdict();
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	CU_ASSERT_EQUAL(v.n_late, 3);
}

/* The objective was missed far below what the threads can serve: the sweep goes on. */
static void test_extended(void)
{
	bench_begin();
	req.opt.sweep = low;
	b->capacity_per_s = 100;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_DOUBLE_EQUAL(bench_highest(), 32, 1e-9);
	CU_ASSERT_EQUAL(bench_verdict().kind, VERDICT_KEPT);
	bench_begin();
	req.opt.sweep = low;
	b->capacity_per_s = 1; /* doubled five times, not more */
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_DOUBLE_EQUAL(bench_highest(), 64, 1e-9);
	CU_ASSERT_EQUAL(bench_verdict().kind, VERDICT_LIGHT);
	bench_begin();
	req.opt.sweep = none; /* no overload was asked for */
	b->capacity_per_s = 100;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_DOUBLE_EQUAL(bench_highest(), 1, 1e-9);
	bench_begin();
	req.opt.sweep = low;
	b->capacity_per_s = 100;
	world.late_from = 4; /* the generator cannot send four times the capacity */
	world.late = 1000;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_DOUBLE_EQUAL(bench_highest(), 4, 1e-9);
}

static void test_rounds(void)
{
	bench_begin();
	req.opt.rounds = 3;
	struct verdict v = bench_whole();
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	CU_ASSERT_EQUAL(v.rounds, 3);
	CU_ASSERT_EQUAL(bench_named("1x"), 3);
	CU_ASSERT_EQUAL(bench_sweep_ns(b), 3 * 12 * (int64_t)3000000000);
	bench_begin();
	b->n_sides = 2;
	req.opt.rounds = 2;
	b->capacity_per_s = 1000;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_EQUAL(b->side[1].plan.n_phases, b->side[0].plan.n_phases);
}

/* Search and sweep, and return what was printed on stderr. The caller frees it. */
static char *said(void)
{
	char *text = NULL;
	size_t n = 0;
	FILE *kept = stderr;

	req.opt.quiet = false;
	stderr = open_memstream(&text, &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(stderr);
	bench_whole();
	fclose(stderr);
	stderr = kept;
	return text;
}

static void must_say(const char *words)
{
	char *text = said();

	if (!strstr(text, words))
		printf("\nmissing: %s\nin: %s\n", words, text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, words));
	free(text);
}

/* Everything that takes longer than usual is explained. */
static void test_words(void)
{
	static const struct {
		struct bench_world world; /* members that are 0 keep the values of bench_begin */
		const char *words;
	} rows[] = {
	    {{.noise = 0}, "  800/s keeps p99=100ms"},
	    {{.late_from = 5, .late = 3},
		"noisy: the generator was late by 0.1 ms, and now asks for real-time priority"},
	    {{.failing = 0.03, .lag_s = 0.002}, "the search begins again with p95=100ms"},
	    {{.stalls = 0.3, .lag_s = 0.002},
		"noisy: no rate meets p90=100ms; measuring what is served in overload"},
	    {{.stalls = 0.3, .lag_s = 0.002}, "800/s is no overload"},
	    {{.noise = 0.2}, "is not certain enough: the loads that decide alternate"},
	    {{.slow_from = 30, .slow = 0.4}, "should be served, but only"},
	    {{.slow_from = 30, .slow = 0.4}, "loads that should have been served"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bench_begin();
		struct bench_world usual = world;
		world = rows[i].world;
		world.capacity_per_s = usual.capacity_per_s;
		world.kept = usual.kept;
		world.lag_s = world.lag_s > 0 ? world.lag_s : usual.lag_s;
		must_say(rows[i].words);
	}
}

/* The lag could explain a miss: the trial is repeated, and in the end the rate counts as passed. */
static void test_unknown(void)
{
	bench_begin();
	world.lag_s = 0.005;
	world.stalls = 0.5;
	world.stall_s = 0.103;
	b->side[0].plan.lag_limit_ns = 10000000;
	bench_whole();
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(b->capacity_note, "only the generator's lag hid that it was met"));
	CU_ASSERT(b->capacity_per_s > 900);
}

/* A run that fails ends everything. */
static void test_failing(void)
{
	for (int at = 1; at < 60; at++) {
		bench_begin();
		world.noise = 0.2;
		world.stalls = 0.3;
		world.lag_s = 0.002;
		world.fail_at = at;
		world.slow_from = at % 2 ? 30 : 0;
		world.slow = 0.4;
		int rc = bench_search(b, 100, &err);
		if (rc == 0 && b->capacity_per_s > 0)
			rc = bench_sweep(b, &err);
		CU_ASSERT_EQUAL(rc, world.calls >= at ? WEIR_ENOMEM : 0);
		CU_ASSERT(world.calls <= at || world.fail_at > world.calls);
	}
}

/* The machine serves nothing any more: there is nothing to search for. */
static void test_gone(void)
{
	bench_begin();
	CU_ASSERT_EQUAL(bench_search(b, 100, &err), 0);
	world.slow_from = world.runs + 1;
	world.slow = 0;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_EQUAL(bench_verdict().kind, VERDICT_NOTHING);
	CU_ASSERT_EQUAL(bench_named("before "), 0);
}

/* Ctrl-C ends each part at once. */
static void test_stopped(void)
{
	bench_begin();
	world.stop_after = 4;
	bench_whole();
	CU_ASSERT_EQUAL(world.runs, 4);
	bench_begin();
	CU_ASSERT_EQUAL(bench_search(b, 100, &err), 0);
	int before = world.runs;
	world.slow_from = before + 1;
	world.slow = 0.4;
	world.stop_after = before + 14; /* while loads are repeated */
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_EQUAL(bench_named("before "), 0);
}

CUNIT_MAIN("bench_search", {"a quiet machine", test_quiet}, {"late trials", test_late},
    {"the generator is the limit", test_limited}, {"the objective is relaxed", test_relaxed},
    {"goodput in overload", test_saturated}, {"it stays on a quiet machine", test_not_relaxed},
    {"the search starts over", test_start_over}, {"a given capacity", test_given_capacity},
    {"late loads", test_late_loads}, {"a capacity that was too low", test_extended},
    {"what is said", test_words}, {"the lag hides it", test_unknown},
    {"runs that fail", test_failing}, {"nothing is served any more", test_gone},
    {"rounds", test_rounds}, {"stopped", test_stopped}, {"the end", bench_end})
