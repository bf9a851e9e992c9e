/* SPDX-License-Identifier: MIT */
/*
 * The search and the sweep of `weir bench` against a server that is a formula: late generators,
 * noise, a machine that changes, a capacity that was too low. The runs take no time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/load/bench_run.h"
#include "cunit_main.h"
#include "load/joined.h"
#include "load/rng.h"
#include "report/noise.h"
#include "report/verdict.h"

atomic_bool bench_stop_asked;

/* The server and the machine. */
static struct {
	double capacity_per_s;
	double kept;         /* share of the capacity that is served at ten times that and beyond */
	double noise;        /* relative standard deviation of what a phase serves in overload */
	double drift;        /* amplitude of a slow change of the capacity, as a share of it */
	double stalls;       /* share of the requests that are served too late at any load */
	double failing;      /* share of the requests that fail at any load */
	double lag_s;        /* 99th percentile of the generator's lag */
	int late_from, late; /* the generator is late in this many phases, from that one on */
	int slow_from; /* from that phase on, the capacity is multiplied by `slow`; 0: never */
	double slow;
	int stop_after; /* Ctrl-C during that phase; 0: never */
	int runs;       /* phases so far that offered load */
	uint64_t key;
} world;

static struct bench_request req;
static char whole[] = "0.5x..10x", low[] = "0.5x,1x,2x", none[] = "0.5x,1x";
static struct bench *b;
static struct weir_err err;

/* ---- the server ---- */

static double normal(void)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += weir_random_unit(weir_random_at(world.key, (uint64_t)(world.runs * 12 + i)));
	return sum - 6;
}

static double serves(double per_s)
{
	double capacity = world.capacity_per_s * (1 + world.drift * sin(world.runs / 7.0));

	if (world.slow_from > 0 && world.runs >= world.slow_from)
		capacity *= world.slow;
	double over = fmin(log10(fmax(per_s / capacity, 1)), 1);
	double peak = capacity * (1 - (1 - world.kept) * over) * (1 + world.noise * normal());
	return fmax(fmin(per_s, peak), 0) * (1 - world.failing);
}

static void fill(struct load_result *r, int i, const struct load_phase *p)
{
	struct load_phase_result *out = &r->phase[i];
	struct load_class_result *c = &out->class[0];
	double seconds = (double)p->for_ns / 1e9;

	out->took_ns = p->for_ns;
	out->complete = true;
	if (!(p->from_per_s > 0))
		return;
	world.runs++;
	double good = serves(p->from_per_s);
	hdr_add(&out->lag, (int64_t)(world.lag_s * 1e9), 100);
	out->late = world.runs >= world.late_from && world.runs < world.late_from + world.late &&
		    !p->warmup;
	c->offered = (uint64_t)llround(p->from_per_s * seconds);
	c->outcome[LOAD_OK] = (uint64_t)llround(good * seconds);
	c->outcome[LOAD_ERROR] = (uint64_t)((double)c->offered * world.failing);
	if (c->outcome[LOAD_OK] + c->outcome[LOAD_ERROR] > c->offered)
		c->outcome[LOAD_OK] = c->offered - c->outcome[LOAD_ERROR];
	c->outcome[LOAD_SHED] = c->offered - c->outcome[LOAD_OK] - c->outcome[LOAD_ERROR];
	c->latency[LOAD_OK] = calloc(1, sizeof(struct hdr));
	CU_ASSERT_PTR_NOT_NULL_FATAL(c->latency[LOAD_OK]);
	uint64_t stalled = (uint64_t)llround((double)c->outcome[LOAD_OK] * world.stalls);
	hdr_add(c->latency[LOAD_OK], 5000000, c->outcome[LOAD_OK] - stalled);
	hdr_add(c->latency[LOAD_OK], 800000000, stalled);
	for (int s = 0; s < (int)seconds; s++) {
		struct load_second *row = &r->second[r->n_seconds++];
		row->phase = i;
		row->class[0].outcome[LOAD_OK] = (uint64_t)good;
	}
	if (world.stop_after == world.runs)
		atomic_store(&bench_stop_asked, true);
}

int bench_run(
    struct bench *bench, struct bench_side *s, const struct load_plan *phases, struct weir_err *why)
{
	struct load_result r = {.n_phases = phases->n_phases};

	(void)bench;
	(void)why;
	r.phase = calloc((size_t)phases->n_phases, sizeof(*r.phase));
	r.second = calloc((size_t)phases->n_phases * 16, sizeof(*r.second));
	CU_ASSERT_FATAL(r.phase && r.second);
	for (int i = 0; i < phases->n_phases; i++)
		fill(&r, i, &phases->phase[i]);
	return load_join(&s->plan, &s->result, phases->phase, &r);
}

/* ---- a bench ---- */

