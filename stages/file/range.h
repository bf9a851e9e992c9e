/* SPDX-License-Identifier: MIT */
/*
 * Parses the Range field of a request (RFC 9110, 14.1.2 and 14.2). Pure functions; any thread.
 */
#ifndef WEIR_STAGES_FILE_RANGE_H
#define WEIR_STAGES_FILE_RANGE_H

#include <stdint.h>

#include <weir/event.h>

/** Maximum number of ranges in one request; if there are more, the whole file is sent, as RFC 9110,
 * 14.2 allows. 8 is a guess: document viewers request a handful, whereas the attack in
 * CVE-2011-3192 requested hundreds. */
#define RANGE_MAX 8

struct byte_range {
	int64_t offset, length; /* length > 0 */
};

struct range_set {
	int n;
	struct byte_range range[RANGE_MAX]; /* ranges neither overlap nor touch */
};

/**
 * Parse the Range field `text` for a file of `size_bytes`.
 *
 * Ranges that overlap or touch are merged into one, which takes the position of the first of them,
 * so no byte of the file is sent twice. Ranges beyond the end of the file are dropped. Returns 206;
 * 416 if no range is inside the file; 200 if the field must be ignored. It is ignored if the unit
 * is not bytes, the list is malformed or has too many ranges, or the file is empty (Content-Range
 * cannot express an empty range).
 */
int range_read(struct weir_slice text, int64_t size_bytes, struct range_set *set);

#endif
