/* SPDX-License-Identifier: MIT */
/*
 * Objects of file.cache: cached responses. An object is one reference-counted block of memory.
 *
 *   NEW (creator owns it) --insert--> in the table --evicted, replaced--> referenced --> freed
 *
 * The bytes in memory never change after cache_object_new. The bytes of an open file may change;
 * cache_object_intact() detects that. The table holds one reference, each response that points into
 * the object holds one, and each flight that revalidates it holds one. The table drops its
 * reference only after a grace period, so a reader inside a read section may take a reference to an
 * object that it found there.
 *
 * | call                              | threads                                              |
 * |-----------------------------------|------------------------------------------------------|
 * | cache_object_new                  | any                                                  |
 * | cache_object_hold, _put, _respond | any that has a reference; hold also in a read section |
 */
#ifndef WEIR_STAGES_FILE_CACHE_OBJECT_H
#define WEIR_STAGES_FILE_CACHE_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <urcu/rculfhash.h>
#include <urcu/urcu-memb.h>

#include <weir/http.h>

#include "condition.h"

/** Counts the bytes that evicted objects still hold. The account outlives the table until the last
 * of these objects is freed. */
struct cache_account {
	atomic_uint refs;
	atomic_int_fast64_t pinned_bytes;
};

/** What an object contains, and so how requests for its key are answered. */
enum cache_kind {
	CACHE_WHOLE, /* a 200 with its whole body, in memory or in an open file */
	CACHE_GONE,  /* a 404, kept for a short time */
	CACHE_PASS,  /* not cacheable: each request is sent to `miss` at once, by itself */
	/* varies by Accept-Encoding: look up the variant under the client's encoding_code() */
	CACHE_FORKS,
};

struct cache_object {
	/* Owned by the table, under its lock; readers follow the hash chain in `node` under RCU. */
	struct cds_lfht_node node;
	struct cache_object *newer, *older; /* order of insertion, for eviction */
	struct cache_account *account;      /* NULL until the object enters a table */
	struct rcu_head rcu;

	/* Constant after cache_object_new. Every hit reads these first. */
	enum cache_kind kind;
	uint16_t code; /* encoding_code() of the clients; 0 if the response does not vary */
	bool varies;   /* the response is only for clients with this `code` */
	uint64_t hash;
	struct weir_slice key;
	struct weir_slice fields;       /* of the complete response */
	struct weir_slice body;         /* in memory; empty if the body is in `fd` */
	struct condition_file file;     /* ETag, date and size, for evaluating conditions */
	struct weir_slice fields_304;   /* the tail of `fields` that a 304 repeats */
	struct weir_slice fields_parts; /* all fields except Content-Type, which comes first */
	struct weir_slice type;         /* value of Content-Type */
	/* bytes charged to the table: the size of this block or, if larger, the charge for an open
	 * file */
	int64_t charge_bytes;
	int fd; /* owned; the whole file is the body; -1 if the body is in memory */
	struct timespec fd_modified, fd_changed; /* file times when the object was made */

	/* written on hits */
	WEIR_ALIGNED atomic_uint refs;
	atomic_bool visited;            /* hit since the eviction hand last passed */
	atomic_int_fast64_t checked_ns; /* when the object was last known to match the file */
	/* time of the next revalidation; the request that advances it does the check */
	atomic_int_fast64_t due_ns;
	WEIR_ALIGNED char bytes[]; /* key, fields, body */
};

/** Limits for cache_object_new. */
struct cache_limits {
	int64_t max_object_bytes;  /* largest body kept in memory */
	int64_t file_charge_bytes; /* charge for an open file; if 0, no file is kept open */
	int64_t revalidate_ns, negative_ns;
	int64_t shown_ns; /* maximum time that an object is served without revalidation */
	/* when the request was sent to `miss`, by CLOCK_REALTIME_COARSE, the clock of file
	 * timestamps */
	int64_t asked_ns;
};

/** The hash of the variant for `code`, given the `hash` of the key. For code 0 it is `hash`
 * itself. */
static inline uint64_t cache_variant_hash(uint64_t hash, unsigned code)
{
	return hash ^ code * 0x9e3779b97f4a7c15u; /* Knuth, TAOCP 6.4: 2^64 / golden ratio, odd */
}

/** Create a CACHE_FORKS object, which records that the responses for `key` vary. The caller gets
 * one reference. Returns NULL if out of memory. */
struct cache_object *cache_object_fork(uint64_t hash, struct weir_slice key);

/**
 * Copy the response in `req` into a new object under `key`. The request must have been a plain GET.
 *
 * If the response varies by Accept-Encoding, the object is stored for `code` (encoding_code() of
 * the request), otherwise for all clients. The copy holds the body and the response fields. The
 * first `fields_start` bytes of req->fields are not copied, since they belong to this request only.
 * A 200 whose body is too large for memory and consists of one whole open file is kept as an open
 * file: the object gets its own descriptor. A response that must not be kept (another status, too
 * large, `no-store`, `private`, `no-cache`, an age of zero, Set-Cookie, Vary by another field)
 * becomes a CACHE_PASS.
 *
 * Returns 0 with one reference for the caller; WEIR_EINVAL for a response from which nothing can be
 * concluded about the next one (such as 5xx); WEIR_ENOMEM; WEIR_ESYS if the open file cannot be
 * read, may have been written since the request was sent to `miss` (the fields may then describe
 * other bytes), or no descriptor is left for it. Blocks on the disk only for a response that holds
 * an open file.
 */
int cache_object_new(const struct weir_http_request *req, uint32_t fields_start, uint64_t hash,
    struct weir_slice key, unsigned code, const struct cache_limits *limits, int64_t now_ns,
    struct cache_object **object);

static inline void cache_object_hold(struct cache_object *o)
{
	atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}

/** Whether the open file of `o` is unchanged since the object was made. Costs an fstat, which does
 * not block on local disks. */
bool cache_object_file_intact(const struct cache_object *o);

/** Whether the object may still be served as it is. If its open file was changed in place, it must
 * be fetched again. */
static inline bool cache_object_intact(const struct cache_object *o)
{
	return o->fd == -1 || cache_object_file_intact(o);
}

/** Drop a reference. The last one frees the object. */
void cache_object_put(struct cache_object *o);

/** Answer `req` from `o` (CACHE_WHOLE or CACHE_GONE), honouring its conditions and ranges. Takes
 * over the caller's reference. Returns the status to finish the event with. */
int cache_object_respond(struct cache_object *o, struct weir_http_request *req);

#endif
