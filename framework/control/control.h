/* SPDX-License-Identifier: MIT */
/*
 * The control thread of a graph: it reads views, calls policies, carries out and journals their
 * decisions, and repairs pools.
 *
 * It accesses pools only through callbacks (struct control_ops), so tests can run it without
 * threads: control_step() runs one tick at a given time.
 *
 * | call                       | threads                                               |
 * |----------------------------|-------------------------------------------------------|
 * | control_new, free          | main                                                  |
 * | control_start, stop        | main                                                  |
 * | control_step               | the control thread, or a test without one             |
 * | control_journal            | any thread                                            |
 */
#ifndef WEIR_CONTROL_CONTROL_H
#define WEIR_CONTROL_CONTROL_H

#include "control/journal.h"
#include "control/resize.h"

/** Time between ticks. 100 ms is a guess: short enough for policies, whose shortest window is one
 *  tick, while 10 wake-ups a second cost an idle server under 0.1 % of a core. */
#define CONTROL_TICK_NS 100000000LL

/** The repairs of one pool in one tick. */
struct control_repairs {
	int joined, spawned, failed;
	char why[120];       /* reason for one of the failures, or "" if there were none */
	uint64_t deaths;     /* threads that exited inside a handler since startup */
	const char *died_in; /* stage in whose handler the last of them exited; NULL if unknown */
};

struct control_ops {
	/** Fill the view of pool `i`, except cpu_ratio, which control sets. */
	void (*view)(void *ctx, int i, struct resize_view *v);
	/** Set the target of pool `i`. Returns the target in effect. */
	int (*resize)(void *ctx, int i, int target);
	struct control_repairs (*repair)(void *ctx, int i, int64_t now_ns);
	/** Tick the admission policies. Returns the time of the next tick, or INT64_MAX if none is
	 *  due. The pointer is NULL if there are no admission policies. */
	int64_t (*tick)(void *ctx, int64_t now_ns);
	/** Do other periodic work. Called on every tick, after the pools were handled. May be
	 *  NULL. */
	void (*watch)(void *ctx, int64_t now_ns, struct journal *journal);
};

struct control_pool {
	const char *name;
	const struct resize_policy *policy;
};

struct control;

/** Create the control of pool[0..n). `pool` is copied; the names in it must stay valid. Returns 0
 *  or WEIR_ENOMEM. */
int control_new(const struct control_ops *ops, void *ctx, const struct control_pool *pool, int n,
    struct control **control);
/** Start the thread, called "control". Returns 0 or WEIR_ESYS. */
int control_start(struct control *c);
/** Stop the thread and join it. Does nothing if it was never started. */
void control_stop(struct control *c);
void control_free(struct control *c);

/** Run one tick at time `now_ns`. `cpu_ratio`, 0..1, is the CPU use of the process since the last
 *  tick. */
void control_step(struct control *c, int64_t now_ns, double cpu_ratio);

struct journal *control_journal(struct control *c);

#endif
