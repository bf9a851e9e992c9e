/* SPDX-License-Identifier: MIT */
/* The store of http.cache: keys, variants, the limit in bytes, purges, many threads at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"
#include "file/cache_rcu.h"
#include "http/cache/store.h"
#include "unit/file/cache_request.h"

static struct hcache_store *store;

static void set_up(int64_t bytes, int variants)
{
	cache_rcu_borrow();
	CU_ASSERT_FATAL(hcache_store_new(bytes, variants, &store) == 0);
}

static void tear_down(void)
{
	hcache_store_put(store);
	urcu_memb_unregister_thread();
}

static struct hcache_object *make(const char *key, size_t body)
{
	struct test_request t;
	struct hcache_answer a;
	char *bytes = calloc(1, body + 1);

	request_init(&t, "/");
	t.req->res.status = 200;
	t.req->res.fields = slice("Cache-Control: max-age=9\r\nETag: \"a\"\r\n");
	hcache_answer_read(&a, t.req, 0);
	struct hcache_object *o = hcache_object_make(&a, (struct weir_slice){bytes, body}, NULL,
	    hcache_store_hash(store, slice(key)), slice(key), 0);
	request_fini(&t);
	free(bytes);
	return o;
}

static bool put_object(const char *key, size_t body)
{
	struct hcache_object *o = make(key, body);
	bool good = hcache_store_insert(store, o, NULL);

	hcache_object_put(o);
	return good;
}

static bool has(const char *key)
{
	cache_rcu_read_lock();
	struct hcache_object *o =
	    hcache_store_find(store, hcache_store_hash(store, slice(key)), slice(key));
	cache_rcu_read_unlock();
	hcache_object_put(o);
	return o != NULL;
}

static void test_keys(void)
{
	set_up(1 << 20, 4);
	CU_ASSERT(put_object("a", 10) && put_object("b", 10) && put_object("a", 20));
	CU_ASSERT(has("a") && has("b") && !has("c"));
	CU_ASSERT_EQUAL(hcache_store_totals(store).objects, 2);
	CU_ASSERT_EQUAL(hcache_store_remove(store, slice("a")), 1);
	CU_ASSERT_EQUAL(hcache_store_remove(store, slice("a")), 0);
	CU_ASSERT(!has("a") && has("b"));
	CU_ASSERT(!put_object("huge", 2 << 20));
	tear_down();
}

/* The store never holds more than its limit, and keeps what is used. */
static void test_limit(void)
{
	char key[32];

	set_up(1 << 20, 4);
	CU_ASSERT(put_object("used", 1000));
	for (int i = 0; i < 3000; i++) {
		snprintf(key, sizeof(key), "%d", i);
		put_object(key, 2000);
		CU_ASSERT(hcache_store_totals(store).bytes <= 1 << 20);
		CU_ASSERT(has("used"));
		if (i % 100 == 0)
			urcu_memb_barrier(); /* what has left is freed */
	}
	CU_ASSERT(hcache_store_totals(store).evicted > 2000);
	CU_ASSERT(hcache_store_totals(store).objects > 300);
	tear_down();
}

static struct hcache_object *fork_of(const char *key)
{
	struct hcache_object *f = hcache_object_fork(
	    hcache_store_hash(store, slice(key)), slice(key), slice("x\n"), hcache_store_id(store));

	CU_ASSERT_FATAL(hcache_store_insert(store, f, NULL));
	return f;
}

static bool put_variant(struct hcache_object *fork, const char *key)
{
	struct hcache_object *o = make(key, 10);
	bool good = hcache_store_insert(store, o, fork);

	hcache_object_put(o);
	return good;
}

