/* SPDX-License-Identifier: MIT */
/*
 * Measures the choice of the next stage of a core group: next_choose and next_took, ns per call.
 *
 * A group of 64 stages, of which `ready` always have events, spread over the group. The gate ends
 * each visit after one event, so each call looks for a starved stage (about every 300 us, one stage
 * is due for this check), asks the gate, and then the policy. Rows `stay` have the gate `all`, so
 * the policy is never asked. Rows `color` include the arrival of the run that they take.
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "sched/next.h"

#define STAGES 64
#define CALLS  2000000

struct row {
	const char *name;
	const struct next_policy *policy;
	int ready;
	enum next_gate gate;
	uint64_t urgent_set;
	bool starve;
};

static volatile uint64_t kept; /* the choices, or the compiler removes the loop */

static void make_group(const struct row *row, struct next_stage *stage, struct next_view *v)
{
	for (int i = 0; i < STAGES; i++)
		stage[i] = (struct next_stage){.length = 8,
		    .oldest_ns = (i * 29) % 31,
		    .service_ns = 100 + i * 37 % 41,
		    .rest_ns = 10 * (STAGES - i),
		    .load = 0.01};
	v->n = STAGES;
	for (int k = 0; k < row->ready; k++)
		v->ready |= UINT64_C(1) << (k * STAGES / row->ready);
}

static double measure(void *arg)
{
	const struct row *row = arg;
	static struct next_core core;
	static struct next_order order;
	struct next_stage stage[STAGES];
	struct next_view v = {.stage = stage, .order = &order};
	struct next_limits l = {.gate = row->gate,
	    .gate_events = 1,
	    .starve_ns = row->starve ? 5000000 : 0,
	    .urgent_set = row->urgent_set};
	uint64_t sum = 0;

	for (int i = 0; i < STAGES; i++)
		l.urgent[i] = (struct next_urgent){.events = 128, .wait_ns = 2000000000000};
	make_group(row, stage, &v);
	next_order_make(row->policy, &v, &l, &order);
	next_core_init(&core, row->policy);
	for (int i = 0; i < STAGES; i++)
		if (v.ready >> i & 1)
			next_arrived(&core, i, 8);
	bench_pin(0);
	int64_t from_ns = bench_now_ns();
	for (int k = 0; k < CALLS; k++) {
		struct next_choice c = next_choose(&core, &l, &v);

		next_took(&core, c.stage, 1, 1);
		next_arrived(&core, c.stage, 1);
		stage[c.stage].oldest_ns = v.now_ns;
		v.now_ns += 1000;
		sum += (uint64_t)c.stage;
	}
	int64_t spent_ns = bench_now_ns() - from_ns;

	kept = sum;
	return (double)spent_ns / CALLS;
}

static struct row rows[] = {
    {"fifo, 1 stage ready, 63 idle", &next_fifo, 1, NEXT_EVENTS, 0, true},
    {"fifo, 7 ready, 57 idle", &next_fifo, 7, NEXT_EVENTS, 0, true},
    {"fifo, 64 ready", &next_fifo, 64, NEXT_EVENTS, 0, true},
    {"wavefront, 1 ready, 63 idle", &next_wavefront, 1, NEXT_EVENTS, 0, true},
    {"wavefront, 7 ready, 57 idle", &next_wavefront, 7, NEXT_EVENTS, 0, true},
    {"wavefront, 64 ready", &next_wavefront, 64, NEXT_EVENTS, 0, true},
    {"wavefront, 7 ready, starve: 0", &next_wavefront, 7, NEXT_EVENTS, 0, false},
    {"wavefront, 7 ready, all have thresholds", &next_wavefront, 7, NEXT_EVENTS, UINT64_MAX, true},
    {"srpt, 7 ready, 57 idle", &next_srpt, 7, NEXT_EVENTS, 0, true},
    {"dbr, 7 ready, 57 idle", &next_dbr, 7, NEXT_EVENTS, 0, true},
    {"mg1, 1 ready, 63 idle", &next_mg1, 1, NEXT_EVENTS, 0, true},
    {"mg1, 7 ready, 57 idle", &next_mg1, 7, NEXT_EVENTS, 0, true},
    {"mg1, 64 ready", &next_mg1, 64, NEXT_EVENTS, 0, true},
    {"color, 7 ready, 57 idle", &next_color, 7, NEXT_EVENTS, 0, true},
    {"stay, 7 ready, 57 idle", &next_wavefront, 7, NEXT_ALL, 0, true},
};

int main(void)
{
	bench_header("micro_next");
	printf("\nns per choice of a stage                               median       low      "
	       "high\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bench_stat s = bench_measure(measure, &rows[i]);
		printf("%-52s %8.1f  %8.1f  %8.1f%s\n", rows[i].name, s.median, s.low, s.high,
		    s.far ? "  far" : "");
	}
	return 0;
}
