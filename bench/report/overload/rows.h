/* SPDX-License-Identifier: MIT */
/*
 * The rows of an overload evaluation: a file of JSON objects, one a line, as bench/overload (on the server)
 * and overload_sim --json (in virtual time) write them.
 *
 * {"row": "about", "where", "command", "machine", "version"?, "note"?}   where the rows behind it come from
 * {"row": "run", ...}                                                    one run, with the members
 *
 *   where        "sim" or "server"
 *   workload     "W1" ..; what: it in words; policy; load: times the capacity; round: 1, 2 ..
 *   void         true: the generator was late, the run must not count (optional)
 *   slo_s, capacity_per_s, for_s     objective, capacity, how long was measured
 *   goodput      answers in time per second over the capacity; of a spike or a fault, while it lasts
 *   p99          of the response of what was not refused, over the objective
 *   refused, wasted    shares, 0..1: of what was offered; of the handlers' time, for nobody
 *   classes      [{"name", "offered", "good"}], the highest first
 *   optional or null: jain, reject_cpu_s (CPU seconds of the server per refusal), control_cpu (what the control thread
 *   took, in parts of a core), unaffected (what the route that the trouble should not touch gets done, over that without
 *   trouble)
 *   trouble      [from, to], seconds of the run: a spike or a fault (optional)
 *   series       {"bin_s", "offered": [..], "good": [..]} in parts of the capacity, from 0 s on (optional)
 *   threads      [[second, threads], ..] of the pool, where they change (optional)
 *
 * Other members are ignored. What follows from the series is reckoned here (derive.c).
 */
#ifndef WEIR_REPORT_OVERLOAD_ROWS_H
#define WEIR_REPORT_OVERLOAD_ROWS_H

#include <stdbool.h>

#include <weir/error.h>

/* id, member of a row ("": derived), name in tables, more is better, print */
#define OVER_METRICS(X)                                                                            \
	X(GOODPUT, "goodput", "goodput / capacity", 1, over_print_2)                               \
	X(P99, "p99", "p99 / objective", 0, over_print_2)                                          \
	X(REFUSED, "refused", "refused", 0, over_print_share)                                      \
	X(WASTED, "wasted", "wasted work", 0, over_print_share)                                    \
	X(TOP, "", "success of the highest class", 1, over_print_share)                            \
	X(GUARANTEE, "", "least share / guarantee", 1, over_print_2)                               \
	X(REJECT, "reject_cpu_s", "CPU of a refusal", 0, over_print_time)                          \
	X(CONTROL, "control_cpu", "CPU of the controllers", 0, over_print_share)                   \
	X(JAIN, "jain", "Jain's index", 1, over_print_3)                                           \
	X(UNAFFECTED, "unaffected", "unaffected route", 1, over_print_3)                           \
	X(CONVERGE, "", "converged after", 0, over_print_time)                                     \
	X(RECOVER, "", "recovered after", 0, over_print_time)                                      \
	X(AFTER, "", "success 5 s after, over that before", 1, over_print_3)                       \
	X(SETTLE, "", "pool settled after", 0, over_print_time)                                    \
	X(REVERSALS, "", "reversals a minute", 0, over_print_2)                                    \
	X(OF_BEST, "", "of a static pool's goodput", 1, over_print_2)

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
	double value[OVER_N_METRICS]; /* NAN: not known; INFINITY: a time that never came */
	int n_classes;
	struct over_class class[OVER_CLASSES_MAX];
	double from_s, to_s; /* the trouble; NAN: none */
	double bin_s;
	int n_bins;
	double *offered, *good; /* [n_bins], one block with what follows; freed by `offered` */
	int n_threads;
	double *threads_s, *threads; /* [n_threads], one block, freed by `threads_s` */
};

struct over_about {
	char where[16], command[512], machine[160], version[160], note[256];
};

struct over_rows {
	int n, n_abouts;
	struct over_row *row;
	struct over_about about[OVER_ABOUTS_MAX];
};

/** Add the rows of the file `path` to `rows` (zero at first). 0; WEIR_ESYS, or WEIR_EINVAL with file, line and
 *  the member in err->text; WEIR_ENOMEM. After an error `rows` holds what was added before. */
int over_rows_read(const char *path, struct over_rows *rows, struct weir_err *err);
void over_rows_fini(struct over_rows *rows);

/** Reckon the derived metrics of a row from its other members (derive.c). Pure. */
void over_derive(struct over_row *r);

#endif
