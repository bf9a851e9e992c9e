/* SPDX-License-Identifier: MIT */
/*
 * The input side of a connection: bytes in, whole requests out. No sockets, no clock, no events.
 *
 *        HEAD --good, no body--------------------------------> request
 *          |  --good, body in the buffer--------------------->
 *          |  --good--> BODY (length known) or CHUNKED -------> request
 *          |  --good, in parts---> request, then BODY or CHUNKED into its transfer --> WHOLE
 *          |                                   '--the request leaves--> SKIP the rest --> HEAD, or ENDED
 *          '--bad--> ENDED, and so does anything bad later: nothing is parsed after an error
 *
 * The reader asks stream_room() where to put bytes, says how many came with stream_got(), and calls
 * stream_next() until it answers MORE or REFUSED. Results do not depend on how the bytes were
 * split. One thread.
 */
#ifndef WEIR_HTTP_STREAM_H
#define WEIR_HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/chunk.h"
#include "http/pool.h"

enum stream_phase { STREAM_HEAD, STREAM_BODY, STREAM_CHUNKED, STREAM_SKIP, STREAM_ENDED };

enum stream_verdict {
	STREAM_MORE,    /* more bytes are needed, or room in the transfer of `filling` */
	STREAM_REQUEST, /* a request is complete, or its body comes in parts: the caller's */
	STREAM_REFUSED, /* answer `status` (`why`) and close */
	STREAM_WHOLE,   /* the body that came in parts is complete: call again */
	STREAM_TORN, /* it is malformed or too long, `status`: tear it, and parse no more; without `filling` it was being skipped */
};

struct stream {
	struct rbuf *in;     /* NULL while there is nothing to keep */
	uint32_t start, end; /* bytes of `in` not yet used */
	uint32_t scanned;    /* bytes from start that the guard has seen without a verdict */
	uint8_t phase;       /* enum stream_phase */
	bool had_body_bytes; /* of `filling` */
	bool skips_chunks;   /* SKIP: the body is chunked, and may be longer than what is skipped */
	bool secure;         /* set by the owner: the bytes come over TLS */
	bool is_head;        /* the last head, or what has come of it, asks with HEAD */
	uint16_t status;     /* after REFUSED */
	const char *why;     /* likewise, static */
	struct http_req
	    *filling; /* its body is arriving; with a transfer it is not ours any more */
	struct chunk chunk;
	uint64_t
	    body_left; /* BODY, SKIP: bytes still to come; of a chunked body, with its coding, that may */
};

/** Where the next bytes go: `*room` gets the place, at least 1 byte is returned; 0: out of memory.
 */
size_t stream_room(struct stream *s, struct pool *p, char **room);

/** `n` bytes were put there. */
void stream_got(struct stream *s, size_t n);

/** The next request. `headers` is scratch for WEIR_HTTP_HEADERS_MAX. */
enum stream_verdict stream_next(struct stream *s, struct pool *p, uint64_t max_body,
    struct weir_http_header *headers, struct http_req **r);

/** Does the request that comes, as far as it has come, ask with HEAD? Whether or not stream_next has looked at it. */
bool stream_asks_head(const struct stream *s);

/** Give the buffer back if no byte in it is needed. Cheap; call when idle. */
void stream_rest(struct stream *s, struct pool *p);

/** Drop everything. */
void stream_fini(struct stream *s, struct pool *p);

/** A body that nobody wants any more is read to its end when so much is left, and the connection closed when more, which of a
 *  chunked one shows on the way: a guess, what fits the buffers of the way anyway. */
#define STREAM_SKIP_MAX 65536

/** Could the rest of the body in parts be skipped, if its request left now? */
bool stream_can_skip(const struct stream *s);
/** The request whose body arrives in parts leaves before it is complete. False: the rest is too long, nothing more can be
 *  read. */
bool stream_leave(struct stream *s);
/** No more of it will be read: nothing is parsed from here on. */
void stream_cut(struct stream *s);

/** Does a body arrive in parts? */
static inline bool stream_in_parts(const struct stream *s)
{
	return s->filling && s->filling->transfer;
}

/** Has a request begun that is not complete? */
static inline bool stream_partial(const struct stream *s)
{
	return s->filling != NULL || s->end > s->start || s->phase == STREAM_SKIP;
}

/** Does the client wait for "100 Continue" before it sends the body? */
static inline bool stream_wants_continue(const struct stream *s)
{
	return s->filling && s->filling->expect_continue && !s->had_body_bytes;
}

#endif
