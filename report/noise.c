/* SPDX-License-Identifier: MIT */
/* Measures the noise of a run; see noise.h. */
#include "report/noise.h"

#include <math.h>
#include <stddef.h>

/* Share of the offered load above which a point counts as served. */
#define LOADED 0.95
/* Least noise. 0.5 % is a guess: no machine is more even than that. */
#define NOISE_MIN 0.005

/* Least degrees of freedom at which the spread of rounds alone is used; the interval from fewer
 * would be three standard deviations wide or more. */
#define ROUNDS_MIN 3

/* A sum of squared relative deviations with its degrees of freedom. */
struct spread {
	double sum;
	int dof;
};

bool noise_is_loaded(const struct noise_point *p)
{
	return !(p->multiple > 0 && p->multiple < 1) && p->good_per_s > 0 &&
	       p->good_per_s < LOADED * p->offered_per_s;
}

static double spread_sd(const struct spread *s)
{
	return s->dof > 0 ? sqrt(s->sum / s->dof) : NAN;
}

/* Add the deviations of v[0..n) from their mean, relative to that and scaled by `weight`. */
static void spread_add(struct spread *s, const double *v, int n, double weight)
{
	double mean = 0;

	for (int i = 0; i < n; i++)
		mean += v[i] / n;
	for (int i = 0; i < n && mean > 0; i++)
		s->sum += weight * (v[i] / mean - 1) * (v[i] / mean - 1);
	s->dof += mean > 0 && n > 1 ? n - 1 : 0;
}

/* The spread of the rounds at each point. */
static struct spread over_rounds(const struct noise_points *all)
{
	struct spread s = {0};

	for (int k = 0; k < all->n; k++)
		if (noise_is_loaded(&all->point[k]))
			spread_add(&s, all->point[k].good, all->point[k].n, 1);
	return s;
}

/* Maximum number of seconds of a phase that are used. */
#define SECONDS_MAX 600

/* Store the goodput of the whole seconds of a phase in v[0..SECONDS_MAX). The first second of three
 * or more is left out, since the load before it still has an effect. Returns their number. */
static int whole_seconds(
    const struct load_plan *plan, const struct load_result *result, int phase, double *v)
{
	int whole = (int)(result->phase[phase].took_ns / 1000000000), n = 0, row = 0;

	for (size_t i = 0; i < result->n_seconds && n < SECONDS_MAX && row < whole; i++) {
		const struct load_second *s = &result->second[i];
		double good = 0;
		if (s->phase != phase)
			continue;
		for (int c = 0; c < plan->n_classes; c++)
			good += (double)(s->class[c].outcome[LOAD_OK] +
					 s->class[c].outcome[LOAD_DEGRADED]);
		if (row++ > 0 || whole < 3)
			v[n++] = good;
	}
	return n;
}

/* The spread of the seconds within each phase, divided by their number: that of their mean. Slow
 * changes of the machine, which last longer than a phase, do not show here. */
static struct spread over_seconds(
    const struct noise_points *all, const struct load_plan *plan, const struct load_result *result)
{
	struct spread s = {0};
	double v[SECONDS_MAX];

	for (int k = 0; k < all->n; k++) {
		const struct noise_point *p = &all->point[k];
		for (int i = 0; noise_is_loaded(p) && i < p->n; i++) {
			int n = whole_seconds(plan, result, p->phase[i], v);
			spread_add(&s, v, n, n > 0 ? 1.0 / n : 0);
		}
	}
	return s;
}

/* The spread of points around the line through their neighbours. A smooth curve hardly adds to it,
 * however steep it is. The variance of the difference is 6 times that of a point. */
static struct spread around_neighbours(const struct noise_points *all)
{
	struct spread s = {0};

	for (int k = 1; k + 1 < all->n; k++) {
		const struct noise_point *p = &all->point[k];
		if (!noise_is_loaded(&p[-1]) || !noise_is_loaded(p) || !noise_is_loaded(&p[1]))
			continue;
		double d = log(p[-1].good_per_s) - 2 * log(p->good_per_s) + log(p[1].good_per_s);
		s.sum += d * d / 6;
		s.dof++;
	}
	return s;
}

static double student_t(int dof)
{
	static const double t[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};

	return dof < 1 ? 0 : dof <= 10 ? t[dof - 1] : 1.96 + 2.7 / dof;
}

