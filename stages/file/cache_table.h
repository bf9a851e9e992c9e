/* SPDX-License-Identifier: MIT */
/*
 * The table of file.cache: objects by key, limited in bytes.
 *
 * Readers search a lock-free hash table (liburcu's cds_lfht) inside an RCU read section and take a
 * reference to the object they find. Writers take one lock. One limit covers the objects in the
 * table, another one the evicted objects that slow clients still read.
 *
 * | call                | threads                                             | blocks     |
 * |---------------------|-----------------------------------------------------|------------|
 * | cache_table_new     | main                                                | no         |
 * | cache_table_hash    | any                                                 | no         |
 * | cache_table_find, _variant | any registered, concurrently, inside a read section | no  |
 * | cache_table_insert, _sweep | any registered, concurrently, outside read sections | on writers |
 * | cache_table_hold    | any that has a reference                            | no         |
 * | cache_table_put     | any outside the graph, outside read sections        | yes        |
 */
#ifndef WEIR_STAGES_FILE_CACHE_TABLE_H
#define WEIR_STAGES_FILE_CACHE_TABLE_H

#include "cache_object.h"

struct cache_table;

/** The effect of a change on the table, for gauges and counters. */
struct cache_change {
	int64_t bytes, objects;         /* change of the table's contents; may be negative */
	int64_t evicted;                /* objects evicted to make space */
	int64_t bytes_now, objects_now; /* in the table afterwards */
	int64_t files_now;              /* how many of objects_now are open files */
};

/** Create a table for objects of at most `size_bytes` in total; the caller gets one reference.
 * Returns 0 or WEIR_ENOMEM. */
int cache_table_new(int64_t size_bytes, struct cache_table **table);

/** The hash of `key` in this table. It is seeded with a secret, since clients choose the keys and
 * could otherwise choose many that share a bucket. Costs one pass over the key. */
uint64_t cache_table_hash(const struct cache_table *t, struct weir_slice key);

/** Find the object under `key` and `code` and mark it as used. Returns it with a reference for the
 * caller, or NULL. `hash` is that of the variant (cache_variant_hash). */
struct cache_object *cache_table_find(
    struct cache_table *t, uint64_t hash, struct weir_slice key, unsigned code);

/** Find the variant for clients with `code`, given `o`, a varying object that was found under the
 * path and code 0. Returns `o` itself, another object, or NULL. Takes over the reference to `o` and
 * returns one to the result. Threads as for cache_table_find. */
struct cache_object *cache_table_variant(
    struct cache_table *t, struct cache_object *o, uint64_t hash, unsigned code);

/** Insert `o`, which must never have been in a table, replacing any object with its key and
 * evicting others as needed. The caller keeps its reference. If `o` cannot fit, it is not inserted,
 * but an object with its key is removed all the same, since it is out of date. */
void cache_table_insert(struct cache_table *t, struct cache_object *o, struct cache_change *change);

/** Remove open files that were last checked (checked_ns) before `before_ns`. Such files are no
 * longer served, and a deleted file occupies disk space while it is open. Each call examines a few
 * objects and continues where the previous call stopped. */
void cache_table_sweep(struct cache_table *t, int64_t before_ns, struct cache_change *change);

/** Take another reference, for a cache that continues this one after a reload. Returns `t`. */
struct cache_table *cache_table_hold(struct cache_table *t);

/** Drop a reference; the caller must no longer use the table. Dropping the last one removes all
 * objects. An object that responses still use is freed when the last of them has been sent. */
void cache_table_put(struct cache_table *t);

#endif
