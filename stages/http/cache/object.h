/* SPDX-License-Identifier: MIT */
/*
 * Objects of http.cache: stored answers, and what else is known of a key.
 *
 *   made (its maker has a reference) --inserted--> in the store --evicted, replaced, purged--> freed with
 *                                                                the last reference
 *
 * An object does not change after it has been made, but for its counters. What an origin says with a 304
 * makes a new object, which shares the body. The store holds one reference and drops it after a grace period,
 * so a reader within an RCU read section may take a reference to what it finds. Each answer that points into
 * an object holds one, too.
 *
 * Times are of CLOCK_MONOTONIC, so a clock that is set does not change ages.
 */
#ifndef WEIR_STAGES_HTTP_CACHE_OBJECT_H
#define WEIR_STAGES_HTTP_CACHE_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <urcu/rculfhash.h>
#include <urcu/urcu-memb.h>

#include <weir/http.h>

#include "file/condition.h"
#include "http/cache/answer.h"

enum hcache_kind {
	HCACHE_WHOLE, /* an answer with its body */
	HCACHE_PASS, /* not to be stored: requests for the key go to the origin at once, until it expires */
	HCACHE_FORKS, /* the answers for the key vary: look up the variant (hcache_key_vary) */
};

/** A body, shared by the objects that a 304 has made of one. */
struct hcache_body {
	atomic_uint refs;
	size_t n;
	char bytes[];
};

/** Counts the bytes of objects that have left the store and are still used. It outlives the store. */
struct hcache_account {
	atomic_uint refs;
	atomic_int_fast64_t pinned_bytes;
};

struct hcache_object {
	struct cds_lfht_node node; /* readers follow the hash chain */

	/* under the lock of the store's shard */
	struct hcache_object *newer, *older;     /* order of insertion, for eviction */
	struct hcache_object *fork;              /* of a variant: the object of its key */
	struct hcache_object *variants, *last;   /* of HCACHE_FORKS: the newest, the oldest */
	struct hcache_object *v_newer, *v_older; /* variants of the same key */
	int n_variants;
	bool linked;
	struct hcache_account *account; /* NULL until the object enters a store */
	struct rcu_head rcu;

	/* constant */
	enum hcache_kind kind;
	uint16_t status;
	bool varies; /* a variant */
	bool
	    unchecked; /* may be answered without asking the origin while it is fresh: no no-cache */
	bool stale_forbidden; /* must-revalidate, proxy-revalidate or s-maxage */
	bool must_revalidate;
	bool for_authorized; /* also for requests with Authorization (RFC 9111, 3.5) */
	uint32_t shard;      /* of the key without the variant */
	uint64_t hash, id;   /* `id`: of HCACHE_FORKS, unique in the store */
	struct weir_slice key;
	struct weir_slice names;        /* of HCACHE_FORKS, as in struct hcache_vary */
	struct weir_slice fields;       /* of the whole answer */
	struct weir_slice fields_parts; /* all but Content-Type, which comes first */
	struct weir_slice fields_304;   /* those that a 304 repeats, at the end */
	struct weir_slice type;         /* value of Content-Type */
	struct condition_file file;     /* ETag, date and size */
	struct hcache_body *body;       /* NULL if empty; one reference */
	int64_t born_ns;                /* when the age of the answer was 0 */
	int64_t fresh_ns; /* its age until which it is fresh; of HCACHE_PASS until it expires */
	int64_t while_ns, error_ns; /* stale-while-revalidate, stale-if-error; -1 if not said */
	int64_t charge_bytes;       /* memory of the object and its body */

	/* written on hits */
	WEIR_ALIGNED atomic_uint refs;
	atomic_bool visited;            /* hit since the hand of eviction has last passed */
	atomic_int_fast64_t refresh_ns; /* no request in the background before this time */
	atomic_int_fast64_t failing_ns; /* until then the origin is taken to be out of order */
	WEIR_ALIGNED char bytes[];      /* key, names, fields */
};

/** Make an object of the answer `a` to a GET, whose body is a copy of body.p[0..body.n), or that of `old` if
 * `old` is not NULL, whose fields `a` updates (RFC 9111, 4.3.4). The answer was received at `now_ns` with the
 * age `a->age_s`. The caller gets a reference. Returns NULL if memory is short. */
struct hcache_object *hcache_object_make(const struct hcache_answer *a, struct weir_slice body,
    const struct hcache_object *old, uint64_t hash, struct weir_slice key, int64_t now_ns);

/** Make a HCACHE_PASS that expires after `keep_ns`. */
struct hcache_object *hcache_object_pass(
    uint64_t hash, struct weir_slice key, int64_t now_ns, int64_t keep_ns);

/** Make a HCACHE_FORKS for answers that depend on the fields `names`. */
struct hcache_object *hcache_object_fork(
    uint64_t hash, struct weir_slice key, struct weir_slice names, uint64_t id);

static inline struct hcache_object *hcache_object_hold(struct hcache_object *o)
{
	atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
	return o;
}

/** Drop a reference; NULL is allowed. Any thread. */
void hcache_object_put(struct hcache_object *o);

static inline int64_t hcache_object_age_ns(const struct hcache_object *o, int64_t now_ns)
{
	return now_ns - o->born_ns;
}

/** How an answer came about, for the field Cache-Status (RFC 9211). */
struct hcache_told {
	const char *text; /* "hit", "fwd=stale; fwd-status=304"; NULL writes no field */
	bool ttl;         /* add the time for which it is still fresh */
	bool plain;       /* the request is known to have no conditions and ranges */
};

/** Answer `req` from `o` (HCACHE_WHOLE), by its conditions and ranges, with Age. Takes over the caller's
 * reference. Returns the status to finish the event with. */
int hcache_object_respond(struct hcache_object *o, struct weir_http_request *req, int64_t now_ns,
    const struct hcache_told *told);

/** Set the status and add a copy of the fields of `o`, with Age, for an answer in parts. Returns 0 or
 * WEIR_ENOMEM. */
int hcache_object_head(const struct hcache_object *o, struct weir_http_request *req, int64_t now_ns,
    const struct hcache_told *told);

#endif
