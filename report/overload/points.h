/* SPDX-License-Identifier: MIT */
/*
 * Groups rows by workload, policy and load, computes medians and ranges over rounds, and compares
 * them to the targets of the evaluation protocol. Pure functions on plain data.
 */
#ifndef WEIR_REPORT_OVERLOAD_POINTS_H
#define WEIR_REPORT_OVERLOAD_POINTS_H

#include "report/format.h"
#include "report/overload/rows.h"

struct over_range {
	int n; /* rounds with a known value; if 0, the other members are NAN */
	double mid, low, high;
};

/** One load of one policy. */
struct over_point {
	/* the first valid run, or a void one if all are void; has workload, policy and load */
	const struct over_row *first;
	int rounds, voids; /* number of valid rounds and of void rounds */
	struct over_range of[OVER_N_METRICS];
};

struct over_points {
	int n;
	struct over_point *point; /* of all workloads and policies, ascending by load */
};

/** Group rows. Void rows are used only if a point has no valid ones. Returns 0 or WEIR_ENOMEM.
 * `out` points into `rows`; free it with over_points_fini. */
int over_points_of(const struct over_rows *rows, struct over_points *out);
void over_points_fini(struct over_points *p);

/** Return the point with these properties, or NULL if there is none. */
const struct over_point *over_point_find(const struct over_points *p, const char *where,
    const char *workload, const char *policy, double load);

/** Maximum number of distinct workloads or policies. */
#define OVER_NAMES_MAX 32
struct over_names {
	int n;
	const char *name[OVER_NAMES_MAX];
};

/** Return the workloads (by number: W1, W2, W10) and the policies (weir first) of `where`. */
struct over_names over_workloads(const struct over_points *p, const char *where);
struct over_names over_policies(const struct over_points *p, const char *where);

/** One workload as the page shows it: the points with this `workload` and this `where` ("sim" or
 * "server"). */
struct over_work {
	const struct over_rows *rows;
	const struct over_points *points;
	const char *where, *workload;
	struct over_names policy;
	double highest; /* highest load with valid runs; 0 if there is none */
};

/** Return whether a row belongs to the workload. */
bool over_is_of(const struct over_work *w, const struct over_row *r);

/** Return whether two rows are rounds of the same point and are either both valid or both void. */
bool over_same_point(const struct over_row *a, const struct over_row *b);

/** Return the point of a policy at `load`, or NULL if there is none. */
const struct over_point *over_at(const struct over_work *w, int policy, double load);

/* ---- targets ---- */

struct over_target {
	const char *name;
	enum over_metric metric;
	const char *workloads; /* " W1 W2 ", NULL for all */
	double load_from, load_to;
	double limit;     /* worst acceptable value */
	double limit_slo; /* if above 0, the limit is at least this multiple of the objective */
	bool worst_round; /* use the worst round instead of the median */
};

extern const struct over_target over_targets[];
extern const int over_n_targets;

/** The result of a policy for a target: the value at its worst point. Points with only void runs
 * are ignored. */
struct over_standing {
	bool known, met;
	double value, limit;
	const struct over_point *worst;
};
struct over_standing over_judge(const struct over_points *p, const struct over_target *t,
    const char *where, const char *policy);

/** Indexed by metric: whether more is better, the heading in tables, and how to format values. */
extern const bool over_more_is_better[OVER_N_METRICS];
extern const char *const over_heading[OVER_N_METRICS];
extern format_fn *const over_print[OVER_N_METRICS];

format_fn over_print_2;     /* "0.98" */
format_fn over_print_3;     /* "0.983" */
format_fn over_print_share; /* "0.03 %", with more digits near 0 and 1 */
format_fn over_print_time;  /* like format_time, but INFINITY is "never" */
format_fn over_print_load;  /* "2x" */

#endif
