/* SPDX-License-Identifier: MIT */
/*
 * Content codings: which of them a client takes (RFC 9110, 12.5.3), and which of those there are it
 * gets. Pure, any thread.
 */
#ifndef WEIR_STAGES_FILE_ENCODING_H
#define WEIR_STAGES_FILE_ENCODING_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/http.h>

/* id, token (IANA registry of content codings), ending of a file that is coded so */
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

/** What a client takes: rank[e] is 0 for a coding that it refuses, else the higher the dearer; equal
 *  ranks are equally welcome. */
struct encoding_wish {
	uint8_t rank[ENCODING_N];
};

/** The wish in all Accept-Encoding fields of `req`. Without such a field only identity is taken: the
 *  RFC allows all, but who does not ask for a coding may not know it. Elements that are malformed
 *  count as not sent; of a coding that is named twice the first counts. */
void encoding_wish(const struct weir_http_request *req, struct encoding_wish *wish);

/** The wish as a number below 4096: who has the same gets the same of any file; 0 for those who take
 *  identity alone. One pass over the headers. */
unsigned encoding_code(const struct weir_http_request *req);

/** The best of the codings in `order[n]` and identity, or ENCODING_N when none is acceptable; the
 *  first in `order` of those equally welcome, before identity. `order` is what there is. */
enum encoding encoding_choose(const struct encoding_wish *wish, const enum encoding *order, int n);

/** "br", and ".br". Static; not for identity. */
const char *encoding_token(enum encoding e);
const char *encoding_ending(enum encoding e);

/** The coding called `text`, without case; ENCODING_N for none. "x-gzip" is gzip (RFC 9110,
 *  8.4.1.3). */
enum encoding encoding_find(struct weir_slice text);

#endif
