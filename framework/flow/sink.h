/* SPDX-License-Identifier: MIT */
/*
 * Sinks: the one door of a stage. Deadline, admission, queue (or straight on, for inline stages).
 *
 * sink_offer() handles a run: it drops what is past its deadline, asks the admission policy per
 * class, bounds by the queue's limit, and pushes the rest in one critical section with at most one
 * wake-up behind it. What it refuses it gives back to the caller, unchanged and still the caller's.
 *
 * | call           | may overlap with                                              |
 * |----------------|---------------------------------------------------------------|
 * | sink_offer     | anything; a thread of the graph, with its own book of the stage |
 * | sink_set_*     | anything                                                      |
 * | sink_init/fini | nothing                                                       |
 */
#ifndef WEIR_FLOW_SINK_H
#define WEIR_FLOW_SINK_H

#include <weir/stage.h>

#include "admission/admission.h"
#include "flow/local.h"
#include "flow/queue.h"

/** Partitions a stage may have: their wake-ups travel as a bit mask. */
#define PARTITIONS_MAX 64

/** How the key of an event is made at this door. */
struct key_source {
	enum { KEY_NONE, KEY_EVENT, KEY_CLASS, KEY_STAGE, KEY_FIELD } kind;
	const struct weir_field *field;
	const char *arg; /* for fields that take one; owned by the stage */
};

struct sink {
	/* constant after build */
	struct weir_stage *stage;
	uint16_t id;
	bool inlined; /* no queue: run in the offering thread */
	bool cohort_by_key;
	struct key_source key;
	uint64_t (*stage_key)(struct weir_stage *st, const struct weir_event *ev);
	const struct admission_policy *policy;
	/** Handle a batch in the calling thread: counts, times, leftovers. */
	void (*run)(struct sink *sink, struct weir_event **ev, int n);
	/** Events arrived: the queue held `before` and holds `length` now; `parts` has a bit per
	 *  partition touched, 0 when it has but one. */
	void (*wake)(struct sink *sink, uint32_t before, uint32_t length, uint64_t parts);
	void *pool; /* who serves the queue; NULL inline */
	/* live knobs */
	atomic_int cohort_max;
	_Atomic int64_t linger_ns;
	/* under queue.lock */
	struct weir_admission_spec admission;
	_Alignas(16) unsigned char admission_state[ADMISSION_STATE_MAX];
	struct queue queue;
};

/**
 * For an inline stage the caller runs what was taken, sink->run(sink, ev + refused, taken), once
 * its own books are right: a handler may end the thread.
 *
 * Offer ev[0..n), 1 <= n <= WEIR_BATCH_MAX, sent by stage `from` (id, or WEIR_NO_STAGE), at time
 * `now_ns`. `book` is the calling thread's book of this stage. Returns how many were taken; the
 * refused are moved to ev[0 .. n - taken) in order, reason[i] saying why, state and stage as
 * before.
 */
int sink_offer(struct sink *s, struct weir_event **ev, int n, int from, int64_t now_ns,
    struct book *book, int *reason);

/** Change the admission parameters (not the policy); its state starts afresh. */
void sink_set_admission(struct sink *s, const struct weir_admission_spec *spec, int64_t now_ns);

#endif
