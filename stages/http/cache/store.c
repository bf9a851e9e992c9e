/* SPDX-License-Identifier: MIT */
/*
 * Stores objects by key and evicts them; see store.h.
 *
 * Eviction is SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi: SIEVE is simpler than LRU, NSDI 2024) in each shard,
 * as in file.cache: a hand moves from the oldest object to the newest and evicts the first that was not hit
 * since it last passed. A hit sets a flag and takes no lock. Objects that are asked for once leave early, so
 * neither a scan nor the marks of what is not stored drive out what is used. The memory limit is one for all
 * shards; they give way in turn.
 *
 * The locks of the shards are leaves: no other lock is taken and no callback but `matches` runs under them.
 */
#include "http/cache/store.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <weir/weir.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "file/cache_rcu.h"

/* 16 is a guess: writers are requests that the origin has answered, far fewer than the readers. */
#define SHARDS 16

/* The buckets are made at once, since resizing would start a thread of liburcu. 4096 is a guess: half the
 * usual size of a page; longer chains cost a few ns for each entry. */
#define BYTES_PER_BUCKET 4096
#define BUCKETS_MIN      64
#define BUCKETS_MAX      (1 << 20)

/* Limit on the memory of objects that have left and are not yet free: a share of the limit, for answers to
 * slow clients, and what may leave during a grace period of about 10 ms. As in file.cache. */
#define PINNED_SHARE  4
#define LEAVING_BYTES (8 << 20)

struct shard {
	WEIR_ALIGNED pthread_mutex_t lock;
	struct hcache_object *newest, *oldest;
	struct hcache_object *hand; /* the next candidate; NULL: the oldest */
	atomic_uint n;              /* changed under the lock */
};

struct hcache_store {
	struct cds_lfht *hash;
	uint64_t seed;
	int64_t size_bytes;
	int most_variants;
	struct hcache_account *account;
	atomic_int refs;
	atomic_uint_fast64_t id;
	atomic_uint turn; /* the shard that gives way next */
	WEIR_ALIGNED atomic_int_fast64_t bytes;
	atomic_int_fast64_t objects, evicted;
	struct shard shard[SHARDS];
};

/* ---- start and end ---- */

static unsigned long bucket_count(int64_t size_bytes)
{
	unsigned long n = BUCKETS_MIN;

	while (n < BUCKETS_MAX && (int64_t)n * BYTES_PER_BUCKET < size_bytes)
		n *= 2;
	return n;
}

/* Make liburcu create the thread for its callbacks here, with all signals blocked and a name of its own. */
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

int hcache_store_new(int64_t bytes, int variants, struct hcache_store **store)
{
	struct hcache_store *s = aligned_alloc(WEIR_CACHE_LINE, sizeof(*s));
	unsigned long n = bucket_count(bytes);

	if (!s)
		return WEIR_ENOMEM;
	memset(s, 0, sizeof(*s));
	s->size_bytes = bytes;
	s->most_variants = variants;
	s->account = calloc(1, sizeof(*s->account));
	bool seeded = getrandom(&s->seed, sizeof(s->seed), 0) == (ssize_t)sizeof(s->seed);
	s->hash = seeded ? cds_lfht_new_flavor(n, n, n, 0, &urcu_memb_flavor, NULL) : NULL;
	if (!s->account || !s->hash) {
		if (s->hash)
			cds_lfht_destroy(s->hash, NULL);
		free(s->account);
		free(s);
		return WEIR_ENOMEM;
	}
	atomic_init(&s->account->refs, 1);
	atomic_init(&s->refs, 1);
	for (int i = 0; i < SHARDS; i++)
		pthread_mutex_init(&s->shard[i].lock, NULL);
	start_reclaimer();
	*store = s;
	return 0;
}

