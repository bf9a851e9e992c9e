/* SPDX-License-Identifier: MIT */
/*
 * The table of file.cache: lookups, replacement, the size limit, SIEVE, and readers against
 * writers.
 *
 * In the torture at the end two writers insert and evict in a table a tenth the size of all
 * objects, while two readers look objects up and check every byte after leaving the read section.
 * It fails by a wrong byte, a report of ASan or TSan, or a limit that is exceeded.
 */
#include "file/cache_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "cunit_main.h"
#include "file/cache_rcu.h"
#include "file/cache_request.h"

static const struct cache_limits limits = {1 << 20, 0, 1000000000, 1000000000, 0, INT64_MAX};

/* An object with the path "/NUMBER", whose body is the same letter `bytes` times. */
static struct cache_object *make(int number, size_t bytes)
{
	struct test_request t;
	struct cache_object *o = NULL;
	char path[32], *body = malloc(bytes + 1);

	snprintf(path, sizeof(path), "/%d", number);
	memset(body, 'a' + number % 26, bytes);
	request_init(&t, path);
	weir_http_respond(t.req, 200, NULL, (struct weir_slice){body, bytes}, NULL, NULL);
	int rc = cache_object_new(t.req, 0, weir_hash(t.req->path), t.req->path, 0, &limits, 0, &o);
	CU_ASSERT_EQUAL(rc, 0);
	request_fini(&t);
	free(body);
	return o;
}

static struct cache_object *find(struct cache_table *t, int number)
{
	char path[32];

	snprintf(path, sizeof(path), "/%d", number);
	struct weir_slice key = slice(path);
	cache_rcu_read_lock();
	struct cache_object *o = cache_table_find(t, weir_hash(key), key, 0);
	cache_rcu_read_unlock();
	return o;
}

/* Is it in the table? Counts as a hit. */
static bool has(struct cache_table *t, int number)
{
	struct cache_object *o = find(t, number);

	if (o)
		cache_object_put(o);
	return o != NULL;
}

static struct cache_change insert(struct cache_table *t, int number, size_t bytes)
{
	struct cache_change change;
	struct cache_object *o = make(number, bytes);

	cache_table_insert(t, o, &change);
	cache_object_put(o);
	return change;
}

static struct cache_table *new_table(int64_t size_bytes)
{
	struct cache_table *t = NULL;

	CU_ASSERT_EQUAL_FATAL(cache_table_new(size_bytes, &t), 0);
	return t;
}

static void test_find(void)
{
	struct cache_table *t = new_table(1 << 20);

	urcu_memb_register_thread();
	CU_ASSERT(!has(t, 1));
	struct cache_change c = insert(t, 1, 100);
	CU_ASSERT_EQUAL(c.objects, 1);
	CU_ASSERT(c.bytes > 100);
	CU_ASSERT_EQUAL(c.evicted, 0);
	CU_ASSERT(has(t, 1));
	CU_ASSERT(!has(t, 2));
	urcu_memb_unregister_thread();
	cache_table_put(t);
}

static void test_replace(void)
{
	struct cache_table *t = new_table(1 << 20);

	urcu_memb_register_thread();
	struct cache_change first = insert(t, 1, 100);
	struct cache_object *old = find(t, 1);
	struct cache_change second = insert(t, 1, 5000);
	CU_ASSERT_EQUAL(second.objects, 0);
	CU_ASSERT(second.bytes > 0);
	CU_ASSERT(first.bytes + second.bytes > 5000);
	struct cache_object *now = find(t, 1);
	CU_ASSERT_EQUAL(now->body.n, 5000);
	CU_ASSERT_EQUAL(old->body.n, 100); /* a holder of a reference may still read it */
	CU_ASSERT_EQUAL(old->body.p[99], 'b');
	cache_object_put(old);
	cache_object_put(now);
	urcu_memb_unregister_thread();
	cache_table_put(t);
}

/* Two keys with one hash: both are found. */
static void test_collision(void)
{
	struct cache_table *t = new_table(1 << 20);
	struct cache_change change;

	urcu_memb_register_thread();
	struct cache_object *a = make(1, 10), *b = make(2, 10);
	a->hash = b->hash = 5;
	cache_table_insert(t, a, &change);
	cache_table_insert(t, b, &change);
	CU_ASSERT_EQUAL(change.objects, 1);
	cache_rcu_read_lock();
	struct cache_object *x = cache_table_find(t, 5, slice("/1"), 0);
	struct cache_object *y = cache_table_find(t, 5, slice("/2"), 0);
	struct cache_object *z = cache_table_find(t, 5, slice("/3"), 0);
	cache_rcu_read_unlock();
	CU_ASSERT(x == a && y == b && !z);
	cache_object_put(a);
	cache_object_put(b);
	cache_object_put(x);
	cache_object_put(y);
	urcu_memb_unregister_thread();
	cache_table_put(t);
}

