/* SPDX-License-Identifier: MIT */
/*
 * The journal: every decision of a controller or a person, with its inputs and the limit it met.
 *
 * A ring of the newest JOURNAL_SIZE decisions under a leaf lock; writers are the control thread and
 * whoever turns knobs, a few a second at most. Any thread may call anything here.
 */
#ifndef WEIR_CONTROL_JOURNAL_H
#define WEIR_CONTROL_JOURNAL_H

#include <weir/graph.h>

#include "base/lock.h"

/** Decisions kept: about 250 KiB. Guess: hours of a calm server, minutes of a stormy one. */
#define JOURNAL_SIZE 512

struct journal {
	struct lock lock;
	uint64_t total; /* decisions ever written; the newest has this id */
	struct weir_decision ring[JOURNAL_SIZE];
};

void journal_init(struct journal *j);
void journal_fini(struct journal *j);

/** Keep a copy of `d`; times are filled in. Returns its id. */
uint64_t journal_add(struct journal *j, struct weir_decision d);

enum journal_outcome { JOURNAL_5S, JOURNAL_30S };

/** What became of decision `id`; no-op when it has left the ring. */
void journal_outcome(struct journal *j, uint64_t id, enum journal_outcome when, const char *word);

/** Copy the newest `n`, newest first; returns how many. */
int journal_read(struct journal *j, struct weir_decision *out, int n);

/** Let `to`, which is empty, go on where `from` is: its entries and its numbers. */
void journal_copy(struct journal *to, struct journal *from);

uint64_t journal_total(struct journal *j);

#endif
