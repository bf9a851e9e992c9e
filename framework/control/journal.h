/* SPDX-License-Identifier: MIT */
/*
 * The journal, which records every decision of a controller or a person, with its inputs and the
 * bound that limited it, if any.
 *
 * A ring buffer holds the newest JOURNAL_SIZE decisions under a leaf lock. The control thread and
 * operators who change knobs write to it, at most a few times a second. Any thread may call any
 * function.
 */
#ifndef WEIR_CONTROL_JOURNAL_H
#define WEIR_CONTROL_JOURNAL_H

#include <weir/view.h>

#include "base/lock.h"

/** Number of decisions retained; they take 240 KiB. 512 is a guess: the decisions of hours on a
 *  quiet server, or of minutes on a busy one. */
#define JOURNAL_SIZE 512

struct journal {
	struct lock lock;
	uint64_t total; /* number of decisions ever written, which is also the newest id */
	struct weir_decision ring[JOURNAL_SIZE];
};

void journal_init(struct journal *j);
void journal_fini(struct journal *j);

/** Store a copy of `d` with its times filled in. Returns its id. */
uint64_t journal_add(struct journal *j, struct weir_decision d);

enum journal_outcome { JOURNAL_5S, JOURNAL_30S };

/** Set the outcome of decision `id`. Does nothing if the decision is no longer in the ring. */
void journal_outcome(struct journal *j, uint64_t id, enum journal_outcome when, const char *word);

/** Copy the newest `n` decisions to `out`, newest first. Returns how many were copied. */
int journal_read(struct journal *j, struct weir_decision *out, int n);

/** Store `d` of an earlier process as it is, with the next id and at_ns 0. */
void journal_remember(struct journal *j, struct weir_decision d);

/** Copy the decisions and the count of `from` to the empty `to`, so that ids continue. */
void journal_copy(struct journal *to, struct journal *from);

uint64_t journal_total(struct journal *j);

#endif
