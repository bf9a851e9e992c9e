/* SPDX-License-Identifier: MIT */
/*
 * Asking admission policies about a run of events: the stage's own at its door, and those of later
 * stages ahead of it.
 *
 * A stage whose policy has `.front` is asked for at the first door from which nearly all of a class
 * go on to it (admission/route.h), and not again on the way. Each policy is asked, under its own
 * queue's lock, about those that none before it refused; one lock is held at a time.
 *
 *   verdict_init -> ask_ahead (no lock) -> ask_own per class (the door's lock) -> ask_settle (no lock)
 */
#ifndef WEIR_FLOW_ASK_H
#define WEIR_FLOW_ASK_H

#include "flow/sink.h"

/** The verdict on one run. */
struct verdict {
	int offered[WEIR_CLASSES_MAX];
	int fresh[WEIR_CLASSES_MAX];     /* of them not expired */
	int want[WEIR_CLASSES_MAX];      /* of them not refused (yet) */
	int shadow[WEIR_CLASSES_MAX];    /* own policy in shadow mode: would have been refused */
	uint16_t asks[WEIR_CLASSES_MAX]; /* fronts to ask ahead */
	uint16_t judged;     /* bit per class: the stage's own policy was asked upstream */
	uint32_t length;     /* of the queue, with those admitted so far */
	int64_t admitted_ns; /* work of what was admitted so far and is not queued yet */
	bool refuses;
	/* from here on not cleared for each run */
	uint16_t turned[WEIR_CLASSES_MAX]
		       [FRONTS_MAX]; /* refused by fronts; only with sink->ahead */
	int why[WEIR_BATCH_MAX]; /* by place in the run: 0, or the reason; only when it refuses */
};

/** Nothing is refused yet of a run that stage `from` (WEIR_NO_STAGE) offers to `s`. */
void verdict_init(struct verdict *v, const struct sink *s, int from);

/** Refuse the last `many` of a class of ev[0..n) that are not refused yet, for the queue's sake. */
void verdict_refuse_last(struct verdict *v, const struct sink *s, struct weir_event **ev, int n,
    int class_id, int many, int reason);

/** Ask the fronts ahead of `gate` about ev[0..n). Takes their locks one by one. */
void ask_ahead(struct sink *gate, struct weir_event **ev, int n, int64_t now_ns, struct verdict *v);

/** Is the own policy to be asked about the class? */
static inline bool ask_asks(const struct sink *s, const struct verdict *v, int class_id)
    WEIR_REQUIRES(&s->queue.lock)
{
	return s->policy != &admission_none && !(v->judged >> class_id & 1) &&
	       sink_mode(s) != WEIR_ADMISSION_OFF;
}

/** Ask the own policy of `s` about the class. Returns how many it would admit and is charged for. */
int ask_own(struct sink *s, struct weir_event **ev, int n, int class_id, int64_t now_ns,
    struct verdict *v) WEIR_REQUIRES(&s->queue.lock);

/** The run is decided: tell the fronts what of it comes, and what others refused. Takes no lock. */
void ask_settle(struct sink *gate, const struct verdict *v);

/** Write into `ev` why it is refused (flow/shed_token.h): `part` of its class, 0..1, were admitted, and the wait
 *  was predicted to be `wait_ns`, -1 for not known. */
void ask_mark(const struct sink *s, struct weir_event *ev, int reason, double part, int64_t wait_ns,
    int64_t now_ns);

#endif
