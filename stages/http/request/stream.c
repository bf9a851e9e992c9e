/* SPDX-License-Identifier: MIT */
/*
 * Turns bytes into requests; see stream.h.
 *
 * Requests in flight point into the read buffer, so its contents must not move: new bytes are
 * appended. When the buffer is full, the unfinished rest is copied to its beginning if no request
 * refers to the buffer, else to another buffer. A body of known length is read directly into
 * separate memory. This memory grows as bytes arrive, so that a client cannot make the server
 * allocate memory by announcing a large body without sending it.
 */
#include "http/request/stream.h"

#include <string.h>

#include "http/message/parse.h"
#include "http/request/transfer.h"

/* Minimum free space for a read; if there is less, the rest is moved first. 512 is a guess: with
 * half of a small buffer more would be copied, with a few bytes there would be more reads. */
#define ROOM_MIN 512

static enum stream_verdict refuse(struct stream *s, struct pool *p, int status, const char *why)
{
	if (s->filling)
		pool_req_drop(p, s->filling);
	s->filling = NULL;
	s->phase = STREAM_ENDED;
	s->status = (uint16_t)status;
	s->why = why;
	return STREAM_REFUSED;
}

static enum stream_verdict refuse_memory(struct stream *s, struct pool *p)
{
	return refuse(s, p, 503, "no memory for the request");
}

/* ---- space for bytes ---- */

/* Move the unfinished rest to another buffer, because this one is too small or its contents must
 * not move. */
static bool change_buffer(struct stream *s, struct pool *p, uint32_t size)
{
	struct rbuf *b = pool_buf(p, size);

	if (!b)
		return false;
	memcpy(b->data, s->in->data + s->start, s->end - s->start);
	pool_buf_drop(p, s->in);
	s->in = b;
	s->end -= s->start;
	s->start = 0;
	return true;
}

static bool make_room(struct stream *s, struct pool *p)
{
	uint32_t rest = s->end - s->start;
	/* Use a large buffer for the chunks of a long body: 300 MB then take 18,000 reads, not
	 * 57,000. */
	bool small = rest + ROOM_MIN <= POOL_SMALL_BYTES && s->phase != STREAM_PARTS_CHUNKED;
	uint32_t size = small ? POOL_SMALL_BYTES : POOL_LARGE_BYTES;

	if (!s->in) {
		s->start = s->end = 0;
		s->in = pool_buf(p, POOL_SMALL_BYTES);
		return s->in != NULL;
	}
	if (rest == 0 && s->in->refs == 1)
		s->start = s->end = 0;
	if (s->in->size - s->end >= ROOM_MIN)
		return true;
	if (s->in->refs > 1 || s->in->size < size)
		return change_buffer(s, p, size);
	/* A large buffer has at least one free byte after this: the guard reaches a verdict before
	 * a head fills it. */
	memmove(s->in->data, s->in->data + s->start, rest);
	s->start = 0;
	s->end = rest;
	return true;
}

static size_t no_memory(struct stream *s)
{
	s->status = 503;
	return 0;
}

static size_t body_room(struct stream *s, struct pool *p, char **room)
{
	struct http_req *r = s->filling;

	if (pool_body_room(p, r, 1, r->body_n + s->body_left) != 0)
		return no_memory(s);
	uint64_t n = r->body_size - r->body_n;
	*room = r->body_mem + r->body_n;
	return n < s->body_left ? n : s->body_left;
}

/* Get space to read directly into the transfer. Returns 0 while earlier bytes of the body are still
 * in the buffer. */
static size_t part_room(struct stream *s, char **room)
{
	size_t n = s->start == s->end ? transfer_room(s->filling->transfer, room) : 0;

	return n < s->body_left ? n : s->body_left;
}

size_t stream_room(struct stream *s, struct pool *p, char **room)
{
	switch (s->phase) {
	case STREAM_BODY:
		return body_room(s, p, room);
	case STREAM_PARTS:
		return part_room(s, room);
	default:
		if (!make_room(s, p))
			return no_memory(s);
		*room = s->in->data + s->end;
		return s->in->size - s->end;
	}
}

enum stream_verdict stream_full(struct stream *s, struct pool *p)
{
	if (s->status != 503)
		return STREAM_MORE;
	return s->phase == STREAM_PARTS_CHUNKED ? STREAM_TORN : refuse_memory(s, p);
}

