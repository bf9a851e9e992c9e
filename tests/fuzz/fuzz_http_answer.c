/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an answer of an origin: the head, and a body in chunks if it says so. The verdict is the same
 * for every prefix that is long enough to have one. A good head follows the rules, as checked by a second,
 * simple parser, and llhttp agrees on the whole of it. The body decodes to the same bytes, however it was
 * split.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llhttp.h>

#include "http/message/chunk.h"
#include "http/message/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct weir_http_header headers[WEIR_HTTP_HEADERS_MAX];

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_http_answer: %s\n", what);
	abort();
}

static enum guard_verdict judge(const char *p, size_t n, struct http_head *head)
{
	*head = (struct http_head){.headers = headers};
	return parse_answer(p, n, head);
}

static void check_lines(const char *p, size_t n)
{
	expect(n >= 16 && memcmp(p, "HTTP/1.", 7) == 0, "no status line is good");
	expect(memcmp(p + n - 4, "\r\n\r\n", 4) == 0, "a good head has no empty line");
	expect(!memmem(p, n - 4, "\r\n\r\n", 4), "a head with two ends is good");
	for (size_t i = 0; i < n; i++) {
		uint8_t b = (uint8_t)p[i];
		expect(b != '\n' || (i > 0 && p[i - 1] == '\r'), "a lone LF is good");
		expect(b != '\r' || (i + 1 < n && p[i + 1] == '\n'), "a lone CR is good");
		expect(b >= 0x20 || b == '\t' || b == '\r' || b == '\n', "a control byte is good");
		if (i > 0 && p[i - 1] == '\n')
			expect(b != ' ' && b != '\t', "a folded line is good");
	}
}

static void check_fields(const struct http_head *head)
{
	int lengths = 0, codings = 0;

	for (int i = 0; i < head->n_headers; i++) {
		const struct weir_http_header *h = &head->headers[i];
		lengths += weir_slice_is(h->name, "content-length");
		codings += weir_slice_is(h->name, "transfer-encoding");
		expect(h->name.n > 0 && h->name.p[h->name.n] == ':', "a space before ':' is good");
	}
	expect(lengths + codings <= 1, "two fields decide");
	expect(lengths == head->has_length && codings == head->chunked, "a field was missed");
	expect(codings == 0 || head->minor == 1, "a coding in HTTP/1.0 is good");
	expect(head->code >= 100 && head->code <= 599, "a status is out of range");
	expect(head->content_length < 1000000000000000000ULL, "a length overflows");
	expect(head->n <= WEIR_HTTP_HEAD_MAX, "too long");
}

static int pause_at_body(llhttp_t *parser)
{
	(void)parser;
	return HPE_PAUSED;
}

static void check_llhttp(const char *p, const struct http_head *head)
{
	static const llhttp_settings_t settings = {.on_headers_complete = pause_at_body};
	llhttp_t parser;

	llhttp_init(&parser, HTTP_RESPONSE, &settings);
	expect(llhttp_execute(&parser, p, head->n) == HPE_PAUSED, "llhttp refuses a good head");
	expect(parser.status_code == head->code, "llhttp reads another status");
	expect(!(parser.flags & F_CHUNKED) == !head->chunked, "llhttp disagrees on chunks");
	expect(!(parser.flags & F_CONTENT_LENGTH) == !head->has_length,
	    "llhttp disagrees on a length");
	expect(!head->has_length || parser.content_length == head->content_length,
	    "llhttp reads another length");
}

/* Decode p[0..n), given in pieces of `step` bytes. Returns the verdict and the sum of the body. */
static enum chunk_verdict decode(const char *p, size_t n, size_t step, uint64_t *sum)
{
	enum chunk_verdict v = CHUNK_MORE;
	struct weir_slice data;
	struct chunk c;

	*sum = 0;
	chunk_init(&c, INT64_MAX);
	for (size_t from = 0; from < n && v == CHUNK_MORE; from += step) {
		const char *at = p + from, *end = p + (from + step < n ? from + step : n);
		while ((v = chunk_next(&c, &at, end, &data)) == CHUNK_DATA)
			for (size_t i = 0; i < data.n; i++)
				*sum = *sum * 31 + (uint8_t)data.p[i] + 1;
	}
	return v;
}

static void check_body(const char *p, size_t n)
{
	uint64_t whole, split;
	enum chunk_verdict v = decode(p, n, n > 0 ? n : 1, &whole);

	expect(v == decode(p, n, 1, &split) && whole == split, "a split changes the body");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *p = malloc(size + 1); /* exact, so that sanitizers see a read beyond the end */
	struct http_head head, part;
	enum guard_verdict whole;

	memcpy(p, data, size);
	whole = judge(p, size, &head);
	if (whole == GUARD_GOOD) {
		check_lines(p, head.n);
		check_fields(&head);
		check_llhttp(p, &head);
		if (head.chunked)
			check_body(p + head.n, size - head.n);
	}
	for (size_t n = 0; n < size && n < 512; n++) {
		enum guard_verdict v = judge(p, n, &part);
		if (v == GUARD_MORE)
			expect(whole != GUARD_GOOD || n < head.n, "a good head needs more");
		else
			expect(v == whole, "a prefix has another verdict");
	}
	free(p);
	return 0;
}
