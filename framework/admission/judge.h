/* SPDX-License-Identifier: MIT */
/*
 * Submits a batch of events of one class to an admission policy, and checks the policy's decision.
 * Both the server (stage/admit.c) and the simulator (sim/admit.c) use these functions, so their
 * decisions cannot differ.
 *
 * Pure functions of their arguments: no lock, clock, thread or stage.
 */
#ifndef WEIR_ADMISSION_JUDGE_H
#define WEIR_ADMISSION_JUDGE_H

#include <string.h>

#include <weir/annotate.h>

#include "admission/admission.h"
#include "admission/fair.h"
#include "admission/users.h"

/** A policy with its state and parameters at one stage. All pointers are borrowed. */
struct judge {
	const struct admission_policy *policy;
	void *state;
	const struct weir_admission_spec *params;
	struct fair *fair; /* demand by user; NULL if no event has had a user yet */
};

/** Events of one class, in the order in which they arrived. */
struct judge_run {
	int n;
	bool timed;                     /* some of the events have deadlines */
	bool retry[WEIR_BATCH_MAX];     /* the event is not its sender's first attempt */
	uint16_t place[WEIR_BATCH_MAX]; /* position of the user in the rota (users.h) */
	uint64_t id[WEIR_BATCH_MAX];    /* the user, 0 if unknown */
	uint16_t user[WEIR_BATCH_MAX];
	int64_t left_ns[WEIR_BATCH_MAX];
	float demand[WEIR_BATCH_MAX];
	bool refused[WEIR_BATCH_MAX]; /* set for the events that the policy refuses */
	int said, marked; /* result of admit, and number of events that admit marked as refused */
};

/** Append an event with `left_ns` before its deadline, INT64_MAX if it has none. */
static inline void judge_add(
    struct judge_run *q, uint64_t id, uint16_t place, bool retry, int64_t left_ns)
{
	int i = q->n++;

	q->id[i] = id;
	q->place[i] = place;
	q->retry[i] = retry;
	q->user[i] = users_number(place, retry);
	q->left_ns[i] = left_ns;
	q->timed |= left_ns != INT64_MAX;
	q->refused[i] = false;
}

/** Return how many of `idle` threads will still be idle when an event arrives after v->lead_ns.
 *  `coming_ns` is the work that is on its way to the stage and included in v->work_ns. */
static inline int judge_idle(const struct admission_view *v, int idle, int64_t coming_ns)
{
	if (coming_ns > 0 && (double)v->work_ns / v->threads > (double)(v->lead_ns + v->cost_ns))
		return 0;
	return idle;
}

/* Record the demand of each user. All events without a user count as one user, so that a client
 * gains nothing by hiding its identity. */
static inline void judge_note_demands(
    const struct judge *j, int class_id, struct judge_run *q, struct admission_view *v)
{
	for (int i = 0; i < q->n; i++) {
		q->demand[i] = fair_note(j->fair, class_id, q->id[i], v->now_ns);
		uint16_t place = fair_place(j->fair, class_id, q->place[i], q->demand[i]);
		q->user[i] = users_number(place, q->retry[i]);
	}
	v->demand = q->demand;
	v->fair = j->fair;
}

/** Add the users and deadlines of the events to the view. Demand is recorded only while no thread
 *  is idle. Policies that do not learn (`tick` is NULL) get no users. */
static inline void judge_view(
    const struct judge *j, int class_id, struct judge_run *q, struct admission_view *v)
{
	if (j->policy->tick) {
		v->user = q->user;
		if (j->policy->fair && j->fair && v->idle == 0)
			judge_note_demands(j, class_id, q, v);
	}
	if (q->timed)
		v->left_ns = q->left_ns;
}

/* Number of events that are marked as refused. A mark is a byte of value 0 or 1, so the marks of
 * eight events are read at once. */
static inline int judge_marked(const struct judge_run *q)
{
	int marked = 0, i = 0;

	for (uint64_t marks; i + (int)sizeof(marks) <= q->n; i += (int)sizeof(marks)) {
		memcpy(&marks, &q->refused[i], sizeof(marks));
		marked += (int)(marks * 0x0101010101010101ULL >> 56);
	}
	for (; i < q->n; i++)
		marked += q->refused[i];
	return marked;
}

/** Let the policy decide. Returns the number of admitted events; q->refused marks the others, which
 *  are all refused for *reason. If the result is invalid, *nonsense is set and all events are
 *  admitted. */
static inline int judge_ask(const struct judge *j, int class_id, struct judge_run *q,
    const struct admission_view *v, int *reason, bool *nonsense)
{
	int m = j->policy->admit(j->state, j->params, v, class_id, q->n, q->refused, reason);
	int marked = judge_marked(q);

	q->said = m;
	q->marked = marked;
	bool flagged = marked == q->n - m;
	*nonsense =
	    m < 0 || m > q->n || (marked && !flagged) || (m < q->n && weir_shed_index(*reason) < 0);
	if (WEIR_UNLIKELY(*nonsense)) {
		memset(q->refused, 0, sizeof(q->refused[0]) * (size_t)q->n);
		return q->n;
	}
	for (int i = m; !flagged && i < q->n; i++) /* no event is marked: refuse the last ones */
		q->refused[i] = true;
	return m;
}

#endif