struct hcache_store *hcache_store_hold(struct hcache_store *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

/* ---- lookup ---- */

static struct hcache_object *object_of(struct cds_lfht_node *node)
{
	return (struct hcache_object *)((char *)node - offsetof(struct hcache_object, node));
}

uint64_t hcache_store_hash(const struct hcache_store *s, struct weir_slice key)
{
	return XXH3_64bits_withSeed(key.p, key.n, s->seed);
}

static int matches_key(struct cds_lfht_node *node, const void *key)
{
	const struct weir_slice *k = key;
	struct hcache_object *o = object_of(node);

	cache_rcu_acquire(o);
	return o->key.n == k->n && memcmp(o->key.p, k->p, k->n) == 0;
}

struct hcache_object *hcache_store_find(
    struct hcache_store *s, uint64_t hash, struct weir_slice key)
{
	struct cds_lfht_iter iter;

	cds_lfht_lookup(s->hash, hash, matches_key, &key, &iter);
	struct cds_lfht_node *node = cds_lfht_iter_get_node(&iter);
	if (!node)
		return NULL;
	struct hcache_object *o = hcache_object_hold(object_of(node));
	if (!atomic_load_explicit(&o->visited, memory_order_relaxed))
		atomic_store_explicit(&o->visited, true, memory_order_relaxed);
	return o;
}

/* ---- lists, under the lock of the shard ---- */

static void list_add(struct shard *h, struct hcache_object *o)
{
	atomic_fetch_add_explicit(&h->n, 1, memory_order_relaxed);
	o->newer = NULL;
	o->older = h->newest;
	if (h->newest)
		h->newest->newer = o;
	else
		h->oldest = o;
	h->newest = o;
}

static void list_remove(struct shard *h, struct hcache_object *o)
{
	atomic_fetch_sub_explicit(&h->n, 1, memory_order_relaxed);
	if (h->hand == o)
		h->hand = o->newer;
	if (o->newer)
		o->newer->older = o->older;
	else
		h->newest = o->older;
	if (o->older)
		o->older->newer = o->newer;
	else
		h->oldest = o->newer;
	o->newer = o->older = NULL;
}

static void variant_add(struct hcache_object *fork, struct hcache_object *o)
{
	o->fork = fork;
	o->v_older = fork->variants;
	if (fork->variants)
		fork->variants->v_newer = o;
	else
		fork->last = o;
	fork->variants = o;
	fork->n_variants++;
}

static void variant_remove(struct hcache_object *o)
{
	struct hcache_object *fork = o->fork;

	if (!fork)
		return;
	if (o->v_newer)
		o->v_newer->v_older = o->v_older;
	else
		fork->variants = o->v_older;
	if (o->v_older)
		o->v_older->v_newer = o->v_newer;
	else
		fork->last = o->v_newer;
	o->v_newer = o->v_older = o->fork = NULL;
	fork->n_variants--;
}

/* ---- leaving ---- */

/* Objects that have left, linked by `older`, to be reclaimed after the lock is released. */
struct leavers {
	struct hcache_object *first;
	int64_t n;
};

/* Remove `o`, which is no longer in the hash table. */
static void forget(
    struct hcache_store *s, struct shard *h, struct hcache_object *o, struct leavers *gone)
{
	variant_remove(o);
	list_remove(h, o);
	o->linked = false;
	atomic_fetch_add_explicit(&s->account->pinned_bytes, o->charge_bytes, memory_order_relaxed);
	atomic_fetch_sub_explicit(&s->bytes, o->charge_bytes, memory_order_relaxed);
	atomic_fetch_sub_explicit(&s->objects, 1, memory_order_relaxed);
	o->older = gone->first;
	gone->first = o;
	gone->n++;
}

static void unhash(struct hcache_store *s, struct hcache_object *o)
{
	urcu_memb_read_lock();
	cds_lfht_del(s->hash, &o->node);
	urcu_memb_read_unlock();
}

/* Variants cannot be found without the object of their key. */
static void forget_variants(
    struct hcache_store *s, struct shard *h, struct hcache_object *fork, struct leavers *gone)
{
	while (fork->variants) {
		struct hcache_object *o = fork->variants;
		unhash(s, o);
		forget(s, h, o, gone);
	}
}

static void unlink_object(
    struct hcache_store *s, struct shard *h, struct hcache_object *o, struct leavers *gone)
{
	forget_variants(s, h, o, gone);
	unhash(s, o);
	forget(s, h, o, gone);
}

static void reclaim(struct rcu_head *head)
{
	struct hcache_object *o =
	    (struct hcache_object *)((char *)head - offsetof(struct hcache_object, rcu));

	cache_rcu_acquire(o);
	cache_rcu_acquire(&cache_rcu_epoch);
	hcache_object_put(o);
}

static int64_t reclaim_later(struct leavers *gone)
{
	while (gone->first) {
		struct hcache_object *o = gone->first;
		gone->first = o->older;
		cache_rcu_release(o);
		urcu_memb_call_rcu(&o->rcu, reclaim);
	}
	return gone->n;
}

/* ---- eviction ---- */

static struct hcache_object *victim(struct shard *h)
{
	struct hcache_object *o = h->hand ? h->hand : h->oldest;

	while (atomic_exchange_explicit(&o->visited, false, memory_order_relaxed))
		o = o->newer ? o->newer : h->oldest;
	h->hand = o;
	return o;
}

/* Evict one object of a shard. Returns false if it has none. */
static bool evict(struct hcache_store *s, struct shard *h)
{
	struct leavers gone = {NULL, 0};

	pthread_mutex_lock(&h->lock);
	bool any = h->oldest != NULL;
	if (any)
		unlink_object(s, h, victim(h), &gone);
	pthread_mutex_unlock(&h->lock);
	atomic_fetch_add_explicit(&s->evicted, reclaim_later(&gone), memory_order_relaxed);
	return any;
}

static unsigned length(const struct shard *h)
{
	return atomic_load_explicit(&h->n, memory_order_relaxed);
}

/* The shard that gives way next: in turn, but the longer one of two. Keys fall into shards at random, so with turns
 * alone some shards would become so short that they evict what is in use. */
static struct shard *next_shard(struct hcache_store *s)
{
	unsigned turn = atomic_fetch_add_explicit(&s->turn, 1, memory_order_relaxed);
	struct shard *a = &s->shard[turn % SHARDS];
	struct shard *b = &s->shard[(turn + 1 + turn / SHARDS % (SHARDS - 1)) % SHARDS];

	return length(b) > length(a) ? b : a;
}

/* Reserve memory for an object. */
static void make_room(struct hcache_store *s, int64_t charge_bytes)
{
	int empty = 0;

	atomic_fetch_add_explicit(&s->bytes, charge_bytes, memory_order_relaxed);
	while (empty < SHARDS &&
	       atomic_load_explicit(&s->bytes, memory_order_relaxed) > s->size_bytes) {
		empty = evict(s, next_shard(s)) ? 0 : empty + 1;
	}
}

/* ---- changes ---- */

static bool fits(const struct hcache_store *s, const struct hcache_object *o)
{
	int64_t pinned = atomic_load_explicit(&s->account->pinned_bytes, memory_order_relaxed);

	return o->charge_bytes <= s->size_bytes &&
	       pinned <= s->size_bytes / PINNED_SHARE + LEAVING_BYTES;
}

/* Link `o` in place of the object with its key. The store takes a reference. */
static void link_object(struct hcache_store *s, struct shard *h, struct hcache_object *o,
    struct hcache_object *fork, struct leavers *gone)
{
	hcache_object_hold(o);
	atomic_fetch_add_explicit(&s->account->refs, 1, memory_order_relaxed);
	o->account = s->account;
	o->linked = true;
	cache_rcu_release(o);
	urcu_memb_read_lock();
	struct cds_lfht_node *old =
	    cds_lfht_add_replace(s->hash, o->hash, matches_key, &o->key, &o->node);
	urcu_memb_read_unlock();
	if (old) {
		forget_variants(s, h, object_of(old), gone);
		forget(s, h, object_of(old), gone);
	}
	if (fork && fork->n_variants >= s->most_variants)
		unlink_object(s, h, fork->last, gone);
	list_add(h, o);
	if (fork)
		variant_add(fork, o);
	atomic_fetch_add_explicit(&s->objects, 1, memory_order_relaxed);
}

static struct shard *shard_of(struct hcache_store *s, uint64_t hash)
{
	return &s->shard[(hash >> 32) % SHARDS];
}

/* Remove the object with `key`, under the lock of its shard. */
static void drop(struct hcache_store *s, struct shard *h, uint64_t hash, struct weir_slice key,
    struct leavers *gone)
{
	struct cds_lfht_iter iter;

	urcu_memb_read_lock();
	cds_lfht_lookup(s->hash, hash, matches_key, &key, &iter);
	struct cds_lfht_node *node = cds_lfht_iter_get_node(&iter);
	urcu_memb_read_unlock(); /* the lock keeps linked objects alive */
	if (node)
		unlink_object(s, h, object_of(node), gone);
}

bool hcache_store_insert(
    struct hcache_store *s, struct hcache_object *o, struct hcache_object *fork)
{
	struct shard *h = shard_of(s, fork ? fork->hash : o->hash);
	struct leavers gone = {NULL, 0};
	bool good = fits(s, o);

	if (good)
		make_room(s, o->charge_bytes);
	pthread_mutex_lock(&h->lock);
	bool linked = good && (!fork || fork->linked);
	if (linked)
		link_object(s, h, o, fork, &gone);
	else
		drop(s, h, o->hash, o->key, &gone);
	pthread_mutex_unlock(&h->lock);
	if (good && !linked)
		atomic_fetch_sub_explicit(&s->bytes, o->charge_bytes, memory_order_relaxed);
	reclaim_later(&gone);
	return linked;
}

int64_t hcache_store_remove(struct hcache_store *s, struct weir_slice key)
{
	uint64_t hash = hcache_store_hash(s, key);
	struct shard *h = shard_of(s, hash);
	struct leavers gone = {NULL, 0};

	pthread_mutex_lock(&h->lock);
	drop(s, h, hash, key, &gone);
	pthread_mutex_unlock(&h->lock);
	return reclaim_later(&gone);
}

int64_t hcache_store_purge(struct hcache_store *s,
    bool (*matches)(const struct hcache_object *o, const void *arg), const void *arg)
{
	struct leavers gone = {NULL, 0};

	for (int i = 0; i < SHARDS; i++) {
		struct shard *h = &s->shard[i];
		pthread_mutex_lock(&h->lock);
		for (struct hcache_object *o = h->oldest; o;) {
			struct hcache_object *newer = o->newer;
			if (matches(o, arg)) {
				/* its variants are newer than it, and leave with it */
				while (newer && newer->fork == o)
					newer = newer->newer;
				unlink_object(s, h, o, &gone);
			}
			o = newer;
		}
		pthread_mutex_unlock(&h->lock);
	}
	return reclaim_later(&gone);
}

uint64_t hcache_store_id(struct hcache_store *s)
{
	return atomic_fetch_add_explicit(&s->id, 1, memory_order_relaxed) + 1;
}

struct hcache_totals hcache_store_totals(const struct hcache_store *s)
{
	return (struct hcache_totals){atomic_load_explicit(&s->bytes, memory_order_relaxed),
	    atomic_load_explicit(&s->objects, memory_order_relaxed),
	    atomic_load_explicit(&s->evicted, memory_order_relaxed)};
}

/* ---- end ---- */

static void free_store(struct hcache_store *s)
{
	bool borrowed = cache_rcu_borrow();

	for (int i = 0; i < SHARDS; i++) {
		struct leavers gone = {NULL, 0};
		while (s->shard[i].oldest)
			unlink_object(s, &s->shard[i], s->shard[i].oldest, &gone);
		while (gone.first) { /* no reader is left, so no grace period is needed */
			struct hcache_object *o = gone.first;
			gone.first = o->older;
			hcache_object_put(o);
		}
		pthread_mutex_destroy(&s->shard[i].lock);
	}
	urcu_memb_barrier(); /* until all objects that left earlier are freed */
	cds_lfht_destroy(s->hash, NULL);
	cache_rcu_return(borrowed);
	if (atomic_fetch_sub_explicit(&s->account->refs, 1, memory_order_acq_rel) == 1)
		free(s->account);
	free(s);
}

void hcache_store_put(struct hcache_store *s)
{
	if (s && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
		free_store(s);
}
