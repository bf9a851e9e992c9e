/* SPDX-License-Identifier: MIT */
/*
 * Runs batch policies. A stage whose `cohort: { policy }` is not static has a batcher. The control
 * thread runs the batcher's policy each round and writes the resulting cap, the largest size of a
 * batch, to the sink.
 *
 * The operator's cohort.max is the upper bound of the cap. A batcher is allocated and freed with
 * its stage; only the control thread uses its state.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "control/batch.h"
#include "control/journal.h"
#include "graph/graph.h"
#include "event/local.h"

/* Overhead of a batch: the queue's lock, the clock, the counters. 500 ns is a guess, based on the
 * measured difference between batches of 1 and of 64 events. Only the order of magnitude matters,
 * and only for handlers that take less than 500 ns. */
#define FIXED_NS 500

struct batcher {
	const struct batch_policy *policy;
	_Alignas(16) unsigned char state[BATCH_STATE_MAX];
};

int graph_batch_new(struct weir_stage *st)
{
	const struct batch_policy *policy = batch_find(st->spec->cohort.policy);

	atomic_init(&st->cohort_bound, (int)st->spec->cohort.max);
	if (policy == &batch_static || st->spec->inlined || (st->ops->flags & WEIR_STAGE_SOURCE))
		return 0;
	st->batcher = aligned_alloc(_Alignof(struct batcher), sizeof(*st->batcher));
	if (!st->batcher)
		return WEIR_ENOMEM;
	*st->batcher = (struct batcher){.policy = policy};
	return 0;
}

void graph_batch_free(struct weir_stage *st)
{
	free(st->batcher);
	st->batcher = NULL;
}

void graph_batch_bound(struct weir_stage *st, int max)
{
	int cap = atomic_load(&st->sink.cohort_max);

	atomic_store(&st->cohort_bound, max);
	if (!st->batcher || cap > max)
		atomic_store(&st->sink.cohort_max, max);
}

static void view(struct weir_graph *g, struct weir_stage *st, struct batch_view *v)
{
	const struct stage_sums *sums = graph_sums(g, st->id);

	*v = (struct batch_view){.cap = atomic_load(&st->sink.cohort_max),
	    .max = atomic_load(&st->cohort_bound),
	    .queue_length = sink_waiting(&st->sink),
	    .slo_ns = sink_slo_ns(&st->sink),
	    .fixed_ns = FIXED_NS,
	    .batches = sums->batches,
	    .items = sums->items,
	    .busy_ns = sums->ended_busy_ns};
}

static void note(const struct weir_stage *st, const struct batch_view *v,
    const struct batch_decision *want, struct journal *journal)
{
	struct weir_decision d = {.from = v->cap, .to = want->cap};

	snprintf(d.stage, sizeof(d.stage), "%s", st->name);
	snprintf(d.actor, sizeof(d.actor), "%s", st->batcher->policy->name);
	snprintf(d.action, sizeof(d.action), "batch");
	snprintf(d.rule, sizeof(d.rule), "%s", want->rule);
	if (want->cap == v->max)
		snprintf(d.limit, sizeof(d.limit), "max %d", v->max);
	snprintf(d.inputs, sizeof(d.inputs), "queue=%u batches=%llu events=%llu busy=%.3fs",
	    v->queue_length, (unsigned long long)v->batches, (unsigned long long)v->items,
	    (double)v->busy_ns / NS_PER_S);
	journal_add(journal, d);
}

void graph_batch(struct weir_graph *g, int64_t now_ns, struct journal *journal)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		struct batch_decision want = {0};
		struct batch_view v;
		if (!st->batcher)
			continue;
		view(g, st, &v);
		if (!st->batcher->policy->decide(st->batcher->state, &v, now_ns, &want))
			continue;
		want.cap = want.cap < 1 ? 1 : want.cap > v.max ? v.max : want.cap;
		atomic_store(&st->sink.cohort_max, want.cap);
		note(st, &v, &want, journal);
	}
}
