/* SPDX-License-Identifier: MIT */
/*
 * Stages that may degrade: their level follows their pressure, and the journal says when a stage began to serve
 * worse, was at its worst, and was well again. The rule itself is in degrade.c.
 */
#include <stdio.h>

#include "control/control.h"
#include "control/journal.h"
#include "flow/degrade.h"
#include "flow/graph.h"

/* `degrade:` as it is now; its rows are live. */
static void read_knobs(struct weir_graph *g, struct weir_stage *st)
{
	lock_take(&g->lock);
	const struct weir_degrade_spec now = st->spec->degrade;
	lock_release(&g->lock);
	st->degrade.above = now.above;
	st->degrade.below = now.below;
	st->degrade.step_ns = now.step_ns;
}

/* The level went from `before` tenths to what it is: is that worth a line? That it is at its cheapest is said once until it
 * was at full quality again, since at full load it may come and go. */
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
		snprintf(e.limit, sizeof(e.limit), "cheapest: nothing more can be left out");
	journal_add(journal, e);
}

static void look(
    struct weir_graph *g, struct weir_stage *st, int64_t now_ns, struct journal *journal)
{
	double pressure = weir_pressure(st);
	int before = st->degrade.tenths;

	read_knobs(g, st);
	/* Switched off while it was degraded: nothing holds it down then. */
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
	for (int i = 0; i < g->n_stages; i++)
		if (g->stages[i]->pool && !queue_paused(&g->stages[i]->sink.queue))
			look(g, g->stages[i], now_ns, control_journal(g->control));
}
