/* SPDX-License-Identifier: MIT */
/*
 * Stores the objects of file.cache by key and evicts them. See cache_table.h for the threads that
 * may call these functions.
 *
 * Eviction is SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi: SIEVE is simpler than LRU, NSDI 2024).
 * All objects are on one list in order of insertion. A pointer, the hand, moves through the list
 * from the oldest object to the newest to find a victim, skipping objects that were hit since it
 * last passed them. A hit sets one flag and moves nothing, so it needs no lock. Objects requested
 * only once are evicted before those requested again, so a scan does not empty the cache.
 *
 * `lock` is a leaf in the lock order: no other lock is taken and no callback runs while it is held.
 */
#include "cache_table.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <weir/weir.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "cache_rcu.h"

/* Buckets are never resized, because that would start a liburcu thread. A table has one bucket per
 * this many bytes of its size limit. 2048 is a guess: files on web sites are rarely smaller, and a
 * longer chain costs only a few ns per entry. */
#define TABLE_BYTES_PER_BUCKET 2048
#define TABLE_BUCKETS_MIN      64
#define TABLE_BUCKETS_MAX      (1 << 20)

/* Limit on the memory of evicted objects that are not freed yet. While it is exceeded, nothing is
 * inserted. The limit is the sum of a quarter of the table's size (a guess), for objects that slow
 * clients still read, and 8 MiB, for objects that wait for the end of a grace period.
 * liburcu's thread wakes every 10 ms, and at a fill rate of 800 MB/s the table evicts 8 MB in that
 * time. */
#define TABLE_PINNED_SHARE  4
#define TABLE_LEAVING_BYTES (8 << 20)

/* Objects examined per sweep. 128 is a guess: a sweep then holds the lock for about 10 us. */
#define TABLE_SWEEP 128

struct cache_table {
	struct cds_lfht *hash;
	uint64_t seed;
	int64_t size_bytes;
	struct cache_account *account;
	atomic_int refs;

	WEIR_ALIGNED pthread_mutex_t lock;
	struct cache_object *newest WEIR_GUARDED_BY(lock);
	struct cache_object *oldest WEIR_GUARDED_BY(lock);
	/* next candidate; NULL means the oldest */
	struct cache_object *hand WEIR_GUARDED_BY(lock);
	struct cache_object *broom WEIR_GUARDED_BY(lock); /* like `hand`, for cache_table_sweep */
	int64_t bytes WEIR_GUARDED_BY(lock);
	int64_t objects WEIR_GUARDED_BY(lock);
	int64_t files WEIR_GUARDED_BY(lock); /* number of objects that are open files */
};

char cache_rcu_epoch;

static unsigned long bucket_count(int64_t size_bytes)
{
	unsigned long n = TABLE_BUCKETS_MIN;

	while (n < TABLE_BUCKETS_MAX && (int64_t)n * TABLE_BYTES_PER_BUCKET < size_bytes)
		n *= 2;
	return n;
}

/* Make liburcu create the thread that runs its callbacks. liburcu would otherwise create it at
 * first use, with the signal mask and the name of the thread that happens to be first. Here it gets
 * its own name, and signals are blocked in it, as in every thread that weir creates. */
