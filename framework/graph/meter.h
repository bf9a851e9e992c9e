/* SPDX-License-Identifier: MIT */
/*
 * Meters: samples of what happens at the stages, as input for admission policies that learn.
 *
 * Counters only grow, so a meter keeps their last values and works with differences. Costs (mean
 * service times by class) are smoothed means in which each completion has the weight COST_WEIGHT
 * (docs/overload.md). Handler calls in progress are included once most of them have taken far
 * longer than usual, so that a hang is noticed before it ends. Quantiles cover the last second or
 * so and are refreshed ten times a second.
 *
 * A stage at which nothing happens rests: it is not sampled. Its estimates are updated every
 * METER_REST_NS, and before its next sample. The update gives the values that ticks every
 * ADMISSION_TICK_NS would have given. It moves the windows forward and ages the costs by all
 * skipped ticks in one step (with a relative error below 1e-9). The state of the policy needs no
 * update, because the policy has confirmed that ticks do not change it (admission_policy.rested).
 *
 *   SAMPLED --half a second without a change, quantiles forgotten, the policy agrees--> RESTS
 *   RESTS --a change, or work--> SAMPLED
 *
 * There is one meter per stage, used only by the control thread.
 */
#ifndef WEIR_GRAPH_METER_H
#define WEIR_GRAPH_METER_H

#include "graph/graph.h"

struct meter_class {
	uint64_t offered, wanted, refused, completed, handled, service_ns, wait_ns;
};

/** Maximum age of the estimates of a stage that rests. */
#define METER_REST_NS 1000000000LL

/** Counters and histograms at the start of a window, from which differences are computed. */
struct meter_window {
	/* events handled; time that inline stages took for them */
	uint64_t handled, behind_ns;
	struct weir_hist service, wait[]; /* by class */
};

struct meter {
	int64_t at_ns;     /* time of the last sample; 0 before the first */
	int64_t looked_ns; /* time of the last check that found the stage resting */
	uint64_t changes;  /* change number at the last check (graph_stage_changes) */
	int quiet;         /* consecutive checks without a change */
	bool resting;      /* the stage rested at the last check */
	struct meter_class then[WEIR_CLASSES_MAX]; /* totals at the last sample */
	/* number and total time of completions that are not included in the costs yet */
	uint64_t done[WEIR_CLASSES_MAX], took_ns[WEIR_CLASSES_MAX];
	double cost_ns[WEIR_CLASSES_MAX], mean_cost_ns;
	/* number of events in each mean, at most 1 / COST_WEIGHT */
	double known[WEIR_CLASSES_MAX], all_known;
	/* the mean cost, or half the time that calls in progress have taken so far, whichever is
	 * larger */
	double now_cost_ns;
	/* for a stage with a width: the mean time in its handler per event, the number of events in
	 * that mean, and the total time in handlers when the mean was last updated */
	double handler_ns, handler_known;
	uint64_t busy_ns;
	/* for a stage with a width: time of the last sample at which events had ended or none was
	 * in work, and the number of events in work (in handlers or held) then */
	int64_t ended_ns, in_work;
	uint64_t refusals; /* total at the last sample (weir_hold_refused) */
	/* The quantiles below cover the events since `hist_at_ns`, the start of `window`, and were
	 * last refreshed at `looked_at_ns`. */
	int64_t hist_at_ns, looked_at_ns;
	struct meter_window *window; /* NULL before the first event */
	int64_t wait_p90_ns, response_p90_ns[WEIR_CLASSES_MAX], all_response_p90_ns;
	int64_t service_p99_ns;
};

/** Check at `now_ns` whether `st` rests; if it does not, sample it and pass the sample to its
 *  policy. `changes` is the result of graph_stage_changes. Returns whether the stage rests. */
bool meter_look(struct meter *m, struct weir_stage *st, uint64_t changes, int64_t now_ns);

/** Bring the meter to the state that it would have after ticks without events until `until_ns`. At
 *  least one sample must have been taken before. */
void meter_idle(struct meter *m, struct weir_stage *st, int64_t until_ns);

void meter_free(struct meter *m);

/** Fill in *sample with the events at stage `st` since the last sample, and publish the costs in
 *  the sink. */
void meter_sample(struct meter *m, struct weir_graph *g, struct weir_stage *st, int64_t now_ns,
    struct admission_sample *sample);

#endif
