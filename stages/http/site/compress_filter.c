/* SPDX-License-Identifier: MIT */
/*
 * The filter of http.compress; see compress.h.
 *
 * A whole answer is compressed in its head, and sent as it is if that does not make it shorter. The bytes of an
 * answer in parts pass the compressor as they come. When the stage that answers pauses, all bytes so far are
 * flushed, so that server-sent events and slow pages are not delayed; that costs a few bytes and some of the
 * ratio for each pause.
 */
#include <stdlib.h>
#include <string.h>

#include "http/request/filter.h"
#include "http/request/request.h"
#include "http/site/compress.h"
#include "http/site/cors.h"

/* Size of the buffer between a compressor and the ring. */
#define OUT_BYTES 8192

struct squeeze {
	struct http_filter filter; /* first */
	struct compress *c;
	struct codec *codec; /* of an answer in parts that is compressed */
	int64_t reserved;    /* bytes of c->used */
	int64_t in, out;
	bool dirty;   /* bytes since the last flush */
	size_t at, n; /* out_bytes[at..n) is not passed on yet */
	char out_bytes[];
};

/* ---- memory ---- */

static bool reserve(struct squeeze *s, int64_t bytes)
{
	const struct compress_conf *conf = weir_conf(s->c->stage);

	if (atomic_fetch_add(&s->c->used, bytes) + bytes > conf->memory) {
		atomic_fetch_sub(&s->c->used, bytes);
		weir_count(s->c->stage, COMPRESS_NO_MEMORY, 1);
		return false;
	}
	s->reserved += bytes;
	weir_count(s->c->stage, COMPRESS_MEMORY, bytes);
	return true;
}

static void release(struct squeeze *s)
{
	codec_free(s->codec);
	s->codec = NULL;
	if (s->reserved == 0)
		return;
	atomic_fetch_sub(&s->c->used, s->reserved);
	weir_count(s->c->stage, COMPRESS_MEMORY, -s->reserved);
	s->reserved = 0;
}

/* The level after `degrade`; 0: send the answer as it is. */
static int level_now(const struct compress *c, const struct compress_conf *conf)
{
	double less = weir_degradation(c->stage);

	if (less >= 0.95)
		return 0;
	int level = (int)((double)conf->level * (1 - less) + 0.5);
	return level > 1 ? level : 1;
}

/* ---- whole answers ---- */

/* Compress `body` to at most body.n bytes. Returns the result, *n bytes from malloc; NULL if it would not be
 * shorter, or out of memory. */
static char *squeeze_whole(struct codec *codec, struct weir_slice body, size_t *n)
{
	char *out = malloc(body.n);

	*n = body.n;
	if (out && codec_run(codec, CODEC_END, &body, out, n) == 1)
		return out;
	free(out);
	return NULL;
}

static int head_whole(struct squeeze *s, struct weir_http_request *req, enum encoding e, int level)
{
	struct weir_slice body = req->res.body;
	struct codec *codec = codec_new(e, level, (int64_t)body.n);
	size_t n;
	char *out = codec ? squeeze_whole(codec, body, &n) : NULL;

	codec_free(codec);
	if (!out) {
		weir_count(s->c->stage, COMPRESS_PLAIN, 1);
		return 0;
	}
	s->in = (int64_t)body.n;
	s->out = (int64_t)n;
	weir_count(s->c->stage, COMPRESS_ANSWERS, 1);
	int rc = response_replace_body(req, (struct weir_slice){out, n}, free, out);
	return rc == 0 ? compress_fields(req, e) : rc;
}

/* ---- heads ---- */

static enum encoding choose(const struct compress *c, const struct weir_http_request *req)
{
	struct encoding_wish wish;

	encoding_wish(req, &wish);
	return encoding_choose(&wish, c->order, c->n);
}

static int begin(
    struct squeeze *s, struct weir_http_request *req, enum encoding e, int level, int64_t *length)
{
	s->codec = codec_new(e, level, *length);
	if (!s->codec) {
		release(s);
		weir_count(s->c->stage, COMPRESS_PLAIN, 1);
		return 0;
	}
	*length = -1;
	weir_count(s->c->stage, COMPRESS_ANSWERS, 1);
	return compress_fields(req, e);
}

/* Whether the body of a whole answer is of a kind that can be compressed here: in memory, and not so long that
 * the thread would do nothing else for long. */
static bool body_may(const struct compress_conf *conf, const struct weir_http_response *res)
{
	return res->fd < 0 && res->n_pieces == 0 && res->body.n > 0 &&
	       (int64_t)res->body.n <= conf->max_whole;
}