static void start_reclaimer(void)
{
	sigset_t all, before;
	char name[16];

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_getname_np(pthread_self(), name, sizeof(name));
	pthread_setname_np(pthread_self(), "weir/rcu");
	urcu_memb_get_default_call_rcu_data();
	pthread_setname_np(pthread_self(), name);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int cache_table_new(int64_t size_bytes, struct cache_table **table)
{
	struct cache_table *t = aligned_alloc(WEIR_CACHE_LINE, sizeof(*t));
	unsigned long n = bucket_count(size_bytes);

	if (!t)
		return WEIR_ENOMEM;
	memset(t, 0, sizeof(*t));
	t->size_bytes = size_bytes;
	if (getrandom(&t->seed, sizeof(t->seed), 0) != (ssize_t)sizeof(t->seed)) {
		free(t);
		return WEIR_ENOMEM;
	}
	t->account = calloc(1, sizeof(*t->account));
	t->hash = cds_lfht_new_flavor(n, n, n, 0, &urcu_memb_flavor, NULL);
	if (!t->account || !t->hash) {
		if (t->hash)
			cds_lfht_destroy(t->hash, NULL);
		free(t->account);
		free(t);
		return WEIR_ENOMEM;
	}
	atomic_init(&t->account->refs, 1);
	atomic_init(&t->refs, 1);
	pthread_mutex_init(&t->lock, NULL);
	start_reclaimer();
	*table = t;
	return 0;
}

static struct cache_object *object_of(struct cds_lfht_node *node)
{
	return (struct cache_object *)((char *)node - offsetof(struct cache_object, node));
}

uint64_t cache_table_hash(const struct cache_table *t, struct weir_slice key)
{
	return XXH3_64bits_withSeed(key.p, key.n, t->seed);
}

struct lookup {
	struct weir_slice key;
	unsigned code;
};

static int lookup_matches(struct cds_lfht_node *node, const void *lookup)
{
	const struct lookup *k = lookup;
	struct cache_object *o = object_of(node);

	cache_rcu_acquire(o);
	return o->code == k->code && o->key.n == k->key.n &&
	       memcmp(o->key.p, k->key.p, k->key.n) == 0;
}

static struct lookup lookup_of(const struct cache_object *o)
{
	return (struct lookup){o->key, o->code};
}

struct cache_object *cache_table_find(
    struct cache_table *t, uint64_t hash, struct weir_slice key, unsigned code)
{
	struct lookup k = {key, code};
	struct cds_lfht_iter iter;

	cds_lfht_lookup(t->hash, hash, lookup_matches, &k, &iter);
	struct cds_lfht_node *node = cds_lfht_iter_get_node(&iter);
	if (!node)
		return NULL;
	struct cache_object *o = object_of(node);
	cache_object_hold(o);
	if (!atomic_load_explicit(&o->visited, memory_order_relaxed))
		atomic_store_explicit(&o->visited, true, memory_order_relaxed);
	return o;
}

struct cache_object *cache_table_variant(
    struct cache_table *t, struct cache_object *o, uint64_t hash, unsigned code)
{
	struct cache_object *found = NULL;

	if (code == 0 && o->kind != CACHE_FORKS)
		return o;
	if (code != 0)
		found = cache_table_find(t, cache_variant_hash(hash, code), o->key, code);
	/* not the last reference: the table keeps one until a grace period has ended */
	cache_object_put(o);
	return found;
}

static void list_add(struct cache_table *t, struct cache_object *o)
{
	o->newer = NULL;
	o->older = t->newest;
	if (t->newest)
		t->newest->newer = o;
	else
		t->oldest = o;
	t->newest = o;
}

static void list_remove(struct cache_table *t, struct cache_object *o)
{
	if (t->hand == o)
		t->hand = o->newer;
	if (t->broom == o)
		t->broom = o->newer;
	if (o->newer)
		o->newer->older = o->older;
	else
		t->newest = o->older;
	if (o->older)
		o->older->newer = o->newer;
	else
		t->oldest = o->newer;
	o->newer = o->older = NULL;
}

/* Objects removed from the table, linked by `older`, to be reclaimed after the lock is released. */
struct leavers {
	struct cache_object *first;
};

/* Remove `o`, which is no longer in the hash table, from the list and the counters. */
static void forget(struct cache_table *t, struct cache_object *o, struct leavers *gone,
    struct cache_change *change)
{
	list_remove(t, o);
	t->bytes -= o->charge_bytes;
	atomic_fetch_add_explicit(&t->account->pinned_bytes, o->charge_bytes, memory_order_relaxed);
	change->bytes -= o->charge_bytes;
	change->objects--;
	t->objects--;
	t->files -= o->fd != -1;
	o->older = gone->first;
	gone->first = o;
}

static void unlink_object(struct cache_table *t, struct cache_object *o, struct leavers *gone,
    struct cache_change *change)
{
	urcu_memb_read_lock();
	cds_lfht_del(t->hash, &o->node);
	urcu_memb_read_unlock();
	forget(t, o, gone, change);
}

/* Choose the next victim by SIEVE. The table must not be empty. */
static struct cache_object *sieve_victim(struct cache_table *t)
{
	struct cache_object *o = t->hand ? t->hand : t->oldest;

	while (atomic_exchange_explicit(&o->visited, false, memory_order_relaxed))
		o = o->newer ? o->newer : t->oldest;
	t->hand = o;
	return o;
}

static void reclaim(struct rcu_head *head)
{
	struct cache_object *o =
	    (struct cache_object *)((char *)head - offsetof(struct cache_object, rcu));

	cache_rcu_acquire(o);
	cache_rcu_acquire(&cache_rcu_epoch);
	cache_object_put(o);
}

static void reclaim_later(struct leavers *gone)
{
	while (gone->first) {
		struct cache_object *o = gone->first;
		gone->first = o->older;
		cache_rcu_release(o);
		urcu_memb_call_rcu(&o->rcu, reclaim);
	}
}

static bool fits(const struct cache_table *t, const struct cache_object *o)
{
	int64_t pinned = atomic_load_explicit(&t->account->pinned_bytes, memory_order_relaxed);

	return o->charge_bytes <= t->size_bytes &&
	       pinned <= t->size_bytes / TABLE_PINNED_SHARE + TABLE_LEAVING_BYTES;
}

/* Add `o`, replacing any object with the same key. The table takes its own reference to the object,
 * and the object takes one to the account. */
static void link_object(struct cache_table *t, struct cache_object *o, struct leavers *gone,
    struct cache_change *change)
{
	struct lookup k = lookup_of(o);

	cache_object_hold(o);
	atomic_fetch_add_explicit(&t->account->refs, 1, memory_order_relaxed);
	o->account = t->account;
	cache_rcu_release(o);
	urcu_memb_read_lock();
	struct cds_lfht_node *old =
	    cds_lfht_add_replace(t->hash, o->hash, lookup_matches, &k, &o->node);
	urcu_memb_read_unlock();
	if (old)
		forget(t, object_of(old), gone, change);
	list_add(t, o);
	t->bytes += o->charge_bytes;
	change->bytes += o->charge_bytes;
	change->objects++;
	t->objects++;
	t->files += o->fd != -1;
}

/* Remove the object that has the key and the code of `o`, if there is one. That object is out of
 * date, even if the newer `o` does not fit into the table. */
static void drop_like(struct cache_table *t, struct cache_object *o, struct leavers *gone,
    struct cache_change *change)
{
	struct lookup k = lookup_of(o);
	struct cds_lfht_iter iter;

	urcu_memb_read_lock();
	cds_lfht_lookup(t->hash, o->hash, lookup_matches, &k, &iter);
	struct cds_lfht_node *node = cds_lfht_iter_get_node(&iter);
	urcu_memb_read_unlock(); /* the table's lock keeps linked objects alive */
	if (node)
		unlink_object(t, object_of(node), gone, change);
}

static void change_end(const struct cache_table *t, struct cache_change *change)
{
	change->bytes_now = t->bytes;
	change->objects_now = t->objects;
	change->files_now = t->files;
}

void cache_table_insert(struct cache_table *t, struct cache_object *o, struct cache_change *change)
{
	struct leavers gone = {NULL};

	*change = (struct cache_change){0};
	pthread_mutex_lock(&t->lock);
	if (fits(t, o)) {
		/* Evict before inserting, so that the new object cannot be the victim. */
		while (t->oldest && t->bytes + o->charge_bytes > t->size_bytes) {
			unlink_object(t, sieve_victim(t), &gone, change);
			change->evicted++;
		}
		link_object(t, o, &gone, change);
	} else {
		drop_like(t, o, &gone, change);
	}
	change_end(t, change);
	pthread_mutex_unlock(&t->lock);
	reclaim_later(&gone);
}

void cache_table_sweep(struct cache_table *t, int64_t before_ns, struct cache_change *change)
{
	struct leavers gone = {NULL};

	*change = (struct cache_change){0};
	pthread_mutex_lock(&t->lock);
	for (int i = 0; i < TABLE_SWEEP && t->files > 0; i++) {
		struct cache_object *o = t->broom ? t->broom : t->oldest;
		t->broom = o->newer;
		if (o->fd != -1 &&
		    atomic_load_explicit(&o->checked_ns, memory_order_relaxed) < before_ns)
			unlink_object(t, o, &gone, change);
	}
	change_end(t, change);
	pthread_mutex_unlock(&t->lock);
	reclaim_later(&gone);
}

struct cache_table *cache_table_hold(struct cache_table *t)
{
	atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
	return t;
}

static void free_table(struct cache_table *t)
{
	struct leavers gone = {NULL};
	struct cache_change change = {0};
	bool borrowed = cache_rcu_borrow();

	while (t->oldest)
		unlink_object(t, t->oldest, &gone, &change);
	while (gone.first) { /* no reader is left, so no grace period is needed */
		struct cache_object *o = gone.first;
		gone.first = o->older;
		cache_object_put(o);
	}
	urcu_memb_barrier(); /* wait until all objects evicted earlier are freed */
	cds_lfht_destroy(t->hash, NULL);
	cache_rcu_return(borrowed);
	pthread_mutex_destroy(&t->lock);
	if (atomic_fetch_sub_explicit(&t->account->refs, 1, memory_order_acq_rel) == 1)
		free(t->account);
	free(t);
}

void cache_table_put(struct cache_table *t)
{
	if (t && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1)
		free_table(t);
}
