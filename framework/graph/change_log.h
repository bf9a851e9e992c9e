/* SPDX-License-Identifier: MIT */
/*
 * The log of operator changes: who changed what, the old and the new value, and whether
 * the change was undone.
 *
 * A ring buffer holds the newest CHANGE_LOG_SIZE changes under a leaf lock. The data needed to undo
 * a change is attached as an opaque `before`, which the caller allocates and the ring owns. Any
 * thread may read. Callers of change_log_add, change_log_last and change_log_undone also hold the
 * graph's lock, which orders the changes.
 */
#ifndef WEIR_GRAPH_CHANGE_LOG_H
#define WEIR_GRAPH_CHANGE_LOG_H

#include <weir/graph.h>

#include "base/lock.h"

/** Number of changes retained; they take about 130 KiB. 256 is a guess at the largest number of
 *  changes that an operator makes in one night. */
#define CHANGE_LOG_SIZE 256

struct change_log {
	struct lock lock;
	uint64_t total; /* number of changes ever added, which is also the newest id */
	void (*forget)(void *before);
	struct weir_change ring[CHANGE_LOG_SIZE];
	void *before[CHANGE_LOG_SIZE]; /* NULL if the change cannot be undone */
};

/** Initialize the log. `forget` frees a `before`. */
void change_log_init(struct change_log *a, void (*forget)(void *before));
void change_log_fini(struct change_log *a);

/** Store a copy of `act` with its id and times filled in. The ring takes ownership of `before`,
 *  which may be NULL. Returns the id. */
uint64_t change_log_add(struct change_log *a, struct weir_change act, void *before);

/** Store `act` of an earlier process as it is, with the next id and at_ns 0. It cannot be undone. */
void change_log_remember(struct change_log *a, struct weir_change act);

/** Find the newest change that can be undone and has not been undone. Returns false if there is
 *  none. The ring keeps ownership of *before. */
bool change_log_last(struct change_log *a, struct weir_change *act, void **before);

/** Mark change `id` as undone. Does nothing if the change is no longer in the
 *  ring. */
void change_log_undone(struct change_log *a, uint64_t id);

/** Mark change `id` as one that cannot be undone, by freeing its `before`. Does nothing if the
 *  change is no longer in the ring. */
void change_log_set_aside(struct change_log *a, uint64_t id);

/** Return the `before` of change `id`, or NULL if the change cannot be undone or is no longer in
 *  the ring. The result is valid until the next change_log_add. */
void *change_log_before(struct change_log *log, uint64_t id);

/** Copy the newest `n` changes to `out`, newest first. Returns how many were copied. */
int change_log_read(struct change_log *a, struct weir_change *out, int n);

/** Copy all changes of `from` into the empty `to`, so that ids continue. `copy` converts a `before`
 *  of `from` into one for `to`, or returns NULL if it cannot. */
void change_log_copy(struct change_log *to, struct change_log *from,
    void *(*copy)(void *arg, const void *before), void *arg);

uint64_t change_log_total(struct change_log *a);

#endif
