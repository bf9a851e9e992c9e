/* SPDX-License-Identifier: MIT */
/*
 * Filters on the answer of a request: what lies between the stage that answers and the client.
 *
 * A stage on the way to the one that answers adds a filter, as http.cache and http.compress do. The filter
 * that was added last sees the answer first, so that in `web > cache > compress > origin` the cache keeps
 * compressed answers:
 *
 *   whole answer:      event finished -> head of each filter -> end of each filter -> taps
 *   answer in parts:   http_stream_begin_length -> head of each filter
 *                      weir_http_stream_write   -> data of the first -> http_filter_write -> ... -> ring
 *                      http_stream_flush        -> flush of each filter
 *                      event finished           -> end of each filter -> taps
 *
 * All calls run in the thread that owns the event, and must not block. A filter is freed in its `end`, which
 * is called exactly once. Answers of http.server itself, such as refusals at the door, pass no filter.
 */
#ifndef WEIR_HTTP_FILTER_H
#define WEIR_HTTP_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/http.h>

struct http_filter;

struct http_filter_ops {
	/**
	 * The head of the answer is complete, and can still be changed: status, fields, and for a whole
	 * answer the body (weir_http_body_bytes, weir_http_respond). `req->res.status` is set. For an answer
	 * in parts, *length is the length of its body, -1 if it is unknown; a filter that changes the body
	 * sets what it knows. `length` is NULL for a whole answer. Returns 0, or a WEIR_E code with which the
	 * call that began the answer fails; a whole answer becomes a 500. If an answer in parts could not
	 * begin, `head` is called again for the one that replaces it. May be NULL.
	 */
	int (*head)(struct http_filter *f, struct weir_http_request *req, int64_t *length);
	/**
	 * Take bytes of an answer in parts, and pass on what becomes of them with http_filter_write. Returns
	 * the number of bytes of `data` that were taken, fewer than data.n if there was no room, or
	 * WEIR_EGONE if the client has gone. NULL passes the bytes on unchanged.
	 */
	int64_t (*data)(
	    struct http_filter *f, struct weir_http_request *req, struct weir_slice data);
	/** Pass on what the filter holds back, because no more bytes may follow soon. May be NULL. */
	void (*flush)(struct http_filter *f, struct weir_http_request *req);
	/**
	 * The event is finished with `status`. If that is WEIR_OK and the answer is sent in parts, the filter
	 * may pass on its last bytes. Then it frees itself. Called exactly once, also if `head` never was.
	 */
	void (*end)(struct http_filter *f, struct weir_http_request *req, int status);
};

struct http_filter {
	const struct http_filter_ops *ops;
	struct http_filter *next; /* towards the client; set by http_filter_add */
};

/** Put `f` in front of the filters of `req`. It must stay valid until its `end` is called. Only the owner of
 * the event, before an answer has begun. */
void http_filter_add(struct weir_http_request *req, struct http_filter *f);

/** Return the last added filter of `req` with `ops`, or NULL if there is none. */
struct http_filter *http_filter_find(
    const struct weir_http_request *req, const struct http_filter_ops *ops);

/**
 * Pass bytes of an answer in parts on, from `f` towards the client. In `data`, returns the number of bytes
 * taken, as weir_http_stream_write does. In `flush` and `end` all bytes are taken: those that the ring has no
 * room for are copied and sent after it, so the filter should pass on no more than it holds back anyway.
 */
int64_t http_filter_write(
    struct http_filter *f, struct weir_http_request *req, struct weir_slice data);

/** The rest of the answer in parts is lost: when the event is finished, the response is aborted instead of ended,
 * so that the client does not take it for a complete one. For `flush` and `end`. */
void http_filter_lost(struct weir_http_request *req);

/** Pass on what the filters of an answer in parts hold back, because no more bytes may follow soon. No
 * effect without filters or before the answer has begun. Only the owner of the event. */
void http_stream_flush(struct weir_http_request *req);

/* ---- for the connection ---- */

/** Call `head` of all filters. `length` as in http_filter_ops. Returns 0 or the first error. */
int filters_head(struct weir_http_request *req, int64_t *length);

/** Write bytes of an answer in parts through `f` and the filters behind it. `f` may be NULL. */
int64_t filters_write(struct http_filter *f, struct weir_http_request *req, struct weir_slice data);

/** Call `end` of all filters, and forget them. */
void filters_end(struct weir_http_request *req, int status);

#endif
