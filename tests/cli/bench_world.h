/* SPDX-License-Identifier: MIT */
/*
 * A server and a machine that are formulas, for tests of the search and the sweep of `weir bench`.
 * bench_run of this file takes no time. One thread.
 */
#ifndef WEIR_TESTS_BENCH_WORLD_H
#define WEIR_TESTS_BENCH_WORLD_H

#include "cli/load/bench_run.h"
#include "report/verdict.h"

/** The server and the machine. */
struct bench_world {
	double capacity_per_s;
	double kept;      /* share of the capacity that is served at ten times that and beyond */
	double noise;     /* relative standard deviation of what a phase serves in overload */
	double drift;     /* amplitude of a slow change of the capacity, as a share of it */
	double disturbed; /* share of phases that serve a tenth */
	double stall_s;   /* how long these take; 0.8 if 0 */
	int slow_each;    /* the capacity is multiplied by `slow` after so many phases; 0: never */
	double stalls;    /* share of the requests that are served too late at any load */
	double failing;   /* share of the requests that fail at any load */
	double lag_s;     /* 99th percentile of the generator's lag */
	int late_from, late; /* the generator is late in this many phases, from that one on */
	double sends_per_s;  /* at a higher rate, the generator is late; 0: never */
	bool overloads;      /* it is not late in the sweep, whose limit for the lag is higher */
	int slow_from; /* from that phase on, the capacity is multiplied by `slow`; 0: never */
	double slow;
	int fail_at;    /* the run of that number fails; 0: none */
	int calls;      /* runs so far */
	int stop_after; /* Ctrl-C during that phase; 0: never */
	int runs;       /* phases so far that offered load */
	uint64_t key;
};

extern struct bench_world world;
extern struct bench_request req; /* its options may be changed after bench_begin() */
extern struct bench *b;
extern struct weir_err err;

/** Begin a test with a quiet machine, and a server for 1000/s that keeps all of that. */
void bench_begin(void);

/** Free what bench_begin() made. */
void bench_end(void);

/** Search and sweep, as `weir bench --find-capacity --sweep` does. Returns the verdict. */
struct verdict bench_whole(void);
struct verdict bench_verdict(void);

/** Return the number of phases whose name begins with `word`. */
int bench_named(const char *word);

/** Return the highest multiple of the capacity that was run. */
double bench_highest(void);

#endif
