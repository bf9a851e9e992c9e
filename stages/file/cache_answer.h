/* SPDX-License-Identifier: MIT */
/*
 * What file.cache reads in an answer of `miss`: its fields, what they forbid, and how an answer that is not kept is fitted to
 * the conditions of its request. The thread that has the request.
 */
#ifndef WEIR_STAGES_FILE_CACHE_ANSWER_H
#define WEIR_STAGES_FILE_CACHE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/http.h>

/** One line of an answer's fields, "Name: value\r\n". */
struct cache_line {
	struct weir_slice whole, name, value;
};

/** Both places that hold response fields: res.fields and what was added one by one. */
struct cache_fields {
	struct weir_slice part[2];
};

/** The fields of the answer in `req`, without the first `start` bytes of those added one by one, which are of stages before. */
struct cache_fields cache_fields_of(const struct weir_http_request *req, uint32_t start);

/** Cut the next line off `text`; false at the end or where there is no field. */
bool cache_line_next(struct weir_slice *text, struct cache_line *l);

/** Does a 304 repeat this field (RFC 9110, 15.4.5)? */
bool cache_line_goes_with_304(const struct cache_line *l);

/** Do the fields forbid to give the answer to anybody else, or later? */
bool cache_fields_forbid(const struct cache_fields *f);

/** Does the answer in `req` differ by what codings a client takes? */
bool cache_answer_varies(const struct weir_http_request *req, uint32_t start);

/** Forget the answer, and release what it holds; what stages before the cache have added stays: the first `start` bytes. */
void cache_answer_drop(struct weir_http_request *req, uint32_t start);

/**
 * `req` was answered as if it had no conditions. Judge those it has: a 200 becomes 304, 412 or 416, or a 206 of one range where
 * they say so. Of several ranges the whole is sent, as RFC 9110, 14.2 allows; so it is when the answer comes in parts, which
 * cannot be changed any more.
 */
void cache_answer_judge(struct weir_http_request *req, uint32_t start);

#endif
