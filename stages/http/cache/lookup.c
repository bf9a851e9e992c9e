/* SPDX-License-Identifier: MIT */
/*
 * What becomes of a request.
 *
 *               +-- fresh --------------------------> answered at once: a hit
 *   key, Vary   |-- stale, within stale-while-... --> answered at once; one request asks in the background
 *    --> object |-- stale ------------------------> the origin is asked; others wait for its answer
 *               |-- not to be stored -------------> passed on
 *               +-- unknown ----------------------> fetched; others wait for the answer
 *
 * A hit takes no lock and copies nothing but the key: it costs a hash, a lookup in an RCU read section and a
 * reference. Hits of a batch are finished together.
 */
#include <string.h>
#include <strings.h>

#include <weir/clock.h>

#include "file/cache_rcu.h"
#include "http/cache/http_cache.h"

/* Time between two attempts to revalidate in the background, if the first brings nothing. A choice. */
#define REFRESH_NS 1000000000LL

/* Lookups of one request before it goes to the origin alone. */
#define TURNS_MAX 3

/* ---- what the request asks for ---- */

struct ask {
	bool authorized;
	bool conditional; /* has conditions or a range */
	bool strict;      /* If-Match or If-Unmodified-Since */
	bool part;        /* a range that does not begin at 0 */
	bool if_range;
	bool controls;
	struct hcache_control control;
};

static void ask_range(struct ask *a, struct weir_slice value)
{
	a->conditional = true;
	a->part = !(value.n == 8 && strncasecmp(value.p, "bytes=0-", 8) == 0);
}

static void ask_control(struct ask *a, const struct weir_http_header *h)
{
	if (!a->controls)
		hcache_control_init(&a->control);
	a->controls = true;
	if (h->name.n == 13)
		hcache_control_add(&a->control, h->value);
	else if (weir_slice_is(h->value, "no-cache") && !a->control.no_cache)
		a->control.no_cache = true; /* Pragma, RFC 9111, 5.4 */
}

/* The lengths of names tell most fields apart. */
static void ask_field(struct ask *a, const struct weir_http_header *h)
{
	switch (h->name.n) {
	case 5:
		if (weir_slice_is(h->name, "range"))
			ask_range(a, h->value);
		break;
	case 6:
		if (weir_slice_is(h->name, "pragma"))
			ask_control(a, h);
		break;
	case 8:
		if (weir_slice_is(h->name, "if-match"))
			a->conditional = a->strict = true;
		else if (weir_slice_is(h->name, "if-range"))
			a->conditional = a->if_range = true;
		break;
	case 13:
		if (weir_slice_is(h->name, "cache-control"))
			ask_control(a, h);
		else if (weir_slice_is(h->name, "authorization"))
			a->authorized = true;
		else if (weir_slice_is(h->name, "if-none-match"))
			a->conditional = true;
		break;
	case 17:
		if (weir_slice_is(h->name, "if-modified-since"))
			a->conditional = true;
		break;
	case 19:
		if (weir_slice_is(h->name, "if-unmodified-since"))
			a->conditional = a->strict = true;
		break;
	default:
		break;
	}
}

static void ask_read(struct ask *a, const struct weir_http_request *req)
{
	a->authorized = a->conditional = a->strict = a->part = a->if_range = a->controls = false;
	for (int i = 0; i < req->n_headers; i++)
		ask_field(a, &req->headers[i]);
}

/* ---- what is stored ---- */

