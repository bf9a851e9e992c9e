/* SPDX-License-Identifier: MIT */
/*
 * What a core does now, as views show it: the batch under way and the sleep in a handler.
 *
 * A core adds the time of a batch to its book (cores.h) when the batch has ended. So that the views
 * of a long batch show it before, the control thread notes since when its handler runs, and what the
 * book said before. While the book says the same, the batch has not ended. A view never counts a
 * batch twice; it may leave out one that has just begun or ended, so it shows at least what an
 * earlier view has shown.
 *
 * | call                            | threads            |
 * |---------------------------------|--------------------|
 * | now_clear, now_look, now_sleeps | the control thread |
 * | now_busy_ns, now_blocked_ns     | any                |
 */
#ifndef WEIR_SCHED_NOW_H
#define WEIR_SCHED_NOW_H

#include "event/local.h"
#include "sched/blocked.h"
#include "sched/next.h"

struct core_group;

/** Zero at first. */
struct now {
	/* when the handler of the batch was called, 0: not known; its stage in the group, and
	 * the sum of the core's busy_ns before it */
	_Atomic int64_t call_ns;
	atomic_int place;
	_Atomic uint64_t booked_ns;
	_Atomic uint64_t shown_ns[NEXT_STAGES_MAX]; /* the highest busy_ns that views have shown */
};

/** The sleep of a thread; zero at first. */
struct now_sleep {
	/* when it began, or as much later as the thread had slept before in the same call; 0: the
	 * thread is not blocked */
	_Atomic int64_t since_ns;
	_Atomic(const struct weir_stage *) stage; /* of the call; may be inline */
};

/** Nothing is known of the batch. */
void now_clear(struct now *now);
/** Note the batch of core `k`, whose thread is `t`. Under graph->threads_lock. */
void now_look(struct core_group *group, int k, const struct thread *t);
/** Note whether the thread is blocked, in a handler of `stage`. */
void now_sleeps(
    struct now_sleep *sleep, const struct weir_stage *stage, const struct blocked *blocked);

/** Busy time of core `k` at stage `i` of its group until `now_ns`. `ended_ns` is that of the batches
 *  that have ended, read before. */
uint64_t now_busy_ns(struct core_group *group, int k, int i, uint64_t ended_ns, int64_t now_ns);
/** How long the thread has slept in its present call, whose stage is *stage. 0 and NULL if it is
 *  not blocked. */
int64_t now_blocked_ns(
    const struct now_sleep *sleep, int64_t now_ns, const struct weir_stage **stage);

#endif
