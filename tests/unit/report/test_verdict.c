/* SPDX-License-Identifier: MIT */
/* Verdicts on synthetic runs: a plateau, a collapse, a machine that changed, one round, noise. */
#include "report/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static const double loads[] = {0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2, 3, 5, 10};

#define N_LOADS ((int)(sizeof(loads) / sizeof(loads[0])))
#define PER_S   1000.0

static struct load_plan plan;
static struct load_result result;

static void begin(void)
{
	load_plan_fini(&plan);
	load_result_fini(&result);
	plan.n_classes = 1;
	result.phase = calloc(LOAD_PHASES_MAX, sizeof(*result.phase));
	result.second = calloc(4 * LOAD_PHASES_MAX, sizeof(*result.second));
	CU_ASSERT_FATAL(result.phase && result.second);
}

/* Add a phase of 2 s at a multiple of the capacity, that serves `good` per second, varied between
 * its two seconds by `wobble`. */
static void add(double multiple, int round, double good, double wobble)
{
	int i = plan.n_phases++;
	double per_s = multiple * PER_S;
	struct load_class_result *c = &result.phase[i].class[0];

	plan.phase[i] = (struct load_phase){.from_per_s = per_s,
	    .to_per_s = per_s,
	    .for_ns = 2000000000,
	    .multiple = multiple,
	    .round = round};
	snprintf(plan.phase[i].name, sizeof(plan.phase[i].name), "%gx", multiple);
	result.n_phases = plan.n_phases;
	result.phase[i].took_ns = 2000000000;
	c->offered = (uint64_t)(2 * per_s);
	c->outcome[LOAD_OK] = (uint64_t)(2 * good);
	c->outcome[LOAD_SHED] = c->offered - c->outcome[LOAD_OK];
	for (int k = 0; k < 2; k++) {
		struct load_second *s = &result.second[result.n_seconds++];
		s->phase = i;
		s->class[0].outcome[LOAD_OK] = (uint64_t)(good * (1 + (k ? wobble : -wobble)));
	}
}

/* The goodput of a server that keeps the share `kept` of its capacity at ten times that. */
static double served(double multiple, double kept)
{
	return multiple <= 1 ? multiple * PER_S
			     : PER_S * (1 - (1 - kept) * log10(multiple) / log10(10));
}

/* Add a sweep whose goodput above the capacity alternates by `noise` from point to point. */
static void sweep(int round, double kept, double noise)
{
	for (int i = 0; i < N_LOADS; i++) {
		double off = loads[i] > 1 ? 1 + ((i + round) % 2 ? noise : -noise) : 1;
		add(loads[i], round, fmin(served(loads[i], kept) * off, loads[i] * PER_S), noise);
	}
}

static struct verdict decide(void)
{
	return verdict_of(&plan, &result);
}

static void test_plateau(void)
{
	char text[400];

	begin();
	sweep(0, 0.98, 0.01);
	struct verdict v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	CU_ASSERT_DOUBLE_EQUAL(v.kept, 0.99, 0.02);
	CU_ASSERT(v.low < v.kept && v.kept < v.high);
	CU_ASSERT_EQUAL(v.n_below, 4);
	CU_ASSERT_EQUAL(v.n_held, 4);
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict_sentence(&v, text, sizeof(text)), "10k/s"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "well-conditioned under overload"));
}

static void test_collapse(void)
{
	char text[400];

	begin();
	sweep(0, 0.2, 0.01);
	struct verdict v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_COLLAPSES);
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict_sentence(&v, text, sizeof(text)), "collapses"));
	begin();
	sweep(0, 0.86, 0.005);
	v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_LOSES);
	begin();
	sweep(0, 0, 0); /* nothing at ten times */
	v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_COLLAPSES);
}

/* With great noise, a loss of the same size is not certain; with little, it is. */
static void test_noise(void)
{
	char text[400];

	begin();
	sweep(0, 0.7, 0.25);
	struct verdict v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_UNSURE);
	CU_ASSERT(v.low < VERDICT_FAIR && v.high > VERDICT_FAIR);
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict_sentence(&v, text, sizeof(text)), "too noisy"));
	begin();
	sweep(0, 0.7, 0.01);
	v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_COLLAPSES);
}

/* A capacity far below that of the threads: goodput still rises at the highest load. */
static void test_rises(void)
{
	char text[400];

	begin();
	for (int i = 0; i < N_LOADS; i++)
		add(loads[i], 0, loads[i] * PER_S * (loads[i] > 1 ? 1 / (1 + loads[i] / 10) : 1),
		    0.01);
	struct verdict v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	CU_ASSERT_TRUE(v.rises);
	CU_ASSERT_DOUBLE_EQUAL(v.best_per_s, 5000, 1);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(verdict_sentence(&v, text, sizeof(text)), "more than at any lower load"));
}

