/* SPDX-License-Identifier: MIT */
/*
 * Derives metrics of a row from its classes, and from its series during and after a spike, a fault
 * or a change.
 *
 * Service has recovered at time t if the second from t to t + 1 s has at least 95 % of the expected
 * good responses (90 % for a new steady state). The expected number is the number of offered
 * requests times the success rate before the spike or fault. Offered requests above the rate before
 * the spike or fault are retries, which need not succeed, so they are not counted. A window shorter
 * than one second would show mostly noise at a few hundred requests per second.
 */
#include "report/overload/rows.h"

#include <math.h>
#include <string.h>

/* WINDOW_S is the length of the window for "recovered". BEGIN_S is the time at the start of a run
 * that is skipped, while pools and caches are filling. Both are guesses. */
#define WINDOW_S 1.0
#define BEGIN_S  0.5

/* Time after the spike or fault at which goodput is measured (evaluation protocol). */
#define AFTER_S 5.0

/* Share of the stage guaranteed to each class below the highest (docs/overload.md). */
#define GUARANTEE 0.02

#define BACK   0.95
#define STEADY 0.90

struct sums {
	double offered, good;
	int n;
};

/* Sum the bins that begin in [from_s, to_s). */
static struct sums sum(const struct over_row *r, double from_s, double to_s)
{
	const double slack = 1e-9;
	struct sums s = {0, 0, 0};

	for (int i = 0; i < r->n_bins; i++) {
		double at_s = i * r->bin_s;
		if (at_s + slack < from_s || at_s + slack >= to_s)
			continue;
		s.offered += r->offered[i];
		s.good += r->good[i];
		s.n++;
	}
	return s;
}

static double end_s(const struct over_row *r)
{
	return r->n_bins * r->bin_s;
}

/* Return the number of good responses in [from_s, to_s), divided by the expected number. The
 * expected number is `success` times the number of offered requests, of which at most `most` per
 * bin count. */
static double kept(
    const struct over_row *r, double from_s, double to_s, double success, double most)
{
	struct sums s = sum(r, from_s, to_s);
	double should = success * fmin(s.offered, most * s.n);

	return s.n > 0 && should > 0 ? s.good / should : NAN;
}

/* Return the time from `from_s` until the beginning of the first window that reaches `level`;
 * INFINITY if no window before `to_s` does. */
static double until_kept(
    const struct over_row *r, double from_s, double to_s, double level, double success, double most)
{
	for (int i = (int)ceil(from_s / r->bin_s - 1e-9); i * r->bin_s + WINDOW_S <= to_s + 1e-9;
	     i++)
		if (kept(r, i * r->bin_s, i * r->bin_s + WINDOW_S, success, most) >= level)
			return fmax(0, i * r->bin_s - from_s);
	return INFINITY;
}

/* Derive the metrics of a spike: the time until service converges to a steady state, the time until
 * it recovers after the spike, and the share of requests that succeed AFTER_S later. */
static void derive_spike(struct over_row *r)
{
	struct sums before = sum(r, BEGIN_S, r->from_s);
	struct sums late = sum(r, (r->from_s + r->to_s) / 2, r->to_s);
	double end = end_s(r), after = fmin(r->to_s + AFTER_S, end - WINDOW_S);

	if (before.n == 0 || late.n == 0 || !(before.good > 0) || after < r->to_s)
		return;
	double success = before.good / before.offered, most = before.offered / before.n;
	/* For the convergence during the spike, the reference is the second half of the spike,
	 * since there was no overload before it. */
	r->value[OVER_CONVERGE] = until_kept(r, r->from_s, r->to_s, STEADY, 1, late.good / late.n);
	r->value[OVER_RECOVER] = until_kept(r, r->to_s, end, BACK, success, most);
	r->value[OVER_AFTER] = kept(r, after, end, success, most);
}

static int turns(const struct over_row *r)
{
	int last = 0, n = 0;

	for (int i = 1; i < r->n_threads; i++) {
		double step = r->threads[i] - r->threads[i - 1];
		int way = (step > 0) - (step < 0);
		n += way && last && way != last;
		last = way ? way : last;
	}
	return n;
}

/* Derive the metrics of a pool after a change. The pool has settled when its goodput equals the
 * smaller of the offered load and the capacity again. */
static void derive_pool(struct over_row *r)
{
	double end = end_s(r);

	r->value[OVER_REVERSALS] = turns(r) / (end / 60);
	r->value[OVER_SETTLE] = until_kept(r, r->from_s, end, STEADY, 1, 1);
	r->value[OVER_OF_BEST] = kept(r, r->from_s + (end - r->from_s) * 2 / 3, end, 1, 1);
}

/* Return the smallest share that any class below the highest received, relative to its
 * guarantee. */
static double least_share(const struct over_row *r)
{
	double least = NAN, full = r->for_s * r->capacity_per_s;

	for (int k = 1; k < r->n_classes; k++) {
		double may = fmin(r->class[k].offered / full, GUARANTEE);
		least = fmin(least, r->class[k].good / full / may);
	}
	return least;
}

void over_derive(struct over_row *r)
{
	if (r->n_classes > 0)
		r->value[OVER_TOP] = r->class[0].good / r->class[0].offered;
	if (r->for_s > 0 && r->capacity_per_s > 0)
		r->value[OVER_GUARANTEE] = least_share(r);
	if (r->n_bins == 0 || isnan(r->from_s))
		return;
	if (r->n_threads > 0)
		derive_pool(r);
	else
		derive_spike(r);
}
