/* SPDX-License-Identifier: MIT */
/* The compressors: what comes out is decoded by the libraries, with output buffers of any size, flushes that let
 * the other side decode everything so far, and memory within the bounds that are promised. */
#include "http/site/codec.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <weir/random.h>

#include "cunit_main.h"
#include "fixture/http/decode.h"

#define MOST (1 << 20)

static const enum encoding all[] = {ENCODING_GZIP, ENCODING_ZSTD, ENCODING_BR};

/* Text of some redundancy. */
static void make_text(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = "etaoin shrdlu<p>"[weir_random_at(n, i / 3) % 16];
}

/* Compress in[0..n) in steps of `step` bytes with `room` bytes of output, flushing after each `flush` bytes.
 * Returns the length. */
static size_t compress(
    enum encoding e, const char *in, size_t n, size_t step, size_t room, size_t flush, char *out)
{
	struct codec *c = codec_new(e, 4, -1);
	size_t at = 0, m;

	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	for (size_t i = 0; i <= n; i += step) {
		struct weir_slice s = {in + i, n - i < step ? n - i : step};
		enum codec_op op = i + step > n                  ? CODEC_END
				   : (i / step + 1) % flush == 0 ? CODEC_FLUSH
								 : CODEC_RUN;
		int rc;
		do {
			m = room;
			rc = codec_run(c, op, &s, out + at, &m);
			at += m;
		} while (rc == 0);
		CU_ASSERT_EQUAL_FATAL(rc, 1);
		if (op == CODEC_FLUSH) {
			struct decoded d = decode(e, out, at);
			CU_ASSERT_EQUAL(d.n, i + step);
			CU_ASSERT_FALSE(d.ended);
			free(d.p);
		}
	}
	codec_free(c);
	return at;
}

static void round_trips(void)
{
	char *in = malloc(MOST), *out = malloc(2 * MOST);
	static const size_t shapes[][4] = {{0, 1, 100, 99}, {1, 1, CODEC_ROOM_MIN, 1},
	    {5000, 100, CODEC_ROOM_MIN, 7}, {5000, 100, 17, 1}, {100000, 4096, 8192, 5},
	    {MOST, MOST, 8192, 99}, {MOST, 16384, 65536, 9}};

	make_text(in, MOST);
	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
		for (size_t i = 0; codec_exists(all[k]) && i < sizeof(shapes) / sizeof(shapes[0]);
		     i++) {
			const size_t *x = shapes[i];
			size_t n = compress(all[k], in, x[0], x[1], x[2], x[3], out);
			struct decoded d = decode(all[k], out, n);
			CU_ASSERT(d.ended && d.n == x[0] && memcmp(d.p, in, d.n) == 0);
			free(d.p);
		}
	free(in);
	free(out);
}

/* Small windows for small bodies can be decoded, too. */
static void known_lengths(void)
{
	char in[3000], out[4000];

	make_text(in, sizeof(in));
	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
		for (int level = 1; codec_exists(all[k]) && level <= 9; level++)
			for (size_t n = 1; n <= sizeof(in); n = n * 3 + 1) {
				struct codec *c = codec_new(all[k], level, (int64_t)n);
				struct weir_slice s = {in, n};
				size_t m = sizeof(out);
				CU_ASSERT_EQUAL(codec_run(c, CODEC_END, &s, out, &m), 1);
				struct decoded d = decode(all[k], out, m);
				CU_ASSERT(d.ended && d.n == n && memcmp(d.p, in, n) == 0);
				free(d.p);
				codec_free(c);
			}
	codec_free(NULL);
}

static size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void memory(void)
{
	char *in = malloc(MOST), *out = malloc(2 * MOST);

	make_text(in, MOST);
	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]) && codec_exists(all[k]); k++)
		for (int level = 1; level <= 9; level++) {
			size_t before = heap(), most = 0;
			struct codec *c = codec_new(all[k], level, -1);
			for (int i = 0; i < MOST; i += 16384) {
				struct weir_slice s = {in + i, 16384};
				size_t m = 2 * MOST;
				CU_ASSERT_EQUAL(codec_run(c, CODEC_RUN, &s, out, &m), 1);
				size_t now = heap() - before;
				most = now > most ? now : most;
			}
			if ((int64_t)most > codec_bytes(all[k]))
				fprintf(stderr, "%s at level %d: %zu bytes\n",
				    encoding_token(all[k]), level, most);
			if (getenv("WEIR_SHOW"))
				fprintf(stderr, "%s %d %zu\n", encoding_token(all[k]), level, most);
#ifndef __SANITIZE_ADDRESS__
			CU_ASSERT((int64_t)most <= codec_bytes(all[k]));
#endif
			codec_free(c);
		}
	free(in);
	free(out);
}

CUNIT_MAIN(
    "codec", {"round trips", round_trips}, {"known lengths", known_lengths}, {"memory", memory})
