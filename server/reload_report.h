/* SPDX-License-Identifier: MIT */
/* Stores the results of reloads: the latest one in full, and the counts of all. May be used by any
 * thread; it has its own lock. */
#ifndef WEIR_SERVER_RELOAD_REPORT_H
#define WEIR_SERVER_RELOAD_REPORT_H

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
	/* whether it was only a preview, and whether a new graph has replaced the old one */
	bool preview, followed;
	const char *by; /* "signal", or the user of the endpoint */
	int rc;
	int64_t took_ns;
	json_t *renewed;   /* from report_renewed */
	json_t *hidden;    /* from report_hide_both; NULL hides every value */
	int n_dropped;     /* overrides and states that the new graph has not taken over */
	char dropped[384]; /* the first one */
};

/** The result of a reload that is not a preview, for a program. */
struct report_result {
	int rc;        /* 0, or a WEIR_E code */
	bool changed;  /* something has changed */
	bool followed; /* a new graph has replaced the old one */
	char text[768];
	struct weir_errs errs;
};

struct report {
	pthread_mutex_t lock;
	pthread_cond_t done;
	/* under the lock */
	struct report_result *result; /* to be filled in by reload `result_id` or later; or NULL */
	uint64_t result_id;
	json_t *last;    /* NULL before the first reload */
	json_t *failure; /* the latest reload that was not a preview, if it failed; else NULL */
	uint64_t done_id;
	struct admin_reload_counts counts;
};

void report_init(struct report *report);
void report_fini(struct report *report);

/** Return an object whose keys are the paths of `spec` with values from ${}, which are not shown.
 *  Returns NULL if out of memory. */
json_t *report_hidden(const struct weir_spec *spec);
/** Return a new object with the paths that are in `before` or in `after`. Neither the old nor the
 *  new value of a secret is then shown. If either is NULL or memory runs out, returns NULL, which
 *  hides everything. */
json_t *report_hide_both(const json_t *before, json_t *after);

/** Return the paths to hide after the reload: those in `own`, and those in `before` whose changes
 * take effect only after a restart. Consumes the reference to `own`. If `before` or `own` is NULL,
 * returns NULL, which hides everything. */
json_t *report_hide_carried(const struct config_diff *diff, const json_t *before, json_t *own);

/** Return the external inputs, such as certificates, that have changed since stages of the running
 *  `graph` read them: [{"stage", "text"}]. `wanted` is the new graph; only inputs that its stages
 *  use are included. Returns a new reference, or NULL if out of memory. */
json_t *report_renewed(const struct weir_graph *graph, const struct weir_graph *wanted);

/** Store what the new graph has not taken over, or would not (weir_graph_dropped). */
void report_dropped(struct outcome *out, struct weir_graph *graph);

/** Write a sentence about the result of a reload to buf[size]. */
void report_summary(const struct outcome *out, const struct config_diff *diff,
    const struct weir_errs *errs, char *buf, size_t size);

/** In all errors, replace the absolute path of the file by the path that the user gave. The file was
 * opened by its absolute path, since the working directory has changed. */
void report_name_as_given(struct weir_errs *errs, const char *folder);

/** Store, log and count the result of a reload. */
void report_order(struct report *report, const struct outcome *out, const struct config_diff *diff,
    const struct weir_errs *errs);

/** Return the body of /api/v1/reload, to be freed by the caller; NULL if out of memory. `draining`
 *  is the number of replaced graphs that have not ended. */
char *report_json(struct report *report, int draining);

/** Prepare to wait: the next reload with the number `id` or a greater one fills in *result. */
void report_expect(struct report *report, uint64_t id, struct report_result *result);

/** Wait until the expected result has been filled in. */
void report_await(struct report *report);

void report_counts(struct report *report, struct admin_reload_counts *counts);

#endif
