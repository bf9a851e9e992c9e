/* SPDX-License-Identifier: MIT */
/*
 * The one control thread: reads views, asks policies, carries out decisions, mends pools, journals.
 *
 * It knows pools only through callbacks (struct control_ops), so everything it decides can be
 * tested without threads: control_step() is one tick at a given time.
 *
 * | call                       | who                                                   |
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

/** Time between ticks. Guess: ten times finer than the quickest policy here needs, and 10 wake-ups
 * a second cost an idle server under 0.1 % of a core. */
#define CONTROL_TICK_NS 100000000LL

/** What was mended in a pool in one tick. */
struct control_repairs {
	int joined, spawned, failed;
	uint64_t deaths; /* since start */
};

struct control_ops {
	/** Fill the view of pool `i`; cpu_ratio is control's to fill. */
	void (*view)(void *ctx, int i, struct resize_view *v);
	/** Want `target` threads in pool `i`; returns the target in force. */
	int (*resize)(void *ctx, int i, int target);
	struct control_repairs (*repair)(void *ctx, int i, int64_t now_ns);
	/** Let admission policies look at what happened; returns when they want to look again,
	 *  INT64_MAX for never. NULL: there are none. */
	int64_t (*tick)(void *ctx, int64_t now_ns);
	/** After the pools, each tick: whatever else wants to be looked after. NULL: nothing. */
	void (*watch)(void *ctx, int64_t now_ns, struct journal *journal);
};

struct control_pool {
	const char *name;
	const struct resize_policy *policy;
};

struct control;

/** Control over pool[0..n); `pool` is copied, its names must stay. 0 or WEIR_ENOMEM. */
int control_new(const struct control_ops *ops, void *ctx, const struct control_pool *pool, int n,
    struct control **control);
/** Start the thread "control". 0 or WEIR_ESYS. */
int control_start(struct control *c);
/** Stop and join it; legal when it never started. */
void control_stop(struct control *c);
void control_free(struct control *c);

/** One tick at time `now_ns`, with `cpu_ratio` used since the last. */
void control_step(struct control *c, int64_t now_ns, double cpu_ratio);

struct journal *control_journal(struct control *c);

#endif