void stream_got(struct stream *s, size_t n)
{
	s->had_body_bytes = s->filling != NULL;
	switch (s->phase) {
	case STREAM_BODY:
		WEIR_ASSERT(s->filling != NULL);
		s->filling->body_n += n;
		break;
	case STREAM_PARTS:
		WEIR_ASSERT(s->put == 0);
		s->put = n;
		break;
	default:
		s->end += (uint32_t)n;
		return;
	}
	WEIR_ASSERT(s->filling && n <= s->body_left);
	s->body_left -= n;
}

/* ---- requests ---- */

static enum stream_verdict complete(struct stream *s, struct http_req **out)
{
	struct http_req *r = s->filling;

	if (r->body_mem)
		r->pub.body = (struct weir_slice){r->body_mem, r->body_n};
	s->filling = NULL;
	s->phase = STREAM_HEAD;
	*out = r;
	return STREAM_REQUEST;
}

/* ---- streamed bodies ---- */

static enum stream_verdict part_whole(struct stream *s)
{
	transfer_end(s->filling->transfer);
	s->filling = NULL;
	s->phase = STREAM_HEAD;
	return STREAM_WHOLE;
}

static enum stream_verdict part_torn(struct stream *s, int status)
{
	s->status = (uint16_t)status;
	return STREAM_TORN;
}

static enum stream_verdict next_part(struct stream *s)
{
	uint64_t have = s->end - s->start;
	struct weir_slice data = {NULL, have < s->body_left ? have : s->body_left};

	if (s->put > 0)
		transfer_put(s->filling->transfer, s->put);
	s->put = 0;
	if (data.n > 0) {
		data.p = s->in->data + s->start;
		size_t n = transfer_copy(s->filling->transfer, data);
		s->start += (uint32_t)n;
		s->body_left -= n;
	}
	return s->body_left == 0 ? part_whole(s) : STREAM_MORE;
}

/* Decode chunks into the transfer. Decoding never increases the number of bytes, so the input is
 * limited to the number of bytes that are free in the transfer. */
static enum stream_verdict next_part_chunks(struct stream *s)
{
	struct transfer *t = s->filling->transfer;
	enum chunk_verdict v = CHUNK_DATA;
	char *room;
	size_t n;

	while (v != CHUNK_END && s->start < s->end && (n = transfer_room(t, &room)) > 0) {
		const char *at = s->in->data + s->start;
		struct weir_slice data;
		n = n < s->end - s->start ? n : s->end - s->start;
		v = chunk_next(&s->chunk, &at, at + n, &data);
		s->start = (uint32_t)(at - s->in->data);
		if (v == CHUNK_BAD)
			return part_torn(s, 400);
		if (v == CHUNK_LARGE)
			return part_torn(s, 413);
		if (v == CHUNK_DATA)
			transfer_copy(t, data);
	}
	return v == CHUNK_END ? part_whole(s) : STREAM_MORE;
}

/* Emit the request now, with a ring of at least `size` bytes for its body. */
static enum stream_verdict begin_parts(
    struct stream *s, struct pool *p, size_t size, struct http_req **out)
{
	struct http_req *r = s->filling;
	struct transfer *t = transfer_new(r, p);

	if (!t || transfer_open_body(t, size > p->part_bytes ? size : p->part_bytes) != 0) {
		if (t)
			transfer_drop(t);
		return refuse_memory(s, p);
	}
	r->transfer = t;
	s->phase = s->phase == STREAM_CHUNKED ? STREAM_PARTS_CHUNKED : STREAM_PARTS;
	s->put = 0;
	*out = r;
	return STREAM_REQUEST;
}

/* Switch to a streamed body, because more of a body of unknown length has arrived than may be
 * collected in memory. */
static enum stream_verdict turn_to_parts(struct stream *s, struct pool *p, struct http_req **out)
{
	struct http_req *r = s->filling;
	enum stream_verdict v = begin_parts(s, p, r->body_n, out);

	if (v == STREAM_REQUEST) {
		transfer_copy(r->transfer, (struct weir_slice){r->body_mem, r->body_n});
		pool_body_drop(p, r);
	}
	return v;
}