/* Find the object for `req`. Must be called within a read section. Returns false if its key is too long. */
static bool look_up(const struct hcache_state *state, const struct hcache_conf *conf,
    const struct weir_http_request *req, struct hcache_lookup *k)
{
	k->found = k->fork = NULL;
	if (!hcache_key_make(req, &conf->key_fields, &k->key))
		return false;
	k->site_n = k->key.n;
	k->site_hash = k->hash = hcache_store_hash(state->store, hcache_key_text(&k->key));
	k->found = hcache_store_find(state->store, k->hash, hcache_key_text(&k->key));
	if (!k->found || k->found->kind != HCACHE_FORKS)
		return true;
	k->fork = k->found;
	k->found = NULL;
	if (!hcache_key_vary(&k->key, req, k->fork->names, k->fork->id))
		return false;
	k->hash = hcache_store_hash(state->store, hcache_key_text(&k->key));
	k->found = hcache_store_find(state->store, k->hash, hcache_key_text(&k->key));
	return true;
}

static void lookup_end(struct hcache_lookup *k)
{
	hcache_object_put(k->found);
	hcache_object_put(k->fork);
}

/* ---- the decision ---- */

enum fate {
	FATE_HIT,
	FATE_STALE,   /* the client accepts that it is stale */
	FATE_REFRESH, /* stale, and a request in the background */
	FATE_CHECK,   /* ask the origin; others may wait */
	FATE_CHECK_ALONE,
	FATE_FETCH,
	FATE_FETCH_ALONE,
	FATE_PASS,
};

/* Whether the client accepts an answer of this age that is fresh for `left_ns` more (RFC 9111, 5.2.1). */
static bool suits(const struct ask *a, int64_t age_ns, int64_t left_ns)
{
	const struct hcache_control *c = &a->control;

	if (c->no_cache)
		return false;
	if (c->max_age_s != HCACHE_ABSENT && age_ns > c->max_age_s * 1000000000)
		return false;
	return c->min_fresh_s == HCACHE_ABSENT || left_ns >= c->min_fresh_s * 1000000000;
}

static bool in_while(
    const struct hcache_conf *conf, const struct hcache_object *o, int64_t stale_ns)
{
	if (o->must_revalidate)
		return false;
	if (o->while_ns >= 0)
		return stale_ns < o->while_ns;
	return !o->stale_forbidden && stale_ns < conf->stale_while_ns;
}

bool hcache_may_serve_on_error(
    const struct hcache_conf *conf, const struct hcache_object *o, int64_t now_ns)
{
	int64_t stale_ns = hcache_object_age_ns(o, now_ns) - o->fresh_ns;

	if (o->kind != HCACHE_WHOLE || o->must_revalidate)
		return false;
	if (o->error_ns >= 0)
		return stale_ns < o->error_ns;
	return !o->stale_forbidden && stale_ns < conf->stale_error_ns;
}

static enum fate decide_whole(const struct hcache_conf *conf, const struct hcache_object *o,
    const struct ask *a, int64_t now_ns)
{
	int64_t age_ns = hcache_object_age_ns(o, now_ns), left_ns = o->fresh_ns - age_ns;
	bool wants = conf->client_control && a->controls;
	bool good = o->unchecked && (!wants || suits(a, age_ns, left_ns));

	if (WEIR_LIKELY(good && left_ns > 0))
		return FATE_HIT;
	if (good && wants && !o->stale_forbidden && a->control.max_stale_s != HCACHE_ABSENT &&
	    -left_ns <= a->control.max_stale_s * 1000000000)
		return FATE_STALE;
	if (good && in_while(conf, o, -left_ns))
		return FATE_REFRESH;
	if (now_ns < atomic_load_explicit(&o->failing_ns, memory_order_relaxed) &&
	    hcache_may_serve_on_error(conf, o, now_ns))
		return FATE_STALE;
	/* What must be checked each time is not the answer to a request that came earlier. */
	bool each = !o->unchecked || o->fresh_ns <= 0 || left_ns > 0;
	return each ? FATE_CHECK_ALONE : FATE_CHECK;
}

