/* SPDX-License-Identifier: MIT */
/*
 * gzip (zlib), zstd and br (brotli); see codec.h.
 *
 * Windows are small, 32 KiB (gzip) to 256 KiB, since thousands of answers may be compressed at once. Pages of
 * a site are seldom longer, and browsers accept windows of up to 8 MiB for zstd (RFC 8878, 3.1.1.1.2).
 */
#include "http/site/codec.h"

#include <stdlib.h>
#include <string.h>

#ifdef WEIR_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef WEIR_HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef WEIR_HAVE_BROTLI
#include <brotli/encode.h>
#endif

/* Highest quality of br: the next ones take 12 to 39 MB for each answer. */
#define BROTLI_QUALITY_MAX 6
/* Binary logarithms of the windows of zstd and br. */
#define WINDOW_LOG 18

struct codec {
	enum encoding encoding;
	void *state;
};

/* The least log >= `low` of a window that holds `length` bytes, at most `high`. */
static int window_log(int64_t length, int low, int high)
{
	int log = low;

	while (log < high && (length < 0 || (int64_t)1 << log < length))
		log++;
	return log;
}

/* ---- gzip ---- */

#ifdef WEIR_HAVE_ZLIB
static void *zlib_new(int level, int64_t length)
{
	z_stream *z = calloc(1, sizeof(*z));

	/* 16: the format gzip. A window of 256 bytes, log 8, would become 9 in zlib. */
	if (z && deflateInit2(z, level, Z_DEFLATED, 16 + window_log(length, 9, 15), 8,
		     Z_DEFAULT_STRATEGY) != Z_OK) {
		free(z);
		return NULL;
	}
	return z;
}

static int zlib_run(z_stream *z, enum codec_op op, struct weir_slice *in, char *out, size_t *n)
{
	static const int flush[] = {Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FINISH};
	const size_t room = *n;

	z->next_in = (Bytef *)(uintptr_t)in->p;
	z->avail_in = in->n < UINT32_MAX ? (uInt)in->n : UINT32_MAX;
	z->next_out = (Bytef *)out;
	z->avail_out = room < UINT32_MAX ? (uInt)room : UINT32_MAX;
	size_t given = z->avail_in, space = z->avail_out;
	int rc = deflate(z, flush[op]);
	size_t taken = given - z->avail_in;
	if (taken > 0) {
		in->p += taken;
		in->n -= taken;
	}
	*n = space - z->avail_out;
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		return -1;
	return op == CODEC_END ? rc == Z_STREAM_END : in->n == 0 && z->avail_out > 0;
}
#endif

/* ---- zstd ---- */

#ifdef WEIR_HAVE_ZSTD
static void *zstd_new(int level, int64_t length)
{
	ZSTD_CCtx *z = ZSTD_createCCtx();
	int window = window_log(length, 10, WINDOW_LOG), table = window < 17 ? window + 1 : 17;
	const struct {
		ZSTD_cParameter name;
		int value;
	} set[] = {{ZSTD_c_compressionLevel, level}, {ZSTD_c_windowLog, window},
	    {ZSTD_c_hashLog, table}, {ZSTD_c_chainLog, table}};
	bool good = z != NULL;

	for (size_t i = 0; good && i < sizeof(set) / sizeof(set[0]); i++)
		good = !ZSTD_isError(ZSTD_CCtx_setParameter(z, set[i].name, set[i].value));
	if (good)
		return z;
	ZSTD_freeCCtx(z);
	return NULL;
}

static int zstd_run(ZSTD_CCtx *z, enum codec_op op, struct weir_slice *in, char *out, size_t *n)
{
	static const ZSTD_EndDirective end[] = {ZSTD_e_continue, ZSTD_e_flush, ZSTD_e_end};
	ZSTD_inBuffer from = {in->p, in->n, 0};
	ZSTD_outBuffer to = {out, *n, 0};
	size_t left = ZSTD_compressStream2(z, &to, &from, end[op]);

	*n = to.pos;
	if (from.pos > 0) {
		in->p += from.pos;
		in->n -= from.pos;
	}
	if (ZSTD_isError(left))
		return -1;
	return op == CODEC_RUN ? in->n == 0 : left == 0;
}
#endif

/* ---- br ---- */

