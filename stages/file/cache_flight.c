/* SPDX-License-Identifier: MIT */
/*
 * Tracks the fetches in progress (flights) of file.cache. See cache_flight.h.
 *
 * The object of a flight is inserted into the cache's table before the flight lands. A request that
 * finds no flight for its key looks in the table once more, under the lock. A request that arrives
 * just after a flight has landed therefore does not fetch the same key again.
 *
 * Lock order: flights.lock before the table's lock (never taken here, since lookups need none).
 */
#include "cache_flight.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/clock.h>

#include "cache_rcu.h"
#include "encoding.h"

/* Interval at which flights_close checks weir_hurried, which a signal handler may set; the same as
 * LOOK_NS of net/drain.c. */
#define FLIGHT_LOOK_NS 20000000LL

void flights_init(struct cache_flights *fs, struct cache_table *table)
{
	pthread_condattr_t attr;

	fs->table = table;
	pthread_mutex_init(&fs->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&fs->landed, &attr);
	pthread_condattr_destroy(&attr);
}

void flights_fini(struct cache_flights *fs)
{
	WEIR_ASSERT(fs->n == 0);
	pthread_cond_destroy(&fs->landed);
	pthread_mutex_destroy(&fs->lock);
}

static bool is_plain(const struct weir_http_request *req)
{
	struct condition asked;

	condition_scan(req, &asked);
	return req->method == WEIR_HTTP_GET && !asked.any;
}

struct cache_flight *flight_new(struct weir_stage *st, const struct weir_http_request *req,
    uint64_t hash, struct cache_object *old)
{
	bool disguises = old || !is_plain(req);
	size_t headers = disguises ? req->n_headers + 1u : 0;
	struct cache_flight *f = malloc(sizeof(*f) + headers * sizeof(f->disguise[0]));

	if (!f)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->st = st;
	f->hash = hash;
	f->key = req->path;
	f->code = encoding_code(req);
	f->old = old;
	f->disguises = disguises;
	f->fields_start = req->n_fields;
	f->waiting_tail = &f->waiting;
	return f;
}

void flight_free(struct cache_flight *f)
{
	if (f->old)
		cache_object_put(f->old);
	free(f);
}

static struct cache_flight **flights_slot(struct cache_flights *fs, uint64_t hash)
{
	return &fs->bucket[hash % FLIGHT_BUCKETS];
}

static bool flight_is_like(const struct cache_flight *f, const struct cache_flight *other)
{
	return f->hash == other->hash && f->code == other->code && f->key.n == other->key.n &&
	       memcmp(f->key.p, other->key.p, f->key.n) == 0;
}

static struct cache_flight *flights_find(struct cache_flights *fs, const struct cache_flight *like)
{
	struct cache_flight *f = *flights_slot(fs, like->hash);

	while (f && !flight_is_like(f, like))
		f = f->next;
	return f;
}

static void flight_hold(struct cache_flight *f, struct weir_event **ev)
{
	struct weir_event *e = *ev;

	e->next = NULL;
	*f->waiting_tail = e;
	f->waiting_tail = &e->next;
	weir_hold(f->st, ev);
}

/* Find an object that was inserted after the caller's own lookup found nothing usable. Returns NULL
 * for a flight with an old object, since the lookup would find just that object. */
static struct cache_object *look_again(struct cache_flights *fs, const struct cache_flight *f)
{
	if (f->old)
		return NULL;
	cache_rcu_read_lock();
	struct cache_object *o = cache_table_find(fs->table, f->hash, f->key, 0);
	if (o && o->varies)
		o = cache_table_variant(fs->table, o, f->hash, f->code);
	cache_rcu_read_unlock();
	if (!o || (weir_now_ns(f->st) < atomic_load_explicit(&o->due_ns, memory_order_relaxed) &&
		      cache_object_intact(o)))
		return o;
	cache_object_put(o);
	return NULL;
}

static enum flight_boarding board_locked(struct cache_flights *fs, struct cache_flight *f,
    struct weir_event **ev, bool wait, struct cache_object **found)
{
	struct cache_flight *other = flights_find(fs, f);

