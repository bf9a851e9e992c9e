/* SPDX-License-Identifier: MIT */
/*
 * The ways of events, and the slowest of them.
 *
 * Each event of a traced type carries its trail (weir/event.h). At its end the graph compares how long it took
 * with the least of the slowest it keeps of the class: a load and a compare unless it is one of them. The
 * slowest are kept by windows of SLOWEST_WINDOW_NS, the present and the last one, so that a bad minute of
 * yesterday does not hide this one's.
 */
#ifndef WEIR_FLOW_TRAIL_H
#define WEIR_FLOW_TRAIL_H

#include <weir/graph.h>

#include "base/clock.h"
#include "base/lock.h"

/** A guess: what a person looks at a page for. */
#define SLOWEST_WINDOW_NS (60 * NS_PER_S)

struct slowest;

/** What begins a struct slowest: how many look at events that end (trail_tap.h). Here, so that who ends one pays for a
 *  load and no call. */
struct slowest_head {
	atomic_int looking;
};

/** Of `n_classes` classes. NULL: out of memory. */
struct slowest *slowest_new(int n_classes);
void slowest_free(struct slowest *s);

/** A new window begins when it is time. The control thread, each tick. */
void slowest_tick(struct slowest *s, int64_t now_ns);

/** An event with a trail ended at `now_ns`; ev->stage is where. Is it one of the slowest? Any thread; takes a lock only
 *  then. */
bool slowest_offer(struct slowest *s, struct weir_event *ev, int status, int64_t now_ns);

/** Does anybody look at events that end? Who has just begun to look may miss one. */
static inline bool slowest_watched(const struct slowest *s)
{
	return atomic_load_explicit(
		   &((const struct slowest_head *)s)->looking, memory_order_relaxed) > 0;
}

/** The same while somebody looks, for him too, and for an event that came through no stage. */
void trail_end(struct slowest *s, struct weir_event *ev, int status, int64_t now_ns);

/** The slowest `n` of `class_id` (-1: all), slowest first; without names. Returns how many, or WEIR_ENOMEM. */
int slowest_read(struct slowest *s, int class_id, struct weir_slow *out, int n);

static inline struct weir_trail *trail_of(struct weir_event *ev)
{
	return (struct weir_trail *)((char *)ev + ev->type->trail);
}

static inline uint32_t trail_us(int64_t ns)
{
	return ns <= 0 ? 0 : ns / NS_PER_US < UINT32_MAX ? (uint32_t)(ns / NS_PER_US) : UINT32_MAX;
}

/** Events ev[0..n) begin at `stage` at `now_ns`, having waited or (inline) not. */
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

#endif
