/* SPDX-License-Identifier: MIT */
/*
 * Requests to the origin, and what their answers bring.
 *
 *   hcache_fetch(): an equal request is under way: wait for it
 *                   otherwise: emit the request to `miss`, as a plain GET, with a flight
 *   head_whole(), when there is a whole answer: store it or renew the old object, answer the client that led,
 *     end the flight, look up those that waited
 *   head_parts(), data(), end(): the same for an answer in parts. What is not stored is not waited for: the
 *     flight ends with the head
 *
 * A request whose answer turns out not to be stored leaves a mark, so that the next ones do not wait. If the
 * origin fails, one of those that waited asks next, and after FAILURES_MAX failures all that are left do, so
 * that admission at the origin decides.
 *
 * The flight is a filter of the answer (http/request/filter.h), so it runs in the thread that answers or finishes
 * the request, usually a loop of http.client.
 */
#include <stdlib.h>

#include <weir/clock.h>

#include "http/cache/http_cache.h"
#include "http/request/filter.h"
#include "http/request/request.h"

/* A choice. */
#define FAILURES_MAX 2

/* For how long an origin that has failed is not asked again for an object that may be served stale. A choice:
 * about the time in which a person tries again. */
#define FAILING_NS 1000000000LL

void hcache_pass(struct weir_stage *st, struct weir_event **ev)
{
	weir_count(st, HCACHE_BYPASS, 1);
	weir_emit(st, HCACHE_MISS, ev);
}

/* ---- landing ---- */

/* Answer the client that led from `o`, in place of what the origin has answered. */
static void answer_leader(struct hcache_landing *l, struct hcache_object *o, const char *how)
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
static void tell_leader(struct hcache_landing *l, enum hcache_brought b)
{
	bool stored = b == HCACHE_OBJECT, old = l->f->old != NULL;

	if (!l->conf->cache_status)
		return;
	if (stored)
		weir_http_add_field(l->req, "Cache-Status",
		    old ? "weir; fwd=stale; stored" : "weir; fwd=miss; stored");
	else
		weir_http_add_field(
		    l->req, "Cache-Status", old ? "weir; fwd=stale" : "weir; fwd=miss");
}

static void finish_leader(struct hcache_landing *l, enum hcache_brought b, bool stale)
{
	struct hcache_flight *f = l->f;

	if (stale) {
		answer_leader(l, f->old, "hit; fwd=stale; detail=error");
	} else if (b == HCACHE_OBJECT && l->req->res.status == 304) {
		answer_leader(l, l->o, "hit; fwd=stale; fwd-status=304");
	} else if (b == HCACHE_OBJECT && !is_plain(l->req)) {
		answer_leader(l, l->o, "fwd=miss; stored");
	} else if (b != HCACHE_ERROR) {
		cache_answer_judge(l->req, f->fields_start);
		tell_leader(l, b);
	}
}

