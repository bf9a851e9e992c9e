/* SPDX-License-Identifier: MIT */
/*
 * Requests that change things (RFC 9111, 4.4): if the origin answers one with 2xx or 3xx, what is stored of its
 * target is removed, with all variants, and so is what Location and Content-Location of the answer name on the
 * same host. Requests that are under way do not store their answers.
 */
#include <stdlib.h>
#include <string.h>

#include "http/cache/http_cache.h"

struct change {
	struct weir_http_tap tap; /* first */
	struct weir_stage *st;
	uint32_t fields_start;
	size_t n;
	char key[];
};

static void invalidate(struct weir_stage *st, struct weir_slice key)
{
	struct hcache_state *state = weir_state(st);

	/* in this order, so that what a flight inserts meanwhile is removed, too */
	hcache_flights_spoil(&state->flights, hcache_store_hash(state->store, key), key);
	weir_count(st, HCACHE_INVALIDATED, hcache_store_remove(state->store, key));
}

static void invalidate_named(const struct change *c, const struct weir_http_request *req)
{
	struct cache_fields f = cache_fields_of(req, c->fields_start);
	struct hcache_key k;

	for (int i = 0; i < 2; i++) {
		struct weir_slice rest = f.part[i];
		struct cache_line l;
		while (cache_line_next(&rest, &l))
			if ((weir_slice_is(l.name, "location") ||
				weir_slice_is(l.name, "content-location")) &&
			    hcache_key_of_url(l.value, req, &k))
				invalidate(c->st, hcache_key_text(&k));
	}
}

static void changed(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	struct change *c = (struct change *)tap;

	if (status == WEIR_OK && req->res.status >= 200 && req->res.status < 400) {
		invalidate(c->st, (struct weir_slice){c->key, c->n});
		invalidate_named(c, req);
		hcache_show(c->st);
	}
	free(c);
}

void hcache_change(struct weir_stage *st, struct weir_event **ev)
{
	const struct hcache_conf *conf = weir_conf(st);
	struct weir_http_request *req = weir_http_request(*ev);
	struct change *c = NULL;
	struct hcache_key k;

	if (hcache_key_make(req, &conf->key_fields, &k))
		c = malloc(sizeof(*c) + k.n);
	if (c) {
		c->tap.fn = changed;
		c->st = st;
		c->fields_start = req->n_fields;
		c->n = k.n;
		memcpy(c->key, k.p, k.n);
		weir_http_add_tap(req, &c->tap);
	}
	hcache_pass(st, ev);
}
