/* SPDX-License-Identifier: MIT */
/* What reloads have come to: the newest order in full, counts of all. Any thread, own lock. */
#ifndef WEIR_CLI_RELOAD_REPORT_H
#define WEIR_CLI_RELOAD_REPORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <weir/error.h>
#include <weir/spec.h>

#include "admin.h"
#include "diff.h"

/** One order and its end. */
struct outcome {
	uint64_t id;
	bool preview, followed; /* only looked at; a new graph followed */
	const char *by;         /* "signal", "operator" */
	int rc;
	int64_t took_ns;
	json_t *hidden; /* paths whose values come from ${}: an object with them as keys */
};

struct report {
	pthread_mutex_t lock;
	/* under the lock */
	json_t *last; /* NULL: none yet */
	uint64_t done_id;
	struct admin_reload_counts counts;
};

void report_init(struct report *report);
void report_fini(struct report *report);

/** Values that files of `spec` take from the environment are not told. */
void report_hide(struct outcome *out, const struct weir_spec *spec);
void report_hide_free(struct outcome *out);

/** Keep, log and count what became of an order. `diff` and `errs` are only read. */
void report_order(struct report *report, const struct outcome *out, const struct config_diff *diff,
    const struct weir_errs *errs);

/** The body of /api/v1/reload, malloc'ed; NULL without memory. `draining` graphs have not ended yet. */
char *report_json(struct report *report, int draining);

void report_counts(struct report *report, struct admin_reload_counts *counts);

#endif
