/* SPDX-License-Identifier: MIT */
/*
 * Rows by workload, policy and load: medians and ranges over rounds, and what the targets of the evaluation
 * protocol say to them. Pure functions over plain data.
 */
#ifndef WEIR_REPORT_OVERLOAD_POINTS_H
#define WEIR_REPORT_OVERLOAD_POINTS_H

#include "report/format.h"
#include "report/overload/rows.h"

struct over_range {
	int n; /* rounds that know it; 0: the others are NAN */
	double mid, low, high;
};

/** One load of one policy. */
struct over_point {
	const struct over_row
	    *first; /* names the workload, policy and load; of valid runs the first, if any */
	int rounds, voids; /* rounds that count; and that do not */
	struct over_range of[OVER_N_METRICS];
};

struct over_points {
	int n;
	struct over_point *point; /* by appearance of workload and policy, ascending by load */
};

/** Group rows. Void ones count only where a point has no others. 0 or WEIR_ENOMEM; over_points_fini frees. `out`
 *  refers to `rows`. */
int over_points_of(const struct over_rows *rows, struct over_points *out);
void over_points_fini(struct over_points *p);

/** The point, or NULL. */
const struct over_point *over_point_find(const struct over_points *p, const char *where,
    const char *workload, const char *policy, double load);

/** Texts of one kind in the order of appearance, each once. */
#define OVER_NAMES_MAX 32
struct over_names {
	int n;
	const char *name[OVER_NAMES_MAX];
};

/** Workloads (W1, W2, W10: by number) and policies (weir first) that `where` has. */
struct over_names over_workloads(const struct over_points *p, const char *where);
struct over_names over_policies(const struct over_points *p, const char *where);

/* ---- targets ---- */

struct over_target {
	const char *name;
	enum over_metric metric;
	const char *workloads; /* " W1 W2 ", NULL: all */
	double load_from, load_to;
	double limit;     /* worst value that is good enough */
	double limit_slo; /* > 0: the limit is that part of the objective if it is more */
	bool worst_round; /* the worst round counts, not the median */
};

extern const struct over_target over_targets[];
extern const int over_n_targets;

/** How a policy stands to a target: its worst point. Points of void runs alone do not count. */
struct over_standing {
	bool known, met;
	double value, limit;
	const struct over_point *worst;
};
struct over_standing over_judge(const struct over_points *p, const struct over_target *t,
    const char *where, const char *policy);

/** Is more better? What tables call it; how its values are printed. */
extern const bool over_more_is_better[OVER_N_METRICS];
extern const char *const over_heading[OVER_N_METRICS];
extern format_fn *const over_print[OVER_N_METRICS];

format_fn over_print_2;     /* "0.98" */
format_fn over_print_3;     /* "0.983" */
format_fn over_print_share; /* "0.03 %", with as many digits as matter near 0 and 1 */
format_fn over_print_time;  /* as format_time, "never" */
format_fn over_print_load;  /* "2x" */

#endif