double noise_of(const struct noise_points *all, const struct load_plan *plan,
    const struct load_result *result, double *t)
{
	struct spread rounds = over_rounds(all);

	*t = student_t(rounds.dof);
	if (rounds.dof >= ROUNDS_MIN)
		return fmax(spread_sd(&rounds), NOISE_MIN);
	struct spread seconds = over_seconds(all, plan, result), near = around_neighbours(all);
	int dof = seconds.dof > near.dof ? seconds.dof : near.dof;
	/* fmax returns the other value if one is NAN */
	double sd = fmax(spread_sd(&rounds), fmax(spread_sd(&seconds), spread_sd(&near)));
	*t = student_t(rounds.dof > dof ? rounds.dof : dof);
	return isnan(sd) ? NAN : fmax(sd, NOISE_MIN);
}

/* ---- rounds ---- */

/* A ratio below this counts as this: the logarithm of 0 does not exist. */
#define RATIO_MIN 0.01

/* Add up the goodput of the phases of a point in a round. With `loaded`, only of those that were
 * offered clearly more than they served: others do not tell what could have been served. */
static int add_in(
    const struct noise_point *p, const struct load_plan *plan, int round, bool loaded, double *sum)
{
	int n = 0;

	for (int i = 0; i < p->n; i++)
		if (plan->phase[p->phase[i]].round == round &&
		    (!loaded || p->good[i] < LOADED * p->offered[i])) {
			*sum += p->good[i];
			n++;
		}
	return n;
}

static bool seen_before(const struct noise_point *p, const struct load_plan *plan, int i)
{
	for (int k = 0; k < i; k++)
		if (plan->phase[p->phase[k]].round == plan->phase[p->phase[i]].round)
			return true;
	return false;
}

/* Add up the goodput of the reference in a round: the best loads, or the only load beside the
 * highest one. */
static int add_reference(
    const struct noise_points *all, const struct load_plan *plan, int round, double *sum)
{
	int from = all->n, to = -1, n = 0, points = 0;
	double any = 0, best = 0;

	for (int k = 0; k < all->n - 1; k++)
		if (all->point[k].best) {
			from = k < from ? k : from;
			to = k;
		}
	for (int k = 0; k < all->n - 1; k++) {
		double at = 0;
		int phases = add_in(&all->point[k], plan, round, true, &at);
		any += phases > 0 ? at / phases : 0;
		points += phases > 0;
		best += k >= from && k <= to ? at : 0;
		n += k >= from && k <= to ? phases : 0;
	}
	*sum = points == 1 ? any : best;
	return points == 1 ? 1 : n;
}

/* Return the logarithm of the ratio in a round, or NAN. */
static double ratio_in(const struct noise_points *all, const struct load_plan *plan, int round)
{
	double best = 0, last = 0;
	int n_last = add_in(&all->point[all->n - 1], plan, round, false, &last);
	int n_best = add_reference(all, plan, round, &best);

	if (n_last == 0 || n_best == 0 || !(best > 0))
		return NAN;
	return log(fmax(last / n_last / (best / n_best), RATIO_MIN));
}

/* Student's t for an interval of 97.8 %, which is that of Pocock's test with three looks. */
static double pocock_t(int dof)
{
	static const double t[] = {28.8, 6.60, 4.37, 3.63, 3.27, 3.06, 2.93, 2.83, 2.76, 2.71};

	return dof <= 10 ? t[dof - 1] : 2.29 + 4.1 / dof;
}

struct noise_pairs noise_pairs(const struct noise_points *all, const struct load_plan *plan)
{
	struct noise_pairs r = {.kept = NAN, .low = NAN, .high = NAN, .sd = NAN};
	double v[NOISE_ROUNDS_MAX], mean = 0, sum = 0;
	const struct noise_point *last = &all->point[all->n - 1];

	for (int i = 0; i < last->n; i++) {
		double x = seen_before(last, plan, i)
			       ? NAN
			       : ratio_in(all, plan, plan->phase[last->phase[i]].round);
		if (!isnan(x))
			v[r.n++] = x;
	}
	for (int i = 0; i < r.n; i++)
		mean += v[i] / r.n;
	for (int i = 0; i < r.n; i++)
		sum += (v[i] - mean) * (v[i] - mean);
	if (r.n > 0)
		r.kept = exp(mean);
	if (r.n < 2)
		return r;
	r.sd = fmax(sqrt(sum / (r.n - 1)), NOISE_MIN);
	double half = pocock_t(r.n - 1) * r.sd / sqrt(r.n);
	r.low = exp(mean - half);
	r.high = exp(mean + half);
	return r;
}
