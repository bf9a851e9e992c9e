/* SPDX-License-Identifier: MIT */
/*
 * Purges by an operator: of a URL with all its variants, of all URLs that begin so, of all answers with a tag in
 * Surrogate-Key or Cache-Tag, of everything. Answers that are under way are not stored.
 */
#include <stdio.h>
#include <string.h>

#include "file/cache_rcu.h"
#include "http/cache/http_cache.h"

static bool is_any(const struct hcache_object *o, const void *arg)
{
	(void)o;
	(void)arg;
	return true;
}

static bool has_prefix(const struct hcache_object *o, const void *arg)
{
	const struct weir_slice *prefix = arg;

	return o->key.n >= prefix->n && memcmp(o->key.p, prefix->p, prefix->n) == 0;
}

/* The URL, with whatever fields belong to its key. */
static bool is_of_url(const struct hcache_object *o, const void *arg)
{
	const struct weir_slice *url = arg;

	return has_prefix(o, url) && (o->key.n == url->n || o->key.p[url->n] == '\n');
}

/* Whether the list `value`, separated by spaces or commas, has `tag`. */
static bool lists_tag(struct weir_slice value, struct weir_slice tag)
{
	const char *p = value.p, *end = p + value.n;

	while (p < end) {
		size_t n = 0;
		while (p + n < end && p[n] != ' ' && p[n] != ',')
			n++;
		if (n == tag.n && memcmp(p, tag.p, n) == 0)
			return true;
		p += n + 1;
	}
	return false;
}

static bool has_tag(const struct hcache_object *o, const void *arg)
{
	const struct weir_slice *tag = arg;
	struct weir_slice rest = o->fields;
	struct cache_line l;

	while (cache_line_next(&rest, &l))
		if ((weir_slice_is(l.name, "surrogate-key") ||
			weir_slice_is(l.name, "cache-tag")) &&
		    lists_tag(l.value, *tag))
			return true;
	return false;
}

static int64_t purge(struct hcache_state *state,
    bool (*matches)(const struct hcache_object *o, const void *arg), struct weir_slice text)
{
	hcache_flights_spoil(&state->flights, 0, (struct weir_slice){NULL, 0});
	return hcache_store_purge(state->store, matches, &text);
}

static int64_t purge_url(struct hcache_state *state, const struct hcache_key *k)
{
	struct weir_slice url = hcache_key_text(k);

	if (atomic_load_explicit(&state->fields_in_keys, memory_order_relaxed))
		return purge(state, is_of_url, url);
	hcache_flights_spoil(&state->flights, hcache_store_hash(state->store, url), url);
	return hcache_store_remove(state->store, url);
}

int64_t hcache_purge(struct weir_stage *st, const char *what, char *why, size_t size)
{
	struct hcache_state *state = weir_state(st);
	struct weir_slice text = {what, strlen(what)};
	bool all = text.n > 0 && what[text.n - 1] == '*', borrowed = cache_rcu_borrow();
	int64_t n = WEIR_EINVAL;
	struct hcache_key k;

	text.n -= all;
	if (all && text.n == 0)
		n = purge(state, is_any, text);
	else if (text.n > 4 && strncmp(what, "tag:", 4) == 0)
		n = purge(state, has_tag, (struct weir_slice){what + 4, strlen(what) - 4});
	else if (!hcache_key_of_url(text, NULL, &k))
		snprintf(why, size,
		    "'%.200s' is not http://HOST/PATH, https://HOST/PATH, tag:NAME or *", what);
	else
		n = all ? purge(state, has_prefix, hcache_key_text(&k)) : purge_url(state, &k);
	cache_rcu_return(borrowed);
	if (n > 0)
		atomic_fetch_add_explicit(&state->purged, n, memory_order_relaxed);
	return n;
}