static void test_bound(void)
{
	struct cache_table *t = new_table(1 << 16);
	int64_t bytes = 0, objects = 0, evicted = 0;

	urcu_memb_register_thread();
	for (int i = 0; i < 1000; i++) {
		struct cache_change c = insert(t, i, (size_t)(i * 37 % 4000));
		bytes += c.bytes;
		objects += c.objects;
		evicted += c.evicted;
		CU_ASSERT(bytes <= 1 << 16);
	}
	CU_ASSERT(objects > 10);
	CU_ASSERT_EQUAL(objects + evicted, 1000);
	CU_ASSERT(bytes > (1 << 16) - 8192);
	urcu_memb_unregister_thread();
	cache_table_put(t);
}

static void test_too_large(void)
{
	struct cache_table *t = new_table(1 << 16);

	urcu_memb_register_thread();
	insert(t, 1, 100);
	insert(t, 2, 100);
	struct cache_change c = insert(t, 1, 1 << 17);
	CU_ASSERT_EQUAL(c.objects, -1); /* the object it would have replaced is gone */
	CU_ASSERT_EQUAL(c.evicted, 0);
	CU_ASSERT(!has(t, 1));
	CU_ASSERT(has(t, 2));
	urcu_memb_unregister_thread();
	cache_table_put(t);
}

/* Evicted objects that are still referenced count: memory is bounded whatever clients do. */
static void test_pinned(void)
{
	enum { SIZE = 1 << 20, OBJECT = 64000, OBJECTS = 250 };
	struct cache_table *t = new_table(SIZE);
	struct cache_object *held[OBJECTS];
	int n = 0;

	urcu_memb_register_thread();
	for (int i = 0; i < OBJECTS; i++) { /* 16 MB in total */
		insert(t, i, OBJECT);
		struct cache_object *o = find(t, i);
		if (o)
			held[n++] = o;
	}
	CU_ASSERT(n * OBJECT <= SIZE + SIZE / 4 + (8 << 20) + 2 * OBJECT);
	CU_ASSERT(n * OBJECT >= SIZE);
	CU_ASSERT(!has(t, OBJECTS - 1));
	while (n > 0)
		cache_object_put(held[--n]);
	urcu_memb_barrier(); /* wait until they are freed */
	insert(t, OBJECTS, OBJECT);
	CU_ASSERT(has(t, OBJECTS));
	urcu_memb_unregister_thread();
	cache_table_put(t);
}

/* SIEVE: objects that are hit survive a scan of twenty times the size. */
static void test_scan(void)
{
	struct cache_table *t = new_table(1 << 16);

	urcu_memb_register_thread();
	for (int i = 0; i < 5; i++)
		insert(t, i, 1000);
	for (int i = 100; i < 1400; i++) {
		insert(t, i, 1000);
		for (int k = 0; k < 5 && i % 10 == 0; k++)
			CU_ASSERT(has(t, k));
	}
	CU_ASSERT(!has(t, 100));
	CU_ASSERT(has(t, 1399));
	urcu_memb_unregister_thread();
	cache_table_put(t);
}

/* SIEVE: objects hit before a scan of ten times the size survive all of it, though no request hits
 * them meanwhile. LRU would have lost all of them. */
static void test_scan_alone(void)
{
	enum { HOT = 20, SCAN = 10 };
	struct cache_table *t = new_table(1 << 16);
	int64_t scanned = 0;
	int hits = 0;

	urcu_memb_register_thread();
	for (int i = 0; i < HOT; i++)
		insert(t, i, 1000);
	for (int i = 0; i < HOT; i++)
		CU_ASSERT(has(t, i));
	for (int i = HOT; scanned < SCAN << 16; i++) {
		insert(t, i, 1000);
		scanned += 1000;
	}
	for (int i = 0; i < HOT; i++)
		hits += has(t, i);
	CU_ASSERT_EQUAL(hits, HOT);
	urcu_memb_unregister_thread();
	cache_table_put(t);
}

/* A path has either one object for all, or a fork and an object for each code. */
static void test_variants(void)
{
	struct cache_table *t = new_table(1 << 20);
	struct weir_slice key = slice("/1");
	uint64_t hash = weir_hash(key);
	struct cache_object *o = make(1, 10), *fork = cache_object_fork(hash, key);
	struct cache_change change;

	urcu_memb_register_thread();
	o->code = 9;
	o->varies = true;
	o->hash = cache_variant_hash(hash, 9);
	cache_table_insert(t, o, &change);
	cache_table_insert(t, fork, &change);
	CU_ASSERT_EQUAL(change.objects_now, 2);
	cache_rcu_read_lock();
	for (unsigned code = 0; code < 12; code++) {
		struct cache_object *f = cache_table_find(t, hash, key, 0);
		CU_ASSERT_PTR_EQUAL(f, fork);
		f = cache_table_variant(t, f, hash, code);
		CU_ASSERT_PTR_EQUAL(f, code == 9 ? o : NULL);
		if (f)
			cache_object_put(f);
	}
	cache_rcu_read_unlock();
	CU_ASSERT_EQUAL(atomic_load(&fork->refs), 2); /* the table's and ours */
	cache_object_put(o);
	cache_object_put(fork);
	urcu_memb_unregister_thread();
	cache_table_put(t);
}

