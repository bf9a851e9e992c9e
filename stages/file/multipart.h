/* SPDX-License-Identifier: MIT */
/*
 * Bodies of type multipart/byteranges (RFC 9110, 15.3.7.2): several ranges of one file. Any thread.
 */
#ifndef WEIR_STAGES_FILE_MULTIPART_H
#define WEIR_STAGES_FILE_MULTIPART_H

#include <stddef.h>

#include "range.h"

/** 16 hexadecimal digits and a NUL. */
#define MULTIPART_BOUNDARY_SIZE 17

/** "multipart/byteranges; boundary=0123456789abcdef" and its NUL. */
#define MULTIPART_TYPE_SIZE 64

struct multipart {
	const struct range_set *set;
	struct weir_slice type; /* of the file */
	int64_t file_bytes;
	char boundary[MULTIPART_BOUNDARY_SIZE];
};

/** Where the bytes of the parts come from: copy [offset, offset+n) of the file to `to`; 0 or a
 *  WEIR_E code. */
typedef int multipart_copy(void *arg, char *to, int64_t offset, size_t n);

/** A body of the ranges `set` (n > 0; stays the caller's, and in place) of a file of `file_bytes`
 *  whose media type is `type`, with a boundary that nobody could know when the file was written. */
void multipart_init(
    struct multipart *m, const struct range_set *set, struct weir_slice type, int64_t file_bytes);

/** Bytes of the body; at most RANGE_PARTS_BYTES and the lines of RANGE_MAX parts. */
size_t multipart_bytes(const struct multipart *m);

/** Write the body of multipart_bytes() to `to`. 0, or what `copy` failed with. */
int multipart_write(const struct multipart *m, char *to, multipart_copy *copy, void *arg);

/** The media type of the answer. */
void multipart_type(const struct multipart *m, char type[MULTIPART_TYPE_SIZE]);

#endif
