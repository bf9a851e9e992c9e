/* SPDX-License-Identifier: MIT */
/*
 * What clients say about their requests beside what they ask for: how long they will wait, and who
 * they are.
 *
 * A client may shorten its own time, never lengthen anybody's: the time left it names becomes the
 * event's deadline. What can not be read is ignored and counted. Pure functions, any thread.
 */
#ifndef WEIR_HTTP_WIRE_H
#define WEIR_HTTP_WIRE_H

#include <weir/http.h>

/** Longest time left that is believed: an hour. Guess; nobody waits longer for an answer. */
#define WIRE_LEFT_MAX_NS 3600000000000

/**
 * The time the client says is left, in ns, from `x-deadline-ms: 250` or `grpc-timeout: 250m` (gRPC over
 * HTTP/2, "Timeout": up to eight digits and a unit H M S m u n), the shorter of both; -1 when it says nothing.
 * *malformed is set when a field was there and could not be read. About 1 ns per header field.
 */
int64_t wire_left_ns(const struct weir_http_request *req, bool *malformed);

/** Is `text` something that wire_user understands: "", "address", "connection", "header.NAME"? */
bool wire_user_known(const char *text);

/** The user of a request by `text`, as a session number, never 0; 0 when `text` is empty or the request does
 *  not have it. */
uint32_t wire_user(const struct weir_http_request *req, const char *text);

#endif