/* Paths that share a bucket under the public hash function do not share one here. Without a secret,
 * a client could send 16,000 such paths, each of which cost 300 us instead of 3. */
static void test_hash_is_secret(void)
{
	enum { PATHS = 64, MASK = 4095 };
	struct cache_table *t = new_table(1 << 20), *other = new_table(1 << 20);
	int found = 0, apart = 0, same = 0;
	char path[32];

	for (int i = 0; found < PATHS; i++) {
		snprintf(path, sizeof(path), "/n%d", i);
		if ((weir_hash(slice(path)) & MASK) != 7)
			continue;
		found++;
		apart += (cache_table_hash(t, slice(path)) & MASK) != 7;
		same += cache_table_hash(t, slice(path)) == cache_table_hash(other, slice(path));
	}
	CU_ASSERT(apart > PATHS / 2);
	CU_ASSERT_EQUAL(same, 0);
	CU_ASSERT_EQUAL(cache_table_hash(t, slice("/a")), cache_table_hash(t, slice("/a")));
	cache_table_put(t);
	cache_table_put(other);
}

/* Inside a read section, replaced objects may still be read (ASan checks). */
static void test_grace_period(void)
{
	struct cache_table *t = new_table(1 << 20);

	urcu_memb_register_thread();
	insert(t, 1, 1000);
	cache_rcu_read_lock();
	struct cache_object *o = find(t, 1);
	cache_object_put(o); /* only the table's reference is left */
	insert(t, 1, 2000);
	CU_ASSERT_EQUAL(o->body.n, 1000);
	CU_ASSERT_EQUAL(o->body.p[999], 'b');
	cache_rcu_read_unlock();
	urcu_memb_unregister_thread();
	cache_table_put(t);
}

/* Responses may outlive the stage: the last reference frees the object, not the table. */
static void test_outlives_table(void)
{
	struct cache_table *t = new_table(1 << 16);

	urcu_memb_register_thread();
	insert(t, 3, 1000);
	struct cache_object *o = find(t, 3);
	urcu_memb_unregister_thread();
	cache_table_put(t);
	CU_ASSERT_EQUAL(o->body.p[999], 'd');
	cache_object_put(o);
}

/* ---- torture ---- */

#define NUMBERS 400
#define ROUNDS  4000

struct torture {
	struct cache_table *table;
	atomic_int_fast64_t bytes, wrong, found;
	unsigned seed;
};

static void *writer(void *arg)
{
	struct torture *tt = arg;
	unsigned seed = tt->seed;

	urcu_memb_register_thread();
	for (int i = 0; i < ROUNDS; i++) {
		seed = seed * 1103515245 + 12345;
		int number = (int)(seed >> 16) % NUMBERS;
		struct cache_change c = insert(tt->table, number, 500 + (size_t)number);
		atomic_fetch_add(&tt->bytes, c.bytes);
	}
	urcu_memb_unregister_thread();
	return NULL;
}

static void check_object(struct torture *tt, const struct cache_object *o, int number)
{
	bool good = o->body.n == 500 + (size_t)number;

	for (size_t i = 0; i < o->body.n; i++)
		good = good && o->body.p[i] == 'a' + number % 26;
	if (!good)
		atomic_fetch_add(&tt->wrong, 1);
	atomic_fetch_add(&tt->found, 1);
}

static void *reader(void *arg)
{
	struct torture *tt = arg;

	urcu_memb_register_thread();
	/* At least until an object is found, however late the writers start. */
	for (unsigned i = 0; i < ROUNDS * 4 || atomic_load(&tt->found) == 0; i++) {
		int number = (int)(i * 7 % NUMBERS);
		struct cache_object *o = find(tt->table, number);
		if (!o)
			continue;
		check_object(tt, o, number);
		cache_object_put(o);
	}
	urcu_memb_unregister_thread();
	return NULL;
}

static void test_torture(void)
{
	struct cache_table *t = new_table(1 << 16);
	struct torture a = {.table = t, .seed = 1}, b = {.table = t, .seed = 99};
	pthread_t th[4];

	pthread_create(&th[0], NULL, writer, &a);
	pthread_create(&th[1], NULL, writer, &b);
	pthread_create(&th[2], NULL, reader, &a);
	pthread_create(&th[3], NULL, reader, &b);
	for (int i = 0; i < 4; i++)
		pthread_join(th[i], NULL);
	CU_ASSERT_EQUAL(a.wrong + b.wrong, 0);
	CU_ASSERT(a.found + b.found > 0);
	CU_ASSERT(a.bytes + b.bytes <= 1 << 16);
	CU_ASSERT(a.bytes + b.bytes > 0);
	cache_table_put(t);
}

CUNIT_MAIN("cache_table", {"find", test_find}, {"replace", test_replace},
    {"one hash, two keys", test_collision}, {"bound", test_bound}, {"too large", test_too_large},
    {"pinned", test_pinned}, {"scan", test_scan}, {"scan alone", test_scan_alone},
    {"variants", test_variants}, {"hash is secret", test_hash_is_secret},
    {"grace period", test_grace_period}, {"outlives the table", test_outlives_table},
    {"torture", test_torture})
