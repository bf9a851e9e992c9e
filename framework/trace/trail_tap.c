/* SPDX-License-Identifier: MIT */
/* Taps with their filters, readers and leases; see trail_tap.h. */
#include "trace/trail_tap.h"

#include <stdlib.h>
#include <string.h>

#include "trace/trail.h"
#include "trace/trail_watch.h"

static bool is_same(const struct tap *t, int stage, const struct weir_tap *want)
{
	return atomic_load_explicit(&t->open, memory_order_relaxed) &&
	       atomic_load_explicit(&t->stage, memory_order_relaxed) == stage &&
	       atomic_load_explicit(&t->class_id, memory_order_relaxed) == want->class_id &&
	       atomic_load_explicit(&t->outcome, memory_order_relaxed) == want->outcome &&
	       atomic_load_explicit(&t->slow_ns, memory_order_relaxed) == want->slow_ns;
}

/* Whether the event passed through `stage` or ended there. */
static bool passed(struct weir_event *ev, int stage)
{
	const struct weir_trail *t = trail_of(ev);
	int n = t->n_hops < WEIR_TRAIL_HOPS ? t->n_hops : WEIR_TRAIL_HOPS;

	if (ev->stage == stage)
		return true;
	for (int i = 0; i < n; i++)
		if (t->hop[i].stage == stage)
			return true;
	return false;
}

/* Whether the event matches the tap's filter. Without the lock, the result is only a hint, since
 * the filter may change at the same time; with the lock it is exact. */
static bool wants(const struct tap *t, struct weir_event *ev, int status, int64_t took_ns)
{
	int class_id = atomic_load_explicit(&t->class_id, memory_order_relaxed);
	int outcome = atomic_load_explicit(&t->outcome, memory_order_relaxed);

	return atomic_load_explicit(&t->open, memory_order_relaxed) &&
	       took_ns >= atomic_load_explicit(&t->slow_ns, memory_order_relaxed) &&
	       (class_id < 0 || class_id == ev->class_id) &&
	       (outcome < 0 || outcome == (int)weir_outcome_of(status)) &&
	       passed(ev, atomic_load_explicit(&t->stage, memory_order_relaxed));
}

static bool is_full(const struct tap *t)
{
	return atomic_load_explicit(&t->newest, memory_order_relaxed) -
		   atomic_load_explicit(&t->read, memory_order_relaxed) >=
	       TAP_EVENTS;
}

/* Store the event in every tap whose filter it matches. The event is described only once. */
static void offer_taps(struct taps *taps, struct weir_event *ev, int status, int64_t now_ns)
{
	struct weir_slow slow;
	bool described = false;

	for (int i = 0; i < TAPS_MAX; i++) {
		struct tap *t = &taps->tap[i];
		if (!wants(t, ev, status, now_ns - ev->arrival_ns))
			continue;
		if (is_full(t)) {
			atomic_fetch_add_explicit(&t->dropped, 1, memory_order_relaxed);
			continue;
		}
		if (!described)
			trail_record(ev, status, now_ns, collect_below(taps), &slow);
		described = true;
		lock_take(&taps->lock);
		bool still = wants(t, ev, status, now_ns - ev->arrival_ns);
		if (still && is_full(t)) {
			atomic_fetch_add_explicit(&t->dropped, 1, memory_order_relaxed);
		} else if (still) {
			slow.id = atomic_load_explicit(&t->newest, memory_order_relaxed) + 1;
			t->ring[slow.id % TAP_EVENTS] = slow;
			atomic_store_explicit(&t->newest, slow.id, memory_order_relaxed);
		}
		lock_release(&taps->lock);
	}
}

void taps_offer(struct taps *taps, struct weir_event *ev, int status, bool kept, int64_t now_ns)
{
	if (atomic_load_explicit(&taps->n_open, memory_order_relaxed) > 0)
		offer_taps(taps, ev, status, now_ns);
	collect_offer(taps, ev, status, kept, now_ns);
}

/* ---- reading ---- */

static struct tap *find(struct taps *taps, int stage, const struct weir_tap *want)
    WEIR_REQUIRES(&taps->lock)
{
	for (int i = 0; i < TAPS_MAX; i++)
		if (is_same(&taps->tap[i], stage, want))
			return &taps->tap[i];
	return NULL;
}

/* Open a free tap. The ids of its events start at the current time in microseconds, so that they
 * exceed the ids of an earlier tap. */
