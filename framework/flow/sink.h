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

/** Stages of a graph that doors upstream ask for; further ones ask at their own doors only. */
#define FRONTS_MAX 16

#define AHEAD_ALL 1024

/** What a door asks ahead of it: written by the control thread, read by whoever offers. Bit f of a mask
 *  is front f of the graph. */
struct ahead {
	_Atomic uint16_t asks[WEIR_CLASSES_MAX]; /* of events of the class that enter here */
	_Atomic uint16_t
	    judged[WEIR_CLASSES_MAX]; /* of events that come from here: were asked for */
	_Atomic int64_t
	    lead_ns[WEIR_CLASSES_MAX][FRONTS_MAX]; /* from this door to that of front f */
	_Atomic uint16_t
	    before[WEIR_CLASSES_MAX][FRONTS_MAX];  /* part of front f's pipeline that gets there
								  before what enters here, of AHEAD_ALL */
	_Atomic int64_t rest_ns[WEIR_CLASSES_MAX]; /* from the end of the service here to the end */
};

/** What a policy was asked; under the queue's lock. Totals. */
struct asked {
	uint64_t asked;  /* at any door; without those past their deadline */
	uint64_t wanted; /* of those at its own door: that no other policy had refused */
	uint64_t turned; /* refused, or in shadow mode would be */
};

/** How the key of an event is made at this door. */
struct key_source {
	enum { KEY_NONE, KEY_EVENT, KEY_CLASS, KEY_STAGE, KEY_FIELD } kind;
	const struct weir_field *field;
	const char *arg; /* for fields that take one; owned by the stage */
};

struct sink {
	/* constant after build */
	struct weir_stage *stage;
	const char *name; /* of the stage, for probes; NULL in tests of doors alone */
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
	/** Fill threads and idle of the view: what serves the queue, at this moment. */
	void (*look)(const struct sink *sink, struct admission_view *view);
	void *pool; /* who serves the queue; NULL inline */
	int64_t slo_ns;
	int64_t started_ns;   /* of the graph */
	int front;            /* number among the graph's fronts, -1: none */
	struct sink **fronts; /* the graph's [FRONTS_MAX], indexed by front; NULL: there are none */
	struct sink **sinks;  /* the graph's, by stage id; NULL likewise */
	struct ahead *ahead;  /* NULL likewise; owned by the graph */
	/* for policies that learn (policy->tick); written by the control thread but `running` */
	_Atomic int64_t cost_ns[WEIR_CLASSES_MAX]; /* mean service time by class; 0: not known */
	_Atomic int64_t mean_cost_ns;
	atomic_uint nonsense;    /* answers of the policy that made no sense */
	atomic_int mode_cap;     /* enum weir_admission_mode: the policy's mode is at most that */
	_Atomic int64_t wait_ns; /* predicted for who enters, at the last tick; 0 without a policy
				    that learns */
	_Atomic int64_t least_left_ns; /* who has less time left is not worth a handler */
	_Atomic int64_t most_wait_ns;  /* nor is who waited longer */
	_Atomic int64_t
	    pipeline_ns; /* work that was asked for upstream and is on its way; about, so a
					  reading below 0 is none */
	_Atomic uint64_t wanted_ahead[WEIR_CLASSES_MAX]; /* as asked.wanted, at doors upstream */
	_Atomic uint64_t shadow_ahead[WEIR_CLASSES_MAX]; /* likewise, would have been */
	_Atomic uint64_t
	    refused_ahead[WEIR_CLASSES_MAX]; /* at doors upstream, for this stage's sake */
	/* live knobs */
	atomic_int cohort_max;
	_Atomic int64_t linger_ns;
	/* under queue.lock */
	struct weir_admission_spec admission;
	struct asked asked[WEIR_CLASSES_MAX];
	_Alignas(16) unsigned char admission_state[ADMISSION_STATE_MAX];
	WEIR_ALIGNED atomic_uint
	    running; /* events in handle calls; written by handlers, so on a line of its own */
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

/** Queue ev[0..n), 1 <= n <= WEIR_BATCH_MAX, which the stage was running or held, once more at `now_ns`, whatever the door
 *  would say (weir_requeue). Returns how many, the first ones, entered: less than n when the queue is closed or without
 *  memory, and *why says which (WEIR_ECLOSED, WEIR_ENOMEM). Inline stages: the caller runs those. */
int sink_take_back(struct sink *s, struct weir_event **ev, int n, int64_t now_ns, int *why);

/** Events ev[0..n) of the queue are about to be handled at `now_ns`: those that the policy sheds now are moved to the
 *  front, in order. Returns how many; 0 unless the policy drops. Any thread of the pool. */
int sink_drop(struct sink *s, struct weir_event **ev, int n, int64_t now_ns, struct book *book);

/** Tell the policy what happened since the last tick. The control thread. */
void sink_tick(struct sink *s, const struct admission_sample *sample);

/** Why the door is as it is, into buf[size], "" when the policy has nothing to say. Any thread. */
void sink_explain(struct sink *s, char *buf, size_t size);

/** Mean service time of an event, 0 when not known. */
static inline int64_t sink_mean_cost_ns(const struct sink *s)
{
	return atomic_load_explicit(&s->mean_cost_ns, memory_order_relaxed);
}

/** The first batch took `cost_ns` an event: that is what events cost until the meter knows better. Without it a flood on a
 *  cold server would fill the queue until the next tick, since with an unknown cost everything may enter. Any thread of the
 *  pool; when several are first, the last one is as right as the others. */
void sink_first_cost(struct sink *s, int64_t cost_ns);

/** Mean service time of an event of the class, 0 when not known. */
static inline int64_t sink_cost_ns(const struct sink *s, int class_id)
{
	return atomic_load_explicit(&s->cost_ns[class_id], memory_order_relaxed);
}

/** The mode that holds: the knob's, at most the graph's. */
static inline int sink_mode(const struct sink *s) WEIR_REQUIRES(&s->queue.lock)
{
	int cap = atomic_load_explicit(&s->mode_cap, memory_order_relaxed);

	return s->admission.mode < cap ? s->admission.mode : cap;
}

/** Estimated time to serve what is queued, and taken but not begun by `threads`: events of each class times their cost. The caller holds the lock. */
int64_t sink_work_ns_locked(const struct sink *s, int threads) WEIR_REQUIRES(&s->queue.lock);

/** Change the admission parameters (not the policy); its state starts afresh. */
void sink_set_admission(struct sink *s, const struct weir_admission_spec *spec, int64_t now_ns);

#endif
