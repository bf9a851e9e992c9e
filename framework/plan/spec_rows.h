/* SPDX-License-Identifier: MIT */
/* What the knob tables of stages (spec_knobs.c), groups (spec_group_knobs.c) and classes
 * (spec_class_knobs.c) share. */
#ifndef WEIR_PLAN_SPEC_ROWS_H
#define WEIR_PLAN_SPEC_ROWS_H

#include <stddef.h>

#define MEMBER(type, member) .offset = offsetof(struct type, member)

/* Maximum number of threads in a pool. 1024 is a guess: twice the largest thread budget of a
 * machine (512, task_budget). A number between the budget and this limit is reported by the check
 * of the budget, whose message also names the pool that needs the most threads. */
#define THREADS_MAX 1024

/* Maximum number of events in a queue. 16 million is a guess: 1 GiB of event headers, more than can
 * reasonably wait in any queue. */
#define QUEUE_MAX (1 << 24)

/* Longest time of `gate`, `starve` and `urgent`: a minute is a guess, longer than any objective of
 * stages that share a core. */
#define VISIT_MAX_NS 60e9

/* Shortest and longest objective of a stage or a class. Both are guesses; below 100 us the
 * resolution of the clock would dominate. */
#define SLO_MIN_NS 1e5
#define SLO_MAX_NS 3600e9

/* Objective of a class that sets none, and of stages without classes. */
#define SLO_DEFAULT_NS 500000000LL

#endif
