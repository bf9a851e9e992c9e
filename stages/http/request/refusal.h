/* SPDX-License-Identifier: MIT */
/* Composes the responses to refused requests. Called by the thread that finishes the request. */
#ifndef WEIR_HTTP_REFUSAL_H
#define WEIR_HTTP_REFUSAL_H

#include "http/request/request.h"

/** Answer 503 to a request that was shed for the reason `status`. The response names the stage and
 * the reason, and has Retry-After with at least `retry_after_s`. If a stage has set limit_status and the
 * reason is WEIR_ERATE, the answer has that status, that time and X-Weir-Limit. */
void refusal_answer(struct http_req *r, int status, int retry_after_s);

/** Answer 503 to a request that ended because the server stops (WEIR_ECLOSED). */
void refusal_closed(struct http_req *r, int retry_after_s);

/** Answer `status` to a request that failed, or whose body is torn because of `limit` (NULL if
 * there is none). A 503 has Retry-After. */
void refusal_torn(struct http_req *r, int status, const char *limit, int retry_after_s);

/** Print the trace id if it can be looked up elsewhere, because the client sent it or the trace is
 * exported. Otherwise sets `buf` to "" and returns false. */
bool refusal_trace_text(const struct weir_event *ev, char buf[WEIR_TRACE_ID_BYTES]);

#endif
