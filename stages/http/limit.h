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

#include "http/server.h"

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

/** Maximum number of connections that are being refused with a response at the same time, in all
 * I/O threads together. 64 is a guess. */
#define LIMIT_REFUSING 64

/** Count limit `l` for a client that gets no response. */
void limit_count(struct http_io *io, enum limit l);
/** Count limit `l`, queue a response with the reason behind the pending responses, and close the
 * connection after it. */
void limit_refuse(struct conn *c, enum limit l);

/** Answer 503 to a client for which no connection could be created, and close its socket `fd`. Over
 * TLS no response is sent. */
void limit_tell(struct http_io *io, int fd);

/** Like conn_refuse, for refusals by the parser: also counts the limit that `status` represents, if
 * any. `why` is static. */
void limit_refuse_parsed(struct conn *c, int status, const char *why);

/** Check the limits per address for a new connection with `key` (clients.h), counted as connection
 * number `n` of its address. Returns -1 if they admit it, else the limit that it exceeds. May evict
 * connections, but only of the same address. I/O thread only. */
int limit_of_newcomer(struct http_io *io, uint64_t key, int64_t n);

/** Shortest wait after which a connection may be evicted. Younger ones are spared because browsers
 * open connections in advance. */
#define LIMIT_EVICT_AFTER_NS 1000000000LL

/** Whether a slot of max_connections is free. Connections being refused do not count. Threads that
 *  check at the same time may each admit a client to the last slot. */
bool limit_has_place(const struct http_io *io);

/**
 * Try to have `n` slots (1 or more) free, by closing connections of this I/O thread. Returns
 * whether they are free. With `waiting`, only connections without a request are closed.
 *
 * The server may have more than max_connections connections, because the knob was lowered or a
 * reload added some. In that case up to LIMIT_EVICT_RUN evictable connections are closed per call,
 * even if that does not free a slot. Otherwise each connection that is closed frees one of the `n`
 * slots.
 */
bool limit_make_places(struct http_io *io, int n, bool waiting);

/** Maximum number of connections that limit_make_places closes per call, at about 10 us each. 64 is
 * a guess. */
#define LIMIT_EVICT_RUN 64

/** Return the start of the wait of the connection that would be closed first, to free a slot if
 * `place` is set, else a descriptor. Returns INT64_MAX if no connection could be closed. */
int64_t limit_idle_since_ns(const struct http_io *io, bool place);

/** Close the connection that has waited longest without a request, to free its descriptor. Returns
 * false if none has waited for LIMIT_EVICT_AFTER_NS. */
bool limit_evict(struct http_io *io);

/** Reset a connection whose client reads its responses too slowly, to free the memory that the
 * responses hold. Returns false if there is no such connection. */
bool limit_evict_reader(struct http_io *io);

/** Return the limit of connections per address; INT64_MAX if there is none. */
int64_t limit_per_address(const struct http_conf *conf);

/** Raise the soft descriptor limit to what `max_connections` needs, as far as the hard limit
 * allows. */
void limit_raise_fds(const struct weir_stage *st, int64_t max_connections);

#endif
