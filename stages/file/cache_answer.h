/* SPDX-License-Identifier: MIT */
/*
 * Handles the responses that file.cache gets from `miss`: parses their fields, decides whether they
 * forbid caching, and applies the conditions of the request to responses that are not cached. Only
 * the thread that owns the request may call these functions.
 */
#ifndef WEIR_STAGES_FILE_CACHE_ANSWER_H
#define WEIR_STAGES_FILE_CACHE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/http.h>

/** One line of a response's fields, "Name: value\r\n". */
struct cache_line {
	struct weir_slice whole, name, value;
};

/** All fields of a response: res.fields and the fields added one by one (req->fields). */
struct cache_fields {
	struct weir_slice part[2];
};

/** Return the fields of the response in `req`. The first `start` bytes of req->fields are left out,
 * since stages before the cache have added them. */
struct cache_fields cache_fields_of(const struct weir_http_request *req, uint32_t start);

/** Remove the next line from `text` and store it in `l`. Returns false at the end, or if the line
 * is not a field. */
bool cache_line_next(struct weir_slice *text, struct cache_line *l);

/** Whether a 304 repeats this field (RFC 9110, 15.4.5). */
bool cache_line_goes_with_304(const struct cache_line *l);

/** Whether the line is "Accept-Ranges: none": the response has no ranges (RFC 9110, 14.3). */
bool cache_line_has_no_ranges(const struct cache_line *l);

/** Whether the fields forbid serving the response to other clients, or to any client later. */
bool cache_fields_forbid(const struct cache_fields *f);

/** Whether the response in `req` depends on Accept-Encoding. */
bool cache_answer_varies(const struct weir_http_request *req, uint32_t start);

/** Drop the response and release what it holds. The first `start` bytes of req->fields are kept,
 * since stages before the cache have added them. */
void cache_answer_drop(struct weir_http_request *req, uint32_t start);

/**
 * Apply the conditions of `req` to its response, which was produced without them.
 *
 * A 200 becomes 304, 412, 416 or a 206 of one range if the conditions require it. For several
 * ranges the whole body is sent, as RFC 9110, 14.2 allows. A streamed response is also sent whole,
 * because it can no longer be changed.
 */
void cache_answer_judge(struct weir_http_request *req, uint32_t start);

#endif