static void test_variants(void)
{
	set_up(1 << 20, 2);
	struct hcache_object *fork = fork_of("a");
	CU_ASSERT(put_variant(fork, "a1") && put_variant(fork, "a2") && put_variant(fork, "a2"));
	CU_ASSERT_EQUAL(hcache_store_totals(store).objects, 3);
	CU_ASSERT(put_variant(fork, "a3"));
	CU_ASSERT(!has("a1") && has("a2") && has("a3"));
	/* they leave with the object of their key, and none comes after it */
	CU_ASSERT_EQUAL(hcache_store_remove(store, slice("a")), 3);
	CU_ASSERT(!has("a2"));
	CU_ASSERT(!put_variant(fork, "a4") && !has("a4"));
	CU_ASSERT_EQUAL(hcache_store_totals(store).bytes, 0);
	hcache_object_put(fork);
	/* and when another object takes its place */
	fork = fork_of("b");
	CU_ASSERT(put_variant(fork, "b1") && put_object("b", 10));
	CU_ASSERT(has("b") && !has("b1"));
	hcache_object_put(fork);
	tear_down();
}

static bool begins(const struct hcache_object *o, const void *arg)
{
	const char *text = arg;

	return o->key.n >= strlen(text) && memcmp(o->key.p, text, strlen(text)) == 0;
}

static void test_purge(void)
{
	set_up(1 << 20, 4);
	struct hcache_object *fork = fork_of("a/1");
	CU_ASSERT(put_variant(fork, "z1") && put_variant(fork, "z2"));
	CU_ASSERT(put_object("a/2", 1) && put_object("b/1", 1));
	CU_ASSERT_EQUAL(hcache_store_purge(store, begins, "a/"), 4);
	CU_ASSERT(!has("a/1") && !has("z1") && !has("a/2") && has("b/1"));
	CU_ASSERT_EQUAL(hcache_store_purge(store, begins, ""), 1);
	CU_ASSERT_EQUAL(hcache_store_totals(store).bytes, 0);
	hcache_object_put(fork);
	tear_down();
}

/* ---- many threads ---- */

#define THREADS 4
#define TURNS   4000

static void *worker(void *arg)
{
	unsigned r = *(unsigned *)arg * 2654435761u + 1;
	char key[32];

	urcu_memb_register_thread();
	for (int i = 0; i < TURNS; i++) {
		r = r * 1664525u + 1013904223u;
		snprintf(key, sizeof(key), "k%u", (r >> 8) % 300);
		cache_rcu_read_lock();
		struct hcache_object *o =
		    hcache_store_find(store, hcache_store_hash(store, slice(key)), slice(key));
		cache_rcu_read_unlock();
		if (o && o->body && o->body->bytes[o->body->n - 1] != 0)
			abort();
		hcache_object_put(o);
		if ((r >> 24) % 4 == 0)
			put_object(key, 1 + (r >> 12) % 8000);
		else if ((r >> 24) % 64 == 1)
			hcache_store_remove(store, slice(key));
		else if ((r >> 24) % 64 == 2) {
			struct hcache_object *fork =
			    hcache_object_fork(hcache_store_hash(store, slice(key)), slice(key),
				slice("x\n"), hcache_store_id(store));
			hcache_store_insert(store, fork, NULL);
			/* the key of a variant begins with that of its fork */
			char variant[64];
			snprintf(variant, sizeof(variant), "%s\nv%u", key, r % 10);
			put_variant(fork, variant);
			hcache_object_put(fork);
		}
	}
	urcu_memb_unregister_thread();
	return NULL;
}

static void test_threads(void)
{
	pthread_t thread[THREADS];
	unsigned number[THREADS];

	set_up(1 << 20, 4);
	for (unsigned i = 0; i < THREADS; i++) {
		number[i] = i;
		pthread_create(&thread[i], NULL, worker, &number[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CU_ASSERT(hcache_store_totals(store).bytes <= 1 << 20);
	hcache_store_purge(store, begins, "");
	CU_ASSERT_EQUAL(hcache_store_totals(store).bytes, 0);
	CU_ASSERT_EQUAL(hcache_store_totals(store).objects, 0);
	tear_down();
}

CUNIT_MAIN("cache_store", {"keys", test_keys}, {"limit", test_limit}, {"variants", test_variants},
    {"purge", test_purge}, {"threads", test_threads})
