/* SPDX-License-Identifier: MIT */
/*
 * One graph follows another: who takes over from whom, and what operators did stays done.
 *
 *   built --succeed: states copied, stages told--> RUNNING beside the old one --drain(old)--> alone
 *
 * Two whole graphs rather than one that changes: the data path needs no lock and no check for a change that comes once a
 * week, and a bad configuration can be thrown away before anything of the old one was touched.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

#include "control/control.h"
#include "flow/graph_acts.h"
#include "flow/graph_inherit.h"
#include "flow/meter.h"

struct weir_stage *weir_predecessor(const struct weir_stage *st, bool *unchanged)
{
	if (unchanged)
		*unchanged = st->unchanged;
	return st->predecessor;
}

struct weir_stage *weir_successor(const struct weir_stage *st)
{
	return st->successor;
}

struct weir_stage *graph_twin(const struct weir_graph *g, const struct weir_stage *st)
{
	struct weir_stage *twin = weir_graph_stage(g, st->name);

	return twin && twin->ops == st->ops ? twin : NULL;
}

/* ---- what has not changed ---- */

/* The same texts for all knobs of `with:` that can not change while the server runs. */
static bool same_conf(struct weir_stage *a, struct weir_stage *b)
{
	struct conf *x = stage_conf_get(a), *y = stage_conf_get(b);
	bool same = true;

	for (const struct weir_knob *k = x->knobs; same && k && k->name; k++) {
		if (k->flags & WEIR_KNOB_LIVE)
			continue;
		int n = weir_knob_print(k, x->data, NULL, 0);
		same = n == weir_knob_print(k, y->data, NULL, 0);
		char *text = same && n >= 0 ? malloc(2 * ((size_t)n + 1)) : NULL;
		if (text) {
			weir_knob_print(k, x->data, text, (size_t)n + 1);
			weir_knob_print(k, y->data, text + n + 1, (size_t)n + 1);
		}
		same = same && text && memcmp(text, text + n + 1, (size_t)n + 1) == 0;
		free(text);
	}
	conf_put(x);
	conf_put(y);
	return same;
}

static bool same_links(const struct weir_stage *a, const struct weir_stage *b)
{
	bool same = a->n_outlets == b->n_outlets;

	for (int i = 0; same && i < a->n_outlets; i++) {
		const struct outlet *x = &a->outlets[i], *y = &b->outlets[i];
		same = strcmp(x->name, y->name) == 0 && !x->to == !y->to &&
		       (!x->to || strcmp(x->to->name, y->to->name) == 0);
	}
	return same;
}

/* A stage that differs makes all that lead to it differ: repeat until nothing is added. */
static void find_unchanged(struct weir_graph *g)
{
	bool more = true;

	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		st->unchanged = st->predecessor && same_conf(st, st->predecessor) &&
				same_links(st, st->predecessor);
	}
	while (more) {
		more = false;
		for (int i = 0; i < g->n_stages; i++) {
			struct weir_stage *st = g->stages[i];
			for (int o = 0; st->unchanged && o < st->n_outlets; o++)
				if (st->outlets[o].to && !st->outlets[o].to->unchanged) {
					st->unchanged = false;
					more = true;
				}
		}
	}
}

/* ---- taking over ---- */

static bool is_predecessor(const struct weir_graph *g, const struct weir_stage *old)
{
	bool is = false;

	for (int i = 0; !is && i < g->n_stages; i++)
		is = g->stages[i]->predecessor == old;
	return is;
}

/* A source that was renamed has no twin, but sockets that the old one has: sources of one type that are left over on
 * both sides follow each other in their order. */
static struct weir_stage *left_over(
    const struct weir_graph *g, const struct weir_graph *old, const struct weir_stage *st)
{
	for (int i = 0; i < old->n_stages; i++) {
		struct weir_stage *o = old->stages[i];
		if (o->ops == st->ops && !graph_twin(g, o) && !is_predecessor(g, o))
			return o;
	}
	return NULL;
}

static void tell_predecessors(struct weir_graph *g, struct weir_graph *old)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		st->predecessor = graph_twin(old, st);
		if (!st->predecessor && st->ops->flags & WEIR_STAGE_SOURCE)
			st->predecessor = left_over(g, old, st);
	}
	find_unchanged(g);
}

static void forget_predecessors(struct weir_graph *g)
{
	for (int i = 0; i < g->n_stages; i++)
		g->stages[i]->predecessor = NULL;
}

static void tell_successors(struct weir_graph *g)
{
	for (int i = 0; i < g->n_stages; i++)
		if (g->stages[i]->predecessor)
			g->stages[i]->predecessor->successor = g->stages[i];
}

void graph_dropped(
    struct weir_graph *g, const char *actor, const char *stage, const char *what, const char *why)
{
	struct weir_decision d = {0};

