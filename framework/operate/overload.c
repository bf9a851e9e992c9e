/* SPDX-License-Identifier: MIT */
/*
 * The overload kill switch: one mode that caps the admission modes of all stages, whatever their
 * knobs are set to.
 *
 * graph->lock orders writers. Sinks read their copies of the mode without a lock, so a batch that
 * is in admission while the mode changes may still be judged by the old one.
 */
#include <stdio.h>

#include "control/control.h"
#include "graph/graph.h"
#include "operate/changes.h"

static const char *const words[] = {
    [WEIR_ADMISSION_OFF] = "off",
    [WEIR_ADMISSION_SHADOW] = "shadow",
    [WEIR_ADMISSION_ENFORCE] = "enforce",
};

void graph_overload_init(struct weir_graph *g)
{
	atomic_store(&g->overload_mode, g->spec->overload_mode);
	for (int i = 0; i < g->n_stages; i++)
		atomic_store(&g->stages[i]->sink.mode_cap, g->spec->overload_mode);
}

void graph_overload_turn(struct weir_graph *g, int mode)
{
	atomic_store(&g->overload_mode, mode);
	for (int i = 0; i < g->n_stages; i++)
		atomic_store(&g->stages[i]->sink.mode_cap, mode);
}

void graph_overload_note(struct weir_graph *g, int before, int mode, struct weir_change *act)
{
	struct weir_decision d = {.actor = "operator", .action = "set"};

	snprintf(d.rule, sizeof(d.rule), "overload.mode = %s", words[mode]);
	snprintf(d.inputs, sizeof(d.inputs), "it was %s", words[before]);
	journal_add(control_journal(g->control), d);
	snprintf(act->target, sizeof(act->target), "overload.mode");
	snprintf(act->from, sizeof(act->from), "%s", words[before]);
	snprintf(act->to, sizeof(act->to), "%s", words[mode]);
}

int weir_graph_set_overload(struct weir_graph *g, enum weir_admission_mode mode)
{
	struct weir_change act = {.actor = "operator", .what = "overload"};

	if ((int)mode < WEIR_ADMISSION_OFF || (int)mode > WEIR_ADMISSION_ENFORCE)
		return WEIR_EINVAL;
	lock_take(&g->lock);
	int before = atomic_load(&g->overload_mode), rc = g->succeeded ? WEIR_EBUSY : 0;
	if (rc == 0) {
		graph_overload_turn(g, (int)mode);
		graph_overload_note(g, before, (int)mode, &act);
		graph_change_overload(g, &act, before);
	}
	lock_release(&g->lock);
	return rc;
}

enum weir_admission_mode weir_graph_overload(const struct weir_graph *g)
{
	return (enum weir_admission_mode)atomic_load(&g->overload_mode);
}
