/* SPDX-License-Identifier: MIT */
/*
 * What clients say about their requests beside what they ask for: how long they will wait, who they are, and whether
 * they ask again. And the other way: when a client that was refused may come again.
 *
 * A client may shorten its own time, never lengthen anybody's: the time left it names becomes the
 * event's deadline. What can not be read is ignored and counted. Pure functions, any thread; but
 * weir_http_deadline_left_ns (weir/http.h), which is here too, reads the clock.
 */
#ifndef WEIR_HTTP_WIRE_H
#define WEIR_HTTP_WIRE_H

#include <weir/http.h>
#include <weir/trace.h>

/** Longest time left that is believed: an hour. Guess; nobody waits longer for an answer. */
#define WIRE_LEFT_MAX_NS 3600000000000

/** Fields that are hints. */
enum wire_hint { WIRE_LEFT = 1, WIRE_ATTEMPT = 2, WIRE_TRACE = 4 };

/** Which of them the request has: bits. */
unsigned wire_hints(const struct weir_http_request *req);

/** May it have any? Most have no field whose name is as long as theirs: 11 to 13 or 15. */
static inline bool wire_may_hint(const struct weir_http_request *req)
{
	uint32_t lengths = 0;

	for (int i = 0; i < req->n_headers; i++)
		lengths |= (uint32_t)1 << (req->headers[i].name.n % 32);
	return lengths & (7U << 11 | 1U << 15);
}

/**
 * The time the client says is left, in ns, from `x-deadline-ms: 250` or `grpc-timeout: 250m` (gRPC over
 * HTTP/2, "Timeout": up to eight digits and a unit H M S m u n), the shorter of both; -1 when it says nothing.
 * *malformed is set when a field was there and could not be read.
 */
int64_t wire_left_ns(const struct weir_http_request *req, bool *malformed);

/**
 * Which attempt it is by `x-retry-attempt: N`, 0..255: 0 the first, also when the client says nothing; of several fields
 * the highest. *malformed is set when a field was there and could not be read, else left as it is.
 */
int wire_attempt(const struct weir_http_request *req, bool *malformed);

/**
 * The trace that `traceparent` (W3C Trace Context) says the request belongs to; false, and *trace as it was, when it says
 * nothing. *malformed is set when it could not be read or was there more than once, else left as it is.
 */
bool wire_trace(const struct weir_http_request *req, struct weir_trace *trace, bool *malformed);

/** Is `text` something that wire_user understands: "", "address", "connection", "header.NAME"? */
bool wire_user_known(const char *text);

/** The user of a request by `text`, as a session number, 31 bits and never 0; 0 when `text` is empty or the request does
 *  not have it. */
uint32_t wire_user(const struct weir_http_request *req, const char *text);

/** Longest Retry-After that is computed, in s. Guess: by then everything is different. */
#define WIRE_RETRY_MAX_S 60

/**
 * Seconds for Retry-After of a refusal: `known_ns` (0: not known) rounded up, at most WIRE_RETRY_MAX_S, at least
 * `least_s`. With `spread` evenly from half of that to one and a half, by the bits of `seed`, in whole seconds and
 * with the same bounds: those who were refused together shall not come back together (overload.md 3.4).
 */
int wire_retry_after_s(int64_t known_ns, int least_s, bool spread, uint64_t seed);

#endif
