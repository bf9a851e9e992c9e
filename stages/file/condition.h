/* SPDX-License-Identifier: MIT */
/*
 * Conditional and range requests (RFC 9110, 13 and 14): what a request asks of a file whose ETag,
 * date and size are known. Pure, any thread; file.read asks it about files, file.cache about
 * objects.
 */
#ifndef WEIR_STAGES_FILE_CONDITION_H
#define WEIR_STAGES_FILE_CONDITION_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/http.h>

#include "range.h"

#define CONDITION_FIELDS(X)                                                                        \
	X(IF_MATCH, "If-Match")                                                                    \
	X(IF_NONE_MATCH, "If-None-Match")                                                          \
	X(IF_MODIFIED_SINCE, "If-Modified-Since")                                                  \
	X(IF_UNMODIFIED_SINCE, "If-Unmodified-Since")                                              \
	X(IF_RANGE, "If-Range")                                                                    \
	X(RANGE, "Range")

enum condition_field {
#define CONDITION_ENUM(id, name) CONDITION_##id,
	CONDITION_FIELDS(CONDITION_ENUM)
#undef CONDITION_ENUM
	    CONDITION_N,
};

/** The fields of one request, which must outlive it. Those that are lists of ETags may be sent in
 *  several lines, which are one list (RFC 9110, 5.3); of the others a field that was sent twice counts as
 *  not sent, and twice an If-Range as one that is false. */
struct condition {
	struct weir_slice field[CONDITION_N]; /* p NULL: not there; of a list the first line */
	bool any;                             /* is any there? */
	unsigned twice;                       /* bit f: field f was sent more than once */
	const struct weir_http_request *req;
};

/** What there is to give. */
struct condition_file {
	struct weir_slice etag; /* with quotes, "W/" in front when weak; n 0: none */
	int64_t modified_s;     /* seconds since 1970; -1: not known */
	int64_t size_bytes;
	/* Of several ranges send the first: the bytes have a content coding, and where that is named among
	 * several parts no RFC says. */
	bool one_part;
	/* There are other representations, which may have the same date: If-Range by date is false, since a
	 * date is no strong validator then (RFC 9110, 13.1.5). */
	bool varies;
};

/** What to answer: 200 whole, 206 bytes [offset, offset+length) or several parts, 304, 412 or 416. */
struct condition_verdict {
	int status;
	int64_t offset, length; /* bytes of the file that the body is; length 0 unless 200 or 206 */
	int parts;              /* 206: more than 1: the ranges of condition_ranges, length is 0 */
};

/** Is `name` one of the fields above? */
bool condition_is_field(struct weir_slice name, enum condition_field *which);

/** Collect the fields of `req`: one pass over its headers. */
void condition_scan(const struct weir_http_request *req, struct condition *c);

/** Judge in the order of RFC 9110, 13.2.2. Too many ranges, a malformed one or another unit than
 *  bytes mean the whole file, as do ranges of other methods than GET. */
struct condition_verdict condition_judge(
    const struct condition *c, enum weir_http_method method, const struct condition_file *file);

/** The same for what has no ranges: 200, 304 or 412. */
int condition_judge_whole(const struct condition *c, const struct condition_file *file);

/** The ranges of a verdict with several parts. */
void condition_ranges(
    const struct condition *c, const struct condition_file *file, struct range_set *set);

/** "bytes 0-99/1234", or with a star for the range for 416: the Content-Range of `v`. */
#define CONDITION_RANGE_SIZE 72
void condition_content_range(
    const struct condition_verdict *v, int64_t size_bytes, char out[CONDITION_RANGE_SIZE]);

#endif
