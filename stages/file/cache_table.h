/* SPDX-License-Identifier: MIT */
/*
 * The table of file.cache: objects by key, bounded in bytes.
 *
 * Readers walk a lock-free hash table (liburcu's cds_lfht) inside an RCU read section and take a
 * reference to what they find; writers take one lock. The bound is on what the table holds plus
 * what evicted objects still pin because a slow client reads them.
 *
 * | call                | threads                                             | blocks     |
 * |---------------------|-----------------------------------------------------|------------|
 * | cache_table_new     | main                                                | no         |
 * | cache_table_hash    | any                                                 | no         |
 * | cache_table_find, _variant | any registered, at once, inside a read section | no       |
 * | cache_table_insert, _sweep | any registered, at once, outside read sections | on writers |
 * | cache_table_hold    | any that has a reference                            | no         |
 * | cache_table_put     | any, outside read sections; none of the graph's     | yes        |
 */
#ifndef WEIR_STAGES_FILE_CACHE_TABLE_H
#define WEIR_STAGES_FILE_CACHE_TABLE_H

#include "cache_object.h"

struct cache_table;

/** What a change did, for gauges and counters. */
struct cache_change {
	int64_t bytes, objects;         /* more, or fewer, in the table */
	int64_t evicted;                /* pushed out to make room */
	int64_t bytes_now, objects_now; /* in the table afterwards */
	int64_t files_now;              /* of the objects, those that are open files */
};

/** A table for at most `size_bytes` of objects, with one reference. 0 or WEIR_ENOMEM. */
int cache_table_new(int64_t size_bytes, struct cache_table **table);

/** The hash of `key` in this table. It has a seed that nobody outside knows: clients choose keys, and
 *  by a hash that they can compute would choose those that share a bucket. One pass over the key. */
uint64_t cache_table_hash(const struct cache_table *t, struct weir_slice key);

/** The object under `key` and `code`, with a reference for the caller, or NULL. Marks it as used.
 *  `hash` is that of the variant. */
struct cache_object *cache_table_find(
    struct cache_table *t, uint64_t hash, struct weir_slice key, unsigned code);

/** What `o`, found under a request's path and code 0 and said to vary, means for the request: itself,
 *  its client's variant, or NULL. Takes over the reference and gives one. As cache_table_find. */
struct cache_object *cache_table_variant(
    struct cache_table *t, struct cache_object *o, uint64_t hash, unsigned code);

/** Put `o`, which no table had before, in place of an object of its key, evicting others as needed.
 *  The caller keeps its reference. When it cannot fit it stays outside, and the old one leaves. */
void cache_table_insert(struct cache_table *t, struct cache_object *o, struct cache_change *change);

/** Take out open files that were not known to be right since `before_ns` (of checked_ns): nobody is shown them any more, and what
 *  was deleted keeps its room on the disk while it is open. Looks at a few objects, the next ones at the next call. */
void cache_table_sweep(struct cache_table *t, int64_t before_ns, struct cache_change *change);

/** One more reference: a cache that follows another one over a reload. Returns `t`. */
struct cache_table *cache_table_hold(struct cache_table *t);

/** Give up a reference; nobody who used it through this one does any more. The last one drops all objects; what
 *  responses still use is freed with the last of them. */
void cache_table_put(struct cache_table *t);

#endif
