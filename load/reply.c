/* SPDX-License-Identifier: MIT */
/* Parses HTTP responses; see reply.h. The parser pauses at the end of each response, so that the
 * bytes of a following pipelined response are left for the next call. */
#include "load/reply.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(XXH64_state_t) <= REPLY_HASH_BYTES, "the state of the hash fits");

/* The fields that mark a degraded response, and Content-Type. X-Weir-Degraded does so with any value; X-Quality, the
 * field of burn, has the share of the work that was done, and does so below 1. */
static const char *const mark[REPLY_MARKS] = {"x-weir-degraded", "x-quality", "content-type"};

enum { MARK_DEGRADED, MARK_QUALITY, MARK_TYPE };

#define NO_MATCH UINT8_MAX

static struct reply *of(llhttp_t *parser)
{
	return parser->data;
}

/* Return the number of bytes of `name` that have matched after p[0..n), if `matched` had before. */
static uint8_t match(const char *name, uint8_t matched, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (matched == NO_MATCH || (p[i] | 0x20) != name[matched])
			return NO_MATCH;
		matched++;
	}
	return matched;
}

/* The name of a header may arrive in pieces, so `matched` counts the bytes that have matched so
 * far. */
static int on_field(llhttp_t *parser, const char *p, size_t n)
{
	struct reply *r = of(parser);

	for (int i = 0; i < REPLY_MARKS; i++)
		r->matched[i] = match(mark[i], r->matched[i], p, n);
	return 0;
}

static int on_field_complete(llhttp_t *parser)
{
	struct reply *r = of(parser);
	bool whole[REPLY_MARKS];

	for (int i = 0; i < REPLY_MARKS; i++) {
		whole[i] = r->matched[i] != NO_MATCH && mark[i][r->matched[i]] == '\0';
		r->matched[i] = 0;
	}
	r->degraded |= whole[MARK_DEGRADED];
	r->quality_next = whole[MARK_QUALITY];
	r->type_next = whole[MARK_TYPE];
	if (r->type_next)
		r->n_type = 0;
	return 0;
}

/* A quality is at most 1, so its first byte tells whether it is below 1. */
static int on_value(llhttp_t *parser, const char *p, size_t n)
{
	struct reply *r = of(parser);

	if (r->quality_next && n > 0) {
		r->degraded |= *p == '0' || *p == '.';
		r->quality_next = false;
	}
	if (r->type_next && r->expect) {
		const size_t room = sizeof(r->type) - r->n_type, m = n < room ? n : room;
		memcpy(r->type + r->n_type, p, m);
		r->n_type = (uint8_t)(r->n_type + m);
	}
	return 0;
}

static int on_body(llhttp_t *parser, const char *p, size_t n)
{
	struct reply *r = of(parser);

	if (r->expect && r->expect->hashed)
		XXH64_update(r->hash, p, n);
	return 0;
}

/* Whether responses with this status have no body. Without this check, llhttp would expect the body
 * that Content-Length announces. */
static bool has_no_body(uint16_t status)
{
	return status / 100 == 1 || status == 204 || status == 304;
}

static int on_head(llhttp_t *parser)
{
	if (parser->http_major != 1 || parser->upgrade)
		return -1;
	return of(parser)->no_body || has_no_body(parser->status_code) ? 1 : 0;
}

static int on_whole(llhttp_t *parser)
{
	struct reply *r = of(parser);

	if (parser->status_code / 100 == 1) {
		r->degraded = false;
		r->n_type = 0;
		return 0;
	}
	r->status = parser->status_code;
	r->keep_alive = llhttp_should_keep_alive(parser);
	r->done = true;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_header_field = on_field,
    .on_header_field_complete = on_field_complete,
    .on_header_value = on_value,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_message_complete = on_whole,
};

void reply_init(struct reply *r, bool no_body)
{
	*r = (struct reply){.no_body = no_body};
	llhttp_init(&r->parser, HTTP_RESPONSE, &settings);
	r->parser.data = r;
}

void reply_expect(struct reply *r, const struct load_expect *expect, void *hash)
{
	r->expect = expect;
	r->hash = hash;
	if (expect->hashed)
		XXH64_reset(hash, 0);
}

bool reply_as_expected(const struct reply *r)
{
	const struct load_expect *e = r->expect;

	if (!e)
		return true;
	return (!e->type[0] || expect_type(e, r->type, r->n_type)) &&
	       (!e->hashed || XXH64_digest(r->hash) == e->hash);
}

enum reply_verdict reply_feed(struct reply *r, const char *p, size_t n, size_t *used)
{
	r->started = true;
	*used = n;
	llhttp_errno_t rc = llhttp_execute(&r->parser, p, n);
	if (r->done) {
		*used = (size_t)(llhttp_get_error_pos(&r->parser) - p);
		return REPLY_DONE;
	}
	return rc == HPE_OK ? REPLY_MORE : REPLY_MALFORMED;
}

enum reply_verdict reply_end(struct reply *r)
{
	if (r->started)
		llhttp_finish(&r->parser);
	return r->done ? REPLY_DONE : REPLY_MORE;
}
