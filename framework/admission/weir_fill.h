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
	double wanted[WEIR_CLASSES_MAX];     /* of it: what no other stage refuses */
	double refused[WEIR_CLASSES_MAX];    /* of it, by this policy */
	double guaranteed[WEIR_CLASSES_MAX]; /* of it, whatever higher classes offer */
	double before[WEIR_CLASSES_MAX]; /* room that must be there before more than that fits */
	double more[WEIR_CLASSES_MAX];   /* what classes of this priority want beyond guarantees */
	double total;                    /* offered by all */
	int rank[WEIR_CLASSES_MAX];      /* priorities, numbered without gaps */
	int n_classes, n_ranks;          /* 0: nothing learnt yet */
};

/** Rank of the class among `*n_ranks` priorities, 0 the highest; with nothing learnt, its number among
 *  `n_classes`. */
int weir_fill_rank(const struct weir_fill *f, int class_id, int n_classes, int *n_ranks);

/** Take in what was offered since the last tick, and share out anew. */
void weir_fill_learn(struct weir_fill *f, const struct admission_sample *sample);

/** The part of class `class_id`, in 0..1, that fits when there is `room` for all classes. */
double weir_fill_part(const struct weir_fill *f, int class_id, double room);

#endif
