/* SPDX-License-Identifier: MIT */
/*
 * The interface of batch policies, which choose how many events a single handler call may receive.
 *
 * A policy is a pure function of (state, view, now), like the resize policies (resize.h). It sets
 * the cap of one stage. A batch has at most `cap` events, and at most the thread's share of the
 * queue, so that a burst is spread over the threads. Policies do not make threads wait for fuller
 * batches; lingering is configured by the operator.
 *
 * Totals may decrease slightly, since they are not read atomically, so policies treat differences
 * as signed numbers.
 */
#ifndef WEIR_CONTROL_BATCH_H
#define WEIR_CONTROL_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Input of a policy: the state of one stage at one moment. */
struct batch_view {
	int cap;               /* cap in effect */
	int max;               /* largest cap, set by the operator; at least 1 */
	uint32_t queue_length; /* events waiting */
	int64_t slo_ns;        /* objective of the stage */
	int64_t fixed_ns;      /* cost of handing over a batch, not counting the handler */
	uint64_t batches;      /* finished handler calls since startup */
	uint64_t items;        /* events in these calls */
	uint64_t busy_ns;      /* time in these calls */
};

struct batch_decision {
	int cap;       /* 1..max */
	char rule[96]; /* reason, as readable text */
};

/** Maximum size of a policy's state in bytes. */
#define BATCH_STATE_MAX 128

struct batch_policy {
	const char *name;
	const char *help;
	/** Returns true and fills in `d` to request another cap. `state` is initially zero. */
	bool (*decide)(
	    void *state, const struct batch_view *v, int64_t now_ns, struct batch_decision *d);
};

extern const struct batch_policy batch_static;
extern const struct batch_policy batch_seda;
extern const struct batch_policy batch_weir;

/** Return the policy called `name`, or policy number `i`. NULL if there is no such policy. */
const struct batch_policy *batch_find(const char *name);
const struct batch_policy *batch_at(int i);

#endif
