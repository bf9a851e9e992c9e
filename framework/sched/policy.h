/* SPDX-License-Identifier: MIT */
/*
 * The contract of scheduling policies: which stage does a handler thread visit next?
 *
 * A policy is a pure function of (state, view, now). Its state belongs to one handler thread, so
 * there is nothing to lock. One policy per file; the row in sched/policy.c makes it known.
 */
#ifndef WEIR_SCHED_POLICY_H
#define WEIR_SCHED_POLICY_H

#include <stddef.h>
#include <stdint.h>

/** One stage of the group as a policy sees it. */
struct sched_view {
	uint32_t length; /* events that could be taken now; 0: do not pick */
	int depth;       /* longest way from a source */
};

/** Largest state of a policy in bytes. */
#define SCHED_STATE_MAX 64

struct sched_policy {
	const char *name;
	const char *help;
	/** Index of the stage to visit of view[0..n), or -1 when all are empty. `state` is zero at
	 *  first. */
	int (*pick)(void *state, const struct sched_view *view, int n, int64_t now_ns);
};

/** The policy called `name`, NULL when there is none; number `i`, NULL past the end. */
const struct sched_policy *sched_policy_find(const char *name);
const struct sched_policy *sched_policy_at(int i);

extern const struct sched_policy sched_shared;

#endif