static void end(void)
{
	if (b) {
		load_result_fini(&b->side[0].result);
		load_plan_fini(&b->side[0].plan);
		load_result_fini(&b->side[1].result);
		load_plan_fini(&b->side[1].plan);
	}
	free(b);
	b = NULL;
}

/* A quiet machine with a server for 1000/s that keeps all of that. */
static void begin(void)
{
	end();
	memset(&world, 0, sizeof(world));
	world.capacity_per_s = 1000;
	world.kept = 1;
	world.lag_s = 0.0001;
	atomic_store(&bench_stop_asked, false);
	memset(&req, 0, sizeof(req));
	req.opt = (struct bench_options){.find_capacity = true,
	    .quiet = true,
	    .rounds = 1,
	    .for_ns = 2000000000,
	    .pause_ns = 1000000000,
	    .sweep = whole};
	b = calloc(1, sizeof(*b));
	CU_ASSERT_PTR_NOT_NULL_FATAL(b);
	b->req = &req;
	b->slo = "p99=100ms";
	b->n_sides = 1;
	for (int i = 0; i < 2; i++)
		b->side[i].plan.n_classes = 1;
	CU_ASSERT_EQUAL(load_objective_parse(b->slo, &b->objective, &err), 0);
}

static struct verdict decide(void)
{
	return verdict_of(&b->side[0].plan, &b->side[0].result);
}

/* Search and sweep, as `weir bench --find-capacity --sweep` does. */
static struct verdict run(void)
{
	int rc = bench_search(b, 100, &err);

	if (rc == 0 && b->capacity_per_s > 0)
		rc = bench_sweep(b, &err);
	CU_ASSERT_EQUAL(rc, 0);
	return decide();
}

/* The number of phases whose name begins with `word`. */
static int named(const char *word)
{
	int n = 0;

	for (int i = 0; i < b->side[0].plan.n_phases; i++)
		n += strncmp(b->side[0].plan.phase[i].name, word, strlen(word)) == 0;
	return n;
}

static double highest_multiple(void)
{
	double most = 0;

	for (int i = 0; i < b->side[0].plan.n_phases; i++)
		most = fmax(most, b->side[0].plan.phase[i].multiple);
	return most;
}

/* ---- tests ---- */

static void test_quiet(void)
{
	begin();
	struct verdict v = run();
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	CU_ASSERT_DOUBLE_EQUAL(b->capacity_per_s, 1000, 40);
	CU_ASSERT_EQUAL(v.n_held, 4);
	CU_ASSERT_FALSE(b->realtime);
	CU_ASSERT_EQUAL(b->relaxed[0], '\0');
	CU_ASSERT_PTR_NULL(strstr(b->capacity_note, "noisy"));
	begin();
	world.kept = 0.3;
	CU_ASSERT_EQUAL(run().kind, VERDICT_COLLAPSES);
}

/* Late trials are set aside, and the generator asks for priority; three in a row end the search. */
static void test_late(void)
{
	begin();
	world.late_from = 5;
	world.late = 3; /* a trial, its warm-up, a trial */
	CU_ASSERT_EQUAL(run().kind, VERDICT_KEPT);
	CU_ASSERT_TRUE(b->realtime);
	CU_ASSERT(named("late ") >= 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(b->capacity_note, "the generator was late in"));
	begin();
	req.opt.priority = BENCH_PRIORITY_NORMAL;
	world.late_from = 1;
	world.late = 1000;
	CU_ASSERT_EQUAL(run().kind, VERDICT_VOID);
	CU_ASSERT_FALSE(b->realtime);
	CU_ASSERT_EQUAL(b->capacity_per_s, 0);
	CU_ASSERT_EQUAL(named("late "), 3);
	CU_ASSERT_PTR_NOT_NULL(strstr(b->side[0].result.voided, "3 trials in a row"));
}

/* If a noisy machine hides the objective at every rate, the search asks for less, step by step. */
static void test_relaxed(void)
{
	begin();
	world.failing = 0.03;
	world.lag_s = 0.002;
	struct verdict v = run();
	CU_ASSERT_STRING_EQUAL(b->relaxed, "p95=100ms");
	CU_ASSERT_DOUBLE_EQUAL(b->objective.quantile, 0.95, 1e-9);
	CU_ASSERT(b->capacity_per_s > 900);
	CU_ASSERT_PTR_NOT_NULL(strstr(b->capacity_note, "p95=100ms"));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(b->capacity_note, "noisy: relaxed from p99=100ms, which no rate met"));
	CU_ASSERT_DOUBLE_EQUAL(b->side[0].plan.held_ratio, 0.91, 1e-9);
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	begin();
	world.failing = 0.08;
	world.lag_s = 0.002;
	v = run();
	CU_ASSERT_STRING_EQUAL(b->relaxed, "p90=100ms");
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	begin();
	b->slo = "p90=100ms"; /* nothing below that is worth a search */
	CU_ASSERT_EQUAL(load_objective_parse(b->slo, &b->objective, &err), 0);
	world.failing = 0.2;
	world.lag_s = 0.002;
	run();
	CU_ASSERT_EQUAL(b->relaxed[0], '\0');
	CU_ASSERT_PTR_NOT_NULL(strstr(b->capacity_note, "served in overload"));
}

