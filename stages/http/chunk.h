/* SPDX-License-Identifier: MIT */
/*
 * Chunked bodies, decoded strictly, byte range by byte range (RFC 9112, section 7.1).
 *
 * llhttp 8.1 lets through what a chunked body must not have (its loose mode skips bytes after a
 * chunk, takes lone LFs and spaces, any extension); a guard on top of it would be this very state
 * machine. So this is the only reader of chunked framing: there is no second opinion to disagree
 * with.
 *
 *   SIZE -> (EXTENSION ...) -> SIZE_LF -> DATA -> DATA_CR -> DATA_LF -> SIZE
 *   a size of 0: SIZE_LF -> TRAILER -> (NAME -> VALUE -> VALUE_LF -> TRAILER) -> END_LF -> END
 *
 * Every state looks at one byte at a time, so results do not depend on how the bytes were split.
 */
#ifndef WEIR_HTTP_CHUNK_H
#define WEIR_HTTP_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/event.h>

/** Hex digits of a size: what 64 bits hold. */
#define CHUNK_SIZE_DIGITS 16
/** Bytes of one chunk's extensions, and of all trailers. Nobody sends either; a guess that is half a
 * head for those who will. */
#define CHUNK_EXTENSION_MAX 256
#define CHUNK_TRAILER_MAX   8192

struct chunk {
	uint8_t state;      /* enum chunk_state, in chunk.c; 0 at the start */
	uint8_t digits;     /* of the size so far */
	uint16_t extension; /* bytes of extensions of this chunk */
	uint16_t trailer;   /* bytes of trailers */
	uint8_t name_at;    /* bytes of the present trailer's name */
	uint8_t name_may;   /* which forbidden names it may still become: bits */
	uint64_t left;      /* bytes of this chunk to come */
	uint64_t room;      /* bytes the body may still grow by */
};

enum chunk_verdict {
	CHUNK_MORE,  /* all of the bytes are used up */
	CHUNK_DATA,  /* some bytes of the body: call again */
	CHUNK_END,   /* the body is complete */
	CHUNK_BAD,   /* malformed: 400 */
	CHUNK_LARGE, /* the body is, or says that it will be, over the limit: 413 */
};

/** Begin a body of at most `room` bytes. */
void chunk_init(struct chunk *c, uint64_t room);

/** Read from `*at` up to `end`, moving `*at`; for CHUNK_DATA `data` points into those bytes. */
enum chunk_verdict chunk_next(
    struct chunk *c, const char **at, const char *end, struct weir_slice *data);

#endif
