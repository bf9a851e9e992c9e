/* SPDX-License-Identifier: MIT */
/*
 * Content codings: parses Accept-Encoding (RFC 9110, 12.5.3) and chooses one of the available
 * codings. Pure functions; any thread.
 */
#ifndef WEIR_STAGES_FILE_ENCODING_H
#define WEIR_STAGES_FILE_ENCODING_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/http.h>

/* id, token (IANA registry of content codings), file name suffix */
#define ENCODINGS(X)                                                                               \
	X(BR, "br", ".br")                                                                         \
	X(ZSTD, "zstd", ".zst")                                                                    \
	X(GZIP, "gzip", ".gz")

enum encoding {
#define ENCODING_ENUM(id, token, ending) ENCODING_##id,
	ENCODINGS(ENCODING_ENUM)
#undef ENCODING_ENUM
	    ENCODING_IDENTITY, /* the file as it is */
	ENCODING_N,
};

/** The codings that a client accepts. rank[e] is 0 for a refused coding. A higher rank is
 * preferred; codings of equal rank are equally acceptable. */
struct encoding_wish {
	uint8_t rank[ENCODING_N];
};

/** Read the wish from all Accept-Encoding fields of `req`. If `req` has no such field, only
 * identity counts as accepted. The RFC would allow every coding, but such a client may not
 * understand any. Malformed elements are ignored; if a coding is named twice, the first one
 * counts. */
void encoding_wish(const struct weir_http_request *req, struct encoding_wish *wish);

/** The wish of `req` as a number below 4096: clients with equal numbers get the same variant of any
 * file. It is 0 for clients that accept only identity. Costs one pass over the headers. */
unsigned encoding_code(const struct weir_http_request *req);

/** Choose the best of the available codings `order[n]` and identity. Of equally acceptable codings
 * the first in `order` wins, and identity comes last. Returns ENCODING_N if none is acceptable. */
enum encoding encoding_choose(const struct encoding_wish *wish, const enum encoding *order, int n);

/** "br" and ".br" for ENCODING_BR. Static; not for identity. */
const char *encoding_token(enum encoding e);
const char *encoding_ending(enum encoding e);

/** The coding named `text`, ignoring case; ENCODING_N if unknown. "x-gzip" is gzip (RFC 9110,
 * 8.4.1.3). */
enum encoding encoding_find(struct weir_slice text);

#endif
