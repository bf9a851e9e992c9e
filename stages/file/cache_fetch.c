/* SPDX-License-Identifier: MIT */
/*
 * Fetches the objects of file.cache from `miss`. A fetch in progress is called a flight.
 *
 *   cache_fetch(): look for a flight with the same key
 *     there is one:  hold the request until that flight lands
 *     there is none: the request leads a new flight. If it is not a plain GET, it is disguised as
 *                    one. It gets the tap and is emitted to `miss`.
 *   the tap, when `miss` has finished the leader: make an object from the response, insert it into
 *     the table, land the flight, answer the leader and the requests that waited
 *
 * The tap runs in the thread that finished the leader, usually one of the next stage's pool. It
 * does not read the configuration, since the flight contains all the values that it needs.
 */
#include "cache.h"

#include <weir/clock.h>

#include "cache_answer.h"
#include "cache_rcu.h"

/* Interval of sweeps. 10 ms is a guess: 100 sweeps per second cost about 1 ms of CPU time and
 * examine about 10,000 objects. */
#define SWEEP_NS 10000000LL

/* Update the counters, and set the gauges to the state of the table. The gauges do not add up the
 * changes that this stage makes, because the stages of the old and the new graph share one table
 * during a reload. */
static void count_change(struct weir_stage *st, const struct cache_change *change)
{
	struct cache_state *state = weir_state(st);

	weir_count(st, CACHE_BYTES,
	    change->bytes_now - atomic_exchange(&state->shown_bytes, change->bytes_now));
	weir_count(st, CACHE_OBJECTS,
	    change->objects_now - atomic_exchange(&state->shown_objects, change->objects_now));
	weir_count(st, CACHE_FILES,
	    change->files_now - atomic_exchange(&state->shown_files, change->files_now));
	weir_count(st, CACHE_EVICTIONS, change->evicted);
}

/* Answer *ev from `o` and finish it, taking over the reference. */
static void finish_from(struct weir_event **ev, struct cache_object *o)
{
	int rc = cache_object_respond(o, weir_http_request(*ev));

	weir_event_finish(ev, rc);
}

void cache_hits(struct weir_stage *st, struct weir_event **ev, struct cache_object **o, int n)
{
	int gone = 0, begin = 0;

	for (int i = 0; i < n; i++)
		gone += o[i]->kind == CACHE_GONE;
	weir_count(st, CACHE_HITS, n);
	if (WEIR_UNLIKELY(gone > 0))
		weir_count(st, CACHE_NEGATIVE, gone);
	for (int i = 0; i < n; i++) {
		int rc = cache_object_respond(o[i], weir_http_request(ev[i]));
		if (WEIR_LIKELY(rc == 0))
			continue;
		weir_event_finish_run(ev + begin, i - begin, WEIR_OK);
		weir_event_finish(&ev[i], rc);
		begin = i + 1;
	}
	weir_event_finish_run(ev + begin, n - begin, WEIR_OK);
}

void cache_hit(struct weir_stage *st, struct weir_event **ev, struct cache_object *o)
{
	cache_hits(st, ev, &o, 1);
}

void cache_pass(struct weir_stage *st, struct weir_event **ev)
{
	weir_count(st, CACHE_MISSES, 1);
	weir_emit(st, CACHE_MISS, ev);
}

/* ---- landing ---- */

static void replace_object(struct weir_stage *st, struct cache_object *o)
{
	struct cache_state *state = weir_state(st);
	struct cache_change change;

	cache_table_insert(state->table, o, &change);
	count_change(st, &change);
}

/* Sweep a few objects when a flight lands, at most once per SWEEP_NS. In this way files that are no
 * longer requested are closed, provided that there is other traffic. */
