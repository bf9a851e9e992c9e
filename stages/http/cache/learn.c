/* SPDX-License-Identifier: MIT */
/*
 * What the answer of an origin brings: an object, a confirmation of an old one, or the mark that the key is not to
 * be stored. Called by the thread that owns the request, usually a loop of http.client.
 */
#include <string.h>
#include <time.h>

#include <weir/clock.h>

#include "file/cache_rcu.h"
#include "http/cache/http_cache.h"
#include "http/request/request.h"

void hcache_show(struct weir_stage *st)
{
	struct hcache_state *state = weir_state(st);
	struct hcache_totals t = hcache_store_totals(state->store);

	weir_count(st, HCACHE_BYTES, t.bytes - atomic_exchange(&state->shown_bytes, t.bytes));
	weir_count(
	    st, HCACHE_OBJECTS, t.objects - atomic_exchange(&state->shown_objects, t.objects));
	int64_t evicted = t.evicted - atomic_exchange(&state->shown_evicted, t.evicted);
	weir_count(st, HCACHE_INVALIDATED, atomic_exchange(&state->purged, 0));
	if (evicted > 0)
		weir_count(st, HCACHE_EVICTIONS, evicted);
}

static struct hcache_object *find(
    const struct hcache_landing *l, uint64_t hash, struct weir_slice key)
{
	cache_rcu_read_lock();
	struct hcache_object *o = hcache_store_find(l->state->store, hash, key);
	cache_rcu_read_unlock();
	return o;
}

/* The object that says by which fields the answers for the key vary: the one that is stored, if it names all
 * that the answer names, or a new one with the names of both. NULL if there are too many or memory is short. */
static struct hcache_object *fork_for(const struct hcache_landing *l, const struct hcache_answer *a)
{
	const struct hcache_flight *f = l->f;
	struct weir_slice site = {f->key.p, f->site_n};
	struct hcache_object *now = find(l, f->site_hash, site);
	struct hcache_vary all = a->vary;

	if (now && now->kind == HCACHE_FORKS) {
		hcache_vary_join(&all, now->names);
		if (!all.any && all.n == now->names.n)
			return now;
	}
	hcache_object_put(now);
	if (all.any)
		return NULL;
	struct weir_slice names = {all.names, all.n};
	struct hcache_object *fork =
	    hcache_object_fork(f->site_hash, site, names, hcache_store_id(l->state->store));
	if (fork && !hcache_store_insert(l->state->store, fork, NULL)) {
		hcache_object_put(fork);
		return NULL;
	}
	return fork;
}

static bool insert(struct hcache_landing *l, struct hcache_object *o, struct hcache_object *fork)
{
	bool good = o && !hcache_flight_is_spoiled(&l->state->flights, l->f) &&
		    hcache_store_insert(l->state->store, o, fork);

	if (good && o->kind == HCACHE_WHOLE)
		weir_count(l->st, HCACHE_STORES, 1);
	/* a purge that came between the test and the insertion has not found the object */
	if (good && hcache_flight_is_spoiled(&l->state->flights, l->f))
		hcache_store_remove(
		    l->state->store, (struct weir_slice){l->f->key.p, l->f->site_n});
	return good;
}

enum hcache_brought hcache_store_answer(
    struct hcache_landing *l, const struct hcache_answer *a, struct weir_slice body)
{
	struct hcache_key k;
	struct hcache_object *fork = NULL;
	bool good = true;

	k.n = l->f->site_n;
	memcpy(k.p, l->f->key.p, k.n);
	if (WEIR_UNLIKELY(memchr(k.p, '\n', k.n) != NULL))
		atomic_store_explicit(&l->state->fields_in_keys, true, memory_order_relaxed);
	if (a->vary.n > 0) {
		fork = fork_for(l, a);
		good = fork && hcache_key_vary(&k, l->req, fork->names, fork->id);
	}
	if (good) {
		struct weir_slice key = hcache_key_text(&k);
		l->o = hcache_object_make(
		    a, body, NULL, hcache_store_hash(l->state->store, key), key, l->now_ns);
		good = insert(l, l->o, fork);
	}
	hcache_object_put(fork);
	return good && l->o ? HCACHE_OBJECT : HCACHE_SPOILED;
}

