/* SPDX-License-Identifier: MIT */
/*
 * Adjusts the degradation levels of stages to their pressure (stage/degrade.c). The journal records
 * when a stage begins to degrade, when it reaches the cheapest level, and when it is back at full
 * quality.
 */
#include <stdio.h>

#include "control/control.h"
#include "control/journal.h"
#include "stage/degrade.h"
#include "graph/graph.h"

/* Read the current values of `degrade:`, which are live knobs. The lock is taken only once,
 * because there may be hundreds of stages. If the lock is not free, the values are read in the
 * next round: another thread may hold the lock for long (a pause waits for I/O threads), and the
 * control thread must not wait. */
static void read_knobs(struct weir_graph *g)
{
	if (!lock_try(&g->lock))
		return;
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		st->degrade.above = st->spec->degrade.above;
		st->degrade.below = st->spec->degrade.below;
		st->degrade.step_ns = st->spec->degrade.step_ns;
	}
	lock_release(&g->lock);
}

/* Whether the change of the level from `before` tenths to its current value deserves a journal
 * entry. The cheapest level is reported only once until the stage is back at full quality, because
 * at full load the level may oscillate. */
static bool notable(struct weir_stage *st, int before)
{
	int now = st->degrade.tenths;
	bool worst = now == DEGRADE_TENTHS && !st->degrade_worst;

	st->degrade_worst = now != 0 && (st->degrade_worst || worst);
	return before == 0 || now == 0 || worst;
}

static void note(const struct weir_stage *st, int before, struct journal *journal)
{
	const struct degrade *d = &st->degrade;
	bool worse = d->tenths > before;
	struct weir_decision e = {0};

	snprintf(e.stage, sizeof(e.stage), "%s", st->name);
	snprintf(e.actor, sizeof(e.actor), "degrade");
	snprintf(e.action, sizeof(e.action), "%s", worse ? "degrade" : "restore");
	snprintf(e.rule, sizeof(e.rule), "pressure %.0f %% %s %.0f %%", d->mean * 100,
	    worse ? "over" : "under", (worse ? d->above : d->below) * 100);
	snprintf(e.inputs, sizeof(e.inputs), "pressure=%.2f level=%.1f", d->mean, degrade_level(d));
	if (d->tenths == DEGRADE_TENTHS)
		snprintf(e.limit, sizeof(e.limit), "lowest quality reached");
	journal_add(journal, e);
}

static void look(struct weir_stage *st, int64_t now_ns, struct journal *journal)
{
	double pressure = weir_pressure(st);
	int before = st->degrade.tenths;

	/* If degradation was switched off while the stage was degraded, return to full quality. */
	if (st->degrade.above >= 1)
		pressure = 0;
	if (!degrade_step(&st->degrade, pressure, now_ns))
		return;
	atomic_store_explicit(&st->degraded, st->degrade.tenths, memory_order_relaxed);
	if (notable(st, before))
		note(st, before, journal);
}

void graph_degrade(struct weir_graph *g, int64_t now_ns)
{
	read_knobs(g);
	for (int i = 0; i < g->n_stages; i++)
		if (g->stages[i]->pool && !queue_paused(&g->stages[i]->sink.queue))
			look(g->stages[i], now_ns, control_journal(g->control));
}
