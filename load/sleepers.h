/* SPDX-License-Identifier: MIT */
/*
 * Measures how many threads this machine supports, with the benchmark of figure 3 in Welsh's "A
 * design framework for highly concurrent systems" (2000). Each thread repeatedly takes a task and
 * blocks for L = 50 ms, as the task of a server would. Throughput grows with the number of threads
 * up to a number T'. Above T', switching between the additional threads costs at least as much
 * throughput as these threads add.
 */
#ifndef WEIR_LOAD_SLEEPERS_H
#define WEIR_LOAD_SLEEPERS_H

#include <stdint.h>

#include <weir/error.h>

/** Time for which a task blocks, L in the paper. */
#define SLEEPERS_BLOCK_NS 50000000

struct sleepers {
	int threads;
	double tasks_per_s;
	double ideal_per_s; /* threads / L */
	double cpu_share;   /* of one core: 2.0 means two busy cores */
};

/**
 * Run `threads` (1 to 100,000) threads for `for_ns`, counted from the time when all of them have
 * started. Blocks. Returns 0, WEIR_ENOMEM, or WEIR_ESYS if the threads cannot be created, with a
 * message in err->text.
 */
int sleepers_run(int threads, int64_t for_ns, struct sleepers *out, struct weir_err *err);

/** Return T', the number of threads beyond which more threads gain at most 5 %. The search begins
 * at out[0] and goes on to each larger number whose throughput is above 1.05 times that of the
 * number reached so far. `out` must be in ascending order of `threads`; n >= 1. */
int sleepers_limit(const struct sleepers *out, int n);

#endif
