/* SPDX-License-Identifier: MIT */
/*
 * The contract of resize policies: how many handler threads should a pool have?
 *
 * A policy is a pure function of (state, view, now): it reads no clock and touches no thread, so it
 * runs unchanged in virtual time. The control thread calls it every CONTROL_TICK_NS and carries out
 * what it wants, clamped to the bounds; the journal keeps inputs, rule and the limit it met.
 */
#ifndef WEIR_CONTROL_RESIZE_H
#define WEIR_CONTROL_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a policy may look at: one pool at one moment. */
struct resize_view {
	int live;              /* threads there are */
	int target, min, max;  /* threads wanted so far; the bounds */
	int busy;              /* threads in a handler at this moment */
	uint32_t queue_length; /* events waiting, summed over the pool's stages */
	uint32_t queue_limit;
	uint64_t offered_total; /* events, since start */
	uint64_t completed_total;
	uint64_t
	    busy_ns_total; /* time in handlers, summed over threads, batches under way included */
	double cpu_ratio;  /* CPU the whole process used in the last tick, 0..1 of its cores */
};

struct resize_decision {
	int target;    /* what the policy wants, not clamped */
	char rule[96]; /* why, for people */
};

/** Largest state of a policy in bytes. */
#define RESIZE_STATE_MAX 128

struct resize_policy {
	const char *name;
	const char *help;
	/** `state` is zero at first. Returns true and fills `d` when another target is wanted. */
	bool (*decide)(
	    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d);
};

extern const struct resize_policy resize_static;
extern const struct resize_policy resize_seda;

/** The policy called `name`, NULL when there is none; number `i`, NULL past the end. */
const struct resize_policy *resize_find(const char *name);
const struct resize_policy *resize_at(int i);

#endif
