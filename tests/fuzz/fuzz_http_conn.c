/* SPDX-License-Identifier: MIT */
/*
 * Any bytes on a connection: the resulting requests and the refusal are the same whether the bytes
 * arrive at once, one by one, or split at random (seeded by the first four bytes of the input). No
 * memory leaks or is used after free.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/request/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BODY     5000
#define BUDGET       (1 << 20)
#define REQUESTS_MAX 64

struct run {
	struct stream s;
	struct pool pool;
	_Atomic int64_t budget;
	struct http_req *r[REQUESTS_MAX];
	int n, status;
	uint64_t digest;
};

static struct weir_http_header scratch[WEIR_HTTP_HEADERS_MAX];

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_http_conn: %s\n", what);
	abort();
}

/* FNV-1a: slow but simple. */
static void digest(struct run *run, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		run->digest = (run->digest ^ b[i]) * 0x100000001b3ULL;
	run->digest = (run->digest ^ n) * 0x100000001b3ULL;
}

static void digest_slice(struct run *run, struct weir_slice s)
{
	digest(run, s.p, s.n);
}

static void digest_request(struct run *run, const struct http_req *r)
{
	const struct weir_http_request *q = &r->pub;

	digest(run, &q->method, sizeof(q->method));
	digest(run, &q->minor, sizeof(q->minor));
	digest(run, &r->keep_alive, sizeof(r->keep_alive));
	digest_slice(run, q->method_text);
	digest_slice(run, q->target);
	digest_slice(run, q->path);
	digest_slice(run, q->query);
	digest_slice(run, q->host);
	digest_slice(run, q->body);
	for (int i = 0; i < q->n_headers; i++) {
		digest_slice(run, q->headers[i].name);
		digest_slice(run, q->headers[i].value);
	}
}

/* Requests leave in order but late, as with a slow stage. */
static void leave(struct run *run)
{
	for (int i = 0; i < run->n; i++) {
		digest_request(run, run->r[i]);
		pool_req_drop(&run->pool, run->r[i]);
	}
	run->n = 0;
}

static void take_requests(struct run *run)
{
	enum stream_verdict v;

	do {
		if (run->n == REQUESTS_MAX)
			leave(run);
		v = stream_next(&run->s, &run->pool, MAX_BODY, scratch, &run->r[run->n]);
		run->n += v == STREAM_REQUEST;
	} while (v == STREAM_REQUEST);
	if (v == STREAM_REFUSED)
		run->status = run->s.status;
}

static void feed(struct run *run, const uint8_t *p, size_t n)
{
	while (n > 0 && run->status == 0) {
		char *room;
		size_t size = stream_room(&run->s, &run->pool, &room);
		expect(size > 0, "no room");
		size = size < n ? size : n;
		memcpy(room, p, size);
		stream_got(&run->s, size);
		take_requests(run);
		p += size;
		n -= size;
	}
}

/* The digest of all results of data[0..n), split by `seed`: 0 whole, 1 byte by byte. */
static uint64_t digest_of(const uint8_t *data, size_t n, uint32_t seed)
{
	static struct run run;
	size_t at = 0, len;

	memset(&run, 0, sizeof(run));
	atomic_init(&run.budget, BUDGET);
	pool_init(&run.pool, &run.budget);
	while (at < n) {
		seed = seed > 1 ? seed * 1664525 + 1013904223 : seed;
		len = seed == 0 ? n : seed == 1 ? 1 : 1 + (seed >> 16) % 64;
		len = len < n - at ? len : n - at;
		feed(&run, data + at, len);
		at += len;
		if (seed > 1 && seed >> 31)
			leave(&run);
		stream_rest(&run.s, &run.pool);
	}
	leave(&run);
	digest(&run, &run.status, sizeof(run.status));
	stream_fini(&run.s, &run.pool);
	expect(atomic_load(&run.budget) == BUDGET, "body memory was lost");
	pool_fini(&run.pool);
	return run.digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t seed;
	uint64_t whole;

	if (size < sizeof(seed) || size > 40000)
		return 0;
	memcpy(&seed, data, sizeof(seed));
	data += sizeof(seed);
	size -= sizeof(seed);
	whole = digest_of(data, size, 0);
	expect(digest_of(data, size, 1) == whole, "byte by byte is different");
	expect(digest_of(data, size, seed | 2) == whole, "a split is different");
	return 0;
}
