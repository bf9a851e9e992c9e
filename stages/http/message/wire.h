/* SPDX-License-Identifier: MIT */
/*
 * Reads the hints of clients about their requests: how long they will wait, who they are, and
 * whether a request is a retry. Also computes when a refused client may try again.
 *
 * A client may shorten the time that its own requests get, but never lengthen it. The remaining
 * time that it states becomes the event's deadline. Unreadable values are ignored and counted. The
 * functions below are pure, for any thread. (wire.c also implements functions of weir/http.h, which
 * are not pure.)
 */
#ifndef WEIR_HTTP_WIRE_H
#define WEIR_HTTP_WIRE_H

#include <weir/http.h>
#include <weir/trace.h>

/** Longest remaining time that is accepted; longer times are reduced to it. An hour is a guess: no
 * client waits longer for a response. */
#define WIRE_LEFT_MAX_NS 3600000000000

/** Bits: the fields that are hints. */
enum wire_hint { WIRE_LEFT = 1, WIRE_ATTEMPT = 2, WIRE_TRACE = 4 };

/** Return the hints that the request has: bits of enum wire_hint. */
unsigned wire_hints(const struct weir_http_request *req);

/** Whether the request may have hints. The names of hint fields have 11, 12, 13 or 15 bytes. Most
 * requests have no field name of such a length, so this check is sufficient for them. */
static inline bool wire_may_hint(const struct weir_http_request *req)
{
	uint32_t lengths = 0;

	for (int i = 0; i < req->n_headers; i++)
		lengths |= (uint32_t)1 << (req->headers[i].name.n % 32);
	return lengths & (7U << 11 | 1U << 15);
}

/**
 * Return the remaining time that the client states, in ns; -1 if it states none. It is read from
 * `x-deadline-ms: 250` or `grpc-timeout: 250m` (gRPC over HTTP/2, "Timeout": up to eight digits and
 * a unit H M S m u n); the shorter one counts. *malformed is set if a field could not be read, else
 * cleared.
 */
int64_t wire_left_ns(const struct weir_http_request *req, bool *malformed);

/**
 * Return the number of this attempt, 0..255, from `x-retry-attempt: N`. 0 means the first attempt,
 * and is the result if the field is missing. Of several fields the highest number counts.
 * *malformed is set if a field could not be read, else left unchanged.
 */
int wire_attempt(const struct weir_http_request *req, bool *malformed);

/**
 * Read the trace to which the request belongs from `traceparent` (W3C Trace Context). Returns
 * false, and leaves *trace unchanged, if there is not exactly one valid field. *malformed is set if
 * the field could not be read or occurred more than once, else left unchanged.
 */
bool wire_trace(const struct weir_http_request *req, struct weir_trace *trace, bool *malformed);

/** Whether `text` is valid for wire_user, such as "", "address", "connection" or "header.NAME". */
bool wire_user_known(const char *text);

/** Return a session number of 31 bits for the user of a request. `text` names the property that
 * identifies users, such as "header.NAME". Returns 0, which is never a session number, if `text` is
 * empty or the request does not have the property. */
uint32_t wire_user(const struct weir_http_request *req, const char *text);

/** Longest Retry-After that is computed, in s. 60 s is a guess: by then the load has changed. */
#define WIRE_RETRY_MAX_S 60

/**
 * Return the seconds for the Retry-After field of a refusal: `known_ns` (0 if it is not known)
 * rounded up, at least `least_s` and at most WIRE_RETRY_MAX_S. With `spread`, the result is chosen
 * by the bits of `seed`, evenly between half and one and a half times that value, in whole seconds
 * and within the same bounds. Clients that were refused at the same time then do not all return at
 * the same time.
 */
int wire_retry_after_s(int64_t known_ns, int least_s, bool spread, uint64_t seed);

#endif
