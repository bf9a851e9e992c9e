/* SPDX-License-Identifier: MIT */
/* The stages of torture_hold.c, t.keeper and t.looper. For each event they draw at random one of
 * the things that a stage which holds events may do with it. They check at once what they can, and
 * count faults. */
#ifndef WEIR_TESTS_TORTURE_HOLD_STAGE_H
#define WEIR_TESTS_TORTURE_HOLD_STAGE_H

#include <stdatomic.h>
#include <stdint.h>

#include <weir/stage.h>

/* Largest number of events that a stage holds. */
#define WIDTH 3000

extern atomic_int hold_faults;
extern atomic_uint_fast64_t hold_deaths, hold_claims, hold_void_claims, hold_expiries;

void hold_fault(const char *what, int64_t is);

/* Draw a number below `n`. */
unsigned hold_draw(unsigned *seed, unsigned n);

void hold_register(void);

/* Write to `ev`, which the caller owns: ThreadSanitizer notices if there is another owner. */
void hold_own(struct weir_event *ev);

/* Take an event that `st` holds without a ticket, or claim one with its oldest ticket. May return
 * NULL. Any thread. */
struct weir_event *hold_take(struct weir_stage *st);
struct weir_event *hold_claim(struct weir_stage *st);

/* End `*ev`, which is held, or hold it again. */
void hold_end_one(struct weir_stage *st, struct weir_event **ev, unsigned *seed);

#endif
