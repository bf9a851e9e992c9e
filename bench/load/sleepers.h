/* SPDX-License-Identifier: MIT */
/*
 * How many threads does this machine bear? The benchmark of figure 3 in Welsh's "A design framework for
 * highly concurrent systems" (2000): each thread takes a task, blocks for L = 50 ms as a task of a server does, and
 * takes the next. Throughput grows with the threads until T', where switching them costs what they bring.
 */
#ifndef WEIR_LOAD_SLEEPERS_H
#define WEIR_LOAD_SLEEPERS_H

#include <stdint.h>

#include <weir/error.h>

/** The paper's L. */
#define SLEEPERS_BLOCK_NS 50000000

struct sleepers {
	int threads;
	double tasks_per_s;
	double ideal_per_s; /* threads / L */
	double cpu_share;   /* of one core; above it per core: 2.0 is two cores busy */
};

/**
 * Run `threads` (1 to 100,000) of them for `for_ns` after all have started. Blocks. 0, WEIR_ENOMEM or WEIR_ESYS (so
 * many threads can not be made), with the sentence in err->text.
 */
int sleepers_run(int threads, int64_t for_ns, struct sleepers *out, struct weir_err *err);

/** T': the smallest of out[0..n), ascending in threads, whose throughput no larger one beats by 5 %. n >= 1. */
int sleepers_limit(const struct sleepers *out, int n);

#endif
