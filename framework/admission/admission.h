/* SPDX-License-Identifier: MIT */
/*
 * The contract of admission policies: may a run of events enter a stage?
 *
 * A policy is a pure function of (state, parameters, view, now): no locks, threads, clocks or
 * stages inside, so the same code runs in the server and in virtual time. The sink calls it once
 * per run and class with the queue's lock held, highest class first; the state is therefore never
 * touched by two threads at once, and a decision and the push it allows are one step.
 *
 *   admit(n)  -> m admitted (m <= n)        the policy has charged its state for m
 *   queue had room for only r < m           give_back(m - r)
 *
 * Off / shadow / enforce is the sink's business: in shadow mode `admit` runs and is charged as if
 * enforced, and only the refusals are counted.
 */
#ifndef WEIR_ADMISSION_ADMISSION_H
#define WEIR_ADMISSION_ADMISSION_H

#include <stdint.h>

#include <weir/error.h>
#include <weir/spec.h>

/** What a policy may look at. */
struct admission_view {
	int64_t now_ns;  /* CLOCK_MONOTONIC, or virtual */
	uint32_t length; /* events queued, those admitted earlier in this run included */
	uint32_t limit;  /* the queue's bound */
	int n_classes;   /* of the server; class 0 is the highest */
};

/** Largest state of a policy in bytes; it lives inside the sink. */
#define ADMISSION_STATE_MAX 64

struct admission_policy {
	const char *name;
	const char *help; /* one sentence for `describe` and the schema */
	size_t state_size;
	void (*init)(void *state, const struct weir_admission_spec *p, int64_t now_ns);
	/** How many of `n` events of `class_id` may enter; when less, `*reason` is a SHED code. */
	int (*admit)(void *state, const struct weir_admission_spec *p,
	    const struct admission_view *v, int class_id, int n, int *reason);
	/** `n` admitted events did not enter after all. NULL: the policy charges nothing. */
	void (*give_back)(void *state, int n);
};

extern const struct admission_policy admission_none;
extern const struct admission_policy admission_threshold;
extern const struct admission_policy admission_rate;

/** The policy called `name`, NULL when there is none. */
const struct admission_policy *admission_find(const char *name);

/** Policy number `i`, NULL past the end. */
const struct admission_policy *admission_at(int i);

#endif
