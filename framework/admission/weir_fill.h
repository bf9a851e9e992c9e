/* SPDX-License-Identifier: MIT */
/*
 * The sharing out of a stage among classes, for the policy `weir`: what each class offers, learned
 * at ticks, and which part of it fits into some room. Room and offers are counted in threads: 2.5
 * is what 2.5 threads can do. Plain data of one policy state; not for concurrent use.
 */
#ifndef WEIR_ADMISSION_WEIR_FILL_H
#define WEIR_ADMISSION_WEIR_FILL_H

#include "admission/admission.h"

struct weir_fill {
	double offered[WEIR_CLASSES_MAX];    /* in threads */
	double refused[WEIR_CLASSES_MAX];    /* of it, by this policy */
	double guaranteed[WEIR_CLASSES_MAX]; /* of it, whatever higher classes offer */
	double before[WEIR_CLASSES_MAX]; /* room that must be there before more than that fits */
	double total;                    /* offered by all */
	int n_classes;
};

/** Take in what was offered since the last tick, and share out anew. */
void weir_fill_learn(struct weir_fill *f, const struct admission_sample *sample);

/** The part of class `class_id`, in 0..1, that fits when there is `room` for all classes. */
double weir_fill_part(const struct weir_fill *f, int class_id, double room);

#endif
