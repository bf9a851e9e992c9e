/* SPDX-License-Identifier: MIT */
/*
 * Functions shared by all benchmarks: they print a header that describes the build and the machine,
 * probe the distance between cores, compute medians, and pin threads.
 *
 * The machine of the published figures is a virtual one. Its hypervisor places the two cores
 * sometimes near each other and sometimes far apart. The round trip of a cache line takes about 86
 * ns between near cores and 416 ns between far ones. The distance is therefore probed before and
 * after every round of a row. At most BENCH_TRIES rounds of a row are repeated because of far
 * cores. A row is marked if the cores were near in none of its rounds.
 */
#ifndef WEIR_BENCH_BENCH_H
#define WEIR_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

/** Cache-line round trip in ns from which the cores are far apart and the round does not count. */
#define BENCH_FAR_NS 200
#define BENCH_TRIES  8
#define BENCH_ROUNDS 9

/** Print commit, flags, CPU and kernel. Exits with 2 if the program was built without
 * optimisation. */
void bench_header(const char *name);

/** Measure the round trip of a cache line between cores `a` and `b` for 10 ms. Returns the time in
 * ns, or 0 if there is only one core. */
double bench_distance_ns(int a, int b);

/** Pin the calling thread to core `cpu`. */
void bench_pin(int cpu);

int64_t bench_now_ns(void);

/** CPU time of the process. */
int64_t bench_cpu_ns(void);

struct bench_stat {
	double median, low, high; /* of the rounds with near cores, or of all if `far` */
	int n;
	bool far; /* no round had near cores */
};

/** Call `run(arg)`, which returns ns per item, BENCH_ROUNDS times, with a probe before and after
 * each call. */
struct bench_stat bench_measure(double (*run)(void *arg), void *arg);

/** Return the median, the lowest and the highest of v[0..n). Sorts v. */
struct bench_stat bench_summary(double *v, int n);

#endif
