/* SPDX-License-Identifier: MIT */
/*
 * How fast each class uses up the error budget of its objective (`slo` of the class).
 *
 * A request misses the objective if its answer took longer than `slo`, if it failed or, in the highest
 * class, if it was refused. Refusals of lower classes are not misses: admission refuses them so that
 * higher classes keep their objectives. The burn rate is the share of the requests that missed, divided
 * by the share that may (1 - objective).
 *
 * An alert is due while the burn rate of a long and of a short window is over a factor: 14.4 in an hour
 * and in 5 minutes, or 6 in six hours and in 30 minutes. These are the windows and factors of the Google
 * SRE Workbook, chapter 5, "Multiwindow, Multi-Burn-Rate Alerts" (table 5-8), at which 2 % and 5 % of
 * the budget of 30 days have been used. The short window ends the alert soon after the cause. The slow
 * rates of that table need windows of days, which contrib/prometheus has.
 *
 * Pure; used by one thread. A class needs 12 KB, allocated when its first request has been answered.
 */
#ifndef WEIR_ADMIN_BURN_H
#define WEIR_ADMIN_BURN_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/graph.h>

/** Number of pairs of windows, the fastest first. */
#define BURN_RATES 2

/** Windows shorter than this are not judged, as after the start: a third of the shorter window would
 *  do, but the first requests of a cold server are late. */
#define BURN_COLD_NS (300 * 1000000000LL)

/** Fewer misses in the long window than this raise no alert. A guess: a server with a request a minute
 *  should not alarm at one that was late. */
#define BURN_MISSES_MIN 10

/** The state of a class now. */
struct burn_state {
	bool due;                  /* an alert is due */
	int64_t long_ns, short_ns; /* the windows for it */
	double long_share,
	    short_share; /* share of the requests in them that missed the objective */
	double rate;     /* burn rate of the long window */
};

struct burn_class;

struct burn {
	struct burn_class *class_[WEIR_CLASSES_MAX]; /* owned; NULL until needed */
};

/** The answered requests of one class at one source, and those that missed the objective `slo_ns`. A
 *  bucket of times counts as late if it begins at slo_ns or later, so requests that took up to 14 %
 *  longer may not count. *all and *missed are added to. */
void burn_count(const struct weir_answer_view *answers, int64_t slo_ns, bool highest, uint64_t *all,
    uint64_t *missed);

/** Take in the counters of `view`, once a second. If out of memory, a class is not watched. */
void burn_feed(struct burn *burn, const struct weir_graph_view *view);

/** Judge class `class_id` of the view last taken in; `objective` is the share of the requests that must
 *  meet the objective, 0..1. */
struct burn_state burn_judge(const struct burn *burn, int class_id, double objective);

void burn_fini(struct burn *burn);

#endif
