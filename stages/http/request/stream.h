/* SPDX-License-Identifier: MIT */
/*
 * The input side of a connection: bytes in, whole requests out. No sockets, no clock, no events.
 *
 *   HEAD --good, no body--------------------------------> request
 *     |  --good, body in the buffer--------------------->
 *     |  --good--> BODY (length known) or CHUNKED -------> request
 *     |  --good, in parts--> request, then PARTS or PARTS_CHUNKED into its transfer --> WHOLE
 *     |                        '--the request is dropped--> SKIP the rest --> HEAD, or ENDED
 *     '--bad--> ENDED; so does any later error: nothing is parsed after an error
 *
 * The reader gets space for bytes from stream_room(), reports their number with stream_got(), and
 * calls stream_next() until it returns MORE, REFUSED or TORN. Results do not depend on how the
 * bytes were split. One thread.
 */
#ifndef WEIR_HTTP_STREAM_H
#define WEIR_HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/message/chunk.h"
#include "http/request/pool.h"

enum stream_phase {
	STREAM_HEAD,
	STREAM_BODY,
	STREAM_CHUNKED,
	STREAM_PARTS,
	STREAM_PARTS_CHUNKED,
	STREAM_SKIP,
	STREAM_ENDED
};

enum stream_verdict {
	STREAM_MORE, /* more bytes are needed, or space in the transfer of `filling` */
	/* a request that is complete, or whose body is streamed; the caller owns it */
	STREAM_REQUEST,
	STREAM_REFUSED, /* answer with `status` and `why`, then close */
	STREAM_WHOLE,   /* a streamed or skipped body is complete: call again */
	/* The body is malformed or too long, or there is no memory; `status` says which. If
	 * `filling` is set, the caller marks its body as torn and parses no more. If it is NULL,
	 * the rest of an unwanted body was being skipped, and the caller closes the connection. */
	STREAM_TORN,
};

struct stream {
	struct rbuf *in;     /* NULL if there are no bytes to store */
	uint32_t start, end; /* the unused bytes of `in` are those from `start` up to `end` */
	uint32_t scanned;    /* bytes from start that the guard has checked without a verdict */
	uint8_t phase;       /* enum stream_phase */
	bool had_body_bytes; /* bytes of the body of `filling` have arrived */
	/* in SKIP: the body is chunked, so it may turn out to be too long to skip */
	bool skips_chunks;
	bool secure;     /* set by the owner: the bytes arrive over TLS */
	bool is_head;    /* the last head, complete or not, has the method HEAD */
	uint16_t status; /* after REFUSED and TORN; 503 if stream_room has found no memory */
	const char *why; /* after REFUSED; static */
	/* The request whose body is arriving. If it has a transfer, the request belongs to the
	 * owner of its event. */
	struct http_req *filling;
	struct chunk chunk;
	/* In BODY, PARTS and SKIP: bytes of the body that have not arrived yet. In SKIP of a
	 * chunked body: the maximum number of bytes that may still arrive, with chunk headers. */
	uint64_t body_left;
	size_t put; /* in PARTS: bytes put into the transfer that the stage cannot see yet */
};

/** Get space for the next bytes: sets `*room` and returns its size. Returns 0 if there is no
 * memory, or if the body is streamed and its transfer cannot take bytes now. Call stream_full
 * then. */
size_t stream_room(struct stream *s, struct pool *p, char **room);

/** Return the reason why stream_room has returned 0: MORE if the transfer must be emptied first.
 * Otherwise there is no memory: REFUSED or, if the body is streamed, TORN. */
enum stream_verdict stream_full(struct stream *s, struct pool *p);

/** Record that `n` bytes were put into the space from stream_room. stream_next must follow. */
void stream_got(struct stream *s, size_t n);

/** Parse the next request. `headers` is scratch space for WEIR_HTTP_HEADERS_MAX headers. */
enum stream_verdict stream_next(struct stream *s, struct pool *p, uint64_t max_body,
    struct weir_http_header *headers, struct http_req **r);

/** Whether the request that is arriving has the method HEAD. The head may be incomplete; only its
 * first bytes are examined. */
bool stream_asks_head(const struct stream *s);

/** Return the buffer to the pool if no byte in it is needed. Called when the connection is idle. */
void stream_rest(struct stream *s, struct pool *p);

/** Drop the buffered bytes and the incomplete request. */
void stream_fini(struct stream *s, struct pool *p);

/** Maximum number of bytes of an unwanted body that are skipped. If more are left, the connection
 * is closed; for a chunked body this is known only once they have arrived. 64 KiB is a guess: about
 * as much as the socket buffers on the path hold. */
#define STREAM_SKIP_MAX 65536

/** Whether the rest of the streamed body could be skipped if its request were dropped now. */
bool stream_can_skip(const struct stream *s);
/** Skip the rest of the streamed body, because its request is dropped before the body is complete.
 * Returns false if the rest is too long, in which case nothing more can be read. */
bool stream_leave(struct stream *s);
/** Stop reading the body; nothing more is parsed. */
void stream_cut(struct stream *s);

/** What a stream is in the middle of. */
enum stream_doing {
	STREAM_AT_REST,  /* nothing */
	STREAM_AT_HEAD,  /* bytes of a head, or of requests that are not parsed yet, are buffered */
	STREAM_IN_BODY,  /* a body is collected as a whole, or skipped */
	STREAM_IN_PARTS, /* a body is streamed */
};

static inline enum stream_doing stream_doing(const struct stream *s)
{
	switch (s->phase) {
	case STREAM_BODY:
	case STREAM_CHUNKED:
	case STREAM_SKIP:
		return STREAM_IN_BODY;
	case STREAM_PARTS:
	case STREAM_PARTS_CHUNKED:
		return STREAM_IN_PARTS;
	default:
		return s->end > s->start ? STREAM_AT_HEAD : STREAM_AT_REST;
	}
}

/** Whether a request has begun to arrive but is not complete. */
static inline bool stream_partial(const struct stream *s)
{
	return stream_doing(s) != STREAM_AT_REST;
}

/** Whether the client waits for "100 Continue" before it sends the body. */
static inline bool stream_wants_continue(const struct stream *s)
{
	return s->filling && s->filling->expect_continue && !s->had_body_bytes;
}

#endif