static int open_tap(struct taps *taps, int stage, const struct weir_tap *want, struct tap **out)
    WEIR_REQUIRES(&taps->lock)
{
	struct tap *t = NULL;

	for (int i = 0; i < TAPS_MAX && !t; i++)
		if (!atomic_load_explicit(&taps->tap[i].open, memory_order_relaxed))
			t = &taps->tap[i];
	if (!t)
		return WEIR_EBUSY;
	t->ring = calloc(TAP_EVENTS, sizeof(*t->ring));
	if (!t->ring)
		return WEIR_ENOMEM;
	t->began = (uint64_t)(clock_wall_ns() / NS_PER_US);
	atomic_store_explicit(&t->newest, t->began, memory_order_relaxed);
	atomic_store_explicit(&t->read, t->began, memory_order_relaxed);
	atomic_store_explicit(&t->dropped, 0, memory_order_relaxed);
	atomic_store_explicit(&t->stage, stage, memory_order_relaxed);
	atomic_store_explicit(&t->class_id, want->class_id, memory_order_relaxed);
	atomic_store_explicit(&t->outcome, want->outcome, memory_order_relaxed);
	atomic_store_explicit(&t->slow_ns, want->slow_ns, memory_order_relaxed);
	atomic_store_explicit(&t->open, true, memory_order_relaxed);
	atomic_fetch_add_explicit(&taps->n_open, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(taps->looking, 1, memory_order_relaxed);
	*out = t;
	return 0;
}

static int copy(struct tap *t, uint64_t after, struct weir_slow *out, int n)
{
	uint64_t newest = atomic_load_explicit(&t->newest, memory_order_relaxed);
	uint64_t oldest = newest - t->began > TAP_EVENTS ? newest - TAP_EVENTS : t->began;
	int k = 0;

	for (uint64_t id = (after > oldest ? after : oldest) + 1; id <= newest && k < n; id++)
		out[k++] = t->ring[id % TAP_EVENTS];
	return k;
}

int taps_read(struct taps *taps, int stage, const struct weir_tap *want, uint64_t after,
    struct weir_slow *out, int n, struct weir_tap_state *state)
{
	int rc = 0, found = 0;

	lock_take(&taps->lock);
	struct tap *t = find(taps, stage, want);
	if (!t)
		rc = open_tap(taps, stage, want, &t);
	if (rc == 0) {
		uint64_t newest = atomic_load_explicit(&t->newest, memory_order_relaxed);
		if (after == 0)
			after = newest;
		found = copy(t, after, out, n);
		state->next = found > 0 ? out[found - 1].id : newest;
		state->dropped = atomic_load_explicit(&t->dropped, memory_order_relaxed);
		if (state->next > atomic_load_explicit(&t->read, memory_order_relaxed))
			atomic_store_explicit(&t->read, state->next, memory_order_relaxed);
		t->until_ns = clock_now_ns() + TAP_LEASE_NS;
	}
	lock_release(&taps->lock);
	return rc != 0 ? rc : found;
}

static void close_tap(struct taps *taps, struct tap *t) WEIR_REQUIRES(&taps->lock)
{
	atomic_store_explicit(&t->open, false, memory_order_relaxed);
	atomic_fetch_sub_explicit(&taps->n_open, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(taps->looking, 1, memory_order_relaxed);
	free(t->ring);
	t->ring = NULL;
}

void taps_tick(struct taps *taps, int64_t now_ns)
{
	if (atomic_load_explicit(&taps->n_open, memory_order_relaxed) == 0)
		return;
	lock_take(&taps->lock);
	for (int i = 0; i < TAPS_MAX; i++) {
		struct tap *t = &taps->tap[i];
		if (atomic_load_explicit(&t->open, memory_order_relaxed) && now_ns > t->until_ns)
			close_tap(taps, t);
	}
	lock_release(&taps->lock);
}

/* ---- lifetime ---- */

struct taps *taps_new(atomic_int *looking)
{
	struct taps *taps = calloc(1, sizeof(*taps));

	if (!taps)
		return NULL;
	taps->looking = looking;
	lock_init(&taps->lock);
	return taps;
}

void taps_free(struct taps *taps)
{
	if (!taps)
		return;
	for (int i = 0; i < TAPS_MAX; i++)
		free(taps->tap[i].ring);
	free(taps->queue);
	lock_fini(&taps->lock);
	free(taps);
}

bool taps_watched(const struct taps *taps)
{
	return atomic_load_explicit(&taps->n_open, memory_order_relaxed) > 0 ||
	       atomic_load_explicit(&taps->collecting, memory_order_relaxed);
}