static void set_times(const struct hcache_landing *l, struct hcache_answer *a)
{
	struct hcache_heuristic h = {l->conf->heuristic, l->conf->heuristic_max_ns / 1000000000};

	hcache_answer_time(
	    a, &h, weir_clock_ns(CLOCK_REALTIME) / 1000000000, l->now_ns - l->f->asked_ns);
}

/* http.client keeps Date apart. */
static void read_answer(const struct hcache_landing *l, struct hcache_answer *a)
{
	const struct http_req *r = (const struct http_req *)l->req;

	hcache_answer_read(a, l->req, l->f->fields_start);
	if (r->date_n > 0)
		hcache_times_add(&a->times, (struct weir_slice){"date", 4},
		    (struct weir_slice){r->date, r->date_n});
}

void hcache_learn_head(const struct hcache_landing *l, struct hcache_answer *a)
{
	read_answer(l, a);
	set_times(l, a);
}

/* A tag without its mark of weakness: http.compress makes tags weak that the origin compares as strong. */
static struct weir_slice opaque(struct weir_slice tag)
{
	bool weak = tag.n >= 2 && memcmp(tag.p, "W/", 2) == 0;

	return weak ? (struct weir_slice){tag.p + 2, tag.n - 2} : tag;
}

/* Whether a 304 has the ETag of the object that it should confirm, or none. */
static bool confirms(const struct hcache_landing *l)
{
	struct weir_slice now = response_field(l->req, "ETag"), old = l->f->old->file.etag;

	now = opaque(now);
	old = opaque(old);
	return now.n == 0 || old.n == 0 || (now.n == old.n && memcmp(now.p, old.p, now.n) == 0);
}

/* Whether the object may still be stored, under the same key, with the fields of the 304. */
static bool stays_public(const struct hcache_landing *l, const struct hcache_answer *a)
{
	const struct hcache_object *fork = l->f->fork;
	struct hcache_vary v = a->vary;

	if (fork)
		hcache_vary_join(&v, fork->names);
	return !a->control.no_store && !a->control.is_private && !v.any &&
	       v.n == (fork ? fork->names.n : 0);
}

/* The origin has answered with 304. If it confirms another object, the old one is served for the last time. */
static enum hcache_brought renew(struct hcache_landing *l)
{
	struct hcache_flight *f = l->f;
	struct hcache_answer a;

	read_answer(l, &a);
	if (confirms(l) && stays_public(l, &a)) {
		weir_count(l->st, HCACHE_REVALIDATED, 1);
		hcache_answer_inherit(&a, f->old->fields);
		set_times(l, &a);
		l->o = hcache_object_make(
		    &a, (struct weir_slice){NULL, 0}, f->old, f->hash, f->key, l->now_ns);
		insert(l, l->o, f->fork);
	} else {
		hcache_store_remove(l->state->store, (struct weir_slice){f->key.p, f->site_n});
	}
	if (!l->o)
		l->o = hcache_object_hold(f->old);
	return HCACHE_OBJECT;
}

void hcache_mark(struct hcache_landing *l)
{
	struct hcache_flight *f = l->f;

	int status = l->req->res.status;

	/* what one client provokes says nothing of the next */
	if (l->conf->pass_ns <= 0 || f->asker.authorized ||
	    (status >= 400 && status != 404 && status != 410))
		return;
	struct hcache_object *o = hcache_object_pass(f->hash, f->key, l->now_ns, l->conf->pass_ns);
	insert(l, o, f->fork);
	hcache_object_put(o);
}

enum hcache_brought hcache_learn(struct hcache_landing *l)
{
	const struct weir_http_response *res = &l->req->res;
	const struct hcache_flight *f = l->f;
	struct hcache_answer a;

	if (res->status == 304 && f->old)
		return renew(l);
	hcache_learn_head(l, &a);
	enum hcache_verdict v = hcache_answer_judge(&a, &f->asker);
	if (v == HCACHE_IGNORE)
		return HCACHE_ERROR;
	bool whole = res->fd < 0 && res->n_pieces == 0;
	if (v == HCACHE_STORE && whole && (int64_t)res->body.n <= l->conf->max_object_bytes)
		return hcache_store_answer(l, &a, res->body);
	hcache_mark(l);
	return HCACHE_NONE;
}
