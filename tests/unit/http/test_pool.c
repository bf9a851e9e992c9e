/* SPDX-License-Identifier: MIT */
/* The pool of an I/O thread: what may be held, how bodies grow, and that a request that is used
 * again has nothing of the one before. */
#include "http/request/pool.h"

#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static _Atomic int64_t budget, used;
static struct pool pool;

static void begin(int64_t bytes)
{
	atomic_store(&budget, bytes);
	atomic_store(&used, 0);
	pool_init(&pool, &budget);
	pool_share(&pool, &used);
}

static void end(int64_t bytes)
{
	CU_ASSERT_EQUAL(pool.held_bytes, 0);
	CU_ASSERT_EQUAL(atomic_load(&budget), bytes);
	pool_fini(&pool);
}

static void test_may_hold(void)
{
	begin(0);
	pool.limit_bytes = 1000;
	CU_ASSERT_TRUE(pool_may_hold(&pool, 1000));
	CU_ASSERT_FALSE(pool_may_hold(&pool, 1001));
	atomic_store(&used, 600); /* of which 100 are ours */
	pool.told_bytes = 100;
	pool.held_bytes = 150;
	CU_ASSERT_TRUE(pool_may_hold(&pool, 350));
	CU_ASSERT_FALSE(pool_may_hold(&pool, 351));
	pool.held_bytes = 0;
	CU_ASSERT_TRUE(pool_may_hold(&pool, 500));
	CU_ASSERT_FALSE(pool_may_hold(&pool, 501));
	end(0);
}

static void test_buffers(void)
{
	struct rbuf *small, *large;

	begin(0);
	small = pool_buf(&pool, POOL_SMALL_BYTES);
	CU_ASSERT_EQUAL(pool.held_bytes, POOL_SMALL_PIECE);
	large = pool_buf(&pool, POOL_LARGE_BYTES);
	CU_ASSERT_EQUAL(pool.held_bytes, POOL_SMALL_PIECE + sizeof(struct rbuf) + POOL_LARGE_BYTES);
	CU_ASSERT_EQUAL(small->size, POOL_SMALL_BYTES);
	CU_ASSERT_EQUAL(large->size, POOL_LARGE_BYTES);
	memset(small->data, 1, small->size);
	memset(large->data, 1, large->size);
	pool_buf_ref(small);
	pool_buf_drop(&pool, small);
	CU_ASSERT_EQUAL(small->refs, 1);
	pool_buf_drop(&pool, large);
	CU_ASSERT_EQUAL(pool.held_bytes, POOL_SMALL_PIECE);
	pool_buf_drop(&pool, small);
	/* exactly as much as may be held */
	pool.limit_bytes = POOL_SMALL_PIECE - 1;
	CU_ASSERT_PTR_NULL(pool_buf(&pool, POOL_SMALL_BYTES));
	CU_ASSERT_EQUAL(pool.held_bytes, 0);
	pool.limit_bytes++;
	small = pool_buf(&pool, POOL_SMALL_BYTES);
	CU_ASSERT_PTR_NOT_NULL_FATAL(small);
	pool_buf_drop(&pool, small);
	end(0);
}

/* The last request returned is the next one used. */
static void test_requests(void)
{
	struct http_req *r[3];

	begin(100000);
	for (int i = 0; i < 3; i++)
		r[i] = pool_req(&pool);
	CU_ASSERT_EQUAL(pool.held_bytes, 3 * (int64_t)sizeof(struct http_req));
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL((uintptr_t)&r[i]->pub.ev % WEIR_CACHE_LINE, 0);
	for (int i = 0; i < 3; i++)
		pool_req_drop(&pool, r[i]);
	CU_ASSERT_EQUAL(pool.n_reqs, 3);
	for (int i = 3; i-- > 0;)
		CU_ASSERT_PTR_EQUAL(pool_req(&pool), r[i]);
	CU_ASSERT_EQUAL(pool.n_reqs, 0);
	CU_ASSERT_PTR_NULL(pool.reqs);
	for (int i = 0; i < 3; i++)
		pool_req_drop(&pool, r[i]);
	end(100000);
}

static void test_kept(void)
{
	static struct http_req *r[POOL_KEPT + 2];

	begin(0);
	for (int i = 0; i < POOL_KEPT + 2; i++)
		r[i] = pool_req(&pool);
	for (int i = 0; i < POOL_KEPT + 2; i++)
		pool_req_drop(&pool, r[i]);
	CU_ASSERT_EQUAL(pool.n_reqs, POOL_KEPT);
	end(0);
}

static void test_clean(void)
{
	struct http_req *r;

	begin(100000);
	r = pool_req(&pool);
	weir_http_respond_copy(&r->pub, 200, "a/b", (struct weir_slice){"hello", 5});
	weir_http_add_field(&r->pub, "X", "y");
	pool_hold_answer(&pool, r);
	CU_ASSERT_EQUAL(pool_body_append(&pool, r, (struct weir_slice){"abc", 3}, 1000), 0);
	r->in = pool_buf(&pool, POOL_SMALL_BYTES);
	r->mem = malloc(10);
	r->wire_bytes = 7;
	r->answered = r->refusal = r->expect_continue = r->keep_alive = r->last = true;
	r->body_taken = r->streams = false;
	r->pub.taps = (struct weir_http_tap *)(void *)r;
	pool_req_drop(&pool, r);
	CU_ASSERT_PTR_EQUAL_FATAL(pool_req(&pool), r);
	CU_ASSERT_EQUAL(r->pub.res.status, 0);
	CU_ASSERT_EQUAL(r->pub.res.fd, -1);
	CU_ASSERT_EQUAL(r->pub.res.body.n, 0);
	CU_ASSERT_EQUAL(r->pub.n_fields, 0);
	CU_ASSERT_PTR_NULL(r->pub.taps);
	CU_ASSERT(!r->in && !r->mem && !r->body_mem && !r->conn && !r->loop);
	CU_ASSERT_EQUAL(r->body_n + r->body_size + r->wire_bytes + r->held_bytes, 0);
	CU_ASSERT_FALSE(r->answered || r->refusal || r->expect_continue || r->keep_alive ||
			r->last || r->body_taken);
	pool_req_drop(&pool, r);
	end(100000);
}

