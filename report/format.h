/* SPDX-License-Identifier: MIT */
/*
 * Formats numbers for display, and escapes texts for HTML and SVG.
 *
 * Every text from a run file (labels, stage names, rules) may be hostile and must be written with
 * markup_text. Pure functions.
 */
#ifndef WEIR_REPORT_FORMAT_H
#define WEIR_REPORT_FORMAT_H

#include <stddef.h>
#include <stdio.h>

/** Size of the buffers for formatted numbers. */
#define FORMAT_MAX 32

/** Formats one value into `buf`, which has space for FORMAT_MAX bytes. NAN becomes an en dash.
 * Returns `buf`. */
typedef char *format_fn(char *buf, double value);

format_fn format_rate;  /* "950/s", "1.2k/s" */
format_fn format_count; /* "950", "1.2k" */
format_fn format_time;  /* seconds: "35 us", "1.2 ms", "2.5 s" */
format_fn format_clock; /* seconds of a run: "12.5 s" */
format_fn format_share; /* 0..1: "12.3 %" */
format_fn format_tail;  /* -log10(1 - q) for the quantile q: "90 %", "99.9 %" */
format_fn format_ratio; /* "x1.25" with a multiplication sign */

/** Write `text` to `out` so that it is safe as text or attribute value of HTML and SVG: & < > " '
 * become entities; control characters, invalid UTF-8 and characters that change the text direction
 * become U+FFFD. */
void markup_text(FILE *out, const char *text);

/** Write markup like printf. %s is escaped as by markup_text; %d, %f, %.1f to %.9f and %% are the
 * other conversions. */
void markup(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