static void sweep(const struct cache_flight *f)
{
	struct cache_state *state = weir_state(f->st);
	int64_t now_ns = weir_clock_ns(CLOCK_MONOTONIC);
	int64_t due_ns = atomic_load_explicit(&state->sweep_ns, memory_order_relaxed);
	struct cache_change change;

	if (f->limits.file_charge_bytes == 0 || now_ns < due_ns ||
	    !atomic_compare_exchange_strong_explicit(&state->sweep_ns, &due_ns, now_ns + SWEEP_NS,
		memory_order_relaxed, memory_order_relaxed))
		return;
	cache_table_sweep(state->table, now_ns - f->limits.shown_ns, &change);
	count_change(f->st, &change);
}

/* Mark the path of `f` in the table as one whose responses vary, so that later requests for it look
 * up the variant for their codings. A CACHE_FORKS marker is inserted unless the entry of the path
 * already varies. */
static void fork_path(struct cache_flight *f)
{
	struct cache_state *state = weir_state(f->st);

	cache_rcu_read_lock();
	struct cache_object *o = cache_table_find(state->table, f->hash, f->key, 0);
	cache_rcu_read_unlock();
	bool forks = o && o->varies;
	if (o)
		cache_object_put(o);
	struct cache_object *fork = forks ? NULL : cache_object_fork(f->hash, f->key);
	if (!fork)
		/* The entry of the path varies already, or memory is short. If memory is short,
		 * later requests fetch the variant again. */
		return;
	replace_object(f->st, fork);
	cache_object_put(fork);
}

/* Record that `miss` has confirmed the old object as still current. */
static void confirm(struct cache_object *o, const struct cache_limits *limits, int64_t now_ns)
{
	atomic_store_explicit(&o->checked_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&o->due_ns, now_ns + limits->revalidate_ns, memory_order_relaxed);
}

/* Create an object from the response of the stage behind the outlet `miss`, or confirm the old
 * object. Returns the object with a reference, or NULL if the response may not be served to other
 * clients. */
static struct cache_object *learn(struct cache_flight *f, struct weir_http_request *req)
{
	struct cache_object *o;
	int64_t now_ns = weir_clock_ns(CLOCK_MONOTONIC);

	if (req->res.status == 304 && f->old && !req->res.streamed) {
		if (!f->old->varies && cache_answer_varies(req, f->fields_start))
			fork_path(f); /* a precompressed copy of the file has appeared */
		confirm(f->old, &f->limits, now_ns);
		cache_object_hold(f->old);
		return f->old;
	}
	int rc = cache_object_new(
	    req, f->fields_start, f->hash, f->key, f->code, &f->limits, now_ns, &o);
	if (rc < 0)
		return NULL;
	replace_object(f->st, o);
	if (o->code != 0)
		fork_path(f);
	if (o->kind != CACHE_PASS)
		return o;
	cache_object_put(o);
	return NULL;
}

/* Answer the events in `list`, which waited for a flight, from `o`. If `o` is NULL, or its file has
 * changed since it was read, each event is sent to the outlet `miss` on its own, or finished if
 * `status` is WEIR_ECLOSED. */
static void settle_waiting(
    struct weir_stage *st, struct weir_event *list, struct cache_object *o, int status)
{
	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		if (o && cache_object_intact(o)) {
			cache_object_hold(o);
			finish_from(&ev, o);
		} else if (status == WEIR_ECLOSED) {
			weir_event_finish(&ev, status);
		} else {
			cache_pass(st, &ev);
		}
	}
}

/* Drop the response of `miss` and answer the leader's original request from `o`. */
static void answer_leader(
    struct cache_flight *f, struct weir_http_request *req, struct cache_object *o)
{
	cache_answer_drop(req, f->fields_start);
	cache_object_hold(o);
	if (cache_object_respond(o, req) < 0)
		weir_http_respond_status(req, 500);
}

