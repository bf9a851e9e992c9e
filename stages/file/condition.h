/* SPDX-License-Identifier: MIT */
/*
 * Evaluates conditional and range requests (RFC 9110, 13 and 14) against a file whose ETag, date
 * and size are known. Used by file.read for files and by file.cache for objects. Pure functions;
 * any thread.
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

/** The condition fields of a request. The request must outlive this struct. A field that is a list
 * of ETags may be sent as several lines, which form one list (RFC 9110, 5.3). Any other field that
 * is sent twice is ignored, except If-Range, which then counts as false. */
struct condition {
	struct weir_slice field[CONDITION_N]; /* p is NULL if not sent; of a list, the first line */
	bool any;                             /* at least one field was sent */
	unsigned twice;                       /* bit f: field f was sent more than once */
	const struct weir_http_request *req;
};

/** The representation against which conditions are evaluated. */
struct condition_file {
	struct weir_slice etag; /* with quotes, starts with W/ if weak; n is 0 if there is none */
	int64_t modified_s;     /* seconds since 1970; -1 if unknown */
	int64_t size_bytes;
	/* Send only the first of several ranges. Set if the file has a content coding, since no RFC
	 * defines where a multipart body names its content coding. */
	bool one_part;
	/* Other representations exist and may have the same date. The date is then not a strong
	 * validator (RFC 9110, 13.1.5), so If-Range with a date is false. */
	bool varies;
	bool no_ranges; /* Range is ignored: the response has "Accept-Ranges: none" */
};

/** The result of an evaluation: 200 (whole file), 206 (bytes [offset, offset+length) or several
 * parts), 304, 412 or 416. */
struct condition_verdict {
	int status;
	int64_t offset, length; /* bytes of the file in the body; length 0 unless 200 or 206 */
	/* if above 1, the body consists of the ranges from condition_ranges, and length is 0 */
	int parts;
};

/** Whether `name` is one of the fields above. */
bool condition_is_field(struct weir_slice name, enum condition_field *which);

/** Collect the condition fields of `req`, in one pass over its headers. */
void condition_scan(const struct weir_http_request *req, struct condition *c);

/** Evaluate in the order of RFC 9110, 13.2.2. The result is the whole file if there are too many
 * ranges, a range is malformed, the unit is not bytes, or the method is not GET. */
struct condition_verdict condition_judge(
    const struct condition *c, enum weir_http_method method, const struct condition_file *file);

/** Like condition_judge, for content that has no ranges. Returns 200, 304 or 412. */
int condition_judge_whole(const struct condition *c, const struct condition_file *file);

/** Store the ranges of a verdict with several parts in *set. */
void condition_ranges(
    const struct condition *c, const struct condition_file *file, struct range_set *set);

/** Write the Content-Range of `v`: "bytes 0-99/1234", or for 416 with a star in place of the
 * range. */
#define CONDITION_RANGE_SIZE 72
void condition_content_range(
    const struct condition_verdict *v, int64_t size_bytes, char out[CONDITION_RANGE_SIZE]);

#endif
