/* SPDX-License-Identifier: MIT */
/* Decides what a run shows; see verdict.h. */
#include "report/verdict.h"

#include <math.h>
#include <string.h>

#include "load/judge.h"
#include "load/stats.h"
#include "report/noise.h"

/* Distance from the best goodput, in standard deviations of a difference of two points, up to which
 * a point may be as good. */
#define AS_GOOD 2.0
/* Greatest distance as a share of the best goodput: with more noise, points that are clearly worse
 * would lower the reference. */
#define AS_GOOD_MAX 0.1

static uint64_t good_of(const struct load_plan *plan, const struct load_phase_result *r)
{
	uint64_t n = 0;

	for (int c = 0; c < plan->n_classes; c++)
		n += r->class[c].outcome[LOAD_OK] + r->class[c].outcome[LOAD_DEGRADED];
	return n;
}

static uint64_t offered_of(const struct load_plan *plan, const struct load_phase_result *r)
{
	uint64_t n = 0;

	for (int c = 0; c < plan->n_classes; c++)
		n += r->class[c].offered;
	return n;
}

/* Whether a phase served what it was offered, except for the share `errors`, within the noise of a
 * count. */
static bool held(const struct load_plan *plan, const struct load_phase_result *r, double errors)
{
	double offered = (double)offered_of(plan, r), good = (double)good_of(plan, r);
	double must = plan->held_ratio > 0 ? plan->held_ratio : VERDICT_HELD;
	double noise = 3 * sqrt(offered * must * (1 - must));

	return good + noise >= must * (1 - errors) * offered;
}

bool verdict_lost(const struct load_plan *plan, const struct load_result *result, int i)
{
	const struct load_phase *p = &plan->phase[i];

	return p->multiple > 0 && p->multiple <= VERDICT_BELOW && !plan->closed &&
	       load_phase_counts(plan, result, i) && !held(plan, &result->phase[i], 0);
}

bool verdict_served(const struct load_plan *plan, const struct load_result *result, int i)
{
	return (double)good_of(plan, &result->phase[i]) >=
	       VERDICT_HELD * (double)offered_of(plan, &result->phase[i]);
}

/* ---- points ---- */

static bool same_load(const struct load_plan *plan, int i, int k)
{
	const struct load_phase *a = &plan->phase[i], *b = &plan->phase[k];

	if (plan->closed)
		return strcmp(a->name, b->name) == 0;
	return fabs(a->from_per_s - b->from_per_s) <= 1e-6 * a->from_per_s &&
	       fabs(a->to_per_s - b->to_per_s) <= 1e-6 * a->to_per_s;
}

static void add_phase(
    struct noise_points *all, const struct load_plan *plan, const struct load_result *result, int i)
{
	const struct load_phase_result *r = &result->phase[i];
	struct noise_point *p = NULL;
	double took_s = (double)r->took_ns / 1e9;

	for (int k = 0; k < all->n && !p; k++)
		if (same_load(plan, all->point[k].phase[0], i))
			p = &all->point[k];
	if (!p && all->n == NOISE_POINTS_MAX)
		return;
	if (!p) {
		p = &all->point[all->n++];
		*p = (struct noise_point){.multiple = plan->phase[i].multiple};
	}
	if (p->n == NOISE_ROUNDS_MAX)
		return;
	p->good[p->n] = (double)good_of(plan, r) / took_s;
	p->offered[p->n] = (double)offered_of(plan, r) / took_s;
	p->phase[p->n++] = i;
}

/* Sort by offered rate. There are few points, and they are nearly sorted. */
static void sort_points(struct noise_points *all)
{
	for (int i = 1; i < all->n; i++)
		for (int k = i;
		     k > 0 && all->point[k].offered_per_s < all->point[k - 1].offered_per_s; k--) {
			struct noise_point swap = all->point[k];
			all->point[k] = all->point[k - 1];
			all->point[k - 1] = swap;
		}
}

static void take_points(
    struct noise_points *all, const struct load_plan *plan, const struct load_result *result)
{
	bool runs = load_has_runs(plan);

	all->n = 0;
	for (int i = 0; i < plan->n_phases && i < result->n_phases; i++)
		if (load_phase_counts(plan, result, i) && plan->phase[i].trial != runs &&
		    offered_of(plan, &result->phase[i]) > 0)
			add_phase(all, plan, result, i);
	for (int k = 0; k < all->n; k++) {
		struct noise_point *p = &all->point[k];
		p->good_per_s = stats_median(p->good, p->n);
		p->offered_per_s = stats_median(p->offered, p->n);
	}
	sort_points(all);
}

