/* SPDX-License-Identifier: MIT */
/* What the stage types of the storm share: their events, counts and knobs. See README.md. */
#ifndef STORM_H
#define STORM_H

#include <stdatomic.h>
#include <stdint.h>

#include <weir/hold.h>
#include <weir/http.h>
#include <weir/io.h>
#include <weir/op.h>
#include <weir/payload.h>
#include <weir/weir.h>

/* Number of different keys of parts. */
#define STORM_KEYS 8

/* Counts of the whole process, which all versions of the plug-in share, in the file that the variable
 * STORM_COUNTS names. storm.py reads them. */
struct storm_counts {
	atomic_long made, ended, cancelled, deaths;
	/* handler calls that overlapped with another one of the same stage or key; parts with
	 * wrong contents */
	atomic_long overlaps, broken;
};
extern struct storm_counts *storm_counts;

/* An event of the storm. */
struct part {
	struct weir_event ev; /* first member */
	struct weir_op op;
	struct weir_payloads payloads;
	struct weir_trail trail;
	uint64_t mark; /* PART_ALIVE until it has ended */
	uint8_t level; /* parts above it */
	uint8_t turns; /* how often a stage has put it back or let it wait */
	char key[2];   /* '0' and up */
};
extern const struct weir_event_type part_type;

struct storm_conf {
	int64_t kids, burn_ns, nap_ns, die;
	int64_t alone; /* enum storm_alone */
};
extern const struct weir_knob storm_knobs[];

/* What handler calls at a stage must not overlap with. */
enum storm_alone { ALONE_NOT, ALONE_ALL, ALONE_KEY };

struct storm_state {
	atomic_int inside, key[STORM_KEYS];
};

/* Whether the calling thread must not end in a handler: the process would end. */
extern _Thread_local bool storm_undying;

/* A number from 0 to n - 1. */
uint32_t storm_random(uint32_t n);
/* CLOCK_MONOTONIC, in ns. */
int64_t storm_clock(void);
/* A status with which a stage may finish an event. */
int storm_status(void);
struct part *storm_part(struct weir_event *ev);

/* Each handler call is between these two: they look for overlaps, use time, and may end the thread.
 * Returns the keys of the parts ev[0..n). */
uint32_t storm_enter(struct weir_stage *st, struct weir_event *const *ev, int n);
void storm_leave(struct weir_stage *st, uint32_t keys);

/* Give `ev` new children by outlet `sub`. */
void storm_split(struct weir_stage *st, struct weir_event *ev, int sub, int level);
/* Send a new event, which is nobody's child, by outlet `sub`. */
void storm_alone(struct weir_stage *st, int sub, int level);
/* Look at the children of `ev` that have ended. */
void storm_look(const struct weir_event *ev);

#endif
