/* SPDX-License-Identifier: MIT */
/*
 * Any bytes sent to a server that takes bodies in parts: requests, bodies and their ends are the
 * same whether the bytes arrive at once, one by one, or split at random, and whether the stage
 * takes parts at once or late. Of a request with a torn body only that fact counts: had it arrived
 * at once, it would never have become a request. The input is that of fuzz_http_conn, whose corpus
 * can be used. Buffers are a few bytes long, so they are full most of the time. With half of the
 * seeds the stage answers at once and needs no body: the rest is skipped, and the following
 * requests are the same.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/request/stream.h"
#include "http/request/transfer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BODY 5000
#define BUDGET   (1 << 20)
#define OVER     20
#define RING     30

struct run {
	struct stream s;
	struct pool pool;
	_Atomic int64_t budget;
	struct http_req *r; /* the request whose body arrives in parts */
	uint32_t seed;
	int status;
	uint64_t body, n_body; /* of r so far */
	uint64_t digest;
	bool early;       /* requests leave before their bodies have arrived */
	uint64_t skipped; /* digest of the request whose body is skipped */
};

static struct weir_http_header scratch[WEIR_HTTP_HEADERS_MAX];

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_http_parts: %s\n", what);
	abort();
}

static uint64_t add(uint64_t digest, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		digest = (digest ^ b[i]) * 0x100000001b3ULL; /* FNV-1a */
	return digest;
}

static uint32_t roll(struct run *run)
{
	run->seed = run->seed * 1664525 + 1013904223;
	return run->seed >> 16;
}

/* The stage takes all available bytes, or some of them. */
static void take(struct run *run, bool all)
{
	struct ring *in = &run->r->transfer->in;

	while (ring_used(in) > 0 && (all || roll(run) % 2)) {
		struct weir_slice part = ring_first(in);
		if (!all)
			part.n = 1 + roll(run) % part.n;
		run->body = add(run->body, part.p, part.n);
		run->n_body += part.n;
		in->taken += part.n;
	}
}

/* The request is complete. It is added to the digest only now, so that the order does not depend on
 * the split. */
static void leave(struct run *run, struct http_req *r, int how)
{
	uint64_t rest[2] = {run->body, run->n_body};

	if (how == TRANSFER_WHOLE && run->early) {
		run->digest = add(run->digest, r->pub.target.p, r->pub.target.n);
	} else if (how == TRANSFER_WHOLE) {
		run->digest = add(run->digest, r->pub.target.p, r->pub.target.n);
		run->digest = add(run->digest, rest, sizeof(rest));
	}
	pool_req_drop(&run->pool, r);
	run->r = NULL;
	run->body = run->n_body = 0;
}

static void begin(struct run *run, struct http_req *r)
{
	if (r->transfer) {
		r->known_transfer = r->transfer;
		run->r = r;
		if (!run->early)
			return;
		run->skipped = add(run->digest, r->pub.target.p, r->pub.target.n);
		expect(stream_leave(&run->s), "too long to be skipped");
		leave(run, r, TRANSFER_OPEN);
		return;
	}
	run->body = add(0, r->pub.body.p, r->pub.body.n);
	run->n_body = r->pub.body.n;
	leave(run, r, TRANSFER_WHOLE);
}

static enum stream_verdict parse(struct run *run)
{
	struct http_req *r = NULL;
	enum stream_verdict v = stream_next(&run->s, &run->pool, MAX_BODY, scratch, &r);

	if (v == STREAM_REQUEST)
		begin(run, r);
	if (run->r && v != STREAM_REQUEST)
		take(run, v == STREAM_WHOLE || v == STREAM_TORN);
	if (v == STREAM_WHOLE && run->early) {
		run->digest = run->skipped;
	} else if (v == STREAM_WHOLE) {
		expect(run->r && run->r->transfer->in_state == TRANSFER_WHOLE, "not whole");
		leave(run, run->r, TRANSFER_WHOLE);
	}
	if (v == STREAM_TORN && run->r) {
		stream_cut(&run->s);
		leave(run, run->r, TRANSFER_TORN);
	}
	if (v == STREAM_TORN || v == STREAM_REFUSED)
		run->status = run->s.status;
	return v;
}

/* Parse until more bytes are needed. A full buffer is not such a case. */
static void parse_all(struct run *run)
{
	while (run->status == 0) {
		size_t full = run->r ? ring_used(&run->r->transfer->in) : 0;
		enum stream_verdict v = parse(run);
		bool stalled = run->r && full > 0 && run->s.end > run->s.start;
		if (v == STREAM_MORE && !stalled)
			return;
	}
}

static void feed(struct run *run, const uint8_t *p, size_t n)
{
	while (n > 0 && run->status == 0) {
		char *room;
		size_t size = stream_room(&run->s, &run->pool, &room);
		if (size == 0) { /* the stage is slow */
			expect(run->r != NULL, "no room");
			take(run, true);
			parse_all(run);
			continue;
		}
		size = size < n ? size : n;
		memcpy(room, p, size);
		stream_got(&run->s, size);
		parse_all(run);
		p += size;
		n -= size;
	}
}

/* The digest of all results of data[0..n), split by `seed`: 0 whole, 1 byte by byte. */
static uint64_t digest_of(const uint8_t *data, size_t n, uint32_t seed, bool early)
{
	static struct run run;
	size_t at = 0;

	memset(&run, 0, sizeof(run));
	run.seed = seed;
	run.early = early;
	atomic_init(&run.budget, BUDGET);
	pool_init(&run.pool, &run.budget);
	run.pool.part_over = OVER;
	run.pool.part_bytes = RING;
	while (at < n) {
		size_t len = seed == 0 ? n : seed == 1 ? 1 : 1 + roll(&run) % 64;
		len = len < n - at ? len : n - at;
		feed(&run, data + at, len);
		at += len;
	}
	if (run.r) { /* the buffered bytes are taken, then the client leaves */
		size_t before;
		do {
			before = run.s.end - run.s.start;
			take(&run, true);
			parse_all(&run);
		} while (run.r && run.s.end - run.s.start != before);
	}
	stream_fini(&run.s, &run.pool);
	if (run.r) {
		take(&run, true);
		leave(&run, run.r, TRANSFER_OPEN);
	}
	run.digest = add(run.digest, &run.status, sizeof(run.status));
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
	bool early = seed >> 31;
	whole = digest_of(data, size, 0, early);
	expect(digest_of(data, size, 1, early) == whole, "byte by byte is different");
	expect(digest_of(data, size, seed | 2, early) == whole, "a split is different");
	return 0;
}