/* Return the 99th percentile of the latency of served requests at a point, in seconds. */
static double p99_of(
    const struct load_plan *plan, const struct load_result *result, const struct noise_point *p)
{
	struct hdr h = {0};

	for (int i = 0; i < p->n; i++)
		for (int c = 0; c < plan->n_classes; c++) {
			struct hdr *const *from = result->phase[p->phase[i]].class[c].latency;
			if (from[LOAD_OK])
				hdr_merge(&h, from[LOAD_OK]);
			if (from[LOAD_DEGRADED])
				hdr_merge(&h, from[LOAD_DEGRADED]);
		}
	return h.total ? (double)hdr_quantile_ns(&h, 0.99) / 1e9 : NAN;
}

/* ---- the reference ---- */

/* Return the least number of phases of a point of the reference. After a deciding load was repeated
 * many times, the luckiest of those that ran once must not be the best. */
static int least_phases(const struct noise_points *all, int last)
{
	int most = 0;

	for (int k = 0; k < last; k++)
		most = all->point[k].n > most ? all->point[k].n : most;
	return most >= NOISE_PAIRS_MIN ? (most + 1) / 2 : 1;
}

/* Set the reference: the mean goodput of all points except the highest load that may be as good as
 * the best of them. Returns the number of its phases. */
static int take_best(struct verdict *v, struct noise_points *all)
{
	int best = -1, n = 0, points = 0, last = all->n > 1 ? all->n - 1 : 1;
	int least_n = least_phases(all, last);

	for (int k = 0; k < last; k++)
		if (all->point[k].n >= least_n &&
		    (best < 0 || all->point[k].good_per_s > all->point[best].good_per_s))
			best = k;
	double sd = isnan(v->noise) ? 0 : v->noise * sqrt(2.0 / all->point[best].n);
	double least = all->point[best].good_per_s * (1 - fmin(AS_GOOD * sd, AS_GOOD_MAX));
	v->best_per_s = 0;
	for (int k = 0; k < last; k++) {
		struct noise_point *p = &all->point[k];
		p->best = p->n >= least_n && p->good_per_s >= least;
		if (!p->best)
			continue;
		v->best_from = points == 0 ? p->offered_per_s : v->best_from;
		v->best_to = p->offered_per_s;
		v->best_per_s += p->good_per_s;
		n += p->n;
		points++;
	}
	v->best_per_s /= points;
	return n;
}

static int best_point(const struct noise_points *all)
{
	int best = 0;

	for (int k = 1; k < all->n; k++)
		if (all->point[k].good_per_s > all->point[best].good_per_s)
			best = k;
	return best;
}

/* ---- loads below the capacity ---- */

/* Return the least share of errors at any point: requests that fail at every load, such as those
 * for a missing page, say nothing about the machine. */
static double least_errors(
    const struct noise_points *all, const struct load_plan *plan, const struct load_result *result)
{
	double least = 1;

	for (int k = 0; k < all->n; k++) {
		double errors = 0, offered = 0;
		for (int i = 0; i < all->point[k].n; i++) {
			const struct load_phase_result *r = &result->phase[all->point[k].phase[i]];
			offered += (double)offered_of(plan, r);
			for (int c = 0; c < plan->n_classes; c++)
				errors += (double)r->class[c].outcome[LOAD_ERROR];
		}
		least = fmin(least, errors / offered);
	}
	return least;
}

static bool is_below(const struct verdict *v, const struct noise_point *p)
{
	return p->multiple > 0 ? p->multiple <= VERDICT_BELOW
			       : p->offered_per_s <= VERDICT_BELOW * v->best_per_s;
}

/* Check the loads below the capacity. A point was served if at least half of its phases were: a
 * single one may have met a disturbance of a second. */
static void take_below(struct verdict *v, const struct noise_points *all,
    const struct load_plan *plan, const struct load_result *result)
{
	double errors = least_errors(all, plan, result);

	v->worst_share = 1;
	for (int k = 0; k < all->n; k++) {
		const struct noise_point *p = &all->point[k];
		int n = 0;
		if (!is_below(v, p))
			continue;
		for (int i = 0; i < p->n; i++)
			n += held(plan, &result->phase[p->phase[i]], errors);
		v->n_below++;
		v->n_held += 2 * n >= p->n;
		double share = p->good_per_s / p->offered_per_s;
		if (share < v->worst_share) {
			v->worst_share = share;
			v->worst_per_s = p->offered_per_s;
		}
	}
}

