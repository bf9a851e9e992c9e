/* SPDX-License-Identifier: MIT */
/*
 * For stages of this tree that hold requests in an event loop, such as http.client: the client's side of a
 * request as mail to that loop, and streamed answers of a known length. The loop may be one of the stage
 * or the one of the client's connection. The event stays with the stage, other than in weir_http_wait.
 * The owner of the event calls these functions, in the thread of the loop.
 */
#ifndef WEIR_HTTP_AWAIT_H
#define WEIR_HTTP_AWAIT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/http.h>
#include <weir/io.h>

#include "http/request/waker.h"

/** Call `woken(owner, context)` in the thread of `loop` when the client of `req` disconnects, or shuts its
 * side down; soon, if it has already. Returns the waker that does so (waker.h), or NULL if out of memory. A
 * request without a server has no client that could disconnect; its waker must still be ended. */
struct http_waker *http_await_begin(struct weir_http_request *req, struct weir_loop *loop,
    void *owner, http_woken woken, void *context);

/** Call this before the event is finished. Returns whether the waker still arrives once. */
bool http_await_end(struct weir_http_request *req, struct http_waker *w);

/** Whether the client has disconnected. */
bool http_await_gone(const struct weir_http_request *req);

/** Wait for `what`, bits of enum weir_http_wait, as weir_http_wait does. Returns true if it holds
 * already. Otherwise the waker is sent once it holds, or once what an earlier call has waited for does. */
bool http_await_parts(struct weir_http_request *req, unsigned what);

/** Like weir_http_stream_begin, for a body of `length` bytes, or an unknown number if it is -1. With a
 * length the answer has a Content-Length, also for HEAD, is not chunked, and does not end the
 * connection. If the event is finished before all of them were written, the connection is aborted. */
int http_stream_begin_length(
    struct weir_http_request *req, int status, const char *content_type, int64_t length);

#endif
