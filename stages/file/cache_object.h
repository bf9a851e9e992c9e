/* SPDX-License-Identifier: MIT */
/*
 * What file.cache keeps of an answer: one block of memory, counted by reference.
 *
 *   NEW (its maker's) --put--> in the table --evicted, replaced--> out, still read --> freed
 *
 * The bytes in memory never change after cache_object_new; those of an open file may, which cache_object_intact() tells. The table holds a reference, each response that
 * points into the object holds one, each flight that revalidates it holds one; the table gives up
 * its own only after a grace period, so a reader inside a read section may add one to what it
 * found.
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
#include <urcu/rculfhash.h>
#include <urcu/urcu-memb.h>

#include <weir/http.h>

#include "condition.h"

/** Bytes that evicted objects still pin; outlives the table until the last of them is freed. */
struct cache_account {
	atomic_uint refs;
	atomic_int_fast64_t pinned_bytes;
};

/** What an object stands for. */
enum cache_kind {
	CACHE_WHOLE, /* a 200 with all its bytes, in memory or in an open file */
	CACHE_GONE,  /* a 404, kept for a short time */
	CACHE_PASS,  /* "not to be cached": requests need not wait for each other */
	CACHE_FORKS, /* "varies by Accept-Encoding": look under the client's code */
};

struct cache_object {
	/* the table's, under its lock; readers of a chain follow node by RCU */
	struct cds_lfht_node node;
	struct cache_object *newer, *older; /* order of arrival, for eviction */
	struct cache_account *account;      /* NULL before it enters a table */
	struct rcu_head rcu;

	/* constant after cache_object_new; what every hit reads first */
	enum cache_kind kind;
	uint16_t code; /* whom it is for, of encoding_code(); 0 when it does not vary */
	bool varies;   /* the answer was for those of `code` alone */
	uint64_t hash;
	struct weir_slice key;
	struct weir_slice fields;       /* of the whole answer */
	struct weir_slice body;         /* in memory; empty when `fd` has it */
	struct condition_file file;     /* ETag, date and size to judge conditions by */
	struct weir_slice fields_304;   /* the tail of `fields` that goes with 304 */
	struct weir_slice fields_parts; /* all of them but Content-Type, which comes first */
	struct weir_slice type;         /* value of Content-Type */
	int64_t charge_bytes;   /* of memory, all in all; an open file counts as some, too */
	int fd;                 /* the body is all of this file, owned; -1: it is in memory */
	int64_t fd_modified_ns; /* when it was last changed, as it was kept */

	/* written on hits */
	WEIR_ALIGNED atomic_uint refs;
	atomic_bool visited;            /* hit since the eviction hand last came by */
	atomic_int_fast64_t checked_ns; /* when it was last known to be what the file is */
	atomic_int_fast64_t due_ns;     /* when to check again; moved by who takes the task */
	WEIR_ALIGNED char bytes[];      /* key, fields, body */
};

/** What cache_object_new may keep. */
struct cache_limits {
	int64_t max_object_bytes;  /* of a body in memory */
	int64_t file_charge_bytes; /* what an open file counts as; 0: none is kept */
	int64_t revalidate_ns, negative_ns;
	int64_t shown_ns; /* how long an object may be shown without being checked */
	int64_t asked_ns; /* when `miss` was asked, by CLOCK_REALTIME_COARSE, as files are dated */
};

/** The hash of `code`'s variant of what has `hash`; that of code 0 is `hash`. */
static inline uint64_t cache_variant_hash(uint64_t hash, unsigned code)
{
	return hash ^ code * 0x9e3779b97f4a7c15u; /* Knuth, TAOCP 6.4: 2^64 / golden ratio, odd */
}

/** An object without bytes that says that `key` varies, with one reference for the caller; NULL: no
 *  memory. */
struct cache_object *cache_object_fork(uint64_t hash, struct weir_slice key);

/**
 * Copy the answer of `req`, which a plain GET got, into a new object under `key`, and under `code`
 * (of the request, encoding_code()) when it varies by Accept-Encoding, else for all: response fields
 * from `fields_start` of req->fields on (what was there before belongs to the request), and the body. A 200 that is too large
 * for that and is all of an open file is kept as one: the object has a descriptor of its own. What may not be kept (another status, too large, `no-store`,
 * `private`, `no-cache`, an age of zero, Set-Cookie, Vary by another field) becomes a CACHE_PASS. Returns 0 with one reference for
 * the caller, WEIR_EINVAL for an answer that says nothing about the next one (5xx and the like),
 * WEIR_ENOMEM, or WEIR_ESYS when the open file cannot be read, may have been written since `miss` was asked (then the
 * fields may be of other bytes), or no descriptor is left for it. Blocks on the disk only for an
 * answer that holds an open file.
 */
int cache_object_new(const struct weir_http_request *req, uint32_t fields_start, uint64_t hash,
    struct weir_slice key, unsigned code, const struct cache_limits *limits, int64_t now_ns,
    struct cache_object **object);

static inline void cache_object_hold(struct cache_object *o)
{
	atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}

/** Is the open file of `o` as it was kept? An fstat, which waits for no local disk. */
bool cache_object_file_intact(const struct cache_object *o);

/** Is what the object would answer what it was kept as? An open file that was changed in place is not, and must be asked for
 *  again. */
static inline bool cache_object_intact(const struct cache_object *o)
{
	return o->fd == -1 || cache_object_file_intact(o);
}

/** Give up a reference; the last one frees. */
void cache_object_put(struct cache_object *o);

/** Answer `req` from `o` (CACHE_WHOLE or CACHE_GONE), minding its conditions and ranges. Takes over the
 * caller's reference. Returns the outcome to finish the event with. */
int cache_object_respond(struct cache_object *o, struct weir_http_request *req);

#endif
