/* SPDX-License-Identifier: MIT */
/*
 * One answer, read piece by piece: llhttp without its lenient modes, plus what a load generator
 * wants to know.
 *
 * Interim answers (1xx) are skipped; answers to HEAD, 204 and 304 have no body; 101 is malformed,
 * since nobody asked for an upgrade. Bytes are looked at once and kept nowhere. One thread.
 */
#ifndef WEIR_LOAD_REPLY_H
#define WEIR_LOAD_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llhttp.h>

struct reply {
	llhttp_t parser;
	uint8_t matched; /* bytes of the name of the mark for degraded answers */
	bool no_body;    /* the request was HEAD */
	bool started;    /* a byte of it came (or of an interim answer before it) */
	bool done;
	/* of a whole answer */
	bool degraded;
	bool keep_alive;
	uint16_t status;
};

enum reply_verdict { REPLY_MORE, REPLY_DONE, REPLY_MALFORMED };

/** Await the next answer. */
void reply_init(struct reply *r, bool no_body);

/** Look at p[0..n), n >= 1; *used bytes were part of this answer (all of them unless
 *  REPLY_DONE). After DONE or MALFORMED call reply_init first. */
enum reply_verdict reply_feed(struct reply *r, const char *p, size_t n, size_t *used);

/** The peer sent its last byte. DONE when that ends an answer without a length; MORE: it is cut
 *  short, or nothing came. */
enum reply_verdict reply_end(struct reply *r);

#endif
