/* SPDX-License-Identifier: MIT */
/*
 * Parses one HTTP response incrementally with llhttp, in strict mode. Only the properties
 * in struct reply are recorded.
 *
 * Interim responses (1xx) are skipped. Responses to HEAD and those with status 204 or 304 have no
 * body. A 101 is malformed, since no upgrade is ever requested. Each byte is examined once and not
 * stored. One thread.
 */
#ifndef WEIR_LOAD_REPLY_H
#define WEIR_LOAD_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llhttp.h>

#include "load/expect.h"

#define REPLY_MARKS      3
#define REPLY_HASH_BYTES 128

struct reply {
	llhttp_t parser;
	/* matched bytes of each name of a header that marks degraded responses */
	uint8_t matched[REPLY_MARKS];
	bool quality_next; /* the next byte of a header is the first of a quality */
	bool type_next;    /* the next bytes of a header are those of Content-Type */
	bool no_body;      /* the request was HEAD */
	/* the first byte of the response, or of an interim response, has arrived */
	bool started;
	bool done;
	/* valid once `done` is set */
	bool degraded;
	bool keep_alive;
	uint16_t status;
	/* what is expected, NULL if nothing; the state of the hash of the body, and Content-Type so far */
	const struct load_expect *expect;
	void *hash;
	uint8_t n_type;
	char type[EXPECT_TYPE_MAX + 2];
};

enum reply_verdict { REPLY_MORE, REPLY_DONE, REPLY_MALFORMED };

/** Prepare for the next response. */
void reply_init(struct reply *r, bool no_body);

/** Compare the response with `expect`, which must stay. Follows reply_init. `hash` is memory for the hash
 * of a body, REPLY_HASH_BYTES, aligned to 8 bytes. */
void reply_expect(struct reply *r, const struct load_expect *expect, void *hash);

/** Whether the response, which is complete, is as expected, apart from its status. */
bool reply_as_expected(const struct reply *r);

/** Parse p[0..n), n >= 1. Sets *used to the number of bytes that belong to this response. It is
 * less than `n` only if REPLY_DONE is returned and bytes of the next response follow. After
 * REPLY_DONE or REPLY_MALFORMED, reply_init must be called before the next call. */
enum reply_verdict reply_feed(struct reply *r, const char *p, size_t n, size_t *used);

/** Handle the end of the stream. Returns REPLY_DONE if the response has no length and so ends with
 * the stream, or REPLY_MORE if the response is truncated or has not started. */
enum reply_verdict reply_end(struct reply *r);

#endif
