/* SPDX-License-Identifier: MIT */
/*
 * Keys of http.cache: what tells two requests apart. Pure functions; any thread.
 *
 *   http://host[:port]/normal/path[?query as sent]
 *   [LF name:value]...      fields that `key_fields` names, and what a trusted proxy says of host and scheme
 *   [LF #id LF name[:value]...]  of a variant: the fields that Vary names, in normal form
 *
 * Nothing that a client can send contains LF, so two different requests have different keys. The key is for
 * GET, and for HEAD, which is answered from the same object.
 *
 * An origin must not see what is not in the key, or one client could choose the answer of others. Host,
 * scheme, path and query are in the key. The fields by which programs let a client override these are
 * dropped from requests whose answers may be stored (hcache_is_unkeyed). What `http.client` writes itself is
 * the same for all clients, but for their addresses. All other fields are the origin's to name in Vary.
 */
#ifndef WEIR_STAGES_HTTP_CACHE_KEY_H
#define WEIR_STAGES_HTTP_CACHE_KEY_H

#include <weir/http.h>
#include <weir/knob.h>

/** Requests with longer keys are not cached. */
#define HCACHE_KEY_MAX 4096

/** Limits on what Vary may name; answers beyond them are not stored. */
#define HCACHE_VARY_NAMES 16
#define HCACHE_VARY_BYTES 512

struct hcache_key {
	size_t n;
	char p[HCACHE_KEY_MAX];
};

static inline struct weir_slice hcache_key_text(const struct hcache_key *k)
{
	return (struct weir_slice){k->p, k->n};
}

/** Write the key of `req`. `fields` are names of fields that belong to the key, too. Returns false if it is
 * too long. */
bool hcache_key_make(
    const struct weir_http_request *req, const struct weir_strings *fields, struct hcache_key *k);

/** Write the key of an absolute `url`, or, with `base`, of a reference that begins with '/' to the same host
 * and scheme. Returns false if it is not such a URL, if it is of another host than `base`, or if the path
 * or the host is not one that http.server accepts. A fragment is dropped. */
bool hcache_key_of_url(
    struct weir_slice url, const struct weir_http_request *base, struct hcache_key *k);

/** Whether `name` is a field that must not reach the origin with a request whose answer may be stored.
 * Names with '_' count as those with '-'. */
bool hcache_is_unkeyed(struct weir_slice name);

/** The names in the Vary lines of an answer: lower case, sorted, each once, each followed by LF. */
struct hcache_vary {
	bool any; /* "*", or more than the limits allow: the answer cannot be selected */
	size_t n; /* bytes of `names` */
	char names[HCACHE_VARY_BYTES];
};

/** Add the value of one Vary line. Names that `http.client` derives from the key are left out, and those
 * that it derives from the address of the client count as "*". */
void hcache_vary_add(struct hcache_vary *v, struct weir_slice line);

/** Add names that are in this form already. */
void hcache_vary_join(struct hcache_vary *v, struct weir_slice names);

/** Whether the client of `req` has used https, as the field scheme says. */
bool hcache_is_secure(const struct weir_http_request *req);

/** Extend the key by the values that `req` has for `names` (as in struct hcache_vary), with the `id` of the
 * list. Returns false if it becomes too long; the key is then unchanged. */
bool hcache_key_vary(struct hcache_key *k, const struct weir_http_request *req,
    struct weir_slice names, uint64_t id);

#endif
