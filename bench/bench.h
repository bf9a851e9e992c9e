/* SPDX-License-Identifier: MIT */
/*
 * What every bench needs: a header that says what ran, the core-distance probe, medians, pinning.
 *
 * The hypervisor moves the two cores of this class of machine apart and together: a cache line
 * takes about 86 ns between near cores and 416 ns between far ones (limits.md). Every row is
 * therefore probed before and after, and a row that was far is measured again, at most BENCH_TRIES
 * times, and marked when it never was near.
 */
#ifndef WEIR_BENCH_BENCH_H
#define WEIR_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

/** Ping-pong above this many ns: the cores are far, the row does not count. */
#define BENCH_FAR_NS 200
#define BENCH_TRIES  8
#define BENCH_ROUNDS 9

/** Print commit, flags, CPU and kernel; exit 2 when the program was built without optimisation. */
void bench_header(const char *name);

/** Round trip of a cache line between cores `a` and `b` over 10 ms, in ns; 0 when there is one
 * core. */
double bench_distance_ns(int a, int b);

/** Pin the calling thread to core `cpu`. */
void bench_pin(int cpu);

int64_t bench_now_ns(void);

struct bench_stat {
	double median, low, high; /* of the rounds kept */
	int n;
	bool far; /* no round was near */
};

/** Measure `run(arg)` (ns per item) BENCH_ROUNDS times with probes around each. */
struct bench_stat bench_measure(double (*run)(void *arg), void *arg);

/** Median, lowest and highest of v[0..n); sorts v. */
struct bench_stat bench_summary(double *v, int n);

#endif
