/* SPDX-License-Identifier: MIT */
/*
 * Requests to the origin, and what their answers bring.
 *
 *   hcache_fetch(): an equal request is under way: wait for it
 *                   otherwise: emit the request to `miss`, as a plain GET, with a flight
 *   landed(), when the request is finished: store the answer or renew the old object, end the flight,
 *     answer the client that led, look up those that waited
 *
 * A request whose answer turns out not to be stored leaves a mark, so that the next ones do not wait. If the
 * origin fails, one of those that waited asks next, and after FAILURES_MAX failures all that are left do, so
 * that admission at the origin decides.
 *
 * landed() runs in the thread that has finished the request, usually a loop of http.client.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/clock.h>

#include "file/cache_rcu.h"
#include "http/cache/http_cache.h"
#include "http/request/request.h"

/* A choice. */
#define FAILURES_MAX 2

/* For how long an origin that has failed is not asked again for an object that may be served stale. A choice:
 * about the time in which a person tries again. */
#define FAILING_NS 1000000000LL

void hcache_show(struct weir_stage *st)
{
	struct hcache_state *state = weir_state(st);
	struct hcache_totals t = hcache_store_totals(state->store);

	weir_count(st, HCACHE_BYTES, t.bytes - atomic_exchange(&state->shown_bytes, t.bytes));
	weir_count(
	    st, HCACHE_OBJECTS, t.objects - atomic_exchange(&state->shown_objects, t.objects));
	int64_t evicted = t.evicted - atomic_exchange(&state->shown_evicted, t.evicted);
	if (evicted > 0)
		weir_count(st, HCACHE_EVICTIONS, evicted);
}

void hcache_pass(struct weir_stage *st, struct weir_event **ev)
{
	weir_count(st, HCACHE_BYPASS, 1);
	weir_emit(st, HCACHE_MISS, ev);
}

/* ---- storing ---- */

/* What an answer has brought. */
enum brought {
	BROUGHT_OBJECT,  /* stored, or an old object confirmed */
	BROUGHT_NONE,    /* not to be stored */
	BROUGHT_SPOILED, /* to be stored, but the key was purged meanwhile, or there was no room */
	BROUGHT_ERROR,
};

struct landing {
	struct hcache_flight *f;
	struct weir_stage *st;
	struct hcache_state *state;
	const struct hcache_conf *conf;
	struct weir_http_request *req;
	int64_t now_ns;
	struct hcache_object *o; /* with BROUGHT_OBJECT; a reference */
};

static struct hcache_object *find(const struct landing *l, uint64_t hash, struct weir_slice key)
{
	cache_rcu_read_lock();
	struct hcache_object *o = hcache_store_find(l->state->store, hash, key);
	cache_rcu_read_unlock();
	return o;
}

/* The object that says by which fields the answers for the key vary: the one that is stored, if it names all
 * that the answer names, or a new one with the names of both. NULL if there are too many or memory is short. */
static struct hcache_object *fork_for(const struct landing *l, const struct hcache_answer *a)
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

static bool insert(struct landing *l, struct hcache_object *o, struct hcache_object *fork)
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

/* Store the answer `a` to l->req, under its key or as a variant. */
static bool store(struct landing *l, const struct hcache_answer *a, struct weir_slice body)
{
	struct hcache_key k;
	struct hcache_object *fork = NULL;
	bool good = true;

	k.n = l->f->site_n;
	memcpy(k.p, l->f->key.p, k.n);
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
	return good && l->o;
}

/* The origin has confirmed the old object with 304. */
static enum brought renew(struct landing *l)
{
	struct hcache_flight *f = l->f;
	struct hcache_answer a;

	hcache_answer_read(&a, l->req, f->fields_start);
	weir_count(l->st, HCACHE_REVALIDATED, 1);
	struct hcache_heuristic h = {l->conf->heuristic, l->conf->heuristic_max_ns / 1000000000};
	hcache_answer_inherit(&a, f->old->fields);
	hcache_answer_time(
	    &a, &h, weir_clock_ns(CLOCK_REALTIME) / 1000000000, l->now_ns - f->asked_ns);
	l->o = hcache_object_make(
	    &a, (struct weir_slice){NULL, 0}, f->old, f->hash, f->key, l->now_ns);
	if (!l->o)
		l->o = hcache_object_hold(f->old);
	else
		insert(l, l->o, f->fork);
	return BROUGHT_OBJECT;
}

