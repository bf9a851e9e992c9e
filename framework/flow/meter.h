/* SPDX-License-Identifier: MIT */
/*
 * What happened at a stage since the last look: the samples of admission policies that learn.
 *
 * Counters only grow, so a meter keeps what they were. Costs (mean service times by class) follow
 * completions with a weight of COST_WEIGHT each (overload.md 3.1), and a handler that is still at it
 * counts as soon as it has taken longer than the mean, so that a hang is seen before it ends.
 * Quantiles are of the last second or so, refreshed ten times a second.
 *
 * One meter per stage, used by the control thread alone.
 */
#ifndef WEIR_FLOW_METER_H
#define WEIR_FLOW_METER_H

#include "flow/graph.h"

struct meter_class {
	uint64_t offered, wanted, refused, completed, service_ns, wait_ns;
};

struct meter {
	int64_t at_ns; /* of the last sample; 0: there was none */
	int quiet;     /* looks in a row at which nothing had happened */
	struct meter_class then[WEIR_CLASSES_MAX];
	uint64_t done[WEIR_CLASSES_MAX], took_ns[WEIR_CLASSES_MAX]; /* not learnt from yet */
	double cost_ns[WEIR_CLASSES_MAX], mean_cost_ns;
	double
	    now_cost_ns; /* the mean, or half of what those under way have taken when that is more */
	/* quantiles: differences to what the histograms were `hist_ns` ago */
	int64_t hist_at_ns, looked_at_ns;
	struct weir_hist wait_then[WEIR_CLASSES_MAX], service_then;
	int64_t wait_p90_ns, response_p90_ns[WEIR_CLASSES_MAX], all_response_p90_ns;
	int64_t service_p99_ns;
};

/** Has nothing happened at `st` for half a second? Then there is no need for a sample; the next one that is
 *  taken is of the whole time since. Ask once before each. */
bool meter_rests(struct meter *m, struct weir_stage *st);

/** The sample of stage `st` since the last one, and its costs into the sink. */
void meter_sample(struct meter *m, struct weir_graph *g, struct weir_stage *st, int64_t now_ns,
    struct admission_sample *sample);

#endif
