/* SPDX-License-Identifier: MIT */
/*
 * Keeps track of the requests to the origin; see flight.h.
 *
 * What a flight brings is in the store before the flight lands, and a request that finds no flight looks
 * into the store once more, under the lock. So no request that arrives just after a landing asks again.
 */
#include "http/cache/flight.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <weir/clock.h>

#include "file/cache_rcu.h"
#include "http/conn/await.h"

/* How often a drain looks whether it must end at once, as in net/drain.c. */
#define LOOK_NS 20000000LL

void hcache_flights_init(struct hcache_flights *fs, struct hcache_store *store)
{
	pthread_condattr_t attr;

	fs->store = store;
	pthread_mutex_init(&fs->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&fs->landed, &attr);
	pthread_condattr_destroy(&attr);
}

void hcache_flights_fini(struct hcache_flights *fs)
{
	WEIR_ASSERT(fs->n == 0);
	pthread_cond_destroy(&fs->landed);
	pthread_mutex_destroy(&fs->lock);
}

struct hcache_flight *hcache_flight_new(struct weir_stage *st, const struct weir_http_request *req,
    const struct hcache_lookup *k, struct hcache_object *old)
{
	size_t headers = (req->n_headers + 2u) * sizeof(struct weir_http_header);
	struct hcache_flight *f = malloc(sizeof(*f) + headers + k->key.n);

	if (!f)
		return NULL;
	memset(f, 0, sizeof(*f));
	char *key = (char *)f + sizeof(*f) + headers;
	memcpy(key, k->key.p, k->key.n);
	f->st = st;
	f->key = (struct weir_slice){key, k->key.n};
	f->site_n = k->site_n;
	f->site_hash = k->site_hash;
	f->hash = k->hash;
	f->old = old ? hcache_object_hold(old) : NULL;
	f->fork = k->fork ? hcache_object_hold(k->fork) : NULL;
	f->fields_start = req->n_fields;
	f->asker.authorized = weir_http_header(req, "authorization").p != NULL;
	f->asker.cookie = weir_http_header(req, "cookie").p != NULL;
	f->asked_ns = weir_clock_ns(CLOCK_MONOTONIC);
	return f;
}

void hcache_flight_free(struct hcache_flight *f)
{
	hcache_object_put(f->old);
	hcache_object_put(f->fork);
	hcache_object_put(f->replaces);
	free(f->waiting.one);
	free(f);
}

static struct hcache_flight **bucket_of(struct hcache_flights *fs, uint64_t site_hash)
{
	return &fs->bucket[site_hash % HCACHE_BUCKETS];
}

static bool same_key(const struct hcache_flight *a, const struct hcache_flight *b)
{
	return a->hash == b->hash && a->key.n == b->key.n &&
	       memcmp(a->key.p, b->key.p, a->key.n) == 0;
}

/* Hold *ev on `f`. Returns false if out of memory. */
static bool wait_for(struct hcache_flights *fs, struct hcache_flight *f, struct weir_event **ev,
    int64_t until_ns, bool *first)
{
	struct hcache_waiting *w = &f->waiting;

	if (w->n == w->room) {
		int room = w->room > 0 ? 2 * w->room : 8;
		struct hcache_waiter *bigger = realloc(w->one, (size_t)room * sizeof(*bigger));
		if (!bigger)
			return false;
		w->one = bigger;
		w->room = room;
	}
	if (until_ns > (*ev)->deadline_ns)
		until_ns = (*ev)->deadline_ns;
	w->one[w->n++] = (struct hcache_waiter){*ev, until_ns};
	*first = atomic_fetch_add(&fs->n_waiting, 1) == 0;
	if ((*ev)->state == WEIR_EVENT_HELD)
		*ev = NULL; /* it has waited for another flight */
	else
		weir_hold(f->st, ev);
	return true;
}

/* Whether the store has got an object since `f` was made. An old object that is still there has not been
 * replaced. */
static bool has_changed(struct hcache_flights *fs, const struct hcache_flight *f)
{
	cache_rcu_read_lock();
	struct hcache_object *o = hcache_store_find(fs->store, f->hash, f->key);
	cache_rcu_read_unlock();
	bool changed = o && o != f->old && o->kind != HCACHE_PASS &&
		       hcache_object_age_ns(o, weir_clock_ns(CLOCK_MONOTONIC)) < o->fresh_ns;
	changed |= o && o->kind == HCACHE_FORKS;
	hcache_object_put(o);
	return changed;
}

static enum hcache_boarding board(struct hcache_flights *fs, struct hcache_flight *f,
    struct weir_event **ev, int64_t until_ns, bool *first)
{
	struct hcache_flight **at = bucket_of(fs, f->site_hash), *other = *at;

	while (other && !same_key(other, f))
		other = other->next;
	if (fs->closed)
		return HCACHE_LEADS; /* without a place in the table */
	if (other && wait_for(fs, other, ev, until_ns, first))
		return HCACHE_HELD;
	if (!other && has_changed(fs, f))
		return HCACHE_FOUND;
	f->next = *at;
	*at = f;
	f->boarded = true;
	fs->n++;
	return HCACHE_LEADS;
}

enum hcache_boarding hcache_flights_board(struct hcache_flights *fs, struct hcache_flight *f,
    struct weir_event **ev, int64_t until_ns, bool *first)
{
	f->purges = atomic_load_explicit(&fs->purges, memory_order_acquire);
	pthread_mutex_lock(&fs->lock);
	enum hcache_boarding b = board(fs, f, ev, until_ns, first);
	pthread_mutex_unlock(&fs->lock);
	return b;
}

struct hcache_waiting hcache_flights_land(struct hcache_flights *fs, struct hcache_flight *f)
{
	struct hcache_waiting w = {NULL, 0, 0};

