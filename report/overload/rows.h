/* SPDX-License-Identifier: MIT */
/*
 * The rows of an overload evaluation. They are read from a file with one JSON object per line, as
 * written by bench/overload (on the server) and overload_sim --json (in virtual time).
 *
 * {"row": "about", "where", "command", "machine", "version"?, "note"?} origin of the following rows
 * {"row": "run", ...} one run, with the members
 *
 *   where        "sim" or "server"
 *   workload     "W1" ..
 *   what         description of the workload
 *   policy       name of the admission policy
 *   load         multiple of the capacity
 *   round        1, 2 ..
 *   void         if true, the generator was late and the run does not count (optional)
 *   slo_s, capacity_per_s, for_s     objective, capacity, length of the measurement
 *   goodput      responses in time per second over the capacity; only those during the spike or
 *                fault, if there is one
 *   p99          of the response time of requests that were not refused, over the objective
 *   refused      share of the offered requests, 0..1
 *   wasted       share of the handlers' time, 0..1, spent on requests whose client had given up. In
 *                "sim", requests whose service times alone exceed their deadline are not counted.
 *   classes      [{"name", "offered", "good"}], the highest first
 *   optional or null:
 *   jain         Jain's index
 *   reject_cpu_s CPU seconds of the I/O threads per answered request
 *   control_cpu  CPU of the control thread, as a fraction of a core
 *   unaffected   goodput of the route that the fault or the narrow stage should not affect, divided
 *                by the goodput of that route without the fault or the narrow stage
 *   trouble      [from, to] of a spike or a fault, in seconds of the run (optional)
 *   series       {"bin_s", "offered": [..], "good": [..]} in parts of the capacity, from 0 s on
 *                (optional)
 *   threads      [[second, threads], ..] of the pool, where they change (optional)
 *
 * Other members are ignored. Metrics that depend on the series are computed here (derive.c).
 */
#ifndef WEIR_REPORT_OVERLOAD_ROWS_H
#define WEIR_REPORT_OVERLOAD_ROWS_H

#include <stdbool.h>

#include <weir/error.h>

/* id, member of a row ("" if derived), name in tables, whether more is better, and how to print
 * it */
#define OVER_METRICS(X)                                                                            \
	X(GOODPUT, "goodput", "goodput / capacity", 1, over_print_2)                               \
	X(P99, "p99", "p99 / objective", 0, over_print_2)                                          \
	X(REFUSED, "refused", "refused", 0, over_print_share)                                      \
	X(WASTED, "wasted", "wasted work", 0, over_print_share)                                    \
	X(TOP, "", "success of the highest class", 1, over_print_share)                            \
	X(GUARANTEE, "", "lowest share / guarantee", 1, over_print_2)                              \
	X(REJECT, "reject_cpu_s", "CPU of a refusal", 0, over_print_time)                          \
	X(CONTROL, "control_cpu", "CPU of the controllers", 0, over_print_share)                   \
	X(JAIN, "jain", "Jain's index", 1, over_print_3)                                           \
	X(UNAFFECTED, "unaffected", "unaffected route", 1, over_print_3)                           \
	X(CONVERGE, "", "converged after", 0, over_print_time)                                     \
	X(RECOVER, "", "recovered after", 0, over_print_time)                                      \
	X(AFTER, "", "success 5 s later / before", 1, over_print_3)                                \
	X(SETTLE, "", "pool settled after", 0, over_print_time)                                    \
	X(REVERSALS, "", "reversals per minute", 0, over_print_2)                                  \
	X(OF_BEST, "", "goodput / that of a static pool", 1, over_print_2)

enum over_metric {
#define OVER_ENUM(id, word, heading, more, print) OVER_##id,
	OVER_METRICS(OVER_ENUM)
#undef OVER_ENUM
	    OVER_N_METRICS
};

#define OVER_CLASSES_MAX 8
#define OVER_ABOUTS_MAX  8

struct over_class {
	char name[32];
	double offered, good;
};

struct over_row {
	char where[16], workload[16], what[96], policy[32];
	double load;
	int round;
	bool is_void;
	double slo_s, capacity_per_s, for_s;
	double value[OVER_N_METRICS]; /* NAN if unknown, INFINITY if it never happened */
	int n_classes;
	struct over_class class[OVER_CLASSES_MAX];
	double from_s, to_s; /* spike or fault; NAN if there is none */
	double bin_s;
	int n_bins;
	double *offered, *good; /* [n_bins], one block for both, freed through `offered` */
	int n_threads;
	/* [n_threads], one block for both, freed through `threads_s` */
	double *threads_s, *threads;
};

struct over_about {
	char where[16], command[512], machine[160], version[160], note[256];
};

struct over_rows {
	int n, n_abouts;
	struct over_row *row;
	struct over_about about[OVER_ABOUTS_MAX];
};

/** Add the rows of the file `path` to `rows`, which must be zero before the first call. Returns 0,
 * WEIR_ENOMEM, WEIR_ESYS, or WEIR_EINVAL with file, line and member in err->text. After an error,
 * `rows` still has the rows that precede it and must be freed. */
int over_rows_read(const char *path, struct over_rows *rows, struct weir_err *err);
void over_rows_fini(struct over_rows *rows);

/** Compute the derived metrics of a row from its other members (derive.c). Pure. */
void over_derive(struct over_row *r);

#endif
