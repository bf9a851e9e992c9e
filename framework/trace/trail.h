/* SPDX-License-Identifier: MIT */
/*
 * Event trails and the list of the slowest events.
 *
 * Each event of a traced type carries its trail (weir/event.h). When the event ends, the graph
 * compares its duration with the shortest duration in the list of its class. That costs a load and
 * a compare, unless the event is one of the slowest. Only the current and the previous window of
 * SLOWEST_WINDOW_NS are retained, so that the list shows recent events.
 */
#ifndef WEIR_TRACE_TRAIL_H
#define WEIR_TRACE_TRAIL_H

#include <weir/graph.h>

#include "base/clock.h"
#include "base/lock.h"

/** Length of a window. 60 s is a guess: the time span that interests a person who watches the
 *  page. */
#define SLOWEST_WINDOW_NS (60 * NS_PER_S)

struct slowest;

/** First member of struct slowest: the number of observers of finished events (trail_tap.h). The
 *  struct is declared here so that checking the number at the end of each event costs a load
 *  instead of a call. */
struct slowest_head {
	atomic_int looking;
};

/** Allocate the lists of the slowest events for `n_classes` classes. Returns NULL if out of
 *  memory. */
struct slowest *slowest_new(int n_classes);
void slowest_free(struct slowest *s);

/** Start a new window if it is due, and close taps without a reader. The control thread calls this
 *  on every tick. */
void slowest_tick(struct slowest *s, int64_t now_ns);

/** If the event is one of the slowest, and no other event awaits it, record it. The event has a trail and ends at `now_ns` in
 *  stage ev->stage. Returns whether it was recorded. Any thread; takes a lock only to store a
 *  record. */
bool slowest_offer(struct slowest *s, struct weir_event *ev, int status, int64_t now_ns);

/** Whether anyone observes finished events. The load is relaxed, so an observer that has just
 *  started may miss an event. */
static inline bool slowest_watched(const struct slowest *s)
{
	return atomic_load_explicit(
		   &((const struct slowest_head *)s)->looking, memory_order_relaxed) > 0;
}

/** Offer an event that is ending to the list of the slowest, like slowest_offer, and also to
 *  observers. The event need not have passed through a stage. */
void trail_end(struct slowest *s, struct weir_event *ev, int status, int64_t now_ns);

/** Copy the slowest `n` events of `class_id` (-1 for all classes) to `out`, slowest first. Names
 *  are not filled in. Returns how many were copied, or WEIR_ENOMEM. */
int slowest_read(struct slowest *s, int class_id, struct weir_slow *out, int n);

static inline struct weir_trail *trail_of(struct weir_event *ev)
{
	return (struct weir_trail *)((char *)ev + ev->type->trail);
}

static inline uint32_t trail_us(int64_t ns)
{
	return ns <= 0 ? 0 : ns / NS_PER_US < UINT32_MAX ? (uint32_t)(ns / NS_PER_US) : UINT32_MAX;
}

/** Add a hop to the trails of ev[0..n), whose batch at `stage` starts at `now_ns`. `waited` is true
 *  if they waited in the stage's queue, and false if the stage is inline. */
static inline void trail_note(struct weir_event **ev, int n, int stage, int64_t now_ns, bool waited)
{
	for (int i = 0; i < n; i++) {
		if (!ev[i]->type->trail)
			continue;
		struct weir_trail *t = trail_of(ev[i]);
		if (t->n_hops < WEIR_TRAIL_HOPS)
			t->hop[t->n_hops] = (struct weir_hop){.stage = (uint16_t)stage,
			    .queued_us =
				trail_us((waited ? ev[i]->queued_ns : now_ns) - ev[i]->arrival_ns),
			    .started_us = trail_us(now_ns - ev[i]->arrival_ns)};
		t->n_hops += t->n_hops < UINT16_MAX;
	}
}

/** Note that `ev`, which has a trail, leaves the handler of its last hop at `now_ns`, to wait for its
 *  children or, if it is a child, because it ends. */
static inline void trail_leave(struct weir_event *ev, int64_t now_ns)
{
	struct weir_trail *t = trail_of(ev);

	if (t->n_hops > 0 && t->n_hops <= WEIR_TRAIL_HOPS)
		t->hop[t->n_hops - 1].left_us = trail_us(now_ns - ev->arrival_ns);
}

#endif
