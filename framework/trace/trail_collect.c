/* SPDX-License-Identifier: MIT */
/* Collects finished events for an export; see trail_tap.h. */
#include <stdlib.h>

#include "trace/trail.h"
#include "trace/trail_tap.h"
#include "trace/trail_watch.h"

/* Whether the event is to be collected. May assign a new trace to the event. */
static bool picks(struct taps *taps, struct weir_trail *t, bool kept)
{
	uint64_t below = atomic_load_explicit(&taps->below, memory_order_relaxed);

	if (kept && atomic_load_explicit(&taps->slow, memory_order_relaxed))
		return true;
	if (t->traced) {
		bool theirs = t->trace.parent != 0 &&
			      !atomic_load_explicit(&taps->follow, memory_order_relaxed);
		return theirs ? t->trace.id[1] < below : t->trace.sampled;
	}
	uint64_t low = random_u64();
	if (low >= below)
		return false;
	t->trace = (struct weir_trace){.id = {random_id(), low}, .sampled = true};
	t->traced = true;
	return true;
}

void collect_offer(struct taps *taps, struct weir_event *ev, int status, bool kept, int64_t now_ns)
{
	struct weir_slow slow;

	if (!atomic_load_explicit(&taps->collecting, memory_order_relaxed) ||
	    !picks(taps, trail_of(ev), kept))
		return;
	if (atomic_load_explicit(&taps->waiting, memory_order_relaxed) >= COLLECT_EVENTS) {
		atomic_fetch_add_explicit(&taps->dropped, 1, memory_order_relaxed);
		return;
	}
	trail_record(ev, status, now_ns, collect_below(taps), &slow);
	lock_take(&taps->lock);
	bool room = taps->queue && taps->put - taps->taken < COLLECT_EVENTS;
	if (room) {
		slow.id = ++taps->put;
		taps->queue[slow.id % COLLECT_EVENTS] = slow;
		atomic_store_explicit(
		    &taps->waiting, taps->put - taps->taken, memory_order_relaxed);
	}
	lock_release(&taps->lock);
	atomic_fetch_add_explicit(
	    room ? &taps->collected : &taps->dropped, 1, memory_order_relaxed);
}

uint64_t collect_below(const struct taps *taps)
{
	return atomic_load_explicit(&taps->below, memory_order_relaxed);
}

/* Return ratio * 2^64, clamped to 64 bits: the bound below which the fraction `ratio` of all 64-bit
 * numbers lies. */
static uint64_t part_of(double ratio)
{
	if (ratio >= 1)
		return UINT64_MAX;
	return ratio <= 0 ? 0 : (uint64_t)(ratio * 18446744073709551616.0);
}

int collect_begin(struct taps *taps, const struct weir_collect *want)
{
	int rc = 0;

	lock_take(&taps->lock);
	if (!taps->queue)
		taps->queue = calloc(COLLECT_EVENTS, sizeof(*taps->queue));
	if (!taps->queue)
		rc = WEIR_ENOMEM;
	else if (atomic_load_explicit(&taps->collecting, memory_order_relaxed))
		rc = WEIR_EBUSY;
	if (rc == 0) {
		atomic_store_explicit(&taps->slow, want->slow, memory_order_relaxed);
		atomic_store_explicit(&taps->follow, want->follow, memory_order_relaxed);
		atomic_store_explicit(&taps->below, part_of(want->sample), memory_order_relaxed);
		atomic_store_explicit(&taps->collecting, true, memory_order_relaxed);
		atomic_fetch_add_explicit(taps->looking, 1, memory_order_relaxed);
	}
	lock_release(&taps->lock);
	return rc;
}

void collect_end(struct taps *taps)
{
	lock_take(&taps->lock);
	if (atomic_exchange_explicit(&taps->collecting, false, memory_order_relaxed))
		atomic_fetch_sub_explicit(taps->looking, 1, memory_order_relaxed);
	atomic_store_explicit(&taps->below, 0, memory_order_relaxed);
	lock_release(&taps->lock);
}

int collect_read(struct taps *taps, struct weir_slow *out, int n)
{
	int k = 0;

	lock_take(&taps->lock);
	for (; k < n && taps->taken < taps->put; k++)
		out[k] = taps->queue[++taps->taken % COLLECT_EVENTS];
	atomic_store_explicit(&taps->waiting, taps->put - taps->taken, memory_order_relaxed);
	lock_release(&taps->lock);
	return k;
}

void collect_sent(struct taps *taps, uint64_t sent, uint64_t failed)
{
	atomic_fetch_add_explicit(&taps->sent, sent, memory_order_relaxed);
	atomic_fetch_add_explicit(&taps->failed, failed, memory_order_relaxed);
}

void collect_state(struct taps *taps, struct weir_collect_state *state)
{
	*state = (struct weir_collect_state){
	    .on = atomic_load_explicit(&taps->collecting, memory_order_relaxed),
	    .waiting = atomic_load_explicit(&taps->waiting, memory_order_relaxed),
	    .collected = atomic_load_explicit(&taps->collected, memory_order_relaxed),
	    .dropped = atomic_load_explicit(&taps->dropped, memory_order_relaxed),
	    .sent = atomic_load_explicit(&taps->sent, memory_order_relaxed),
	    .failed = atomic_load_explicit(&taps->failed, memory_order_relaxed)};
}
