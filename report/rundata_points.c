/* SPDX-License-Identifier: MIT */
/*
 * Collects the load points of a run; see rundata.h. The trials of a search are a series of their
 * own, since they ran at other times than a sweep, and on rates that nearly coincide with its.
 */
#include "report/rundata_points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/judge.h"

/* Whether phase `i` offers the load of point `p`. In a closed loop, only the name identifies a
 * load. */
static bool same_load(const struct rundata *run, const struct run_point *p, int i)
{
	const struct load_phase *phase = &run->plan.phase[i];

	if (run->plan.closed)
		return strcmp(p->name, phase->name) == 0;
	return fabs(p->multiple - phase->multiple) < 1e-9 &&
	       fabs(p->from_per_s - phase->from_per_s) <= 1e-6 * p->from_per_s &&
	       fabs(p->to_per_s - phase->to_per_s) <= 1e-6 * p->to_per_s;
}

static void new_point(struct rundata *run, const struct load_phase *phase, int at)
{
	struct run_point *p = &run->point[at];

	*p = (struct run_point){.multiple = phase->multiple,
	    .from_per_s = phase->from_per_s,
	    .to_per_s = phase->to_per_s};
	if (phase->multiple > 0 && !run->plan.closed)
		snprintf(p->name, sizeof(p->name), "%gx", phase->multiple);
	else
		snprintf(p->name, sizeof(p->name), "%s", phase->name);
}

static int by_rate(const void *a, const void *b)
{
	const struct run_point *p = a, *q = b;
	double x = p->from_per_s + p->to_per_s, y = q->from_per_s + q->to_per_s;

	return x < y ? -1 : x > y;
}

/* Whether the phase belongs to the series `trials`, of a search, or to the other one. If a run has
 * nothing but trials, they are its only series. */
static bool belongs(const struct rundata *run, int i, bool trials)
{
	bool apart = run->plan.phase[i].trial && load_has_runs(&run->plan);

	return apart == trials && run->offered_per_s[i] > 0 &&
	       load_phase_counts(&run->plan, &run->result, i);
}

static int find_point(const struct rundata *run, int phase, int from, int to)
{
	for (int p = from; p < to; p++)
		if (same_load(run, &run->point[p], phase))
			return p;
	return -1;
}

/* Add the distinct loads of a series after the points so far, in order of rate, and assign each
 * phase of the series to its load. Returns the number of points added. */
static int take_series(struct rundata *run, int first, bool trials)
{
	int end = first;

	for (int i = 0; i < run->plan.n_phases; i++)
		if (belongs(run, i, trials) && find_point(run, i, first, end) < 0)
			new_point(run, &run->plan.phase[i], end++);
	if (!run->plan.closed)
		qsort(&run->point[first], (size_t)(end - first), sizeof(*run->point), by_rate);
	for (int i = 0; i < run->plan.n_phases; i++) {
		if (!belongs(run, i, trials))
			continue;
		run->point_of[i] = find_point(run, i, first, end);
		run->point[run->point_of[i]].rounds++;
	}
	return end - first;
}

int rundata_take_points(struct rundata *run)
{
	size_t n = (size_t)run->plan.n_phases;

	run->point = calloc(n, sizeof(*run->point));
	run->point_of = calloc(n, sizeof(*run->point_of));
	if (!run->point || !run->point_of)
		return WEIR_ENOMEM;
	for (size_t i = 0; i < n; i++)
		run->point_of[i] = -1;
	run->n_points = take_series(run, 0, false);
	run->n_trials = take_series(run, run->n_points, true);
	return 0;
}