/* The tap of a leading request. Runs when `miss` has finished the request. */
static void cache_landed(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	struct cache_flight *f = (struct cache_flight *)tap;
	struct weir_stage *st = f->st;
	struct cache_state *state = weir_state(st);
	struct cache_object *o = NULL;

	if (status == WEIR_OK)
		o = learn(f, req); /* must precede landing, see cache_flight.c */
	sweep(f);
	flight_reveal(f, req);
	struct weir_event *waiting = flights_land(&state->flights, f);
	if (o)
		answer_leader(f, req, o);
	else if (status == WEIR_OK && f->disguises)
		/* `miss` received a plain GET without the conditions of the request */
		cache_answer_judge(req, f->fields_start);
	settle_waiting(st, waiting, o, status);
	if (o)
		cache_object_put(o);
	flight_free(f);
}

/* ---- taking off ---- */

/* Emit *ev, the leader of `f`, to `miss`. */
static void take_off(struct cache_flight *f, struct weir_event **ev)
{
	struct weir_http_request *req = weir_http_request(*ev);
	const struct cache_conf *conf = weir_conf(f->st);
	const struct cache_state *state = weir_state(f->st);

	f->tap.fn = cache_landed;
	f->limits = (struct cache_limits){conf->max_object_bytes, state->file_charge_bytes,
	    conf->revalidate_ns, conf->negative_ns, conf->revalidate_ns + conf->stale_ns,
	    weir_clock_ns(CLOCK_REALTIME_COARSE)};
	if (f->disguises)
		flight_disguise(f, req);
	weir_http_add_tap(req, &f->tap);
	weir_count(f->st, f->old ? CACHE_REVALIDATED : CACHE_MISSES, 1);
	weir_emit(f->st, CACHE_MISS, ev);
}

void cache_fetch(struct weir_stage *st, struct weir_event **ev, uint64_t hash,
    struct cache_object *old, bool wait)
{
	struct cache_state *state = weir_state(st);
	struct cache_flight *f = flight_new(st, weir_http_request(*ev), hash, old);
	struct cache_object *found = NULL;

	if (!f) {
		if (old)
			cache_object_put(old);
		cache_pass(st, ev);
		return;
	}
	enum flight_boarding b = flights_board(&state->flights, f, ev, wait, &found);
	if (b == FLIGHT_LEADS) {
		take_off(f, ev);
		return;
	}
	if (b == FLIGHT_HELD) {
		weir_count(st, CACHE_COALESCED, 1);
	} else if (b == FLIGHT_BUSY && old && !wait) {
		cache_object_hold(old);
		cache_hit(st, ev, old);
	} else if (b == FLIGHT_FOUND && found->kind != CACHE_PASS) {
		cache_hit(st, ev, found);
		found = NULL;
	} else {
		cache_pass(st, ev);
	}
	if (found)
		cache_object_put(found);
	flight_free(f);
}

/* ---- refusal and stop ---- */

static int64_t age_of(const struct cache_object *o, int64_t now_ns)
{
	return now_ns - atomic_load_explicit(&o->checked_ns, memory_order_relaxed);
}

void cache_fetch_refused(struct weir_stage *st, struct weir_event **ev, int64_t age_ns, int reason)
{
	struct weir_http_request *req = weir_http_request(*ev);
	struct cache_flight *f = (struct cache_flight *)req->taps;
	struct cache_state *state = weir_state(st);

	if (!f || f->tap.fn != cache_landed || f->st != st || !f->old)
		return;
	struct cache_object *o = f->old;
	if (age_of(o, weir_now_ns(st)) >= age_ns || !cache_object_intact(o))
		return;
	req->taps = f->tap.next;
	flight_reveal(f, req);
	settle_waiting(st, flights_land(&state->flights, f), o, reason);
	cache_object_hold(o);
	cache_hit(st, ev, o);
	flight_free(f);
}

void cache_fetch_stop(struct weir_stage *st, int64_t until_ns)
{
	struct cache_state *state = weir_state(st);

	settle_waiting(st, flights_close(&state->flights, st, until_ns), NULL, WEIR_ECLOSED);
}