	if (!f->boarded)
		return w;
	pthread_mutex_lock(&fs->lock);
	struct hcache_flight **at = bucket_of(fs, f->site_hash);
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	w = f->waiting;
	f->waiting = (struct hcache_waiting){NULL, 0, 0};
	f->boarded = false;
	atomic_fetch_sub(&fs->n_waiting, w.n);
	if (--fs->n == 0)
		pthread_cond_signal(&fs->landed);
	pthread_mutex_unlock(&fs->lock);
	return w;
}

/* Take those out of `f` that leave at `now_ns`. */
static struct weir_event *leave(
    struct hcache_flights *fs, struct hcache_flight *f, int64_t now_ns, struct weir_event *list)
{
	struct hcache_waiting *w = &f->waiting;

	for (int i = 0; i < w->n;) {
		struct weir_event *ev = w->one[i].ev;
		if (now_ns < w->one[i].until_ns && !http_await_gone(weir_http_request(ev))) {
			i++;
			continue;
		}
		w->one[i] = w->one[--w->n];
		atomic_fetch_sub(&fs->n_waiting, 1);
		ev->next = list;
		list = ev;
	}
	return list;
}

static struct weir_event *leave_all(struct hcache_flights *fs, int64_t now_ns)
{
	struct weir_event *list = NULL;

	for (int i = 0; i < HCACHE_BUCKETS; i++)
		for (struct hcache_flight *f = fs->bucket[i]; f; f = f->next)
			list = leave(fs, f, now_ns, list);
	return list;
}

struct weir_event *hcache_flights_leave(struct hcache_flights *fs, int64_t now_ns)
{
	pthread_mutex_lock(&fs->lock);
	struct weir_event *list = leave_all(fs, now_ns);
	pthread_mutex_unlock(&fs->lock);
	return list;
}

struct weir_event *hcache_flights_close(
    struct hcache_flights *fs, const struct weir_stage *st, int64_t until_ns)
{
	pthread_mutex_lock(&fs->lock);
	while (fs->n > 0 && !weir_hurried(st)) {
		int64_t now_ns = weir_clock_ns(CLOCK_MONOTONIC), look_ns = now_ns + LOOK_NS;
		if (now_ns >= until_ns)
			break;
		look_ns = look_ns < until_ns ? look_ns : until_ns;
		struct timespec look = {look_ns / 1000000000, look_ns % 1000000000};
		pthread_cond_timedwait(&fs->landed, &fs->lock, &look);
	}
	fs->closed = true;
	struct weir_event *list = leave_all(fs, INT64_MAX);
	pthread_mutex_unlock(&fs->lock);
	return list;
}

void hcache_flights_spoil(struct hcache_flights *fs, uint64_t site_hash, struct weir_slice key)
{
	if (key.n == 0) {
		atomic_fetch_add_explicit(&fs->purges, 1, memory_order_release);
		return;
	}
	pthread_mutex_lock(&fs->lock);
	for (struct hcache_flight *f = *bucket_of(fs, site_hash); f; f = f->next)
		if (f->site_n == key.n && memcmp(f->key.p, key.p, key.n) == 0)
			atomic_store_explicit(&f->spoiled, true, memory_order_relaxed);
	pthread_mutex_unlock(&fs->lock);
}

bool hcache_flight_is_spoiled(const struct hcache_flights *fs, const struct hcache_flight *f)
{
	return atomic_load_explicit(&f->spoiled, memory_order_relaxed) ||
	       atomic_load_explicit(&fs->purges, memory_order_acquire) != f->purges;
}

/* ---- the request that the origin gets ---- */

static const struct weir_slice get_text = {"GET", 3};

static bool is_hidden(struct weir_slice name)
{
	enum condition_field ignored;

	/* Connection could take fields of the key from the request, and many programs read '_' as '-'. */
	return condition_is_field(name, &ignored) || hcache_is_unkeyed(name) ||
	       weir_slice_is(name, "connection") || weir_slice_is(name, "upgrade") ||
	       memchr(name.p, '_', name.n);
}

/* Add the validators of the old object. Both are sent: an origin that knows ETags ignores the date. */
static uint8_t add_validators(struct hcache_flight *f, uint8_t n)
{
	const struct hcache_object *o = f->old;
	struct weir_slice rest = o->fields_304;
	struct cache_line l;

	while (cache_line_next(&rest, &l)) {
		if (weir_slice_is(l.name, "etag"))
			f->disguise[n++] =
			    (struct weir_http_header){{"If-None-Match", 13}, l.value};
		else if (weir_slice_is(l.name, "last-modified") && o->file.modified_s >= 0)
			f->disguise[n++] =
			    (struct weir_http_header){{"If-Modified-Since", 17}, l.value};
		if (n == f->n_headers + 2)
			break;
	}
	return n;
}

void hcache_flight_disguise(struct hcache_flight *f, struct weir_http_request *req)
{
	uint8_t n = 0;

	f->disguised = true;
	f->method = req->method;
	f->method_text = req->method_text;
	f->headers = req->headers;
	f->n_headers = req->n_headers;
	for (int i = 0; i < req->n_headers; i++)
		if (!is_hidden(req->headers[i].name))
			f->disguise[n++] = req->headers[i];
	if (f->old)
		n = add_validators(f, n);
	req->method = WEIR_HTTP_GET;
	req->method_text = get_text;
	req->headers = f->disguise;
	req->n_headers = n;
}

void hcache_flight_reveal(struct hcache_flight *f, struct weir_http_request *req)
{
	if (!f->disguised)
		return;
	f->disguised = false;
	req->method = f->method;
	req->method_text = f->method_text;
	req->headers = f->headers;
	req->n_headers = f->n_headers;
}
