/* SPDX-License-Identifier: MIT */
/*
 * The interface of scheduling policies of pools, which choose the stage that a handler thread
 * visits next. Core groups have another one (next.h).
 *
 * A policy is a pure function of (state, view, now). Its state belongs to one handler thread, so no
 * locking is needed. Each policy has its own file and is registered by a row in sched/policy.c.
 */
#ifndef WEIR_SCHED_POLICY_H
#define WEIR_SCHED_POLICY_H

#include <stddef.h>
#include <stdint.h>

/** What a policy sees of one stage of the group. */
struct sched_view {
	uint32_t length; /* events available now; if 0, the stage must not be picked */
	int depth;       /* longest path from a source */
};

/** Maximum size of a policy's state in bytes. */
#define SCHED_STATE_MAX 64

struct sched_policy {
	const char *name;
	const char *help;
	/** Returns the index in view[0..n) of the stage to visit, or -1 if all are empty. `state`
	 *  is initially zero. */
	int (*pick)(void *state, const struct sched_view *view, int n, int64_t now_ns);
};

/** Return the policy called `name`, or policy number `i`. NULL if there is no such policy. */
const struct sched_policy *sched_policy_find(const char *name);
const struct sched_policy *sched_policy_at(int i);

extern const struct sched_policy sched_shared;

#endif