/* Remember that answers for the key are not stored. */
static void mark(struct landing *l)
{
	struct hcache_flight *f = l->f;

	if (l->conf->pass_ns <= 0)
		return;
	struct hcache_object *o = hcache_object_pass(f->hash, f->key, l->now_ns, l->conf->pass_ns);
	insert(l, o, f->fork);
	hcache_object_put(o);
}

static enum brought learn(struct landing *l)
{
	struct weir_http_response *res = &l->req->res;
	struct hcache_flight *f = l->f;
	struct hcache_heuristic h = {l->conf->heuristic, l->conf->heuristic_max_ns / 1000000000};
	struct hcache_answer a;

	if (res->status == 304 && f->old)
		return renew(l);
	hcache_answer_read(&a, l->req, f->fields_start);
	hcache_answer_time(
	    &a, &h, weir_clock_ns(CLOCK_REALTIME) / 1000000000, l->now_ns - f->asked_ns);
	enum hcache_verdict v = hcache_answer_judge(&a, &f->asker);
	if (v == HCACHE_IGNORE)
		return BROUGHT_ERROR;
	bool whole = !res->streamed && res->fd < 0 && res->n_pieces == 0;
	if (v == HCACHE_STORE && whole && (int64_t)res->body.n <= l->conf->max_object_bytes)
		return store(l, &a, res->body) ? BROUGHT_OBJECT : BROUGHT_SPOILED;
	mark(l);
	return BROUGHT_NONE;
}

/* ---- landing ---- */

/* Answer the client that led from `o`, in place of what the origin has answered. */
static void answer_leader(struct landing *l, struct hcache_object *o, const char *how)
{
	struct http_req *r = (struct http_req *)l->req;
	const struct hcache_told told = {hcache_tells(l->conf, how), true, false};

	cache_answer_drop(l->req, l->f->fields_start);
	if (hcache_object_respond(hcache_object_hold(o), l->req, l->now_ns, &told) < 0)
		weir_http_respond_status(l->req, 500);
	r->outcome = WEIR_OK;
}

/* Whether the client that led asked for what the origin was asked for. */
static bool is_plain(const struct weir_http_request *req)
{
	struct condition asked;

	condition_scan(req, &asked);
	return req->method == WEIR_HTTP_GET && !asked.any;
}

/* Cache-Status of an answer of the origin that is passed on. */
static void tell_leader(struct landing *l, enum brought b)
{
	bool stored = b == BROUGHT_OBJECT, old = l->f->old != NULL;

	if (!l->conf->cache_status)
		return;
	if (stored)
		weir_http_add_field(l->req, "Cache-Status",
		    old ? "weir; fwd=stale; stored" : "weir; fwd=miss; stored");
	else
		weir_http_add_field(
		    l->req, "Cache-Status", old ? "weir; fwd=stale" : "weir; fwd=miss");
}

static void finish_leader(struct landing *l, enum brought b, bool stale)
{
	struct hcache_flight *f = l->f;

	if (l->req->res.streamed)
		return;
	if (stale) {
		answer_leader(l, f->old, "hit; fwd=stale; detail=error");
	} else if (b == BROUGHT_OBJECT && l->req->res.status == 304) {
		answer_leader(l, l->o, "hit; fwd=stale; fwd-status=304");
	} else if (b == BROUGHT_OBJECT && !is_plain(l->req)) {
		answer_leader(l, l->o, "fwd=miss; stored");
	} else if (b != BROUGHT_ERROR) {
		cache_answer_judge(l->req, f->fields_start);
		tell_leader(l, b);
	}
}

static void settle(
    struct landing *l, struct hcache_waiting *w, enum brought b, bool stale, int status)
{
	const struct hcache_flight *f = l->f;
	struct hcache_try t = {.waited = true, .failures = f->failures};

	t.failures += b == BROUGHT_ERROR;
	t.alone = b == BROUGHT_NONE || t.failures > FAILURES_MAX;
	for (int i = 0; i < w->n; i++) {
		struct weir_event *ev = w->one[i].ev;
		if (stale) {
			weir_count(l->st, HCACHE_STALE, 1);
			hcache_answer(l->st, &ev, hcache_object_hold(f->old),
			    "hit; fwd=stale; detail=error; collapsed");
		} else if (status == WEIR_ECLOSED) {
			weir_event_finish(&ev, status);
		} else {
			hcache_again(l->st, &ev, &t);
		}
	}
	free(w->one);
}

