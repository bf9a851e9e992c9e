/* SPDX-License-Identifier: MIT */
/*
 * Bodies of type multipart/byteranges (RFC 9110, 15.3.7.2): several ranges of one file, sent
 * without copying, with text lines between them. Any thread.
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

/** Maximum number of pieces of a body: the header lines and the bytes of each range, and the
 * closing line. */
#define MULTIPART_PIECES (2 * RANGE_MAX + 1)

struct multipart {
	const struct range_set *set;
	struct weir_slice type; /* media type of the file */
	int64_t file_bytes;
	char boundary[MULTIPART_BOUNDARY_SIZE];
};

/** Prepare a body with the ranges `set` (n > 0; owned by the caller, must stay valid) of a file of
 * `file_bytes` with the media type `type`. The boundary is random, so whoever wrote the file cannot
 * have known it. */
void multipart_init(
    struct multipart *m, const struct range_set *set, struct weir_slice type, int64_t file_bytes);

/** Total bytes of the text lines. */
size_t multipart_text_bytes(const struct multipart *m);

/**
 * Write the text lines, of multipart_text_bytes() in total, to `text`, which must stay valid, and
 * fill in `piece` for weir_http_respond_pieces. The ranges refer to `bytes`, the whole file in
 * memory, or if that is NULL to the response's fd. Returns the number of pieces.
 */
int multipart_pieces(const struct multipart *m, char *text, const char *bytes,
    struct weir_http_piece piece[MULTIPART_PIECES]);

/** The media type of the response. */
void multipart_type(const struct multipart *m, char type[MULTIPART_TYPE_SIZE]);

#endif
