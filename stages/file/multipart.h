/* SPDX-License-Identifier: MIT */
/*
 * Bodies of type multipart/byteranges (RFC 9110, 15.3.7.2): several ranges of one file, as pieces that stay where they are
 * and the lines between them. Any thread.
 */
#ifndef WEIR_STAGES_FILE_MULTIPART_H
#define WEIR_STAGES_FILE_MULTIPART_H

#include <stddef.h>

#include <weir/http.h>

#include "range.h"

/** 16 hexadecimal digits and a NUL. */
#define MULTIPART_BOUNDARY_SIZE 17

/** "multipart/byteranges; boundary=0123456789abcdef" and its NUL. */
#define MULTIPART_TYPE_SIZE 64

/** Pieces of a body: the lines in front of each range and it, and the last line. */
#define MULTIPART_PIECES (2 * RANGE_MAX + 1)

struct multipart {
	const struct range_set *set;
	struct weir_slice type; /* of the file */
	int64_t file_bytes;
	char boundary[MULTIPART_BOUNDARY_SIZE];
};

/** A body of the ranges `set` (n > 0; stays the caller's, and in place) of a file of `file_bytes`
 *  whose media type is `type`, with a boundary that nobody could know when the file was written. */
void multipart_init(
    struct multipart *m, const struct range_set *set, struct weir_slice type, int64_t file_bytes);

/** Bytes of all lines. */
size_t multipart_text_bytes(const struct multipart *m);

/**
 * Write the lines, multipart_text_bytes() of them, to `text`, which must stay, and into `piece` what the body is made of, as
 * weir_http_respond_pieces takes it. The ranges are of `bytes`, the whole file in memory, or NULL: of the response's fd.
 * Returns how many pieces there are.
 */
int multipart_pieces(const struct multipart *m, char *text, const char *bytes,
    struct weir_http_piece piece[MULTIPART_PIECES]);

/** The media type of the answer. */
void multipart_type(const struct multipart *m, char type[MULTIPART_TYPE_SIZE]);

#endif
