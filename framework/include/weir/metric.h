/* SPDX-License-Identifier: MIT */
/*
 * Metrics of a stage type: one row each, counted per thread, summed by readers (rules 33, 39, 41).
 *
 * The framework already counts what every stage has (events in and out, shed, waits, service);
 * rows are for what only this stage knows: cache hits, bytes read.
 */
#ifndef WEIR_METRIC_H
#define WEIR_METRIC_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>

enum weir_metric_kind {
	WEIR_METRIC_COUNTER, /* only grows; its name ends in _total */
	WEIR_METRIC_GAUGE,   /* goes up and down; every thread adds its own ups and downs */
	/** A counter of what a source turned away in front of the graph over a limit of its own, so that
	 *  no event was made and the framework shed nothing. Told as shed wherever an operator looks; its
	 *  help is what is said there ("connections refused over max_per_address"). What clients do wrong
	 *  is no such thing. */
	WEIR_METRIC_TURNED_AWAY,
};

/** Rows a stage type may have. */
#define WEIR_METRICS_MAX 64

struct weir_metric {
	const char *name; /* as "cache_hits_total"; printed as weir_<name>; NULL ends the table */
	enum weir_metric_kind kind;
	const char *unit; /* "events", "bytes", "seconds" */
	const char *help; /* one sentence, no full stop */
};

/** Does the row only grow? Any thread. */
static inline bool weir_metric_counts(const struct weir_metric *m)
{
	return m->kind != WEIR_METRIC_GAUGE;
}

struct weir_stage;

/**
 * Add `n` to metric `row` (index into the ops table) of `st`. From a thread of the graph (handler,
 * I/O, attached), the stage's own or one that runs its callbacks. No lock, about 2 ns.
 */
WEIR_API void weir_count(struct weir_stage *st, int row, int64_t n);

/* ---- histograms of durations: log-linear over the R20 series, shared by all of weir ---- */

/**
 * Buckets per decade 20 (Renard series, 11 to 14.3 % wide, so the middle is <= 7.2 % off), from 1
 * us to 100 s, one below and one above. The bounds contain 1, 2 and 5 of every decade, so the
 * Prometheus buckets of the contract are exact sums.
 */
#define WEIR_HIST_BUCKETS 162

struct weir_hist {
	uint64_t count[WEIR_HIST_BUCKETS];
	uint64_t sum_ns;
};

/** Bucket of a duration; negative counts as 0. About 3 ns. */
WEIR_API int weir_hist_bucket(int64_t ns);

/** Upper bound of bucket `b` in ns, INT64_MAX for the last. A value equal to it is inside. */
WEIR_API int64_t weir_hist_upper_ns(int b);

/** Number of values. */
WEIR_API uint64_t weir_hist_total(const struct weir_hist *h);

/** The value at quantile `q` in 0..1 in ns (upper bound of its bucket), 0 when empty. */
WEIR_API int64_t weir_hist_quantile_ns(const struct weir_hist *h, double q);

/** `into` += `from`. */
WEIR_API void weir_hist_add(struct weir_hist *into, const struct weir_hist *from);

#endif
