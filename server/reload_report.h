/* SPDX-License-Identifier: MIT */
/* Keeps the results of reloads: the newest one in full, and the counts of all. Used by any thread;
 * it has its own lock. */
#ifndef WEIR_CLI_RELOAD_REPORT_H
#define WEIR_CLI_RELOAD_REPORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <weir/error.h>
#include <weir/graph.h>
#include <weir/spec.h>

#include "admin/admin.h"
#include "diff.h"

/** One reload request and its result. */
struct outcome {
	uint64_t id;
	/* whether it was only a preview, and whether a new graph replaced the old one */
	bool preview, followed;
	const char *by; /* "signal", or the user of the endpoint */
	int rc;
	int64_t took_ns;
	json_t *renewed; /* from report_renewed */
	json_t *hidden;  /* from report_hide_both; NULL hides every value */
};

struct report {
	pthread_mutex_t lock;
	/* under the lock */
	json_t *last;    /* NULL before the first reload */
	json_t *failure; /* the newest reload that was not a preview, if it failed; else NULL */
	uint64_t done_id;
	struct admin_reload_counts counts;
};

void report_init(struct report *report);
void report_fini(struct report *report);

/** Return the paths of `spec` whose values come from ${} and are not shown: an object with them as
 *  keys. NULL if out of memory. */
json_t *report_hidden(const struct weir_spec *spec);
/** Return the paths in either object, as a new object, so that neither the old nor the new value of
 *  a secret is shown. Returns NULL, which hides everything, if either is NULL or memory is
 *  short. */
json_t *report_hide_both(const json_t *before, json_t *after);

/** Return the new external inputs (certificates, ...) that stages of the running `graph` would take
 *  from `wanted`, which has read them: [{"stage", "text"}]. The result is a new reference, NULL if
 *  out of memory. */
json_t *report_renewed(const struct weir_graph *graph, const struct weir_graph *wanted);

/** Write one sentence about the result of a reload to buf[size]. */
void report_summary(const struct outcome *out, const struct config_diff *diff,
    const struct weir_errs *errs, char *buf, size_t size);

/** Store, log and count the result of a reload. `diff` and `errs` are only read. */
void report_order(struct report *report, const struct outcome *out, const struct config_diff *diff,
    const struct weir_errs *errs);

/** The body of /api/v1/reload, malloc'ed; NULL if out of memory. `draining` is the number of graphs
 *  that have not ended. */
char *report_json(struct report *report, int draining);

void report_counts(struct report *report, struct admin_reload_counts *counts);

#endif
