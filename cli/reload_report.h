/* SPDX-License-Identifier: MIT */
/* What reloads have come to: the newest order in full, counts of all. Any thread, own lock. */
#ifndef WEIR_CLI_RELOAD_REPORT_H
#define WEIR_CLI_RELOAD_REPORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <weir/error.h>
#include <weir/graph.h>
#include <weir/spec.h>

#include "admin.h"
#include "diff.h"

/** One order and its end. */
struct outcome {
	uint64_t id;
	bool preview, followed; /* only looked at; a new graph followed */
	const char *by;         /* "signal", or who asked the endpoint */
	int rc;
	int64_t took_ns;
	json_t *renewed; /* report_renewed's */
	json_t *hidden;  /* report_hide_both; NULL: every value */
};

struct report {
	pthread_mutex_t lock;
	/* under the lock */
	json_t *last;    /* NULL: none yet */
	json_t *failure; /* the newest one that was not only looked at, when it failed; else NULL */
	uint64_t done_id;
	struct admin_reload_counts counts;
};

void report_init(struct report *report);
void report_fini(struct report *report);

/** The paths of `spec` whose values come from ${}, which are not told: an object with them as keys. NULL without memory. */
json_t *report_hidden(const struct weir_spec *spec);
/** Those of both, a new object: what a secret was is no more told than what it becomes. NULL, which hides all, when one
 *  is, or without memory. */
json_t *report_hide_both(const json_t *before, json_t *after);

/** What stages of the running `graph` would take from outside that is new, as `wanted` has read it: [{"stage", "text"}]. A new
 *  reference, NULL without memory. */
json_t *report_renewed(const struct weir_graph *graph, const struct weir_graph *wanted);

/** One sentence of what became of an order, into buf[size]. */
void report_summary(const struct outcome *out, const struct config_diff *diff,
    const struct weir_errs *errs, char *buf, size_t size);

/** Keep, log and count what became of an order. `diff` and `errs` are only read. */
void report_order(struct report *report, const struct outcome *out, const struct config_diff *diff,
    const struct weir_errs *errs);

/** The body of /api/v1/reload, malloc'ed; NULL without memory. `draining` graphs have not ended yet. */
char *report_json(struct report *report, int draining);

void report_counts(struct report *report, struct admin_reload_counts *counts);

#endif