/* The memory of a response counts once, however often it grows. */
static void test_answer(void)
{
	struct http_req *r;
	int64_t before;
	char value[1000];

	begin(0);
	r = pool_req(&pool);
	before = pool.held_bytes;
	pool_hold_answer(&pool, r);
	CU_ASSERT_EQUAL(pool.held_bytes, before);
	r->held_bytes = 11; /* of the request itself */
	pool_hold(&pool, 11);
	weir_http_respond_copy(&r->pub, 200, "a/b", (struct weir_slice){"hello", 5});
	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	CU_ASSERT_EQUAL(weir_http_add_field(&r->pub, "X", value), 0);
	CU_ASSERT_PTR_NOT_EQUAL(r->pub.fields, r->pub.fields_inline);
	pool_hold_answer(&pool, r);
	CU_ASSERT_EQUAL(pool.held_bytes, before + 11 + 5 + r->pub.fields_size);
	pool_req_drop(&pool, r);
	end(0);
}

/* ---- bodies ---- */

/* A body begins with 4 KiB and doubles, but never more than its limit needs. */
static void test_grow(void)
{
	struct http_req *r;

	begin(100000);
	r = pool_req(&pool);
	CU_ASSERT_EQUAL(pool_body_room(&pool, r, 1, 50000), 0);
	CU_ASSERT_EQUAL(r->body_size, 4096);
	r->body_n = 4095;
	CU_ASSERT_EQUAL(pool_body_room(&pool, r, 1, 50000), 0);
	CU_ASSERT_EQUAL(r->body_size, 4096);
	CU_ASSERT_EQUAL(pool_body_room(&pool, r, 2, 50000), 0);
	CU_ASSERT_EQUAL(r->body_size, 8192);
	CU_ASSERT_EQUAL(pool_body_room(&pool, r, 20000, 50000), 0);
	CU_ASSERT_EQUAL(r->body_size, 24095);
	r->body_n = 24095;
	CU_ASSERT_EQUAL(pool_body_room(&pool, r, 1, 30000), 0);
	CU_ASSERT_EQUAL(r->body_size, 30000);
	CU_ASSERT_EQUAL(atomic_load(&budget), 100000 - 30000);
	pool_req_drop(&pool, r);
	r = pool_req(&pool);
	CU_ASSERT_EQUAL(pool_body_room(&pool, r, 10, 100), 0);
	CU_ASSERT_EQUAL(r->body_size, 100);
	pool_req_drop(&pool, r);
	end(100000);
}

static void test_append(void)
{
	struct http_req *r;

	begin(100000);
	r = pool_req(&pool);
	for (int i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(
		    pool_body_append(&pool, r, (struct weir_slice){"0123456789", 10}, 10000), 0);
	CU_ASSERT_EQUAL(r->body_n, 10000);
	for (int i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(memcmp(r->body_mem + 10 * (size_t)i, "0123456789", 10), 0);
	pool_req_drop(&pool, r);
	end(100000);
}

/* A body that cannot grow stays as it is. */
static void test_short(void)
{
	struct http_req *r;

	begin(8191);
	r = pool_req(&pool);
	CU_ASSERT_EQUAL(pool_body_append(&pool, r, (struct weir_slice){"abc", 3}, 50000), 0);
	CU_ASSERT_EQUAL(pool_body_room(&pool, r, 4096, 50000), WEIR_EPRESSURE);
	CU_ASSERT_EQUAL(atomic_load(&budget), 8191 - 4096);
	CU_ASSERT_EQUAL(r->body_size, 4096);
	CU_ASSERT_EQUAL(memcmp(r->body_mem, "abc", 3), 0);
	atomic_store(&budget, 4096);
	CU_ASSERT_EQUAL(pool_body_room(&pool, r, 4096, 50000), 0);
	CU_ASSERT_EQUAL(atomic_load(&budget), 0);
	pool_req_drop(&pool, r);
	r = pool_req(&pool);
	pool.limit_bytes = pool.held_bytes + 4095;
	CU_ASSERT_EQUAL(pool_body_room(&pool, r, 1, 50000), WEIR_EPRESSURE);
	CU_ASSERT_PTR_NULL(r->body_mem);
	pool.limit_bytes++;
	CU_ASSERT_EQUAL(pool_body_room(&pool, r, 1, 50000), 0);
	pool_req_drop(&pool, r);
	end(8192);
}

CUNIT_MAIN("pool", {"may hold", test_may_hold}, {"buffers", test_buffers},
    {"requests", test_requests}, {"kept", test_kept}, {"clean", test_clean},
    {"answer", test_answer}, {"grow", test_grow}, {"append", test_append}, {"short", test_short})
