/* SPDX-License-Identifier: MIT */
/*
 * The limits of http.server that a client can exceed: one row each, with the response text and the
 * metric.
 *
 * A response caused by a limit names it in X-Weir-Limit. Limits that close a connection without a
 * response (idle, a reader that is too slow, eviction) have only a metric. docs/http.md lists all
 * limits with their knobs.
 */
#ifndef WEIR_HTTP_LIMIT_H
#define WEIR_HTTP_LIMIT_H

#include "http/conn/conn.h"

/* Rows: name, metric, status, code in X-Weir-Limit, text. */
#define LIMITS(X)                                                                                  \
	X(CONNECTIONS, REFUSED, 503, "max_connections", "too many connections")                    \
	X(ADDRESS, REFUSED_ADDRESS, 503, "max_per_address",                                        \
	    "too many connections from your address")                                              \
	X(RATE, REFUSED_RATE, 503, "accept_rate", "too many new connections from your address")    \
	X(MEMORY, REFUSED_MEMORY, 503, "memory", "no memory for the request")                      \
	X(HEADER_TIME, TIMEOUTS_HEADER, 408, "header_timeout", "the request arrived too slowly")   \
	X(BODY_TIME, TIMEOUTS_BODY, 408, "body_timeout", "the body paused for too long")           \
	X(BODY_RATE, SLOW_BODIES, 408, "min_body_rate", "the body arrived too slowly")             \
	X(TARGET, LARGE_HEADS, 414, "target", "the target is too long")                            \
	X(HEAD, LARGE_HEADS, 431, "head", "the head is too large")                                 \
	X(BODY, LARGE_BODIES, 413, "max_body", "the body is too large")

enum limit {
#define LIMIT_ENUM(id, metric, status, code, text) LIMIT_##id,
	LIMITS(LIMIT_ENUM)
#undef LIMIT_ENUM
	    N_LIMITS
};

/** Count that a client has exceeded limit `l`. */
void limit_count(struct http_io *io, enum limit l);
/** Like conn_refuse, with the status and the text of limit `l`, which is counted. */
enum conn_next limit_refuse(struct conn *c, enum limit l);

/** Answer 503 to a client for which no connection could be created, and close its socket `fd`. Over
 * TLS no response is sent. */
void limit_tell(struct http_io *io, int fd);

/** Like conn_refuse, for refusals by the parser: also counts the limit that `status` represents, if
 * any. `why` is static. */
enum conn_next limit_refuse_parsed(struct conn *c, int status, const char *why);

/** Mark the streamed body as torn because of limit `l`, which is counted. The stage responds. */
void limit_tear(struct conn *c, enum limit l);
/** The same for a status of the parser; see limit_refuse_parsed. */
void limit_tear_parsed(struct conn *c, int status);

#endif