	if (other && (!wait || fs->closed))
		return FLIGHT_BUSY;
	if (other) {
		flight_hold(other, ev);
		return FLIGHT_HELD;
	}
	*found = look_again(fs, f);
	if (*found)
		return FLIGHT_FOUND;
	f->next = *flights_slot(fs, f->hash);
	*flights_slot(fs, f->hash) = f;
	fs->n++;
	return FLIGHT_LEADS;
}

enum flight_boarding flights_board(struct cache_flights *fs, struct cache_flight *f,
    struct weir_event **ev, bool wait, struct cache_object **found)
{
	pthread_mutex_lock(&fs->lock);
	enum flight_boarding b = board_locked(fs, f, ev, wait, found);
	pthread_mutex_unlock(&fs->lock);
	return b;
}

struct weir_event *flights_land(struct cache_flights *fs, struct cache_flight *f)
{
	pthread_mutex_lock(&fs->lock);
	struct cache_flight **at = flights_slot(fs, f->hash);
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	struct weir_event *waiting = f->waiting;
	f->waiting = NULL;
	if (--fs->n == 0)
		pthread_cond_signal(&fs->landed);
	pthread_mutex_unlock(&fs->lock);
	return waiting;
}

/* Append all events that wait on `f` to the list that ends at *tail. Returns the new tail. */
static struct weir_event **take_waiting(struct cache_flight *f, struct weir_event **tail)
{
	if (!f->waiting)
		return tail;
	*tail = f->waiting;
	tail = f->waiting_tail;
	f->waiting = NULL;
	f->waiting_tail = &f->waiting;
	return tail;
}

/* Wait up to FLIGHT_LOOK_NS for flights to land. Returns false if the time limit has expired or the
 * graph must stop immediately. */
static bool wait_for_landing(
    struct cache_flights *fs, const struct weir_stage *st, int64_t until_ns)
{
	int64_t now_ns = weir_clock_ns(CLOCK_MONOTONIC);

	if (now_ns >= until_ns || weir_hurried(st))
		return false;
	int64_t look_ns = until_ns - now_ns < FLIGHT_LOOK_NS ? until_ns : now_ns + FLIGHT_LOOK_NS;
	struct timespec look = {look_ns / 1000000000, look_ns % 1000000000};
	pthread_cond_timedwait(&fs->landed, &fs->lock, &look);
	return true;
}

struct weir_event *flights_close(
    struct cache_flights *fs, const struct weir_stage *st, int64_t until_ns)
{
	struct weir_event *rest = NULL, **tail = &rest;

	pthread_mutex_lock(&fs->lock);
	while (fs->n > 0 && wait_for_landing(fs, st, until_ns))
		;
	fs->closed = true;
	for (int i = 0; i < FLIGHT_BUCKETS; i++)
		for (struct cache_flight *f = fs->bucket[i]; f; f = f->next)
			tail = take_waiting(f, tail);
	pthread_mutex_unlock(&fs->lock);
	return rest;
}

void flight_disguise(struct cache_flight *f, struct weir_http_request *req)
{
	uint8_t n = 0;
	enum condition_field ignored;

	f->disguised = true;
	f->method = req->method;
	f->method_text = req->method_text;
	f->headers = req->headers;
	f->n_headers = req->n_headers;
	for (int i = 0; i < req->n_headers; i++)
		if (!condition_is_field(req->headers[i].name, &ignored))
			f->disguise[n++] = req->headers[i];
	/* If the file of the old object was changed in place, the object could not be served after
	 * a 304, so If-None-Match is not sent. */
	if (f->old && f->old->file.etag.n > 0 && n < UINT8_MAX && cache_object_intact(f->old))
		f->disguise[n++] = (struct weir_http_header){
		    {"If-None-Match", sizeof("If-None-Match") - 1}, f->old->file.etag};
	req->method = WEIR_HTTP_GET;
	req->method_text = (struct weir_slice){"GET", 3};
	req->headers = f->disguise;
	req->n_headers = n;
}

void flight_reveal(struct cache_flight *f, struct weir_http_request *req)
{
	if (!f->disguised)
		return;
	f->disguised = false;
	req->method = f->method;
	req->method_text = f->method_text;
	req->headers = f->headers;
	req->n_headers = f->n_headers;
}
