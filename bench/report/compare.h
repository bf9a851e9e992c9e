/* SPDX-License-Identifier: MIT */
/*
 * Was run B better than run A? Load point by load point, metric by metric, with 95 % intervals.
 *
 * Points are matched by rate, else by multiple of capacity (of a closed loop: by name). Where the
 * rounds of both runs alternated in time they are compared in pairs, which cancels the drift of the
 * machine. Else single seconds of the two runs are resampled (rounds, where seconds do not have the
 * metric), and a note says that the machine may have changed in between.
 *
 * Shares may be zero, of which there is no ratio: both sides get COMPARE_SHARE_FLOOR added, below which
 * a share interests nobody. Pure functions.
 */
#ifndef WEIR_REPORT_COMPARE_H
#define WEIR_REPORT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/error.h>

#include "load/stats.h"
#include "report/format.h"
#include "report/rundata.h"

/* Half a percent. Guess. */
#define COMPARE_SHARE_FLOOR 0.005

struct compare_cell {
	bool known;  /* both runs have the metric here */
	double a, b; /* medians over rounds */
	struct stats_ratio ratio;
};

struct compare_row {
	const char *name; /* of the point in run a */
	int point_a, point_b;
	bool paired;
	struct compare_cell cell[RUN_N_METRICS];
};

struct comparison {
	const struct rundata *a, *b;
	int n;
	struct compare_row *row;
	bool forced;                  /* a run is void */
	bool drift;                   /* some row is not paired */
	bool multiples;               /* matched by multiples of different capacities */
	int left_out;                 /* points of either run without a partner */
	int count[STATS_TOO_FEW + 1]; /* cells by verdict */
};

/**
 * Compare `b` to the baseline `a`. `force`: void runs, too. 0, or WEIR_EINVAL with the sentence in
 * err->text that names what differs (open and closed loop, classes, rates, a void run), WEIR_ENOMEM.
 * `out` refers to both runs and is the caller's to free.
 */
int compare_runs(const struct rundata *a, const struct rundata *b, bool force,
    struct comparison *out, struct weir_err *err);
void compare_fini(struct comparison *c);

/** The point of `b` that offers what point `i` of `a` does, -1: none. Sets *by_multiple when it does so
 *  only in terms of its own capacity. */
int compare_partner(const struct rundata *a, int i, const struct rundata *b, bool *by_multiple);

/** Shares are told in points, everything else as a ratio. */
bool compare_is_share(enum run_metric metric);

/** The 95 % interval, "1.10..1.32", of a share "+1.0..+3.2" points; "" when there are too few samples.
 *  Returns `buf`. */
char *compare_interval(
    const struct compare_cell *cell, enum run_metric metric, char *buf, size_t size);

/** How the values of each metric are printed. */
extern format_fn *const compare_format[RUN_N_METRICS];

/** "better", "worse", "within noise", "too few"; "too small" of a difference that is real and that nobody
 *  would name. */
const char *compare_word(const struct stats_ratio *ratio);

/** The whole in one word: "better", "worse", "mixed", "within noise", "too few". */
const char *compare_verdict(const struct comparison *c);

/** One sentence for people, without a full stop at places where none belongs. Returns `buf`. */
char *compare_sentence(const struct comparison *c, char *buf, size_t size);

/** The `i`-th thing a reader must know about this comparison, NULL behind the last. */
const char *compare_note(const struct comparison *c, int i);

#endif