/* Skip the rest of a chunked body. The chunks must be parsed to find the start of the next
 * request. */
static enum stream_verdict skip_chunks(struct stream *s)
{
	uint64_t have = s->end - s->start, n = have < s->body_left ? have : s->body_left;
	const char *at = s->in->data + s->start, *from = at, *end = at + n;
	enum chunk_verdict v = CHUNK_DATA;
	struct weir_slice data;

	while (v == CHUNK_DATA)
		v = chunk_next(&s->chunk, &at, end, &data);
	s->start += (uint32_t)(at - from);
	s->body_left -= (uint64_t)(at - from);
	if (v == CHUNK_MORE && s->body_left > 0)
		return STREAM_MORE;
	s->phase = v == CHUNK_END ? STREAM_HEAD : STREAM_ENDED;
	s->status = v == CHUNK_LARGE ? 413 : 400;
	return v == CHUNK_END ? STREAM_WHOLE : STREAM_TORN;
}

static enum stream_verdict skip(struct stream *s)
{
	if (s->skips_chunks)
		return s->start < s->end ? skip_chunks(s) : STREAM_MORE;
	uint64_t have = s->end - s->start, n = have < s->body_left ? have : s->body_left;

	s->start += (uint32_t)n;
	s->body_left -= n;
	if (s->body_left > 0)
		return STREAM_MORE;
	s->phase = STREAM_HEAD;
	return STREAM_WHOLE;
}

bool stream_can_skip(const struct stream *s)
{
	return (s->phase == STREAM_PARTS && s->body_left <= STREAM_SKIP_MAX) ||
	       s->phase == STREAM_PARTS_CHUNKED;
}

bool stream_leave(struct stream *s)
{
	bool can = stream_can_skip(s);

	s->filling = NULL;
	s->skips_chunks = s->phase == STREAM_PARTS_CHUNKED;
	if (s->skips_chunks)
		s->body_left = STREAM_SKIP_MAX;
	s->phase = can ? STREAM_SKIP : STREAM_ENDED;
	return can;
}

void stream_cut(struct stream *s)
{
	s->filling = NULL;
	s->phase = STREAM_ENDED;
}

/* ---- bodies collected as a whole ---- */

static enum stream_verdict next_chunks(struct stream *s, struct pool *p, struct http_req **out)
{
	const char *at = s->in->data + s->start, *end = s->in->data + s->end;
	struct http_req *r = s->filling;
	enum chunk_verdict v = CHUNK_DATA;
	struct weir_slice data;

	while (v == CHUNK_DATA) {
		v = chunk_next(&s->chunk, &at, end, &data);
		if (v == CHUNK_DATA &&
		    pool_body_append(p, r, data, r->body_n + data.n + s->chunk.room) != 0)
			return refuse_memory(s, p);
	}
	s->start = (uint32_t)(at - s->in->data);
	switch (v) {
	case CHUNK_END:
		return complete(s, out);
	case CHUNK_BAD:
		return refuse(s, p, 400, "the chunked body is malformed");
	case CHUNK_LARGE:
		return refuse(s, p, 413, "the body is too large");
	default:
		if (p->part_over > 0 && r->body_n > p->part_over)
			return turn_to_parts(s, p, out);
		return STREAM_MORE;
	}
}

/* Whether the body is to be streamed. A chunked body is streamed from the start if the client waits
 * for "100 Continue", so that the client is not told to send a body that no stage needs. */
static bool in_parts(const struct stream *s, const struct pool *p, const struct http_head *head)
{
	if (p->part_over == 0)
		return false;
	if (head->chunked)
		return head->expect_continue;
	return head->content_length > p->part_over && head->content_length > s->end - s->start;
}

/* Begin a body after its head has been consumed. The body is complete if all of it is in the
 * buffer. Otherwise the bytes that have arrived are copied to separate memory, into which the rest
 * is read. */
static enum stream_verdict begin_body(
    struct stream *s, struct pool *p, uint64_t length, struct http_req **out)
{
	struct weir_slice have = {s->in->data + s->start, s->end - s->start};

	if (have.n >= length) {
		s->filling->pub.body = (struct weir_slice){have.p, length};
		s->start += (uint32_t)length;
		return complete(s, out);
	}
	s->phase = STREAM_BODY;
	s->body_left = length - have.n;
	s->start = s->end;
	if (have.n > 0 && pool_body_append(p, s->filling, have, length) != 0)
		return refuse_memory(s, p);
	return STREAM_MORE;
}