/* Requests are late at every rate: what is served in overload is the capacity. */
static void test_saturated(void)
{
	begin();
	world.stalls = 0.3;
	world.lag_s = 0.002;
	world.noise = 0.05;
	struct verdict v = run();
	CU_ASSERT_STRING_EQUAL(b->relaxed, "p90=100ms");
	CU_ASSERT_DOUBLE_EQUAL(b->capacity_per_s, 1000, 100);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(b->capacity_note, "served in overload (median of 5 trials); noisy: no rate met "
				     "p99=100ms, nor p90=100ms"));
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	begin();
	world.stalls = 0.3;
	world.lag_s = 0.002;
	world.late_from = 18; /* the generator cannot send an overload */
	world.late = 1000;
	run();
	CU_ASSERT_EQUAL(b->capacity_per_s, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(b->capacity_note, "no rate met"));
	begin();
	world.stalls = 0.3;
	world.lag_s = 0.002;
	world.capacity_per_s =
	    60; /* 100/s and 50/s fail because of the load: ask for less load first */
	run();
	CU_ASSERT_DOUBLE_EQUAL(b->capacity_per_s, 60, 3);
}

/* On a quiet machine the objective stays: the server misses it, not the machine. */
static void test_not_relaxed(void)
{
	begin();
	world.failing = 0.03;
	run();
	CU_ASSERT_EQUAL(b->relaxed[0], '\0');
	CU_ASSERT(b->capacity_per_s < 50); /* so few requests that none of them fails */
	CU_ASSERT_PTR_NULL(strstr(b->capacity_note, "noisy"));
}

/* A machine that becomes slower after the search: the search is repeated from half the rate, and
 * what was measured before is set aside. */
static void test_start_over(void)
{
	begin();
	int rc = bench_search(b, 100, &err);
	CU_ASSERT_EQUAL(rc, 0);
	world.slow_from = world.runs + 1;
	world.slow = 0.4;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_DOUBLE_EQUAL(b->capacity_per_s, 400, 20);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(b->capacity_note, "found again, since the machine changed after"));
	CU_ASSERT(named("before ") >= 12);
	CU_ASSERT_EQUAL(decide().kind, VERDICT_KEPT);
	CU_ASSERT(decide().best_per_s < 450);
}

/* With a given capacity there is nothing to search for: loads are repeated, and that is all. */
static void test_given_capacity(void)
{
	begin();
	req.opt.find_capacity = false;
	b->capacity_per_s = 3000;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_EQUAL(decide().kind, VERDICT_CHANGED);
	CU_ASSERT_EQUAL(named("before "), 0);
	CU_ASSERT_EQUAL(named("0.5x"), 3);
	CU_ASSERT_EQUAL(named("2x"), 1);
}

/* Late loads of a sweep are repeated. */
static void test_late_loads(void)
{
	begin();
	CU_ASSERT_EQUAL(bench_search(b, 100, &err), 0);
	world.late_from = world.runs + 1;
	world.late = 3;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_EQUAL(named("0.5x"), 2);
	CU_ASSERT_EQUAL(named("0.8x"), 2);
	CU_ASSERT_EQUAL(named("0.9x"), 1);
	CU_ASSERT_TRUE(b->realtime);
	struct verdict v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	CU_ASSERT_EQUAL(v.n_late, 3);
}

/* The objective was missed far below what the threads can serve: the sweep goes on. */
static void test_extended(void)
{
	begin();
	req.opt.sweep = low;
	b->capacity_per_s = 100;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_DOUBLE_EQUAL(highest_multiple(), 32, 1e-9);
	CU_ASSERT_EQUAL(decide().kind, VERDICT_KEPT);
	begin();
	req.opt.sweep = low;
	b->capacity_per_s = 1; /* doubled five times, not more */
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_DOUBLE_EQUAL(highest_multiple(), 64, 1e-9);
	CU_ASSERT_EQUAL(decide().kind, VERDICT_LIGHT);
	begin();
	req.opt.sweep = none; /* no overload was asked for */
	b->capacity_per_s = 100;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_DOUBLE_EQUAL(highest_multiple(), 1, 1e-9);
	begin();
	req.opt.sweep = low;
	b->capacity_per_s = 100;
	world.late_from = 4; /* the generator cannot send four times the capacity */
	world.late = 1000;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_DOUBLE_EQUAL(highest_multiple(), 4, 1e-9);
}

