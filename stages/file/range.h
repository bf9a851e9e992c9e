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

/** Parts of one answer are composed in memory: bytes of them in all. Guess: what 10,000 clients that
 *  do not read may cost (640 MB). */
#define RANGE_PARTS_BYTES (64 << 10)

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
 * file are dropped. When the parts of several would be more than RANGE_PARTS_BYTES, only the first
 * is left: a client sees by Content-Range what it got (RFC 9110, 15.3.7). Returns 206; 416 when
 * none is inside the file; 200 for what is to be ignored: another unit, a bad list, too many.
 */
int range_read(struct weir_slice text, int64_t size_bytes, struct range_set *set);

#endif
