/* SPDX-License-Identifier: MIT */
/* Internals of http.compress. */
#ifndef WEIR_HTTP_SITE_COMPRESS_H
#define WEIR_HTTP_SITE_COMPRESS_H

#include <stdatomic.h>

#include <weir/weir.h>

#include "file/encoding.h"
#include "http/site/codec.h"

enum compress_metric {
	COMPRESS_ANSWERS,
	COMPRESS_IN,
	COMPRESS_OUT,
	COMPRESS_PLAIN,
	COMPRESS_NO_MEMORY,
	COMPRESS_MEMORY,
};

struct compress_conf {
	struct weir_strings types, codings;
	int64_t level, min_length, max_whole, memory;
};

struct compress {
	struct weir_stage *stage;
	int n; /* of `order` */
	enum encoding order[ENCODING_N];
	_Atomic int64_t used; /* bytes of `memory` that compressors may take */
};

/** Whether the answer of `req` may be compressed for clients that accept a coding: its status, type and fields
 * allow it. `length` is that of its body, -1 if unknown. */
bool compress_may(
    const struct compress_conf *conf, const struct weir_http_request *req, int64_t length);

/** Change the fields of the answer, which are its own (response_own_fields), to those of one with coding `e`.
 * Returns 0 or an error of weir_http_add_field. */
int compress_fields(struct weir_http_request *req, enum encoding e);

/** Add the filter of `c` to `req`. Returns false if out of memory. */
bool compress_watch(struct compress *c, struct weir_http_request *req);

#endif