static int squeeze_head(struct http_filter *f, struct weir_http_request *req, int64_t *length)
{
	struct squeeze *s = (struct squeeze *)f;
	const struct compress_conf *conf = weir_conf(s->c->stage);
	int64_t n = length ? *length : weir_http_body_bytes(&req->res);

	release(s); /* of an answer that could not begin */
	if (!compress_may(conf, req, n) || (!length && !body_may(conf, &req->res)))
		return 0;
	int rc = response_own_fields(req);
	rc = rc == 0 ? vary_on(req, "Accept-Encoding") : rc;
	enum encoding e = choose(s->c, req);
	if (rc != 0 || e >= ENCODING_IDENTITY || req->method == WEIR_HTTP_HEAD)
		return rc;
	int level = level_now(s->c, conf);
	if (level == 0 || !reserve(s, codec_bytes(e))) {
		weir_count(s->c->stage, COMPRESS_PLAIN, 1);
		return 0;
	}
	if (length)
		return begin(s, req, e, level, length);
	rc = head_whole(s, req, e, level);
	release(s);
	return rc;
}

/* ---- answers in parts ---- */

/* Pass on what is in the buffer. Returns whether all of it went, or WEIR_EGONE. */
static int pass(struct squeeze *s, struct weir_http_request *req)
{
	if (s->at == s->n)
		return 1;
	int64_t n = http_filter_write(
	    &s->filter, req, (struct weir_slice){s->out_bytes + s->at, s->n - s->at});
	if (n < 0)
		return (int)n;
	s->at += (size_t)n;
	return s->at == s->n;
}

/* Compress bytes of *in to the buffer, which is empty. Returns as codec_run. */
static int fill(struct squeeze *s, enum codec_op op, struct weir_slice *in)
{
	size_t before = in->n;

	s->at = 0;
	s->n = OUT_BYTES;
	int rc = codec_run(s->codec, op, in, s->out_bytes, &s->n);
	if (rc < 0)
		s->n = 0;
	s->in += (int64_t)(before - in->n);
	s->out += (int64_t)s->n;
	return rc;
}

static int64_t squeeze_data(
    struct http_filter *f, struct weir_http_request *req, struct weir_slice data)
{
	struct squeeze *s = (struct squeeze *)f;
	const size_t all = data.n;

	if (!s->codec)
		return http_filter_write(f, req, data);
	for (;;) {
		int rc = pass(s, req);
		if (rc < 0)
			return rc;
		if (rc == 0 || data.n == 0)
			return (int64_t)(all - data.n);
		s->dirty = true;
		if (fill(s, CODEC_RUN, &data) < 0)
			return WEIR_EGONE; /* the answer cannot go on */
	}
}

/* Do the last step of a flush or of the answer; all bytes are taken. */
static void finish(struct squeeze *s, struct weir_http_request *req, enum codec_op op)
{
	struct weir_slice none = {"", 0};
	int rc = 0;

	while (rc == 0 && pass(s, req) == 1)
		rc = fill(s, op, &none);
	if (rc == 1)
		pass(s, req);
	else if (rc < 0)
		http_filter_lost(req);
	s->dirty = false;
}

static void squeeze_flush(struct http_filter *f, struct weir_http_request *req)
{
	struct squeeze *s = (struct squeeze *)f;

	if (s->codec && (s->dirty || s->at < s->n))
		finish(s, req, CODEC_FLUSH);
}

static void squeeze_end(struct http_filter *f, struct weir_http_request *req, int status)
{
	struct squeeze *s = (struct squeeze *)f;

	if (s->codec && status == WEIR_OK && req->res.streamed)
		finish(s, req, CODEC_END);
	release(s);
	if (s->in > 0) {
		weir_count(s->c->stage, COMPRESS_IN, s->in);
		weir_count(s->c->stage, COMPRESS_OUT, s->out);
	}
	free(s);
}

static const struct http_filter_ops ops = {
    .head = squeeze_head, .data = squeeze_data, .flush = squeeze_flush, .end = squeeze_end};

bool compress_watch(struct compress *c, struct weir_http_request *req)
{
	if (http_filter_find(req, &ops))
		return true; /* another stage of this type compresses already */
	struct squeeze *s = malloc(sizeof(*s) + OUT_BYTES);
	if (!s)
		return false;
	*s = (struct squeeze){.filter.ops = &ops, .c = c};
	http_filter_add(req, &s->filter);
	return true;
}
