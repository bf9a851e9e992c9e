/* SPDX-License-Identifier: MIT */
/*
 * The last hours of every stage: two rings of samples, in fixed memory.
 *
 *   HISTORY_1S    one sample a second, 15 minutes
 *   HISTORY_10S   one each 10 seconds, 6 hours
 *
 * A slot belongs to one step of Unix time and is found by it; its label is the step's end divided
 * by its length. A step without a sample (the server did not run, the machine slept, the stage was
 * not there) is a gap. After the clock was set back, labels are written again and what is later
 * than the newest is not shown; set forward, there is a gap.
 *
 * Series go by stage name, so a graph may gain and lose stages: those that are gone are kept until
 * all their samples are too old. Numbers have 16 bits (compact.h: 0.05 %). A stage with 4 classes
 * takes 197 KB, 30 of them 5.9 MB; at most HISTORY_SERIES_MAX stages are kept. Pure: no clock, no
 * sockets, no files. One thread.
 */
#ifndef WEIR_ADMIN_HISTORY_H
#define WEIR_ADMIN_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/graph.h>

#include "compact.h"
#include "sample.h"

enum history_ring { HISTORY_1S, HISTORY_10S, HISTORY_RINGS };

#define HISTORY_SLOTS_1S  900
#define HISTORY_SLOTS_10S 2160

/** Stages there and gone. More than this are not recorded: 50 MB with 4 classes. A guess. */
#define HISTORY_SERIES_MAX 256

/** Most numbers of one stage in one slot. */
#define HISTORY_RECORD_MAX (SAMPLE_FIELDS + WEIR_CLASSES_MAX * SAMPLE_CLASS_FIELDS)

struct history;

/** NULL: no memory. Series are allocated as stages come. */
struct history *history_new(void);

/** NULL is allowed. */
void history_free(struct history *history);

/**
 * Take in a snapshot; call it at least once a second, just after the second began. Returns the
 * rings that got samples as bits (1 << HISTORY_1S), 0 when neither had a new step. Without memory
 * for a new stage that stage has gaps. 0.1 ms for 30 stages with 4 classes (bench/micro_history.c).
 */
unsigned history_feed(struct history *history, const struct weir_graph_view *view);

/** The samples that the last feed of `ring` was made from, one per stage of its view; NULL when
 *  there are none yet. */
const struct sample *history_samples(const struct history *history, enum history_ring ring);

/** Seconds of a step of `ring`, and how many of them are kept. */
int history_step_s(enum history_ring ring);
int history_slots(enum history_ring ring);

/** Label of the newest step, INT64_MIN when there is none. */
int64_t history_newest(const struct history *history, enum history_ring ring);

/** Names: valid until the next feed. */
int history_n_series(const struct history *history);
const char *history_name(const struct history *history, int series);
int history_n_classes(const struct history *history);
const char *history_class_name(const struct history *history, int class);

/** The series of stage `name`, -1 when there is none. */
int history_find(const struct history *history, const char *name);

/** Field `field` (a sample_field; behind them SAMPLE_FIELDS + class * SAMPLE_CLASS_FIELDS + a
 *  sample_class_field) of steps `first`, `first` + 1, ... into out[n]; gaps are COMPACT_NONE. */
void history_column(const struct history *history, enum history_ring ring, int series, int field,
    int64_t first, int n, uint16_t *out);

/** Memory it holds, in bytes, without the allocator's own. */
size_t history_bytes(const struct history *history);

/* ---- for history_file.c ---- */

/** Changes whenever series or classes do. */
uint64_t history_shape(const struct history *history);

/** Numbers in a record: all fields of a series in one slot. */
int history_record(const struct history *history);

/** The record of `series` at `label`, gaps where there is nothing. */
void history_get(const struct history *history, enum history_ring ring, int64_t label, int series,
    uint16_t *record);

/** Have classes `name[n]`; kept numbers follow their class's name. 0 or WEIR_ENOMEM. */
int history_set_classes(struct history *history, const char *const *name, int n);

/** The series of `name`, made when there is none; WEIR_ENOMEM, or WEIR_EBUSY: too many. */
int history_add(struct history *history, const char *name);

/** Store a record; `label` becomes the newest if it is later. */
void history_put(struct history *history, enum history_ring ring, int64_t label, int series,
    const uint16_t *record);

#endif
