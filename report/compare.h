/* SPDX-License-Identifier: MIT */
/*
 * Decides whether run B was better than run A, by comparing each metric at each load point, with
 * 95 % intervals.
 *
 * Points are matched by rate, or else by their multiple of the capacity; in a closed loop, they are
 * matched by name. If the rounds of the two runs alternated in time, they are compared in pairs,
 * which cancels out drift of the machine. Otherwise, single seconds of the two runs are resampled
 * (or rounds, if the metric is not known for each second), and a note warns that the machine may
 * have changed between the runs.
 *
 * The ratio of two shares is undefined if one of them is 0. Therefore, COMPARE_SHARE_FLOOR is added
 * to both shares; smaller shares are irrelevant. Pure functions.
 */
#ifndef WEIR_REPORT_COMPARE_H
#define WEIR_REPORT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/error.h>

#include "load/stats.h"
#include "report/format.h"
#include "report/rundata.h"

/* Added to both shares of a ratio; see above. 0.5 % is a guess. */
#define COMPARE_SHARE_FLOOR 0.005

struct compare_cell {
	bool known;  /* both runs have the metric at this point */
	double a, b; /* medians over rounds */
	struct stats_ratio ratio;
};

struct compare_row {
	const char *name; /* name of the point in run a */
	int point_a, point_b;
	bool paired;
	struct compare_cell cell[RUN_N_METRICS];
};

struct comparison {
	const struct rundata *a, *b;
	int n;
	struct compare_row *row;
	bool forced;                  /* at least one run is void */
	bool drift;                   /* at least one row is not paired */
	bool multiples;               /* matched by multiples of different capacities */
	int left_out;                 /* points of either run that have no partner */
	int count[STATS_TOO_FEW + 1]; /* cells by verdict */
};

/**
 * Compare `b` to the baseline `a`. With `force`, void runs are compared, too. Returns 0,
 * WEIR_ENOMEM, or WEIR_EINVAL if the runs cannot be compared (a void run, open and closed loop,
 * different time-outs, classes or rates), with the reason in err->text. `out` points to both runs;
 * the caller frees it with compare_fini.
 */
int compare_runs(const struct rundata *a, const struct rundata *b, bool force,
    struct comparison *out, struct weir_err *err);
void compare_fini(struct comparison *c);

/** Return the point of `b` with the same load as point `i` of `a`, or -1 if there is none. Sets
 * *by_multiple if the loads are equal only as multiples of the capacity of their run. */
int compare_partner(const struct rundata *a, int i, const struct rundata *b, bool *by_multiple);

/** Return whether the metric is a share. Shares are compared in percentage points, other metrics as
 * ratios. */
bool compare_is_share(enum run_metric metric);

/** Write the 95 % interval: "1.10..1.32", for a share "+1.0..+3.2" in percentage points, or "" if
 * there are too few samples. Returns `buf`. */
char *compare_interval(
    const struct compare_cell *cell, enum run_metric metric, char *buf, size_t size);

/** How to format the values of each metric. */
extern format_fn *const compare_format[RUN_N_METRICS];

/** Return the verdict on one ratio: "better", "worse", "within noise", "too few", or "too small"
 * for a difference that is real but irrelevant. */
const char *compare_word(const struct stats_ratio *ratio);

/** Return the overall verdict: "better", "worse", "mixed", "within noise" or "too few". */
const char *compare_verdict(const struct comparison *c);

/** Summarise the comparison in one sentence. Returns `buf`. */
char *compare_sentence(const struct comparison *c, char *buf, size_t size);

/** Return note `i` about this comparison, or NULL after the last one. */
const char *compare_note(const struct comparison *c, int i);

#endif