static enum fate decide(const struct hcache_conf *conf, const struct weir_http_request *req,
    const struct hcache_object *o, const struct ask *a, int64_t now_ns)
{
	if (WEIR_LIKELY(o && o->kind == HCACHE_WHOLE)) {
		if (a->authorized && !o->for_authorized)
			return FATE_PASS;
		return decide_whole(conf, o, a, now_ns);
	}
	if (o && hcache_object_age_ns(o, now_ns) < o->fresh_ns) /* HCACHE_PASS */
		return FATE_PASS;
	if (req->method == WEIR_HTTP_HEAD || a->strict || a->part || a->if_range)
		return FATE_PASS; /* the origin need not send the whole */
	if (conf->client_control && a->controls && a->control.no_store)
		return FATE_PASS;
	return a->authorized ? FATE_FETCH_ALONE : FATE_FETCH;
}

/* ---- acting on it ---- */

static void answer_504(struct weir_event **ev)
{
	int rc = weir_http_respond_status(weir_http_request(*ev), 504);

	weir_event_finish(ev, rc);
}

void hcache_answer(
    struct weir_stage *st, struct weir_event **ev, struct hcache_object *o, const char *how)
{
	const struct hcache_told told = {hcache_tells(weir_conf(st), how), true, false};
	int rc =
	    hcache_object_respond(o, weir_http_request(*ev), weir_clock_ns(CLOCK_MONOTONIC), &told);

	weir_event_finish(ev, rc);
}

/* One request in REFRESH_NS asks in the background. */
static void refresh(
    struct weir_stage *st, struct weir_event *ev, const struct hcache_lookup *k, int64_t now_ns)
{
	struct hcache_object *o = k->found;
	int_fast64_t due_ns = atomic_load_explicit(&o->refresh_ns, memory_order_relaxed);

	if (now_ns >= due_ns &&
	    atomic_compare_exchange_strong_explicit(&o->refresh_ns, &due_ns, now_ns + REFRESH_NS,
		memory_order_relaxed, memory_order_relaxed))
		hcache_refresh(st, ev, k, o);
}

/* Handle a request that is not a hit. Takes over *ev, not the references in `k`. */
static void act(struct weir_stage *st, struct weir_event **ev, const struct hcache_lookup *k,
    const struct ask *a, enum fate fate, const struct hcache_try *t, int64_t now_ns)
{
	const struct hcache_conf *conf = weir_conf(st);
	struct hcache_try mine = *t;

	mine.alone |= fate == FATE_CHECK_ALONE || fate == FATE_FETCH_ALONE;
	switch (fate) {
	case FATE_REFRESH:
		refresh(st, *ev, k, now_ns);
		/* fall through */
	case FATE_STALE:
		weir_count(st, HCACHE_STALE, 1);
		hcache_answer(st, ev, hcache_object_hold(k->found), "hit");
		return;
	case FATE_HIT:
		weir_count(st, HCACHE_HITS, 1);
		hcache_answer(
		    st, ev, hcache_object_hold(k->found), t->waited ? "hit; collapsed" : "hit");
		return;
	default:
		break;
	}
	if (conf->client_control && a->controls && a->control.only_if_cached)
		answer_504(ev);
	else if (fate == FATE_PASS)
		hcache_pass(st, ev);
	else if (fate == FATE_CHECK || fate == FATE_CHECK_ALONE)
		hcache_fetch(st, ev, k, k->found, &mine);
	else
		hcache_fetch(st, ev, k, NULL, &mine);
}

/* Whether the cache has anything to do with the request. If not, it is passed on. */
static bool concerns(struct weir_stage *st, struct weir_event **ev)
{
	const struct weir_http_request *req = weir_http_request(*ev);

	if (WEIR_LIKELY(req->method == WEIR_HTTP_GET || req->method == WEIR_HTTP_HEAD)) {
		if (WEIR_LIKELY(req->body.n == 0 && !weir_http_body_streamed(req)))
			return true;
		hcache_pass(st, ev); /* the body is not in the key */
	} else if (req->method == WEIR_HTTP_OPTIONS || weir_slice_is(req->method_text, "TRACE")) {
		hcache_pass(st, ev);
	} else {
		hcache_change(st, ev);
	}
	return false;
}

