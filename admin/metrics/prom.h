/* SPDX-License-Identifier: MIT */
/*
 * The Prometheus text format (0.0.4), sample by sample:
 *
 *   prom_head(out, "weir_x_total", "counter", "What it counts");
 *   prom_begin(out, "weir_x_total", "");          weir_x_total
 *   prom_label(out, "stage", name);                           {stage="name"
 *   prom_count(out, 3);                                                    } 3
 */
#ifndef WEIR_ADMIN_PROM_H
#define WEIR_ADMIN_PROM_H

#include <stdint.h>

#include <weir/metric.h>

#include "admin/text/textbuf.h"

/** Write "# HELP" and "# TYPE" of a family. */
void prom_head(struct textbuf *out, const char *name, const char *kind, const char *help);

/** Begin a sample of family `name`; `suffix` is "", "_bucket", "_sum" or "_count". */
void prom_begin(struct textbuf *out, const char *name, const char *suffix);

/** Write a label; its value may be any string and is escaped. */
void prom_label(struct textbuf *out, const char *name, const char *value);

/* Write the value, which ends the sample. */
void prom_count(struct textbuf *out, uint64_t value);
void prom_signed(struct textbuf *out, int64_t value);
void prom_real(struct textbuf *out, double value);
/** Write nanoseconds as seconds without rounding. */
void prom_seconds(struct textbuf *out, int64_t ns);

/**
 * Write the buckets, sum and count of `h` as family `name`. `labels(out, arg)` writes the labels of
 * each sample.
 */
void prom_hist(struct textbuf *out, const char *name, const struct weir_hist *h,
    void (*labels)(struct textbuf *out, const void *arg), const void *arg);

#endif
