/* SPDX-License-Identifier: MIT */
/*
 * Threads the way weir makes them (rule 32): signals blocked, named, counted, joined.
 *
 * | call        | may overlap                                  |
 * |-------------|----------------------------------------------|
 * | task_start  | any thread                                   |
 * | task_join   | once per started task, not the task itself   |
 */
#ifndef WEIR_BASE_TASK_H
#define WEIR_BASE_TASK_H

#include <pthread.h>
#include <stdbool.h>

#include <weir/annotate.h>

struct task {
	pthread_t thread;
	void *(*run)(void *arg);
	void *arg;
	char name[16]; /* what the kernel shows, cut to 15 bytes */
};

/** Start `run(arg)` in a new thread called `name`. 0 or WEIR_ESYS (the kernel refused). `task` must
 *  stay until task_join. */
int task_start(struct task *task, const char *name, void *(*run)(void *arg), void *arg);

/** Wait for the thread to end. */
void task_join(struct task *task);

/** Threads started and not yet joined. */
int task_count(void);

/** Cores this process may run on, at least 1; read once. */
int task_cores(void);

/** Handler threads this process should have at most, all pools together: 32 a core, 512 at most
 *  (overload.md 3.5). */
int task_budget(void);

/** Wait about 200 ns without leaving the core: what lies between two looks of a spinning thread.
 * The 16 pauses that limits.md found to spare the sender are 200 ns there, but 1 us on cores with a
 * long PAUSE, so the number is measured at first use. */
void task_relax(void);

#endif
