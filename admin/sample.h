/* SPDX-License-Identifier: MIT */
/*
 * Samples: what a stage did between two snapshots, in base units (events per second, seconds).
 *
 * Views count since the start; a sampler keeps what the last one said and takes differences. The
 * quantiles of a step come from the buckets that grew in it, so they are upper bounds as those of
 * weir_hist are (at most 14.3 % too high); 100 s stands for 100 s and more. Stages are told apart by
 * name: one that was not there before is not known until the next call, and one whose counters went
 * back (it was made anew) counts from zero. No sockets, no clock of its own; one thread.
 */
#ifndef WEIR_ADMIN_SAMPLE_H
#define WEIR_ADMIN_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/graph.h>

/* Member, name in JSON, kept for answers without `stage=`. docs/api.md describes them. */
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
	X(BUSY, "busy", true)                                                                      \
	X(THREADS, "threads", true)                                                                \
	X(PRESSURE, "pressure", false)                                                             \
	X(DEGRADATION, "degradation", false)

#define SAMPLE_CLASS_FIELD_TABLE(X)                                                                \
	X(IN, "in")                                                                                \
	X(DONE, "done")                                                                            \
	X(SHED, "shed")                                                                            \
	X(WAIT_P99, "wait_p99")

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
/** Is the field in answers about all stages? */
extern const bool sample_field_brief[SAMPLE_FIELDS];

struct sample {
	bool known;              /* false: first seen, there is no difference yet */
	double v[SAMPLE_FIELDS]; /* NaN: no events in the step */
	double class_v[WEIR_CLASSES_MAX][SAMPLE_CLASS_FIELDS];
	double shed_by[WEIR_SHED_REASONS]; /* per second */
};

struct sampler;

/** NULL: no memory. */
struct sampler *sampler_new(void);

/** NULL is allowed. */
void sampler_free(struct sampler *sampler);

/** Compare `view` with that of the last call and keep what it says; the view is not needed
 *  afterwards. 0, or WEIR_ENOMEM with what was kept unchanged. About 1 us per stage and class. */
int sampler_take(struct sampler *sampler, const struct weir_graph_view *view);

/** The samples of the last call, one per stage of its view, in that order; until the next call. */
const struct sample *sampler_samples(const struct sampler *sampler);

/** Memory it holds, in bytes. */
size_t sampler_bytes(const struct sampler *sampler);

#endif
