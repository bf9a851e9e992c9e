/* SPDX-License-Identifier: MIT */
/*
 * Metrics of a stage type: a table with one row per metric. Each thread has its own counters, and
 * readers sum them.
 *
 * The framework already counts what all stages have in common (events in and out, shed events, wait
 * and service times). Rows are for what only the stage knows, such as cache hits or bytes read.
 */
#ifndef WEIR_METRIC_H
#define WEIR_METRIC_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/annotate.h>

WEIR_C_BEGIN

enum weir_metric_kind {
	WEIR_METRIC_COUNTER, /* never decreases; its name ends in _total */
	WEIR_METRIC_GAUGE,   /* goes up and down; every thread adds its own changes */
	/**
	 * Counts requests or connections that a source refused because of one of its own limits,
	 * before it created an event that the framework could have shed. Pages and reports show the
	 * count as shed, described by the row's help ("connections refused for exceeding
	 * max_per_address"). Client errors do not belong here.
	 */
	WEIR_METRIC_TURNED_AWAY,
};

/** Largest number of metrics of a stage type. */
#define WEIR_METRICS_MAX 64

struct weir_metric {
	/* such as "cache_hits_total"; printed as weir_<name>; NULL ends the table */
	const char *name;
	enum weir_metric_kind kind;
	const char *unit; /* "events", "bytes", "seconds"; not NULL */
	const char *help; /* one sentence, no full stop */
};

/** Whether the metric never decreases. Any thread. */
static inline bool weir_metric_counts(const struct weir_metric *m)
{
	return m->kind != WEIR_METRIC_GAUGE;
}

struct weir_stage;

/**
 * Add `n` to metric `row` (its index in ops->metrics) of `st`. Only for threads of the graph
 * (handler, I/O, attached): the stage's own threads, or a thread that runs its callbacks. Takes no
 * lock and costs about 2 ns. A call from any other thread is correct, but takes a lock of the graph.
 */
WEIR_API void weir_count(struct weir_stage *st, int row, int64_t n);

/* ---- histograms of durations: bucket bounds of the R20 series, shared by all of weir ---- */

/**
 * Number of buckets: 20 per decade from 1 us to 100 s, plus one below and one above. The bounds are
 * a Renard series: each bucket is 11 to 14.3 % wide, so no value in it differs from its middle by
 * more than 7.2 %. The bounds include 1, 2 and 5 times each power of ten, so the larger buckets
 * exported to Prometheus are exact sums of these.
 */
#define WEIR_HIST_BUCKETS 162

struct weir_hist {
	uint64_t count[WEIR_HIST_BUCKETS];
	uint64_t sum_ns;
};

/** The bucket of a duration; a negative duration counts as 0. The call costs about 3 ns. */
WEIR_API int weir_hist_bucket(int64_t ns);

/** Inclusive upper bound of bucket `b` in ns, INT64_MAX for the last. */
WEIR_API int64_t weir_hist_upper_ns(int b);

/** Number of values. */
WEIR_API uint64_t weir_hist_total(const struct weir_hist *h);

/** The value at quantile `q`, 0..1, in ns (the upper bound of its bucket), or 0 if the histogram is
 *  empty. */
WEIR_API int64_t weir_hist_quantile_ns(const struct weir_hist *h, double q);

/** Add the counts of `from` to `into`. */
WEIR_API void weir_hist_add(struct weir_hist *into, const struct weir_hist *from);

WEIR_C_END

#endif