/* The best of many noisy points is above their true value: a flat curve must not lose by that. */
static void test_best_is_not_the_luckiest(void)
{
	begin();
	sweep(0, 1, 0.04);
	struct verdict v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	CU_ASSERT_DOUBLE_EQUAL(v.best_per_s, PER_S, 20);
	CU_ASSERT(v.best_from < v.best_to);
}

/* The recorded case: loads below the capacity were refused in the sweep, so the highest load is
 * worse than the search promised, too. That is no collapse. */
static void test_changed(void)
{
	char text[400];

	begin();
	for (int i = 0; i < N_LOADS; i++)
		add(loads[i], 0, fmin(loads[i] * PER_S, 600 - 20 * loads[i]), 0.01);
	struct verdict v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_CHANGED);
	CU_ASSERT_EQUAL(v.n_below, 4);
	CU_ASSERT_EQUAL(v.n_held, 1);
	CU_ASSERT_DOUBLE_EQUAL(v.worst_per_s, 900, 1);
	CU_ASSERT_PTR_NULL(strstr(verdict_sentence(&v, text, sizeof(text)), "collapse"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "machine changed"));
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict_check(&v, text, sizeof(text)), "3 of 4 loads"));
	for (int i = 0; i < plan.n_phases; i++) {
		CU_ASSERT_EQUAL(verdict_lost(&plan, &result, i), loads[i] > 0.6 && loads[i] < 0.95);
	}
}

/* A single disturbed phase, whose repetition was served, does not change the machine. */
static void test_repeated(void)
{
	begin();
	sweep(0, 0.98, 0.01);
	result.phase[2].class[0].outcome[LOAD_OK] /= 2;
	CU_ASSERT_EQUAL(decide().kind, VERDICT_CHANGED);
	add(0.8, 0, 800, 0);
	CU_ASSERT_EQUAL(decide().kind, VERDICT_KEPT);
	add(0.8, 0, 500, 0);
	CU_ASSERT_EQUAL(decide().kind, VERDICT_CHANGED);
}

static void test_rounds(void)
{
	char text[400];

	begin();
	sweep(0, 0.97, 0.01);
	struct verdict v = decide();
	CU_ASSERT_EQUAL(v.rounds, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict_certainty(&v, text, sizeof(text)), "One round"));
	begin();
	for (int r = 1; r <= 5; r++)
		sweep(r, 0.97, 0.01);
	v = decide();
	CU_ASSERT_EQUAL(v.rounds, 5);
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	CU_ASSERT_DOUBLE_EQUAL(v.noise, 0.011, 0.004);
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict_certainty(&v, text, sizeof(text)), "5 rounds"));
	begin();
	add(0.5, 0, 500, 0);
	add(3, 0, 900, 0);
	result.n_seconds = 0;
	v = decide();
	CU_ASSERT(isnan(v.noise));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(verdict_certainty(&v, text, sizeof(text)), "there are no error bars"));
}

/* Rounds at different speeds of the machine: the goodput varies by half, the ratio of a round does
 * not. A load below the capacity that was not served voids the verdict nevertheless. */
static void test_alternating(void)
{
	char text[400];

	begin();
	sweep(1, 0.98, 0.01);
	for (int r = 2; r <= 4; r++) {
		double speed = r % 2 ? 0.6 : 1.4;
		add(2, r, 990 * speed, 0);
		add(10, r, 970 * speed, 0);
	}
	struct verdict v = decide();
	CU_ASSERT_EQUAL(v.pairs, 0); /* too few */
	add(10, 5, 970 * 0.5, 0);
	add(2, 5, 990 * 0.5, 0);
	v = decide();
	CU_ASSERT_EQUAL(v.pairs, 5);
	CU_ASSERT_EQUAL(v.kind, VERDICT_KEPT);
	CU_ASSERT_DOUBLE_EQUAL(v.kept, 0.98, 0.01);
	CU_ASSERT(v.low > 0.95 && v.high < 1.01);
	CU_ASSERT(v.noise > 0.2);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(verdict_certainty(&v, text, sizeof(text)), "5 rounds, in each"));
	result.phase[2].class[0].outcome[LOAD_OK] /= 2;
	v = decide();
	CU_ASSERT_EQUAL(v.n_held, 3);
	CU_ASSERT_EQUAL(v.kind, VERDICT_CHANGED);
	result.phase[2].class[0].outcome[LOAD_OK] *= 2;
	for (int r = 6; r <= 12; r++) {
		add(2, r, 990, 0);
		add(10, r, r % 2 ? 900 : 0, 0); /* nothing at all in some rounds */
	}
	v = decide();
	CU_ASSERT_EQUAL(v.pairs, 12);
	CU_ASSERT_EQUAL(v.kind, VERDICT_UNSURE);
}

