/* SPDX-License-Identifier: MIT */
/* The capacity search; see capacity.h. */
#include "load/capacity.h"

#include <math.h>
#include <stdio.h>

/* A rate is decided once this many of its trials have had the same result. */
#define TRIALS_AGREE 2

/* Lowest rate that is tried: lower rates are not worth a search. */
#define RATE_MIN_PER_S 0.1

void capacity_start(struct capacity *c, double start_per_s, double limit_per_s, double precision)
{
	*c = (struct capacity){.precision = precision,
	    .limit_per_s = limit_per_s,
	    .rate_per_s = start_per_s < limit_per_s ? start_per_s : limit_per_s};
}

double capacity_next(const struct capacity *c)
{
	return c->done ? 0 : c->rate_per_s;
}

/* Round to four significant digits: trials cannot resolve more, and short numbers are easier to
 * read. */
static double four_digits(double v)
{
	double unit = pow(10, floor(log10(v)) - 3);

	return round(v / unit) * unit;
}

/* Choose the next rate after a decision, or end the search. */
static void advance(struct capacity *c)
{
	if (c->good_per_s == 0)
		c->rate_per_s = c->bad_per_s / 2;
	else if (c->bad_per_s == 0)
		c->rate_per_s = fmin(c->good_per_s * 2, c->limit_per_s);
	else
		c->rate_per_s = sqrt(c->good_per_s * c->bad_per_s);
	c->rate_per_s = four_digits(c->rate_per_s);
	c->done = c->n_rates == CAPACITY_RATES_MAX || c->rate_per_s < RATE_MIN_PER_S ||
		  c->good_per_s >= c->limit_per_s ||
		  (c->good_per_s > 0 && c->bad_per_s > 0 &&
		      c->bad_per_s <= c->good_per_s * (1 + c->precision));
}

/* Decide the current rate, and go on to the next one. */
static void decide(struct capacity *c, bool good)
{
	c->n_against += good ? c->failed : c->passed;
	if (good)
		c->good_per_s = c->rate_per_s;
	else
		c->bad_per_s = c->rate_per_s;
	c->passed = c->failed = c->unknown = 0;
	c->n_rates++;
	advance(c);
}

void capacity_tell(struct capacity *c, bool kept)
{
	c->n_trials++;
	c->late = 0;
	if (kept)
		c->passed++;
	else
		c->failed++;
	if (c->passed == TRIALS_AGREE || c->failed == TRIALS_AGREE)
		decide(c, c->passed > c->failed);
}

void capacity_tell_unknown(struct capacity *c)
{
	c->late = 0;
	c->unknown++;
	c->n_unknown++;
	if (c->unknown < CAPACITY_LATE_IN_A_ROW)
		return;
	c->n_lenient++;
	decide(c, true);
}

/* Rates that are usually tried before one has passed and one has failed. A guess. */
#define RATES_TO_BRACKET 3

int capacity_left(const struct capacity *c)
{
	bool bracket = c->good_per_s > 0 && c->bad_per_s > 0;
	double ratio = bracket ? c->bad_per_s / c->good_per_s : 2;

	if (c->done)
		return 0;
	/* each bisection halves the logarithm of the ratio */
	int rates = (int)ceil(log2(fmax(log(ratio) / log(1 + c->precision), 1)));
	int n = (rates + (bracket ? 0 : RATES_TO_BRACKET)) * TRIALS_AGREE - c->passed - c->failed;
	return n > 1 ? n : 1;
}

void capacity_tell_late(struct capacity *c, int64_t lag_ns)
{
	c->late++;
	c->n_late++;
	if (lag_ns > c->worst_late_ns)
		c->worst_late_ns = lag_ns;
	bool ends = c->late == CAPACITY_LATE_IN_A_ROW || c->n_late == CAPACITY_LATE_MAX;
	c->limited = ends && c->good_per_s > 0;
	c->voided = ends && !c->limited;
	c->done = c->done || ends;
}

double capacity_confidence(const struct capacity *c)
{
	return c->n_trials ? 1 - (double)c->n_against / c->n_trials : 1;
}

void capacity_describe(const struct capacity *c, const char *objective, char *buf, size_t size)
{
	char good[48], bad[80], late[64] = "", lenient[80] = "", trials[64] = "no trial counts";

	if (c->good_per_s > 0)
		snprintf(good, sizeof(good), "%.4g/s met", c->good_per_s);
	else
		snprintf(good, sizeof(good), "no rate met");
	if (c->bad_per_s > 0)
		snprintf(bad, sizeof(bad), "%.4g/s did not", c->bad_per_s);
	else if (c->limited)
		snprintf(
		    bad, sizeof(bad), "the generator could not send %.4g/s in time", c->rate_per_s);
	else
		snprintf(bad, sizeof(bad), "%s",
		    c->voided ? "no trial at a higher rate counts" : "no higher rate was tried");
	if (c->n_trials > 0)
		snprintf(trials, sizeof(trials), "%d trials, %.0f %% agreed", c->n_trials,
		    capacity_confidence(c) * 100);
	if (c->n_late > 0)
		snprintf(late, sizeof(late),
		    "; the generator was late in %d more trial%s, not counted", c->n_late,
		    c->n_late == 1 ? "" : "s");
	if (c->n_lenient > 0)
		snprintf(lenient, sizeof(lenient),
		    "; at %d rate%s only the generator's lag hid that it was met", c->n_lenient,
		    c->n_lenient == 1 ? "" : "s");
	snprintf(buf, size, "%s%s %s, %s; %s%s%s",
	    c->voided    ? "not found: "
	    : c->limited ? "at least "
			 : "",
	    good, objective, bad, trials, late, lenient);
}

void capacity_why_void(const struct capacity *c, char *buf, size_t size)
{
	buf[0] = '\0';
	if (c->voided)
		snprintf(buf, size,
		    "the capacity search ended at %.4g/s: the p99 of the generator's lag was up to "
		    "%.1f ms in %d trials%s, which therefore do not count",
		    c->rate_per_s, (double)c->worst_late_ns / 1e6,
		    c->late == CAPACITY_LATE_IN_A_ROW ? c->late : c->n_late,
		    c->late == CAPACITY_LATE_IN_A_ROW ? " in a row" : "");
}