#ifdef WEIR_HAVE_BROTLI
static void *brotli_new(int level, int64_t length)
{
	BrotliEncoderState *b = BrotliEncoderCreateInstance(NULL, NULL, NULL);

	if (!b)
		return NULL;
	BrotliEncoderSetParameter(b, BROTLI_PARAM_QUALITY,
	    (uint32_t)(level < BROTLI_QUALITY_MAX ? level : BROTLI_QUALITY_MAX));
	BrotliEncoderSetParameter(
	    b, BROTLI_PARAM_LGWIN, (uint32_t)window_log(length, 10, WINDOW_LOG));
	if (length >= 0 && length < UINT32_MAX)
		BrotliEncoderSetParameter(b, BROTLI_PARAM_SIZE_HINT, (uint32_t)length);
	return b;
}

static int brotli_run(
    BrotliEncoderState *b, enum codec_op op, struct weir_slice *in, char *out, size_t *n)
{
	static const BrotliEncoderOperation what[] = {
	    BROTLI_OPERATION_PROCESS, BROTLI_OPERATION_FLUSH, BROTLI_OPERATION_FINISH};
	const uint8_t *from = (const uint8_t *)in->p;
	uint8_t *to = (uint8_t *)out;
	size_t room = *n;

	if (!BrotliEncoderCompressStream(b, what[op], &in->n, &from, &room, &to, NULL))
		return -1;
	in->p = (const char *)from;
	*n -= room;
	if (op == CODEC_END)
		return BrotliEncoderIsFinished(b);
	return in->n == 0 && !BrotliEncoderHasMoreOutput(b);
}
#endif

/* ---- all ---- */

int64_t codec_bytes(enum encoding e)
{
	/* bounds of what test_codec measures for bodies of unknown length */
	return e == ENCODING_GZIP ? 300 << 10 : e == ENCODING_ZSTD ? 3 << 20 : 6 << 20;
}

bool codec_exists(enum encoding e)
{
	switch (e) {
#ifdef WEIR_HAVE_ZLIB
	case ENCODING_GZIP:
		return true;
#endif
#ifdef WEIR_HAVE_ZSTD
	case ENCODING_ZSTD:
		return true;
#endif
#ifdef WEIR_HAVE_BROTLI
	case ENCODING_BR:
		return true;
#endif
	default:
		return false;
	}
}

static void *state_new(enum encoding e, int level, int64_t length)
{
	switch (e) {
#ifdef WEIR_HAVE_ZLIB
	case ENCODING_GZIP:
		return zlib_new(level, length);
#endif
#ifdef WEIR_HAVE_ZSTD
	case ENCODING_ZSTD:
		return zstd_new(level, length);
#endif
#ifdef WEIR_HAVE_BROTLI
	case ENCODING_BR:
		return brotli_new(level, length);
#endif
	default:
		return NULL;
	}
}

struct codec *codec_new(enum encoding e, int level, int64_t length)
{
	struct codec *c = malloc(sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct codec){e, state_new(e, level, length)};
	if (c->state)
		return c;
	free(c);
	return NULL;
}

static void state_free(enum encoding e, void *state)
{
	switch (e) {
#ifdef WEIR_HAVE_ZLIB
	case ENCODING_GZIP:
		deflateEnd(state);
		free(state);
		return;
#endif
#ifdef WEIR_HAVE_ZSTD
	case ENCODING_ZSTD:
		ZSTD_freeCCtx(state);
		return;
#endif
#ifdef WEIR_HAVE_BROTLI
	case ENCODING_BR:
		BrotliEncoderDestroyInstance(state);
		return;
#endif
	default:
		(void)state;
		return;
	}
}

void codec_free(struct codec *c)
{
	if (!c)
		return;
	state_free(c->encoding, c->state);
	free(c);
}

int codec_run(struct codec *c, enum codec_op op, struct weir_slice *in, char *out, size_t *n)
{
	switch (c->encoding) {
#ifdef WEIR_HAVE_ZLIB
	case ENCODING_GZIP:
		return zlib_run(c->state, op, in, out, n);
#endif
#ifdef WEIR_HAVE_ZSTD
	case ENCODING_ZSTD:
		return zstd_run(c->state, op, in, out, n);
#endif
#ifdef WEIR_HAVE_BROTLI
	case ENCODING_BR:
		return brotli_run(c->state, op, in, out, n);
#endif
	default:
		*n = 0;
		return -1;
	}
}
