/* SPDX-License-Identifier: MIT */
/*
 * Numbers and texts as people read them, and texts as HTML and SVG need them.
 *
 * Every text of a run file (labels, stage names, rules) goes through markup_text: it may be hostile.
 * Pure functions.
 */
#ifndef WEIR_REPORT_FORMAT_H
#define WEIR_REPORT_FORMAT_H

#include <stddef.h>
#include <stdio.h>

/** Space that suffices for each of the texts below. */
#define FORMAT_MAX 32

/** Prints one value. NAN becomes an en dash. Returns `buf[FORMAT_MAX]`. */
typedef char *format_fn(char *buf, double value);

format_fn format_rate;  /* "950/s", "1.2k/s" */
format_fn format_count; /* "950", "1.2k" */
format_fn format_time;  /* seconds: "35 us", "1.2 ms", "2.5 s" */
format_fn format_clock; /* seconds of a run: "12.5 s" */
format_fn format_share; /* 0..1: "12.3 %" */
format_fn format_tail;  /* -log10(1 - q): "90 %", "99.9 %" */
format_fn format_ratio; /* "x1.25" with a multiplication sign */

/** Write `text` to `out` as HTML or SVG text or attribute value: & < > " ' become entities, control
 *  characters, what is no UTF-8 and characters that turn the direction of text become U+FFFD. */
void markup_text(FILE *out, const char *text);

#endif