/* ---- noise ---- */

/* Count the verdicts of 40 runs on a noisy machine. */
static void count(double kept, double noise, double drift, int n[VERDICT_COLLAPSES + 1])
{
	memset(n, 0, sizeof(int) * (VERDICT_COLLAPSES + 1));
	for (int i = 0; i < 40; i++) {
		begin();
		world.kept = kept;
		world.noise = noise;
		world.drift = drift;
		world.key = (uint64_t)i * 977 + 1;
		n[run().kind]++;
	}
	if (getenv("WEIR_SHOW"))
		printf("kept %.2f noise %.2f drift %.2f: unsure %d changed %d kept %d loses %d "
		       "collapses %d\n",
		    kept, noise, drift, n[VERDICT_UNSURE], n[VERDICT_CHANGED], n[VERDICT_KEPT],
		    n[VERDICT_LOSES], n[VERDICT_COLLAPSES]);
}

/* The verdict is the same in nearly all runs, and a wrong one is rare: at most 5 % of the runs may
 * say that a flat curve falls. The limits are those of 40 runs. */
static void test_noise(void)
{
	static const double drift[] = {0, 0.3};
	int n[VERDICT_COLLAPSES + 1];

	for (int d = 0; d < 2; d++) {
		for (int k = 1; k <= 3; k++) {
			count(1, 0.05 * k, drift[d], n);
			CU_ASSERT(n[VERDICT_KEPT] >= 38);
			CU_ASSERT(n[VERDICT_LOSES] + n[VERDICT_COLLAPSES] <= 2);
			count(0.5, 0.05 * k, drift[d], n);
			CU_ASSERT(n[VERDICT_COLLAPSES] >= 38);
		}
		/* so much noise hides a lot, but does not mislead */
		count(1, 0.3, drift[d], n);
		CU_ASSERT(n[VERDICT_UNSURE] >= 10);
		CU_ASSERT(n[VERDICT_LOSES] + n[VERDICT_COLLAPSES] <= 3);
		count(0.4, 0.3, drift[d], n);
		CU_ASSERT(n[VERDICT_KEPT] <= 1);
	}
}

/* A capacity that was found while the machine was slow: the load that should be one of the best is
 * served entirely, and a higher one takes its place. */
static void test_faster(void)
{
	begin();
	world.noise = 0.1;
	world.kept = 0.6;
	world.capacity_per_s = 400;
	CU_ASSERT_EQUAL(bench_search(b, 100, &err), 0);
	world.slow_from = world.runs + 13; /* after the sweep */
	world.slow = 2.5;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	struct verdict v = decide();
	CU_ASSERT(v.pairs >= NOISE_PAIRS_MIN);
	CU_ASSERT(v.kept < 0.9);
	CU_ASSERT(v.kind == VERDICT_LOSES || v.kind == VERDICT_COLLAPSES);
}

static void test_rounds(void)
{
	begin();
	req.opt.rounds = 3;
	struct verdict v = run();
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	CU_ASSERT_EQUAL(v.rounds, 3);
	CU_ASSERT_EQUAL(named("1x"), 3);
	CU_ASSERT_EQUAL(bench_sweep_ns(b), 3 * 12 * (int64_t)3000000000);
	begin();
	b->n_sides = 2;
	req.opt.rounds = 2;
	b->capacity_per_s = 1000;
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_EQUAL(b->side[1].plan.n_phases, b->side[0].plan.n_phases);
}

/* Ctrl-C ends each part at once. */
static void test_stopped(void)
{
	begin();
	world.stop_after = 4;
	run();
	CU_ASSERT_EQUAL(world.runs, 4);
	begin();
	CU_ASSERT_EQUAL(bench_search(b, 100, &err), 0);
	int before = world.runs;
	world.slow_from = before + 1;
	world.slow = 0.4;
	world.stop_after = before + 14; /* while loads are repeated */
	CU_ASSERT_EQUAL(bench_sweep(b, &err), 0);
	CU_ASSERT_EQUAL(named("before "), 0);
}

CUNIT_MAIN("bench_search", {"a quiet machine", test_quiet}, {"late trials", test_late},
    {"the objective is relaxed", test_relaxed}, {"it stays on a quiet machine", test_not_relaxed},
    {"the search starts over", test_start_over}, {"a given capacity", test_given_capacity},
    {"late loads", test_late_loads}, {"a capacity that was too low", test_extended},
    {"goodput in overload", test_saturated}, {"noise", test_noise},
    {"a machine that becomes faster", test_faster}, {"rounds", test_rounds},
    {"stopped", test_stopped})
