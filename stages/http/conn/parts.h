/* SPDX-License-Identifier: MIT */
/*
 * The last step of an answer in parts, behind its filters (request/filter.h).
 */
#ifndef WEIR_HTTP_PARTS_H
#define WEIR_HTTP_PARTS_H

#include <weir/http.h>

/** Append a copy of `data` to the bytes that the I/O thread sends. The response must have begun. Returns as
 * weir_http_stream_write. The owner of the event. */
int64_t parts_write(struct weir_http_request *req, struct weir_slice data);

#endif
