/* SPDX-License-Identifier: MIT */
/*
 * Divides a stage among classes, for the policy `weir`. At ticks it learns how much work each class
 * offers; at decisions it computes which fraction of this work fits into a given capacity. Capacity
 * and offers are counted in threads: 2.5 is the work of 2.5 threads. Not thread-safe; each policy
 * state has its own struct weir_fill.
 */
#ifndef WEIR_ADMISSION_WEIR_FILL_H
#define WEIR_ADMISSION_WEIR_FILL_H

#include "admission/admission.h"

struct weir_fill {
	double offered[WEIR_CLASSES_MAX];    /* in threads */
	double wanted[WEIR_CLASSES_MAX];     /* part of `offered` that no other stage refuses */
	double refused[WEIR_CLASSES_MAX];    /* part of `offered` refused by this policy */
	double guaranteed[WEIR_CLASSES_MAX]; /* part of `wanted` within the guarantee */
	double before[WEIR_CLASSES_MAX];     /* capacity used up before `more` is served */
	double more[WEIR_CLASSES_MAX];       /* wanted beyond guarantees, by this whole priority */
	double total;                        /* work wanted by all classes */
	double highest;                      /* work wanted by classes of the highest priority */
	int rank[WEIR_CLASSES_MAX];          /* priority of each class, numbered without gaps */
	int n_classes, n_ranks;              /* 0 before the first sample */
};

/** Return the rank of the class among the `*n_ranks` priorities; 0 is the highest. While nothing is
 *  known, the rank is `class_id` and `*n_ranks` is `n_classes`. */
int weir_fill_rank(const struct weir_fill *f, int class_id, int n_classes, int *n_ranks);

/** Learn from the events offered since the last tick, and divide the stage again. */
void weir_fill_learn(struct weir_fill *f, const struct admission_sample *sample);

/** Return the fraction of class `class_id`, 0..1, that fits if all classes together have the
 *  capacity `room`. */
double weir_fill_part(const struct weir_fill *f, int class_id, double room);

/** Append a description of the recent refusals, such as ", refuses 80 % of class 2, all of class
 *  3", to the `len` bytes in buf[size]. `names` is that of struct admission_policy. Returns the
 *  new length. */
int weir_fill_say(
    const struct weir_fill *f, const char *const *names, char *buf, size_t size, int len);

#endif