/* Trials of the search are not points of the sweep, and phases that were late do not count. */
static void test_left_out(void)
{
	begin();
	sweep(0, 0.98, 0.01);
	add(0, 0, 0, 0);
	plan.phase[plan.n_phases - 1] =
	    (struct load_phase){.from_per_s = 20000, .to_per_s = 20000, .trial = true};
	result.phase[plan.n_phases - 1].class[0].offered = 40000;
	CU_ASSERT_EQUAL(decide().kind, VERDICT_KEPT);
	CU_ASSERT_DOUBLE_EQUAL(decide().offered_per_s, 10000, 1);
	result.phase[N_LOADS - 1].late = true;
	CU_ASSERT_DOUBLE_EQUAL(decide().offered_per_s, 5000, 1);
	CU_ASSERT_EQUAL(decide().n_late, 1);
	for (int i = 0; i < plan.n_phases; i++)
		result.phase[i].late = true;
	CU_ASSERT_EQUAL(decide().kind, VERDICT_VOID);
}

/* The generator was late at each load that would have been an overload. */
static void test_generator(void)
{
	char text[400];

	begin();
	add(0.5, 0, 500, 0);
	add(1, 0, 1000, 0);
	add(2, 0, 1900, 0);
	add(10, 0, 3000, 0);
	result.phase[2].late = result.phase[3].late = true;
	struct verdict v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_GENERATOR);
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict_sentence(&v, text, sizeof(text)),
	    "The generator, not the server, is the limit on this machine: it could send 1000/s in "
	    "time, but not 10k/s."));
	CU_ASSERT_STRING_EQUAL(verdict_level(&v), "warn");
	result.phase[3].late = false; /* one overload is enough */
	CU_ASSERT_EQUAL(decide().kind, VERDICT_KEPT);
	result.phase[2].late = false;
	result.phase[1].late = true; /* no higher one is missing */
	CU_ASSERT_NOT_EQUAL(decide().kind, VERDICT_GENERATOR);
}

static void test_no_overload(void)
{
	char text[400];

	begin();
	add(0.5, 0, 500, 0);
	add(1, 0, 1000, 0);
	struct verdict v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_LIGHT);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(verdict_sentence(&v, text, sizeof(text)), "did not exceed the capacity"));
	add(2, 0, 2000, 0); /* served, though late */
	add(10, 0, 10000, 0);
	v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_LIGHT);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(verdict_sentence(&v, text, sizeof(text)), "all of it within the time-out"));
	begin();
	add(0, 0, 450, 0);
	plan.phase[0].from_per_s = plan.phase[0].to_per_s = 1000;
	result.phase[0].class[0].offered = 2000;
	v = decide();
	CU_ASSERT_EQUAL(v.kind, VERDICT_SINGLE);
	begin();
	add(1, 0, 0, 0);
	CU_ASSERT_EQUAL(decide().kind, VERDICT_NOTHING);
}

/* Requests that fail at every load do not make a machine that changed. */
static void test_errors_at_every_load(void)
{
	begin();
	sweep(0, 0.98, 0.01);
	for (int i = 0; i < plan.n_phases; i++) {
		uint64_t *n = result.phase[i].class[0].outcome;
		n[LOAD_ERROR] = result.phase[i].class[0].offered / 5;
		n[LOAD_OK] = n[LOAD_OK] * 4 / 5;
	}
	CU_ASSERT_EQUAL(decide().kind, VERDICT_KEPT);
}

CUNIT_MAIN("verdict", {"a plateau", test_plateau}, {"the generator is the limit", test_generator},
    {"a collapse", test_collapse}, {"noise", test_noise},
    {"the best is not the luckiest", test_best_is_not_the_luckiest}, {"it still rises", test_rises},
    {"the machine changed", test_changed}, {"a repeated phase", test_repeated},
    {"rounds", test_rounds}, {"rounds that alternate", test_alternating},
    {"left out", test_left_out}, {"no overload", test_no_overload},
    {"errors at every load", test_errors_at_every_load})
