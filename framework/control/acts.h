/* SPDX-License-Identifier: MIT */
/*
 * The acts of operators: who turned what, from what to what, and whether it was taken back.
 *
 * A ring of the newest ACTS_SIZE under a leaf lock. What it takes to undo an act hangs on it as a
 * `before` of the caller's making, which the ring owns. Any thread may read; those who act (add,
 * last, undone) hold a lock of their own, so that acts have an order.
 */
#ifndef WEIR_CONTROL_ACTS_H
#define WEIR_CONTROL_ACTS_H

#include <weir/graph.h>

#include "base/lock.h"

/** Acts kept: about 130 KiB. Guess: a long night of one operator. */
#define ACTS_SIZE 256

struct acts {
	struct lock lock;
	uint64_t total; /* ever added; the newest has this id */
	void (*forget)(void *before);
	struct weir_act ring[ACTS_SIZE];
	void *before[ACTS_SIZE]; /* NULL: can not be undone */
};

/** `forget` frees a `before`. */
void acts_init(struct acts *a, void (*forget)(void *before));
void acts_fini(struct acts *a);

/** Keep a copy of `act`; id and times are filled in. `before` (may be NULL) is taken over. Returns its
 *  id. */
uint64_t acts_add(struct acts *a, struct weir_act act, void *before);

/** The newest act that can be undone and was not: false when there is none. *before stays the ring's. */
bool acts_last(struct acts *a, struct weir_act *act, void **before);

/** Mark act `id` as undone; no-op when it has left the ring. */
void acts_undone(struct acts *a, uint64_t id);

/** What was before act `id`; NULL when it can not be undone or is no longer in the ring. Good until the next acts_add. */
void *acts_before(struct acts *acts, uint64_t id);

/** Copy the newest `n`, newest first; returns how many. */
int acts_read(struct acts *a, struct weir_act *out, int n);

/** Let `to`, which is empty, go on where `from` is. `copy` makes a `before` of the other ring into one of this, or NULL. */
void acts_copy(
    struct acts *to, struct acts *from, void *(*copy)(void *arg, const void *before), void *arg);

uint64_t acts_total(struct acts *a);

#endif
