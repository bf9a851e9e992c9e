/* SPDX-License-Identifier: MIT */
/*
 * The contract of batch policies: how many events should a handler call get at most?
 *
 * A policy is a pure function of (state, view, now), like the resize policies (resize.h). It sets the
 * cap of one stage; a thread takes at most that, and at most its share of what waits, so that no
 * thread hoards a burst. Nothing here waits for fuller batches: lingering is the operator's knob.
 *
 * Totals only grow, but for reading errors: policies take differences as signed numbers.
 */
#ifndef WEIR_CONTROL_BATCH_H
#define WEIR_CONTROL_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a policy may look at: one stage at one moment. */
struct batch_view {
	int cap;               /* in force */
	int max;               /* the operator's bound, at least 1 */
	uint32_t queue_length; /* events waiting */
	int64_t slo_ns;        /* objective of the stage */
	int64_t fixed_ns;      /* what handing over a batch costs outside the handler */
	uint64_t batches;      /* handler calls, since start */
	uint64_t items;        /* events in them */
	uint64_t busy_ns;      /* time in them; calls under way left out */
};

struct batch_decision {
	int cap;       /* 1..max */
	char rule[96]; /* why, for people */
};

/** Largest state of a policy in bytes. */
#define BATCH_STATE_MAX 128

struct batch_policy {
	const char *name;
	const char *help;
	/** `state` is zero at first. Returns true and fills `d` when another cap is wanted. */
	bool (*decide)(
	    void *state, const struct batch_view *v, int64_t now_ns, struct batch_decision *d);
};

extern const struct batch_policy batch_static;
extern const struct batch_policy batch_seda;
extern const struct batch_policy batch_weir;

/** The policy called `name`, NULL when there is none; number `i`, NULL past the end. */
const struct batch_policy *batch_find(const char *name);
const struct batch_policy *batch_at(int i);

#endif