/* Look *ev up. Returns the object that answers it, with a reference, if it is a hit of a request without
 * conditions; otherwise takes over *ev and returns NULL. */
static struct hcache_object *look(
    struct weir_stage *st, struct weir_event **ev, const struct hcache_try *t, int64_t now_ns)
{
	const struct hcache_conf *conf = weir_conf(st);
	struct hcache_state *state = weir_state(st);
	const struct weir_http_request *req = weir_http_request(*ev);
	struct hcache_lookup k;
	struct ask a;

	ask_read(&a, req);
	cache_rcu_read_lock();
	bool good = look_up(state, conf, req, &k);
	cache_rcu_read_unlock();
	if (WEIR_UNLIKELY(!good)) {
		lookup_end(&k);
		hcache_pass(st, ev);
		return NULL;
	}
	enum fate fate = decide(conf, req, k.found, &a, now_ns);
	if (WEIR_LIKELY(fate == FATE_HIT && !a.conditional && !t->waited)) {
		hcache_object_put(k.fork);
		return k.found;
	}
	act(st, ev, &k, &a, fate, t, now_ns);
	lookup_end(&k);
	return NULL;
}

void hcache_again(struct weir_stage *st, struct weir_event **ev, const struct hcache_try *t)
{
	struct hcache_try mine = *t;

	mine.alone |= ++mine.turns >= TURNS_MAX;
	struct hcache_object *o = look(st, ev, &mine, weir_clock_ns(CLOCK_MONOTONIC));
	if (!o)
		return;
	weir_count(st, HCACHE_HITS, 1);
	hcache_answer(st, ev, o, "hit");
}

void hcache_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	static const struct hcache_try first = {0};
	const struct hcache_told told = {hcache_tells(weir_conf(st), "hit"), true, true};
	int64_t now_ns = weir_now_ns(st);
	int hits = 0;

	for (int i = 0; i < n; i++) {
		struct hcache_object *o =
		    concerns(st, &ev[i]) ? look(st, &ev[i], &first, now_ns) : NULL;
		if (!o)
			continue;
		int rc = hcache_object_respond(o, weir_http_request(ev[i]), now_ns, &told);
		if (WEIR_UNLIKELY(rc < 0)) {
			weir_event_finish(&ev[i], rc);
			continue;
		}
		struct weir_event *hit = ev[i];
		ev[i] = NULL;
		ev[hits++] = hit;
	}
	weir_count(st, HCACHE_HITS, hits);
	weir_event_finish_run(ev, hits, WEIR_OK);
}

/* Answer *ev from what is stored, if it is fresh or may be served in place of an error. */
static bool answer_late(struct weir_stage *st, struct weir_event **ev, int64_t now_ns)
{
	const struct hcache_conf *conf = weir_conf(st);
	struct hcache_lookup k;

	cache_rcu_read_lock();
	bool good = look_up(weir_state(st), conf, weir_http_request(*ev), &k);
	cache_rcu_read_unlock();
	good = good && k.found && hcache_may_serve_on_error(conf, k.found, now_ns);
	if (good) {
		weir_count(st, HCACHE_STALE, 1);
		hcache_answer(st, ev, hcache_object_hold(k.found), "hit; detail=late");
	}
	lookup_end(&k);
	return good;
}

void hcache_expired(struct weir_stage *st, struct weir_event **ev, int64_t now_ns)
{
	static const struct hcache_try alone = {.alone = true, .turns = TURNS_MAX};

	weir_count(st, HCACHE_ALONE, 1);
	if (answer_late(st, ev, now_ns))
		return;
	if ((*ev)->deadline_ns <= now_ns)
		weir_event_finish(ev, WEIR_EDEADLINE);
	else
		hcache_again(st, ev, &alone);
}