static void settle(struct hcache_landing *l, struct hcache_waiting *w, enum hcache_brought b,
    bool stale, int status)
{
	const struct hcache_flight *f = l->f;
	struct hcache_try t = {.waited = true, .failures = f->failures};

	t.failures += b == HCACHE_ERROR || b == HCACHE_SPOILED;
	t.alone = b == HCACHE_NONE || t.failures > FAILURES_MAX;
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

/* End the flight: those that wait are looked up again, or get the stale object. */
static void land(struct hcache_landing *l, enum hcache_brought b, bool stale, int status)
{
	struct hcache_flight *f = l->f;

	f->landed = true;
	if (stale)
		atomic_store_explicit(
		    &f->old->failing_ns, l->now_ns + FAILING_NS, memory_order_relaxed);
	struct hcache_waiting w = hcache_flights_land(&l->state->flights, f);
	settle(l, &w, b, stale, status);
	hcache_show(l->st);
	hcache_object_put(l->o);
	l->o = NULL;
}

static bool may_replace(const struct hcache_landing *l, enum hcache_brought b)
{
	return b == HCACHE_ERROR && l->f->old &&
	       hcache_may_serve_on_error(l->conf, l->f->old, l->now_ns);
}

static struct hcache_landing landing_of(struct hcache_flight *f, struct weir_http_request *req)
{
	return (struct hcache_landing){f, f->st, weir_state(f->st), weir_conf(f->st), req,
	    weir_clock_ns(CLOCK_MONOTONIC), NULL};
}

/* A whole answer, or an event that is finished without one. */
static void head_whole(struct hcache_flight *f, struct weir_http_request *req)
{
	struct hcache_landing l = landing_of(f, req);
	int status = ((struct http_req *)req)->outcome;

	hcache_flight_reveal(f, req);
	enum hcache_brought b = status == WEIR_OK ? hcache_learn(&l) : HCACHE_ERROR;
	bool stale = may_replace(&l, b);
	if (!f->background) {
		weir_count(l.st, HCACHE_STALE, stale);
		finish_leader(&l, b, stale);
	}
	land(&l, b, stale, status);
}

/* ---- answers in parts ---- */

/* Send the old object in place of an answer in parts: its fields now, its body at the end. */
static int replace_parts(struct hcache_landing *l, int64_t *length)
{
	const struct hcache_told told = {
	    hcache_tells(l->conf, "hit; fwd=stale; detail=error"), true, true};
	struct hcache_object *o = l->f->old;

	l->req->n_fields = l->f->fields_start;
	int rc = hcache_object_head(o, l->req, l->now_ns, &told);
	if (rc < 0)
		return rc;
	*length = o->body ? (int64_t)o->body->n : 0;
	l->f->replaces = hcache_object_hold(o);
	weir_count(l->st, HCACHE_STALE, 1);
	return 0;
}

static int head_parts(struct hcache_flight *f, struct weir_http_request *req, int64_t *length)
{
	struct hcache_landing l = landing_of(f, req);
	struct hcache_answer a;

	hcache_flight_reveal(f, req);
	hcache_learn_head(&l, &a);
	enum hcache_verdict v = hcache_answer_judge(&a, &f->asker);
	if (v == HCACHE_STORE && *length <= l.conf->max_object_bytes)
		f->capture = hcache_capture_new(l.state, &a, *length);
	if (f->capture) {
		if (!f->background)
			tell_leader(&l, HCACHE_OBJECT);
		return 0;
	}
	enum hcache_brought b = v == HCACHE_IGNORE ? HCACHE_ERROR : HCACHE_NONE;
	bool stale = may_replace(&l, b);
	int rc = 0;
	if (stale && !f->background)
		rc = replace_parts(&l, length);
	else if (!f->background)
		tell_leader(&l, b);
	if (b == HCACHE_NONE)
		hcache_mark(&l);
	land(&l, b, stale, WEIR_OK); /* those that wait need not wait for the body */
	return rc;
}

static int head(struct http_filter *filter, struct weir_http_request *req, int64_t *length)
{
	struct hcache_flight *f = (struct hcache_flight *)filter;

	if (f->landed)
		return 0; /* this answer replaces one that could not begin */
	hcache_capture_free(f->capture);
	f->capture = NULL;
	if (length)
		return head_parts(f, req, length);
	head_whole(f, req);
	return 0;
}

static int64_t data(
    struct http_filter *filter, struct weir_http_request *req, struct weir_slice bytes)
{
	struct hcache_flight *f = (struct hcache_flight *)filter;

	if (f->replaces)
		return (int64_t)bytes.n;
	int64_t n = http_filter_write(filter, req, bytes);
	if (n < 0) { /* the client has gone: bytes are missing, whatever the status will be */
		hcache_capture_free(f->capture);
		f->capture = NULL;
	}
	if (n <= 0 || !f->capture)
		return n;
	struct hcache_landing l = landing_of(f, req);
	if (!hcache_capture_add(f->capture, l.conf, (struct weir_slice){bytes.p, (size_t)n})) {
		hcache_capture_free(f->capture);
		f->capture = NULL;
		hcache_mark(&l);
		land(&l, HCACHE_NONE, false, WEIR_OK);
	}
	return n;
}

static void end(struct http_filter *filter, struct weir_http_request *req, int status)
{
	struct hcache_flight *f = (struct hcache_flight *)filter;
	struct hcache_landing l = landing_of(f, req);
	enum hcache_brought b = HCACHE_ERROR;

	hcache_flight_reveal(f, req);
	if (f->replaces && f->replaces->body && status == WEIR_OK && req->res.streamed)
		http_filter_write(filter, req,
		    (struct weir_slice){f->replaces->body->bytes, f->replaces->body->n});
	if (!f->landed) {
		if (status == WEIR_OK && f->capture && !((const struct http_req *)req)->lost)
			b = hcache_capture_store(&l, f->capture);
		land(&l, b, may_replace(&l, b), status);
	}
	hcache_capture_free(f->capture);
	hcache_flight_free(f);
}

static const struct http_filter_ops filter_ops = {.head = head, .data = data, .end = end};

/* ---- taking off ---- */

void hcache_take_off(struct hcache_flight *f, struct weir_http_request *req)
{
	weir_count(f->st, f->old ? HCACHE_ASKED : HCACHE_MISSES, 1);
	f->filter.ops = &filter_ops;
	hcache_flight_disguise(f, req);
	http_filter_add(req, &f->filter);
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

/* The flight of a request that came back, or NULL. Its filter is the last that was added. */
static struct hcache_flight *flight_of(
    const struct weir_stage *st, const struct weir_http_request *req)
{
	struct http_filter *filter = ((const struct http_req *)req)->filters;
	struct hcache_flight *f = (struct hcache_flight *)filter;

	return filter && filter->ops == &filter_ops && f->st == st ? f : NULL;
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
		struct hcache_landing l = landing_of(f, req);
		((struct http_req *)req)->filters = f->filter.next;
		hcache_flight_reveal(f, req);
		land(&l, HCACHE_ERROR, true, reason);
		weir_count(st, HCACHE_STALE, 1);
		hcache_answer(
		    st, &ev[i], hcache_object_hold(f->old), "hit; fwd=stale; detail=refused");
		hcache_flight_free(f);
	}
}
