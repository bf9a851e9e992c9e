/* SPDX-License-Identifier: MIT */
/*
 * A strict decoder of chunked bodies (RFC 9112, section 7.1).
 *
 * llhttp is not used for chunked bodies, since llhttp 8.1 accepts malformed ones: its lenient mode
 * skips bytes after a chunk, and accepts lone LFs, spaces and any extension. A guard that checked
 * the body before llhttp would need the same states as this decoder. Chunked framing is therefore
 * parsed only here, and no second parser can disagree.
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

/** Maximum number of hex digits in a chunk size: those of a 64-bit number. */
#define CHUNK_SIZE_DIGITS 16
/** Maximum bytes of the extensions of one chunk, and of all trailers. Both are guesses: clients
 * send neither in practice, and trailers may be half as long as a head. */
#define CHUNK_EXTENSION_MAX 256
#define CHUNK_TRAILER_MAX   8192

struct chunk {
	uint8_t state;      /* enum chunk_state, in chunk.c; initially 0 */
	uint8_t digits;     /* digits of the size so far; in extensions a flag, see chunk.c */
	uint16_t extension; /* bytes of extensions of this chunk */
	uint16_t trailer;   /* bytes of trailers */
	uint8_t name_at;    /* length so far of the current trailer's name */
	uint8_t name_may;   /* bits: the forbidden names that this name may still match */
	uint64_t left;      /* bytes of this chunk that have not arrived yet */
	uint64_t room;      /* bytes the body may still grow by */
};

enum chunk_verdict {
	CHUNK_MORE, /* all bytes have been consumed */
	CHUNK_DATA, /* some bytes of the body: call again */
	CHUNK_END,  /* the body is complete */
	CHUNK_BAD,  /* malformed: 400 */
	/* the body is over the limit, or would be with this chunk: 413 */
	CHUNK_LARGE,
};

/** Begin a body of at most `room` bytes. */
void chunk_init(struct chunk *c, uint64_t room);

/** Decode from `*at` up to `end`, advancing `*at`. If the result is CHUNK_DATA, `data` is set to
 * bytes of the body. */
enum chunk_verdict chunk_next(
    struct chunk *c, const char **at, const char *end, struct weir_slice *data);

#endif
