/* SPDX-License-Identifier: MIT */
/*
 * The store of http.cache: objects by key, limited in bytes.
 *
 * Readers search one lock-free hash table (liburcu's cds_lfht) within an RCU read section and take a
 * reference to what they find. Writers take the lock of one of several shards, chosen by the key without its
 * variant, so all variants of a key are in one shard. Each shard has its own list for eviction.
 *
 * | call                                      | threads                                  | blocks     |
 * |-------------------------------------------|------------------------------------------|------------|
 * | hcache_store_new                          | main                                     | no         |
 * | hcache_store_hash                         | any                                      | no         |
 * | hcache_store_find                         | any registered, within a read section    | no         |
 * | hcache_store_insert, _remove, _purge      | any registered, outside of read sections | on writers |
 * | hcache_store_hold                         | any that has a reference                 | no         |
 * | hcache_store_put                          | any outside the graph                    | yes        |
 */
#ifndef WEIR_STAGES_HTTP_CACHE_STORE_H
#define WEIR_STAGES_HTTP_CACHE_STORE_H

#include "http/cache/object.h"

struct hcache_store;

/** What a store holds, and what it has done. */
struct hcache_totals {
	int64_t bytes, objects; /* now */
	int64_t evicted;        /* objects, since it was made */
};

/** Make a store of at most `bytes`, with at most `variants` answers for a key. The caller gets a reference.
 * Returns 0 or WEIR_ENOMEM. */
int hcache_store_new(int64_t bytes, int variants, struct hcache_store **store);

/** The hash of `key` in this store. It depends on a secret, since clients choose the keys. */
uint64_t hcache_store_hash(const struct hcache_store *s, struct weir_slice key);

/** Find the object with `key`, and mark it as used. Returns it with a reference, or NULL. */
struct hcache_object *hcache_store_find(
    struct hcache_store *s, uint64_t hash, struct weir_slice key);

/** Insert `o`, which has never been in a store, in place of the object with its key. `fork` is the object
 * of the key, if `o` is a variant, and otherwise NULL. Evicts others as needed. The caller keeps its reference.
 * Returns false if it was not inserted: it is too large, objects that have left still hold too much memory,
 * or `fork` is no longer in the store. An object with its key is removed all the same. */
bool hcache_store_insert(
    struct hcache_store *s, struct hcache_object *o, struct hcache_object *fork);

/** Remove the object with `key`, and all its variants. Returns how many objects there were. */
int64_t hcache_store_remove(struct hcache_store *s, struct weir_slice key);

/** Remove all objects for which `matches` is true, with their variants. Looks at every object; a shard is
 * locked for about 0.1 us for each of its objects. Returns how many were removed. */
int64_t hcache_store_purge(struct hcache_store *s,
    bool (*matches)(const struct hcache_object *o, const void *arg), const void *arg);

/** A number that differs from those of all other calls, for hcache_object_fork. */
uint64_t hcache_store_id(struct hcache_store *s);

struct hcache_totals hcache_store_totals(const struct hcache_store *s);

struct hcache_store *hcache_store_hold(struct hcache_store *s);

/** Drop a reference; NULL is allowed. The last one removes all objects. Those that answers still use are freed
 * when these have been sent. */
void hcache_store_put(struct hcache_store *s);

#endif
