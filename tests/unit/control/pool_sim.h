/* SPDX-License-Identifier: MIT */
/*
 * One pool on simulated cores, in virtual time, under the real control step and journal.
 *
 * An event takes `cpu_ns` on a core, then `block_ns` off it. Threads that want a core share the
 * available cores; the rest of their time is run-queue time. The resource they block on can have a
 * capacity of its own (`slots`): if more threads use it, they slow each other down, as with a
 * database that has that many connections. Arrivals are Poisson, from a seed. Steps of 1 ms.
 *
 * If its condition is false, sim_expect prints the run, one line per second, ready to plot.
 */
#ifndef WEIR_TESTS_CONTROL_POOL_SIM_H
#define WEIR_TESTS_CONTROL_POOL_SIM_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/control.h"
#include "cunit_main.h"

#define SIM_THREADS_MAX 1024
#define SIM_STEP_NS     NS_PER_MS
#define SIM_TRACE_MAX   1200

struct sim_thread {
	bool live, busy;
	double cpu_ns, block_ns; /* what is left of its event */
};

struct sim_trace {
	int second, threads;
	uint32_t queue;
	uint64_t done;
};

struct sim {
	/* set by the test, at any time */
	double arrivals_per_s, cpu_ns, block_ns;
	int slots;        /* threads that can block without slowing each other down; 0: all */
	bool jammed;      /* handlers make no progress */
	bool closed_loop; /* arrivals_per_s is the number of clients that wait for answers */
	bool runq_hidden;
	/* the pool */
	struct resize_view v;
	struct sim_thread thread[SIM_THREADS_MAX];
	int n_threads; /* slots in use */
	struct control *control;
	int64_t now_ns;
	uint64_t seed;
	double next_ns; /* next arrival */
	/* results */
	int least, most, reversals, last_move;
	int n_trace;
	struct sim_trace trace[SIM_TRACE_MAX];
};

struct sim *sim_new(const struct resize_policy *policy, int start, int max);
void sim_free(struct sim *s);

/* Let `seconds` pass. */
void sim_run(struct sim *s, double seconds);

/* Events completed per second over the next `seconds`. */
double sim_rate(struct sim *s, double seconds);
void sim_forget_moves(struct sim *s);

/* The newest decision; zero if there is none. */
struct weir_decision sim_decision(const struct sim *s);
bool sim_expect(const struct sim *s, bool truth, const char *what);

#define SIM_EXPECT(s, cond) sim_expect(s, cond, #cond)

#endif
