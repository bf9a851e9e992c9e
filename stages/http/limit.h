/* SPDX-License-Identifier: MIT */
/*
 * The limits of http.server that a client can run into: one row each, with what the client is told and what is counted.
 *
 * An answer that a limit causes names it in X-Weir-Limit; limits that end a connection without an answer (idle, a
 * reader that is too slow, eviction) have a metric alone. docs/http.md lists all with their knobs.
 */
#ifndef WEIR_HTTP_LIMIT_H
#define WEIR_HTTP_LIMIT_H

#include "http/server.h"

/* Rows: name, metric, status, code in X-Weir-Limit, text. */
#define LIMITS(X)                                                                                  \
	X(CONNECTIONS, REFUSED, 503, "max_connections", "too many connections")                    \
	X(ADDRESS, REFUSED_ADDRESS, 503, "max_per_address",                                        \
	    "too many connections of your address")                                                \
	X(RATE, REFUSED_RATE, 503, "accept_rate", "too many new connections of your address")      \
	X(MEMORY, REFUSED_MEMORY, 503, "memory", "there is no memory for the request")             \
	X(HEADER_TIME, TIMEOUTS_HEADER, 408, "header_timeout", "the request came too slowly")      \
	X(BODY_TIME, TIMEOUTS_BODY, 408, "body_timeout", "the body paused for too long")           \
	X(BODY_RATE, SLOW_BODIES, 408, "min_body_rate", "the body came too slowly")                \
	X(TARGET, LARGE_HEADS, 414, "target", "the target is too long")                            \
	X(HEAD, LARGE_HEADS, 431, "head", "the head is too large")                                 \
	X(BODY, LARGE_BODIES, 413, "max_body", "the body is too large")

enum limit {
#define LIMIT_ENUM(id, metric, status, code, text) LIMIT_##id,
	LIMITS(LIMIT_ENUM)
#undef LIMIT_ENUM
	    N_LIMITS
};

/** Connections that are refused, and told so before they are closed, at the same time, of all I/O threads: a guess. */
#define LIMIT_REFUSING 64

/** Count it, for a client who is not told. */
void limit_count(struct http_io *io, enum limit l);
/** Count it, answer in turn with the reason, then close. */
void limit_refuse(struct conn *c, enum limit l);

/** Tell a client for whom there is not even a connection that it may come again, and close its socket `fd`. Over TLS it is told
 *  nothing. */
void limit_tell(struct http_io *io, int fd);

/** As conn_refuse, for what the parser refuses: a status that stands for a limit is counted as that. `why` is static. */
void limit_refuse_parsed(struct conn *c, int status, const char *why);

/** May a client with `key` (crowd.h), which has entered as its address's `n`-th connection, be served as far as that address
 *  goes? -1 if so, else the limit. Its own connections may be closed for it; no others. The I/O thread. */
int limit_of_newcomer(struct http_io *io, uint64_t key, int64_t n);

/** A connection is not evicted before it has waited so long: a browser opens some in advance. */
#define LIMIT_EVICT_AFTER_NS 1000000000LL

/** Is there a place of max_connections? Who is being refused has none. */
bool limit_has_place(const struct http_io
	*io); /* I/O threads that look at once may let in one each for the last one */

/**
 * See to it that `n` places (1 or more) are free, by closing connections of this I/O thread; returns whether they are. `waiting`:
 * only those without a request.
 *
 * What is beyond max_connections, since that was lowered or a reload brought them, is brought down in its own right: those that
 * may make room are closed, LIMIT_EVICT_RUN a call, whether or not it is enough. Below that nobody is closed in vain: one
 * goes for each place.
 */
bool limit_make_places(struct http_io *io, int n, bool waiting);

/** Connections that limit_make_places closes in one call, about 10 us each: a guess. */
#define LIMIT_EVICT_RUN 64

/** Since when the connection waits that would be closed first for a `place`, or else for a descriptor; INT64_MAX: there is none. */
int64_t limit_idle_since_ns(const struct http_io *io, bool place);

/** Close the connection that has waited longest without a request, so that its descriptor can be another's. Returns whether there
 *  was one that has waited for a moment. */
bool limit_make_room(struct http_io *io);

/** Reset a connection whose client takes its answers too slowly, so that what they hold is given back. Returns whether there
 *  was one. */
bool limit_evict_reader(struct http_io *io);

/** Connections that one address may have; INT64_MAX: any number. */
int64_t limit_per_address(const struct http_conf *conf);

/** Raise the soft limit of descriptors to what `max_connections` needs, as far as the hard one allows. */
void limit_raise_fds(const struct weir_stage *st, int64_t max_connections);

#endif
