/* SPDX-License-Identifier: MIT */
/*
 * The interface of width policies, which choose how many events a stage that holds events
 * (WEIR_STAGE_HOLDS) may have in work at once. "The other side" is the server, database or disk
 * that the stage waits for.
 *
 * A policy is a pure function of (state, view, now), like the resize policies (resize.h). It sees
 * totals since startup and works with differences. Totals may decrease slightly, since they are not
 * read atomically, so policies treat differences as signed numbers.
 */
#ifndef WEIR_CONTROL_WIDTH_H
#define WEIR_CONTROL_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Interval between calls of a policy: that of the control thread (CONTROL_TICK_NS). */
#define WIDTH_TICK_NS 100000000LL

/** Input of a policy: the state of one stage at one moment. */
struct width_view {
	int width;             /* width in effect */
	int min, max;          /* bounds, 1 <= min <= max */
	int in_work;           /* events in handlers or held */
	uint32_t queue_length; /* events waiting */
	/* events whose service has ended since startup, not counting those whose tickets expired:
	 * the length of an expired hold says nothing about the other side */
	uint64_t ended;
	uint64_t service_ns; /* sum of the service times of these events, handler included */
	uint64_t refused;    /* events that the other side has refused (weir_hold_refused) */
};

struct width_decision {
	int width;     /* min..max: the width from now on; a step may be taken in several parts */
	int target;    /* the width after the whole step */
	char rule[96]; /* reason for a step, as readable text; "" for the later parts */
};

/** Width with which a stage starts if its bounds allow it. A guess: enough that a cold start is
 *  measured within a second, and little for any server. */
#define WIDTH_FIRST 4

/** Maximum size of a policy's state in bytes. */
#define WIDTH_STATE_MAX 512

struct width_policy {
	const char *name;
	const char *help;
	/** Returns true and fills in `d` to request another width. `state` is initially zero. */
	bool (*decide)(
	    void *state, const struct width_view *v, int64_t now_ns, struct width_decision *d);
	/** Prepare the state for use with the same stage in another graph, where the totals of the
	 *  view begin again at 0. NULL if the policy keeps no totals. */
	void (*restart)(void *state);
	/** Describe the current state in one line of at most `size` bytes, for operators. NULL if
	 *  the policy has nothing to report. */
	void (*explain)(const void *state, char *buf, size_t size);
};

extern const struct width_policy width_static;
extern const struct width_policy width_weir;

/** Return the policy called `name`, or policy number `i`. NULL if there is no such policy. */
const struct width_policy *width_find(const char *name);
const struct width_policy *width_at(int i);

#endif