static enum stream_verdict begin(struct stream *s, struct pool *p, const struct http_head *head,
    uint64_t max_body, struct http_req **out)
{
	struct http_req *r;
	uint64_t held = 0;

	if (head->content_length > max_body)
		return refuse(s, p, 413, "the body is too large");
	r = pool_req(p);
	if (!r || request_fill(r, head, &held) != 0) {
		s->filling = r;
		return refuse_memory(s, p);
	}
	r->in = s->in;
	pool_buf_ref(s->in);
	r->wire_bytes = head->n;
	if (held > 0) {
		r->held_bytes = held;
		pool_hold(p, (int64_t)held);
	}
	s->filling = r;
	s->start += (uint32_t)head->n;
	s->scanned = 0;
	s->had_body_bytes = s->end > s->start;
	s->phase = head->chunked ? STREAM_CHUNKED : STREAM_BODY;
	s->body_left = head->content_length;
	if (head->chunked)
		chunk_init(&s->chunk, max_body);
	if (in_parts(s, p, head))
		return begin_parts(s, p, 0, out);
	if (!head->chunked)
		return begin_body(s, p, head->content_length, out);
	return next_chunks(s, p, out);
}

/* Whether a head has the method HEAD, even if the rest of it is wrong or missing. The response to
 * HEAD has no body. */
static bool asks_head(const char *p, size_t n)
{
	size_t skip = n >= 2 && p[0] == '\r' && p[1] == '\n' ? 2 : 0;

	return n - skip >= 5 && memcmp(p + skip, "HEAD ", 5) == 0;
}

bool stream_asks_head(const struct stream *s)
{
	if (s->phase != STREAM_HEAD)
		return s->is_head;
	return s->end > s->start && asks_head(s->in->data + s->start, s->end - s->start);
}

static enum stream_verdict next_head(struct stream *s, struct pool *p, uint64_t max_body,
    struct weir_http_header *headers, struct http_req **out)
{
	struct http_head head; /* guard_head clears the rest */
	const char *at;
	uint32_t n = s->end - s->start;

	if (n == 0)
		return STREAM_MORE;
	at = s->in->data + s->start;
	s->is_head = asks_head(at, n);
	if (s->scanned > 0 && !guard_news(at, s->scanned, n)) {
		s->scanned = n;
		return STREAM_MORE;
	}
	head.headers = headers;
	head.secure = s->secure;
	head.methods = p->methods;
	enum guard_verdict v = parse_head(at, n, &head);
	switch (v) {
	case GUARD_GOOD:
		return begin(s, p, &head, max_body, out);
	case GUARD_REFUSED:
		return refuse(s, p, head.status, head.why);
	default:
		s->scanned = n;
		return STREAM_MORE;
	}
}

enum stream_verdict stream_next(struct stream *s, struct pool *p, uint64_t max_body,
    struct weir_http_header *headers, struct http_req **out)
{
	switch (s->phase) {
	case STREAM_HEAD:
		return next_head(s, p, max_body, headers, out);
	case STREAM_SKIP:
		return skip(s);
	case STREAM_BODY:
		return s->body_left == 0 ? complete(s, out) : STREAM_MORE;
	case STREAM_CHUNKED:
		return next_chunks(s, p, out);
	case STREAM_PARTS:
		return next_part(s);
	case STREAM_PARTS_CHUNKED:
		return next_part_chunks(s);
	default:
		return STREAM_MORE;
	}
}

void stream_rest(struct stream *s, struct pool *p)
{
	if (!s->in || s->start != s->end || s->filling)
		return;
	pool_buf_drop(p, s->in);
	s->in = NULL;
	s->start = s->end = 0;
}

void stream_fini(struct stream *s, struct pool *p)
{
	if (s->phase == STREAM_BODY || s->phase == STREAM_CHUNKED)
		pool_req_drop(p, s->filling);
	s->filling = NULL;
	if (s->in)
		pool_buf_drop(p, s->in);
	s->in = NULL;
	s->start = s->end = s->scanned = 0;
	s->phase = STREAM_ENDED;
}
