/* SPDX-License-Identifier: MIT */
/*
 * Consults admission policies about a batch of offered events: the policy of the stage that the
 * events enter, and the policies of stages further downstream (fronts).
 *
 * A front is a stage whose policy may be consulted upstream on its behalf (`.front` in
 * admission/admission.h). It is consulted at the first stage from which nearly all events of a
 * class continue to the front (admission/route.h), and not again later on the path. A policy is
 * called with the lock of its stage's queue held, and only for events that no earlier policy has
 * refused. At most one lock is held at a time. The locks that the caller holds are in parentheses;
 * admit_upstream takes those of the fronts itself, one after another:
 *
 *   admit_upstream (no lock) -> admit_own per class (own lock) -> admit_settle (no lock)
 */
#ifndef WEIR_STAGE_ADMIT_H
#define WEIR_STAGE_ADMIT_H

#include <stddef.h>
#include <string.h>

#include "stage/sink.h"

/** The result of admission for a batch of offered events: which are admitted and which refused. */
struct verdict {
	int fresh[WEIR_CLASSES_MAX]; /* offered events that are not past their deadline */
	int want[WEIR_CLASSES_MAX];  /* fresh events that have not been refused so far */
	/* events that the stage's own policy would have refused; counted only in shadow mode */
	int shadow[WEIR_CLASSES_MAX];
	uint16_t fronts[WEIR_CLASSES_MAX]; /* fronts to consult, as a bit mask */
	uint16_t all_fronts;               /* union of the initial values of `fronts` */
	/* one bit per class, set if the stage's own policy was already consulted upstream */
	uint16_t judged;
	uint16_t classes; /* one bit per class, set if it has fresh events */
	bool shadows;     /* an element of `shadow` is not 0 */
	bool refuses;
	/* length of the stage's queue plus the events admitted so far */
	uint32_t length;
	/* service time of the events that are admitted but not queued yet */
	int64_t admitted_ns;
	/* The members below are not cleared for every batch. */
	/* number of events refused by each front; valid for the classes and fronts in `fronts` */
	uint16_t refused_by[WEIR_CLASSES_MAX][FRONTS_MAX];
	/* reason by index in the batch, 0 if not refused; valid only if `refuses` is set */
	int why[WEIR_BATCH_MAX];
};

/** Initialise a verdict on a batch without events. */
static inline void verdict_init(struct verdict *v)
{
	const size_t first = offsetof(struct verdict, shadow);

	/* in two parts, since the compiler clears more than a cache line and a half by `rep stos`, whose
	 * start takes as long as the rest of the offer of one event */
	memset(v, 0, first);
	memset((char *)v + first, 0, offsetof(struct verdict, refused_by) - first);
}

/** Add `n` fresh events of the class; `n` may be 0. */
static inline void verdict_add(struct verdict *v, int class_id, int n)
{
	v->fresh[class_id] += n;
	v->want[class_id] += n;
	v->classes |= (uint16_t)((n > 0) << class_id);
}

/** Refuse `many` events of the class in ev[0..n) for `reason`: the last ones that are not refused
 *  yet. If the queue is full (WEIR_EQUEUE), their tokens have the predicted wait. */
void verdict_refuse_last(struct verdict *v, const struct sink *s, struct weir_event **ev, int n,
    int class_id, int many, int reason) WEIR_REQUIRES(&s->queue.lock);

/** Consult the fronts downstream of `entry` about ev[0..n), sent by stage `from` (WEIR_NO_STAGE if
 *  there is none). entry->ahead must not be NULL. Takes the locks of the fronts one at a time. */
void admit_upstream(
    struct sink *entry, struct weir_event **ev, int n, int from, int64_t now_ns, struct verdict *v);

/** Whether the stage's own policy must still be consulted about the class. */
static inline bool admit_applies(const struct sink *s, const struct verdict *v, int class_id)
    WEIR_REQUIRES(&s->queue.lock)
{
	return s->policy != &admission_none && !(v->judged >> class_id & 1) &&
	       sink_mode(s) != WEIR_ADMISSION_OFF;
}

/* The same for a graph that has admission upstream. */
bool admit_passed_ahead(const struct sink *s, int from, int class_id);
void admit_came_ahead(struct sink *s, int from, int class_id, int n);

/** Whether no policy has to be asked about events of the class that stage `from` sends to `s`: that
 *  of `s` and those downstream have been asked upstream, or there is none. Takes no lock. */
static inline bool admit_passed(const struct sink *s, int from, int class_id)
{
	return s->ahead ? admit_passed_ahead(s, from, class_id) : s->policy == &admission_none;
}

/** `n` such events have arrived at `s` without admit_settle: they are no longer on their way. */
static inline void admit_came(struct sink *s, int from, int class_id, int n)
{
	if (s->ahead)
		admit_came_ahead(s, from, class_id, n);
}

/** Whether the `n` events that have been admitted are to be put into the cell of the calling core
 *  (thread.celled), instead of into the queue. */
bool admit_to_cell(int n);

/** Consult the policy of `s` about the class. Returns the number of events that the policy admits;
 *  a policy with a token bucket has taken that many tokens. */
int admit_own(struct sink *s, struct weir_event **ev, int n, int class_id, int64_t now_ns,
    struct verdict *v) WEIR_REQUIRES(&s->queue.lock);

/** Update the totals of each front: the events of the batch that will arrive there, and those that
 *  the front has refused. Called after the decision if v->all_fronts or v->judged is not 0. Takes
 *  no lock. */
void admit_settle(struct sink *entry, const struct verdict *v);

/** Replace ev->trace_id by a token that encodes why the event is refused (stage/shed_token.h).
 *  `part`, 0..1, is the share of the event's class that is admitted; `wait_ns` is the predicted
 *  wait, -1 if unknown. */
void admit_mark(const struct sink *s, struct weir_event *ev, int reason, double part,
    int64_t wait_ns, int64_t now_ns);

#endif