/* ---- the verdict ---- */

static int count_late(const struct load_plan *plan, const struct load_result *result)
{
	int n = 0;

	for (int i = 0; i < plan->n_phases && i < result->n_phases; i++)
		n += load_phase_offers(plan, i) && result->phase[i].late;
	return n;
}

/* Return the highest rate of a phase that does not count since the generator was late. */
static double highest_late(const struct load_plan *plan, const struct load_result *result)
{
	double most = 0;

	for (int i = 0; i < plan->n_phases && i < result->n_phases; i++)
		if (load_phase_offers(plan, i) && !plan->phase[i].trial && result->phase[i].late)
			most = fmax(most, plan->phase[i].from_per_s);
	return most;
}

static int least_rounds(const struct noise_points *all)
{
	int least = all->point[all->n - 1].n;

	for (int k = 0; k < all->n; k++)
		if (noise_is_loaded(&all->point[k]) && all->point[k].n < least)
			least = all->point[k].n;
	return least;
}

static enum verdict_kind kind_of(const struct verdict *v)
{
	if (!(v->best_per_s > 0) && !(v->highest_per_s > 0))
		return VERDICT_NOTHING;
	if (v->n_held < v->n_below)
		return VERDICT_CHANGED;
	if (v->closed ||
	    v->offered_per_s <= VERDICT_OVERLOAD * fmax(v->best_per_s, v->highest_per_s))
		return v->late_per_s > VERDICT_OVERLOAD * v->offered_per_s ? VERDICT_GENERATOR
									   : VERDICT_LIGHT;
	if (v->n_points < 2)
		return VERDICT_SINGLE;
	if (v->high < VERDICT_FAIR)
		return VERDICT_COLLAPSES;
	if (v->high < VERDICT_GOOD)
		return VERDICT_LOSES;
	return v->low < VERDICT_FAIR ? VERDICT_UNSURE : VERDICT_KEPT;
}

/* Set the ratio and its interval: from the rounds if there are enough, else from the noise. */
static void take_ratio(struct verdict *v, const struct noise_points *all,
    const struct load_plan *plan, int n_best, double t)
{
	struct noise_pairs pairs = noise_pairs(all, plan);
	double half = t * v->noise * sqrt(1.0 / all->point[all->n - 1].n + 1.0 / n_best);

	v->kept = v->best_per_s > 0 ? v->highest_per_s / v->best_per_s : NAN;
	half = isnan(v->noise) ? 0 : half;
	v->low = v->kept * fmax(0, 1 - half);
	v->high = v->kept * (1 + half);
	if (pairs.n < NOISE_PAIRS_MIN)
		return;
	v->pairs = pairs.n;
	v->ratio_sd = pairs.sd;
	v->kept = pairs.kept;
	v->low = pairs.low;
	v->high = pairs.high;
}

struct verdict verdict_of(const struct load_plan *plan, const struct load_result *result)
{
	struct verdict v = {.closed = plan->closed,
	    .ratio_sd = NAN,
	    .best_p99_s = NAN,
	    .highest_p99_s = NAN,
	    .noise = NAN,
	    .n_late = count_late(plan, result),
	    .late_per_s = plan->closed ? 0 : highest_late(plan, result)};
	struct noise_points all;
	double t;

	take_points(&all, plan, result);
	v.n_points = all.n;
	if (result->voided[0] || all.n == 0)
		return v;
	const struct noise_point *last = &all.point[all.n - 1];
	v.noise = noise_of(&all, plan, result, &t);
	int n_best = take_best(&v, &all);
	v.rounds = least_rounds(&all);
	v.offered_per_s = last->offered_per_s;
	v.highest_per_s = last->good_per_s;
	v.best_p99_s = p99_of(plan, result, &all.point[best_point(&all)]);
	v.highest_p99_s = p99_of(plan, result, last);
	take_ratio(&v, &all, plan, n_best, t);
	take_below(&v, &all, plan, result);
	v.kind = kind_of(&v);
	v.rises = (v.pairs > 0 ? v.kept > 1 : v.highest_per_s > v.best_per_s) &&
		  v.kind != VERDICT_CHANGED && (v.kind <= VERDICT_LIGHT || v.low > 1);
	if (v.rises) {
		v.best_per_s = v.highest_per_s;
		v.best_from = v.best_to = v.offered_per_s;
		v.kept = v.high = 1;
		v.low = fmin(v.low, 1);
	}
	return v;
}