static void landed(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	struct hcache_flight *f = (struct hcache_flight *)tap;
	struct landing l = {f, f->st, weir_state(f->st), weir_conf(f->st), req,
	    weir_clock_ns(CLOCK_MONOTONIC), NULL};

	hcache_flight_reveal(f, req);
	enum brought b = status == WEIR_OK ? learn(&l) : BROUGHT_ERROR;
	bool stale = b == BROUGHT_ERROR && f->old && !req->res.streamed &&
		     hcache_may_serve_on_error(l.conf, f->old, l.now_ns);
	if (stale) {
		weir_count(l.st, HCACHE_STALE, !f->background);
		atomic_store_explicit(
		    &f->old->failing_ns, l.now_ns + FAILING_NS, memory_order_relaxed);
	}
	struct hcache_waiting w = hcache_flights_land(&l.state->flights, f);
	if (f->background)
		weir_http_response_reset(req);
	else
		finish_leader(&l, b, stale);
	settle(&l, &w, b, stale, status);
	hcache_show(l.st);
	hcache_object_put(l.o);
	hcache_flight_free(f);
}

/* ---- taking off ---- */

void hcache_take_off(struct hcache_flight *f, struct weir_http_request *req)
{
	weir_count(f->st, f->old ? HCACHE_ASKED : HCACHE_MISSES, 1);
	f->tap.fn = landed;
	hcache_flight_disguise(f, req);
	weir_http_add_tap(req, &f->tap);
}

void hcache_fetch(struct weir_stage *st, struct weir_event **ev, const struct hcache_lookup *k,
    struct hcache_object *old, const struct hcache_try *t)
{
	const struct hcache_conf *conf = weir_conf(st);
	struct hcache_state *state = weir_state(st);
	struct hcache_flight *f = hcache_flight_new(st, weir_http_request(*ev), k, old);
	enum hcache_boarding b = HCACHE_LEADS;
	bool first = false;

	if (!f) {
		hcache_pass(st, ev);
		return;
	}
	f->failures = t->failures;
	f->purges = atomic_load_explicit(&state->flights.purges, memory_order_acquire);
	if (!t->alone && conf->wait_ns > 0)
		b = hcache_flights_board(
		    &state->flights, f, ev, f->asked_ns + conf->wait_ns, &first);
	if (first)
		hcache_wait_begins(state);
	if (b == HCACHE_LEADS) {
		hcache_take_off(f, weir_http_request(*ev));
		weir_emit(st, HCACHE_MISS, ev);
		return;
	}
	hcache_flight_free(f);
	if (b == HCACHE_HELD)
		weir_count(st, HCACHE_COLLAPSED, 1);
	else
		hcache_again(st, ev, t);
}

/* ---- refusal ---- */

/* The flight of a request that came back, or NULL. Its tap is the last that was added. */
static struct hcache_flight *flight_of(
    const struct weir_stage *st, const struct weir_http_request *req)
{
	struct hcache_flight *f = (struct hcache_flight *)req->taps;

	return f && f->tap.fn == landed && f->st == st ? f : NULL;
}

void hcache_refused(struct weir_stage *st, int outlet, struct weir_event **ev, int n, int reason)
{
	const struct hcache_conf *conf = weir_conf(st);
	int64_t now_ns = weir_clock_ns(CLOCK_MONOTONIC);

	(void)outlet;
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		struct hcache_flight *f = flight_of(st, req);
		if (!f || !f->old || !hcache_may_serve_on_error(conf, f->old, now_ns))
			continue;
		struct landing l = {f, st, weir_state(st), conf, req, now_ns, NULL};
		req->taps = f->tap.next;
		hcache_flight_reveal(f, req);
		atomic_store_explicit(
		    &f->old->failing_ns, now_ns + FAILING_NS, memory_order_relaxed);
		struct hcache_waiting w = hcache_flights_land(&l.state->flights, f);
		settle(&l, &w, BROUGHT_ERROR, true, reason);
		weir_count(st, HCACHE_STALE, 1);
		hcache_answer(
		    st, &ev[i], hcache_object_hold(f->old), "hit; fwd=stale; detail=refused");
		hcache_flight_free(f);
	}
}