	snprintf(d.stage, sizeof(d.stage), "%s", stage);
	snprintf(d.actor, sizeof(d.actor), "%s", actor);
	snprintf(d.action, sizeof(d.action), "dropped");
	graph_cut(d.rule, sizeof(d.rule), what);
	graph_cut(d.inputs, sizeof(d.inputs), why);
	journal_add(control_journal(g->control), d);
	weir_log(WEIR_LOG_WARN, "reload: %s: %s ended, since %s", stage, what, why);
}

static void carry_overload(struct weir_graph *g, const struct weir_graph *old)
{
	int mode = atomic_load(&old->overload_mode);

	if (mode != old->spec->overload_mode)
		graph_overload_turn(g, mode);
}

/* What an event of class `c` of `g` cost at `old`, by the name of the class; else what events cost there. */
static int64_t cost_before(const struct weir_graph *g, int c, const struct weir_stage *old)
{
	int64_t mean_ns = sink_mean_cost_ns(&old->sink);

	for (int o = 0; o < old->graph->n_classes; o++)
		if (strcmp(old->graph->classes[o].name, g->classes[c].name) == 0)
			return sink_cost_ns(&old->sink, o);
	return mean_ns;
}

/* A stage that does the same work knows what it costs: learnt anew from a first batch that happened to be held up, it would
 * refuse until the next look. */
static void carry_costs(struct weir_graph *g)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		struct meter *m = g->meters[i];
		struct weir_stage *old = st->predecessor;
		int64_t mean_ns = old ? sink_mean_cost_ns(&old->sink) : 0;
		if (mean_ns <= 0 || !same_conf(st, old))
			continue;
		sink_first_cost(&st->sink, mean_ns);
		if (m)
			m->mean_cost_ns = m->now_cost_ns = (double)mean_ns;
		for (int c = 0; c < g->n_classes; c++) {
			int64_t cost_ns = cost_before(g, c, old);
			atomic_store(&st->sink.cost_ns[c], cost_ns);
			if (m)
				m->cost_ns[c] = (double)cost_ns;
		}
	}
}

static void carry_states(struct weir_graph *g, struct weir_graph *old) WEIR_REQUIRES(&g->lock)
{
	journal_copy(control_journal(g->control), control_journal(old->control));
	carry_overload(g, old);
	graph_layers_carry(g, old);
	graph_acts_carry(g, old);
	carry_costs(g);
}

/* Pause and drain what was. */
static void carry_steer(struct weir_graph *g, struct weir_graph *old) WEIR_REQUIRES(&g->lock)
{
	for (int i = 0; i < old->n_stages; i++) {
		int how = atomic_load(&old->stages[i]->steer);
		const char *name = old->stages[i]->name;
		struct weir_stage *st = graph_twin(g, old->stages[i]);
		char why[192] = "there is no such stage any more";
		if (how == WEIR_STEER_RUN)
			continue;
		if (st && graph_may_steer(g, st, (enum weir_steer)how, why, sizeof(why)) == 0)
			graph_steer_turn(st, how);
		else
			graph_dropped(g, "reload", name, graph_steer_word(how), why);
	}
}

/* Sources have started paused. */
static void let_go(struct weir_graph *g)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		if (st->ops->flags & WEIR_STAGE_SOURCE && st->ops->pause &&
		    atomic_load(&st->steer) == WEIR_STEER_RUN)
			st->ops->pause(st, false);
	}
}

static void note_succession(struct weir_graph *g) WEIR_REQUIRES(&g->lock)
{
	struct weir_act act = {.actor = "reload", .what = "reload"};
	struct weir_decision d = {.actor = "reload", .action = "reload"};

	graph_cut(act.target, sizeof(act.target), g->spec->name);
	snprintf(d.rule, sizeof(d.rule), "a new graph of %d stages follows", g->n_stages);
	snprintf(act.to, sizeof(act.to), "a new graph of %d stages", g->n_stages);
	journal_add(control_journal(g->control), d);
	graph_act(g, &act, NULL);
}

/* From here on nobody turns anything of `old`: what he turned would be lost. */
static void close_acts(struct weir_graph *old, bool closed)
{
	lock_take(&old->lock);
	old->succeeded = closed;
	lock_release(&old->lock);
}

int weir_graph_succeed(struct weir_graph *g, struct weir_graph *old, struct weir_errs *errs)
{
	WEIR_ASSERT(weir_graph_ready(old));
	close_acts(old, true);
	tell_predecessors(g, old);
	lock_take(&g->lock);
	carry_states(g, old);
	lock_release(&g->lock);
	int rc = inherit_begin(g, old);
	if (rc != 0)
		weir_errs_add(errs, NULL, rc, NULL, "out of memory");
	else
		rc = graph_start(g, old, errs);
	if (rc == 0) {
		lock_take(&g->lock);
		carry_steer(g, old);
		let_go(g);
		note_succession(g);
		lock_release(&g->lock);
		tell_successors(g);
	} else {
		inherit_drop(g);
		inherit_end(old);
		close_acts(old, false);
	}
	forget_predecessors(g);
	return rc;
}
