/* SPDX-License-Identifier: MIT */
/*
 * Samples: what a stage did between two snapshots, in base units (events per second, seconds).
 *
 * The counters of a view start with the server. A sampler stores the totals of the last view and
 * computes the differences. Stages and classes are identified by name, since a reload may change
 * their order. A new stage has no sample until the next call, and a class whose counters have
 * decreased is counted from zero. Replacing the graph has no effect, since the views of a new graph
 * continue the totals of the previous one.
 *
 * The quantiles of a step are computed from the buckets that grew in that step. Like those of
 * weir_hist they are upper bounds, at most 14.3 % too high; a value of 100 s means 100 s or more.
 * Times are taken from the view. Used by one thread.
 */
#ifndef WEIR_ADMIN_SAMPLE_H
#define WEIR_ADMIN_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/graph.h>

/* Columns: member, name in JSON, whether the field is included in responses without `stage=`.
 * docs/api.md describes the fields. */
#define SAMPLE_FIELD_TABLE(X)                                                                      \
	X(IN, "in", true)                                                                          \
	X(DONE, "done", true)                                                                      \
	X(SHED, "shed", true)                                                                      \
	X(FAILED, "failed", false)                                                                 \
	X(AHEAD, "ahead", false)                                                                   \
	X(QUEUE, "queue", true)                                                                    \
	X(OLDEST, "oldest", false)                                                                 \
	X(WAIT_P50, "wait_p50", false)                                                             \
	X(WAIT_P99, "wait_p99", true)                                                              \
	X(SERVICE_P50, "service_p50", false)                                                       \
	X(SERVICE_P99, "service_p99", false)                                                       \
	X(RESPONSE_P50, "response_p50", false)                                                     \
	X(RESPONSE_P99, "response_p99", true)                                                      \
	X(BUSY, "busy", true)                                                                      \
	X(THREADS, "threads", true)                                                                \
	X(PRESSURE, "pressure", false)                                                             \
	X(DEGRADATION, "degradation", false)

#define SAMPLE_CLASS_FIELD_TABLE(X)                                                                \
	X(IN, "in")                                                                                \
	X(DONE, "done")                                                                            \
	X(SHED, "shed")                                                                            \
	X(WAIT_P99, "wait_p99")                                                                    \
	X(RESPONSE_P99, "response_p99")                                                            \
	X(GOOD, "good")                                                                            \
	X(REFUSED, "refused")                                                                      \
	X(BROKEN, "broken")

enum sample_field {
#define SAMPLE_ENUM(member, name, brief) SAMPLE_##member,
	SAMPLE_FIELD_TABLE(SAMPLE_ENUM)
#undef SAMPLE_ENUM
	    SAMPLE_FIELDS,
};

enum sample_class_field {
#define SAMPLE_ENUM(member, name) SAMPLE_CLASS_##member,
	SAMPLE_CLASS_FIELD_TABLE(SAMPLE_ENUM)
#undef SAMPLE_ENUM
	    SAMPLE_CLASS_FIELDS,
};

/** Names in JSON, in the order of the enums. */
extern const char *const sample_field_name[SAMPLE_FIELDS];
extern const char *const sample_class_field_name[SAMPLE_CLASS_FIELDS];
/** Whether the field is included in responses about all stages. */
extern const bool sample_field_brief[SAMPLE_FIELDS];

struct sample {
	bool known; /* false if the stage is new and has no difference yet */
	/* A quantile is NaN if the step has no events. Response times are those of a source, of
	 * requests that were answered as WEIR_OUTCOME_DONE. GOOD, REFUSED and BROKEN are the rates of
	 * its answers by outcome; NaN if the stage answers no clients. */
	double v[SAMPLE_FIELDS];
	double class_v[WEIR_CLASSES_MAX][SAMPLE_CLASS_FIELDS];
	double shed_by[WEIR_SHED_REASONS]; /* per second */
	/* the part of the shed events that was refused by a drain or stop, per second */
	double ordered[WEIR_CLASSES_MAX];
};

struct sampler;

/** Create a sampler. Returns NULL if out of memory. */
struct sampler *sampler_new(void);

/** NULL is allowed. */
void sampler_free(struct sampler *sampler);

/** Compare `view` with the view of the last call and store its totals; the view is not needed
 *  afterwards. Returns 0, or WEIR_ENOMEM with nothing changed. Takes about 1 us per stage and
 *  class. */
int sampler_take(struct sampler *sampler, const struct weir_graph_view *view);

/** Return the samples of the last call, one per stage of its view, in that order; valid until the
 *  next call. */
const struct sample *sampler_samples(const struct sampler *sampler);

/** Return the memory in use, in bytes. */
size_t sampler_bytes(const struct sampler *sampler);

#endif
