/* SPDX-License-Identifier: MIT */
/* Compressors of the content codings, behind one interface. One thread at a time for each. */
#ifndef WEIR_HTTP_SITE_CODEC_H
#define WEIR_HTTP_SITE_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/event.h>

#include "file/encoding.h"

struct codec;

/** Whether this build has a compressor for `e`. */
bool codec_exists(enum encoding e);

/** Bytes of memory that a compressor for `e` takes at most, whatever its level. */
int64_t codec_bytes(enum encoding e);

/** Make a compressor. `level` is 1 (fastest) to 9. `length` is the length of the body, -1 if it is not known.
 * Returns NULL if out of memory, or if codec_exists is false. */
struct codec *codec_new(enum encoding e, int level, int64_t length);
/** Free it; NULL is allowed. */
void codec_free(struct codec *c);

enum codec_op {
	CODEC_RUN,   /* more bytes follow */
	CODEC_FLUSH, /* let the other side decode all bytes so far */
	CODEC_END,   /* these are the last bytes */
};

/** Room that codec_run needs at least, in bytes: with less, zlib would repeat the marker of a flush. */
#define CODEC_ROOM_MIN 16

/** Compress bytes of *in, which is advanced over what was taken, to out[*n]; *n becomes what was written.
 * Returns 1 if the step is complete: all of *in was taken and, for FLUSH and END, all output was written; 0 to
 * be called again with the same `op` and more room; -1 on an error, after which it can only be freed. */
int codec_run(struct codec *c, enum codec_op op, struct weir_slice *in, char *out, size_t *n);

#endif
