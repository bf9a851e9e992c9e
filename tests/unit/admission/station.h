/* SPDX-License-Identifier: MIT */
/*
 * A stage in virtual time: Poisson arrivals of several classes, one bounded queue, n servers,
 * admission by the policy under test, ticks every ADMISSION_TICK_NS. Seeds are fixed, so runs
 * repeat to the bit and their bounds can be asserted.
 *
 * The station behaves as the sink promises: it stores in each event the cost that it added to the
 * work, learns costs per class (weight 0.02), and sheds events at the head of the queue that are
 * past their deadline, which is the objective. It has none of the noise of a real machine, and
 * refusing costs nothing.
 */
#ifndef WEIR_TESTS_ADMISSION_STATION_H
#define WEIR_TESTS_ADMISSION_STATION_H

#include <string.h>

#include "admission/admission.h"
#include "classes.h"

#define STATION_LIMIT   4096 /* of the queue, a power of two */
#define STATION_THREADS 64
#define MS              1000000LL

enum station_dist {
	STATION_DEFAULT,
	STATION_CONST,
	STATION_EXP,
	STATION_BIMODAL,
	STATION_LOGNORMAL
};

/** A run to simulate. Optional members may be zero, which selects their default. */
struct station {
	const struct admission_policy *policy;
	struct weir_admission_spec spec;
	double load;                  /* offered work relative to the capacity of the threads */
	double mix[WEIR_CLASSES_MAX]; /* share per class; sum 1 */
	int n_classes;
	int threads;
	enum station_dist dist;
	int64_t mean_ns, slo_ns;
	int64_t from_ns, to_ns; /* arrivals in this period count; the run ends at to_ns */
	uint64_t seed;
	double spike_load; /* optional: another load from spike_from_ns to spike_to_ns */
	int64_t spike_from_ns, spike_to_ns;
	int64_t pause_from_ns, pause_to_ns; /* optional: no ticks in this period */
	bool by_class; /* optional: the queue is served by class, not in order */
	bool no_users; /* optional: view.user is NULL */
};

/** The result, for the arrivals that count. */
struct station_result {
	struct station_class {
		uint64_t offered, refused, full, shed, good, late;
	} class[WEIR_CLASSES_MAX];
	double goodput; /* work done within the objective, as a fraction of the capacity */
	double refused; /* fraction of offered events refused or shed by the policy or the queue */
	int64_t p50_ns, p99_ns; /* response times of completed events */
	int64_t wait_max_ns;    /* longest predicted wait seen */
};

struct station_result station_run(const struct station *st);

/** Fill in the station of docs/overload-derivation.md: 4 threads, exponential 5 ms, objective 100
 * ms, classes of 10, 20, 30 and 40 %; 20 s that count. Members that are already set are kept. */
void station_default(struct station *st);

/** Fraction of class `c` that was done within the objective. */
double station_success(const struct station_result *r, int c);

#endif
