/* SPDX-License-Identifier: MIT */
/*
 * The last hours of every stage: two rings of samples, in fixed memory.
 *
 *   HISTORY_1S    one sample a second, 15 minutes
 *   HISTORY_10S   one each 10 seconds, 6 hours
 *
 * A slot holds one step of Unix time and is found by the label of the step, which is the end of the
 * step divided by its length. A step without a sample (the server did not run, the host slept, the
 * stage did not exist) is a gap. When the clock is set back, labels are written a second time, and
 * old samples with labels later than the newest are not shown. Setting the clock forward leaves a
 * gap.
 *
 * Series are identified by stage name, so a graph may gain and lose stages: removed ones are kept
 * until all their samples are too old. Numbers have 16 bits (compact.h: 0.05 %). A stage with 4
 * classes takes 197 KB, 30 of them 5.9 MB; at most HISTORY_SERIES_MAX stages are kept. Pure: no
 * clock, no sockets, no files. Used by one thread.
 */
#ifndef WEIR_ADMIN_HISTORY_H
#define WEIR_ADMIN_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/graph.h>

#include "compact.h"
#include "admin/metrics/sample.h"

enum history_ring { HISTORY_1S, HISTORY_10S, HISTORY_RINGS };

#define HISTORY_SLOTS_1S  900
#define HISTORY_SLOTS_10S 2160

/** Maximum number of stages with a history, removed ones included; further stages are not recorded.
 *  The number is a guess; with 4 classes they take 50 MB. */
#define HISTORY_SERIES_MAX WEIR_STAGES_MAX

/** Maximum number of values of one stage in one slot. */
#define HISTORY_RECORD_MAX (SAMPLE_FIELDS + WEIR_CLASSES_MAX * SAMPLE_CLASS_FIELDS)

struct history;

/** Create an empty history. Returns NULL if out of memory. Series are allocated when their stages
 *  appear. */
struct history *history_new(void);

/** NULL is allowed. */
void history_free(struct history *history);

/**
 * Record a snapshot. Call it at least once a second, just after the start of the second. Returns
 * the rings that got samples as bits (1 << HISTORY_1S), 0 when neither had a new step. If memory
 * for a new stage is short, that stage has gaps. Takes 0.1 ms for 30 stages with 4 classes
 * (bench/micro_history.c).
 */
unsigned history_feed(struct history *history, const struct weir_graph_view *view);

/** The samples that the last feed of `ring` used, one per stage of its view; NULL before the
 *  first. */
const struct sample *history_samples(const struct history *history, enum history_ring ring);

/** Step length of `ring` in seconds, and the number of steps kept. */
int history_step_s(enum history_ring ring);
int history_slots(enum history_ring ring);

/** Label of the newest step, INT64_MIN if there is none. */
int64_t history_newest(const struct history *history, enum history_ring ring);

/** Numbers and names of series and classes. Names are valid until the next feed. */
int history_n_series(const struct history *history);
const char *history_name(const struct history *history, int series);
int history_n_classes(const struct history *history);
const char *history_class_name(const struct history *history, int class);

/** Return the series of stage `name`, -1 if there is none. */
int history_find(const struct history *history, const char *name);

/** Copy field `field` of steps `first`, `first` + 1, ... to out[n]; gaps are COMPACT_NONE. `field`
 *  is a sample_field, or SAMPLE_FIELDS + class * SAMPLE_CLASS_FIELDS + a sample_class_field. */
void history_column(const struct history *history, enum history_ring ring, int series, int field,
    int64_t first, int n, uint16_t *out);

/** Memory in use, in bytes, without the allocator's overhead. */
size_t history_bytes(const struct history *history);

/* ---- for history_file.c ---- */

/** Changes whenever series or classes do. */
uint64_t history_shape(const struct history *history);

/** Number of values in a record, which holds all fields of a series in one slot. */
int history_record(const struct history *history);

/** The record of `series` at `label`, with gaps for missing values. */
void history_get(const struct history *history, enum history_ring ring, int64_t label, int series,
    uint16_t *record);

/** Set the classes to `name[n]`; existing samples move with the name of their class. 0 or
 *  WEIR_ENOMEM. */
int history_set_classes(struct history *history, const char *const *name, int n);

/** Return the series of `name`, created if missing, or WEIR_ENOMEM, or WEIR_EBUSY if there are too
 *  many. */
int history_add(struct history *history, const char *name);

/** Store a record; `label` becomes the newest if it is later. */
void history_put(struct history *history, enum history_ring ring, int64_t label, int series,
    const uint16_t *record);

#endif
