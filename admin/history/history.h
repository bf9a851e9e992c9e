/* SPDX-License-Identifier: MIT */
/*
 * Stores the last hours of every stage in two rings of samples with a fixed size.
 *
 *   HISTORY_1S    one sample a second, 15 minutes
 *   HISTORY_10S   one sample each 10 seconds, 6 hours
 *
 * A slot holds one step of Unix time. It is identified by the label of the step: the time at the
 * end of the step divided by the length of a step. A step without a sample (the server did not run,
 * the host slept, the stage did not exist) is a gap. If the clock is set forward, a gap remains. If
 * it is set back, the same labels are written again; samples with labels later than the one written
 * last are not shown.
 *
 * Series are identified by stage name, so stages may be added to and removed from a graph. Removed
 * stages are retained until all their samples are too old. A number takes 16 bits (compact.h). A
 * stage with 4 classes takes 300 KB, and 30 such stages 9 MB; at most HISTORY_SERIES_MAX stages
 * are stored. Pure: no clock, no sockets, no files. Used by one thread.
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
 *  The number is a guess: the history of so many stages with 4 classes takes 77 MB. */
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
 * Record a snapshot. Call it at least once a second, just after the start of the second. Returns a
 * bit mask of the rings that received samples (1 << HISTORY_1S), or 0 if neither had a new step. If
 * there is no memory for a new stage, that stage has gaps. Takes 0.1 ms for 30 stages with 4
 * classes (bench/micro_history.c).
 */
unsigned history_feed(struct history *history, const struct weir_graph_view *view);

/** Return the samples that the last feed of `ring` used, one per stage of its view, or NULL before
 *  the first feed. */
const struct sample *history_samples(const struct history *history, enum history_ring ring);

/** Return the step length of `ring` in seconds, and the number of its slots. */
int history_step_s(enum history_ring ring);
int history_slots(enum history_ring ring);

/** Return the label of the newest step, or INT64_MIN if there is none. */
int64_t history_newest(const struct history *history, enum history_ring ring);

/** Return the number of series or classes, or the name of one. Names are valid until the next
 *  feed. */
int history_n_series(const struct history *history);
const char *history_name(const struct history *history, int series);
int history_n_classes(const struct history *history);
const char *history_class_name(const struct history *history, int class);

/** Return the series of stage `name`, or -1 if there is none. */
int history_find(const struct history *history, const char *name);

/** Copy field `field` of steps `first`, `first` + 1, ... to out[n]; gaps are COMPACT_NONE. `field`
 *  is a sample_field, or SAMPLE_FIELDS + class * SAMPLE_CLASS_FIELDS + a sample_class_field. */
void history_column(const struct history *history, enum history_ring ring, int series, int field,
    int64_t first, int n, uint16_t *out);

/** Return the memory in use, in bytes, without the allocator's overhead. */
size_t history_bytes(const struct history *history);

/* ---- for history_file.c ---- */

/** Return a number that changes whenever the series or classes change. */
uint64_t history_shape(const struct history *history);

/** Return the number of values in a record. A record holds all fields of one series in one slot. */
int history_record(const struct history *history);

/** Copy the record of `series` at `label` to `record`, with gaps for missing values. */
void history_get(const struct history *history, enum history_ring ring, int64_t label, int series,
    uint16_t *record);

/** Set the classes to `name[n]`; existing samples stay with the name of their class. Returns 0 or
 *  WEIR_ENOMEM. */
int history_set_classes(struct history *history, const char *const *name, int n);

/** Return the series of `name`; create it if it is missing. Returns WEIR_ENOMEM, or WEIR_EBUSY if
 *  there are too many series. */
int history_add(struct history *history, const char *name);

/** Store a record; `label` becomes the newest if it is later. */
void history_put(struct history *history, enum history_ring ring, int64_t label, int series,
    const uint16_t *record);

#endif
