/* SPDX-License-Identifier: MIT */
/*
 * Ranges of bytes that a request asks for (RFC 9110, 14.1.2 and 14.2). Pure, any thread.
 */
#ifndef WEIR_STAGES_FILE_RANGE_H
#define WEIR_STAGES_FILE_RANGE_H

#include <stdint.h>

#include <weir/event.h>

/** Ranges in one request; with more the whole file is sent, as RFC 9110, 14.2 allows. Guess: readers
 *  of documents ask for a handful, and the attack of CVE-2011-3192 for hundreds. */
#define RANGE_MAX 8

struct byte_range {
	int64_t offset, length; /* length > 0 */
};

struct range_set {
	int n;
	struct byte_range range[RANGE_MAX]; /* none overlaps or touches another */
};

/**
 * Read the Range field `text` for a file of `size_bytes`. Ranges that overlap or touch
 * are made one, which stands where the first of them was asked for; those behind the end of the
 * file are dropped: what is sent is never more than the file once. Returns 206; 416 when
 * none is inside the file; 200 for what is to be ignored: another unit, a bad list, too many,
 * and any range of an empty file: its last five bytes are all of it, which no Content-Range can say.
 */
int range_read(struct weir_slice text, int64_t size_bytes, struct range_set *set);

#endif
