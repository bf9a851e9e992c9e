/* SPDX-License-Identifier: MIT */
/*
 * A strict decoder of chunked bodies (RFC 9112, section 7.1).
 *
 * llhttp 8.1 accepts what a chunked body must not have: its loose mode skips bytes after a chunk,
 * and takes lone LFs, spaces and any extension. A guard in front of llhttp would be the same state
 * machine as this one. So this is the only reader of chunked framing, without a second opinion that
 * could disagree.
 *
 *   SIZE -> (EXTENSION ...) -> SIZE_LF -> DATA -> DATA_CR -> DATA_LF -> SIZE
 *   a size of 0: SIZE_LF -> TRAILER -> (NAME -> VALUE -> VALUE_LF -> TRAILER) -> END_LF -> END
 *
 * Every state consumes one byte at a time, so results do not depend on how the bytes were split.
 */
#ifndef WEIR_HTTP_CHUNK_H
#define WEIR_HTTP_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/event.h>

/** Most hex digits of a chunk size: as many as 64 bits have. */
#define CHUNK_SIZE_DIGITS 16
/** Most bytes of one chunk's extensions, and of all trailers. Both are guesses: clients send
 * neither in practice, and trailers may be half as long as a head. */
#define CHUNK_EXTENSION_MAX 256
#define CHUNK_TRAILER_MAX   8192

struct chunk {
	uint8_t state;      /* enum chunk_state, in chunk.c; initially 0 */
	uint8_t digits;     /* digits of the size so far */
	uint16_t extension; /* bytes of extensions of this chunk */
	uint16_t trailer;   /* bytes of trailers */
	uint8_t name_at;    /* length so far of the current trailer's name */
	uint8_t name_may;   /* bits: the forbidden names that it may still turn out to be */
	uint64_t left;      /* bytes of this chunk still to come */
	uint64_t room;      /* bytes the body may still grow by */
};

enum chunk_verdict {
	CHUNK_MORE, /* all of the bytes are consumed */
	CHUNK_DATA, /* some bytes of the body: call again */
	CHUNK_END,  /* the body is complete */
	CHUNK_BAD,  /* malformed: 400 */
	/* the body is over the limit, or this chunk's size announces that it will be: 413 */
	CHUNK_LARGE,
};

/** Begin a body of at most `room` bytes. */
void chunk_init(struct chunk *c, uint64_t room);

/** Decode from `*at` up to `end`, advancing `*at`. For CHUNK_DATA, `data` is set to the bytes of
 * the body. */
enum chunk_verdict chunk_next(
    struct chunk *c, const char **at, const char *end, struct weir_slice *data);

#endif
