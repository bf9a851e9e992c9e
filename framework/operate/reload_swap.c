/* SPDX-License-Identifier: MIT */
/*
 * Replaces one graph by another on a reload: matches stages, hands over state, and preserves the
 * changes that operators have made.
 *
 *   built --succeed: copy states, link stages--> RUNNING beside the old one --drain(old)--> alone
 *
 * A second graph is built instead of modifying the running one, so that the data path needs no
 * locks or checks for a change that happens once a week. In addition, a bad configuration can be
 * discarded before anything in the old graph is changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

#include "control/control.h"
#include "operate/changes.h"
#include "graph/group.h"
#include "graph/reload_state.h"
#include "graph/meter.h"

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

struct weir_stage *graph_match(const struct weir_graph *g, const struct weir_stage *st)
{
	struct weir_stage *counterpart = weir_graph_stage(g, st->name);

	return counterpart && counterpart->ops == st->ops ? counterpart : NULL;
}

/* ---- unchanged stages ---- */

/* Whether all `with:` knobs that are not live have the same values in both stages. */
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

/* Find the unchanged stages. A stage that leads to a changed one counts as changed itself, so
 * passes over all stages are repeated until one finds no more changed stages. */
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

/* ---- handing over ---- */

bool graph_match_owner(struct weir_graph *g, const struct owner *of, struct owner *match)
{
	char why[2];

	*match = (struct owner){.graph = g};
	if (of->stage)
		match->stage = graph_match(g, of->stage);
	else if (of->group)
		match->group = graph_group_spec(g, of->group->name);
	else
		match->class = graph_class_find(g, of->class->path, why, sizeof(why));
	return match->stage || match->group || match->class;
}

static bool is_predecessor(const struct weir_graph *g, const struct weir_stage *old)
{
	bool is = false;

	for (int i = 0; !is && i < g->n_stages; i++)
		is = g->stages[i]->predecessor == old;
	return is;
}

/* Find the predecessor of `st`, a source with a new name: a renamed source needs the sockets that
 * it had under its old name. Unmatched sources of the same type are paired in order. */
static struct weir_stage *left_over(
    const struct weir_graph *g, const struct weir_graph *old, const struct weir_stage *st)
{
	for (int i = 0; i < old->n_stages; i++) {
		struct weir_stage *o = old->stages[i];
		if (o->ops == st->ops && !graph_match(g, o) && !is_predecessor(g, o))
			return o;
	}
	return NULL;
}

static void tell_predecessors(struct weir_graph *g, struct weir_graph *old)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		st->predecessor = graph_match(old, st);
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

/* A message about something lost in a reload. It is logged later, when no lock is held, and kept for
 * weir_graph_dropped. */
struct dropped {
	struct dropped *next;
	char text[384];
};

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
	struct dropped *one = calloc(1, sizeof(*one));
	if (!one) /* only the journal then has the report */
		return;
	snprintf(one->text, sizeof(one->text), "%s: %s dropped: %s", stage, what, why);
	one->next = g->dropped;
	g->dropped = one;
}

static void log_one(void *arg, const char *text)
{
	(void)arg;
	weir_log(WEIR_LOG_WARN, "reload: %s", text);
}

/* Log what was dropped. No lock may be held: a log call may block. Only the reload thread changes the
 * list. */
static void log_dropped(struct weir_graph *g)
{
	lock_take(&g->lock);
	const struct dropped *first = g->dropped;
	lock_release(&g->lock);
	for (const struct dropped *one = first; one; one = one->next)
		log_one(NULL, one->text);
}

void weir_graph_dropped(struct weir_graph *g, weir_graph_dropped_fn *tell, void *arg)
{
	struct dropped *one, *next;

	lock_take(&g->lock);
	one = g->dropped;
	g->dropped = NULL;
	lock_release(&g->lock);
	for (; one; one = next) {
		next = one->next;
		if (tell)
			tell(arg, one->text);
		free(one);
	}
}

void weir_graph_try_overrides(struct weir_graph *g, struct weir_graph *running)
{
	lock_take(&g->lock);
	graph_overrides_carry(g, running);
	lock_release(&g->lock);
}

static void carry_overload(struct weir_graph *g, const struct weir_graph *old)
{
	int mode = atomic_load(&old->overload_mode);

	if (mode != old->spec->overload_mode)
		graph_overload_turn(g, mode);
}

/* Return the cost at `old` of an event of class `c` of `g`; classes are matched by name. If the old
 * graph has no such class, returns the mean cost at `old`. */
static int64_t cost_before(const struct weir_graph *g, int c, const struct weir_stage *old)
{
	int64_t mean_ns = sink_mean_cost_ns(&old->sink);

	for (int o = 0; o < old->graph->n_classes; o++)
		if (strcmp(old->graph->classes[o].name, g->classes[c].name) == 0)
			return sink_cost_ns(&old->sink, o);
	return mean_ns;
}

static bool is_inline(const struct weir_stage *st)
{
	return st && st->sink.inlined;
}

/* Whether the stage does the same work for an event as its predecessor, including the work of
 * inline stages downstream. same[], indexed by stage id, has the results of all stages
 * downstream. */
static bool does_same_work(struct weir_stage *st, const bool *same)
{
	struct weir_stage *old = st->predecessor;

	if (!old || !same_conf(st, old) || st->n_outlets != old->n_outlets)
		return false;
	for (int i = 0; i < st->n_outlets; i++) {
		const struct outlet *now = &st->outlets[i], *then = &old->outlets[i];
		if (!is_inline(now->to) && !is_inline(then->to))
			continue;
		if (!is_inline(now->to) || now->to->predecessor != then->to ||
		    !is_inline(then->to) || (!now->loop && !same[now->to->id]))
			return false;
	}
	return true;
}

/* Copy the known costs and widths to stages that do the same work as before. Otherwise a stage
 * would learn its cost from the first batch. If that batch happened to be slow, the stage would
 * refuse events until the next tick. */
static void carry_learned(struct weir_graph *g)
{
	bool same[WEIR_STAGES_MAX] = {false};

	for (int k = g->n_stages; k-- > 0;) { /* downstream first */
		int i = g->order[k];
		struct weir_stage *st = g->stages[i];
		struct meter *m = g->meters[i];
		struct weir_stage *old = st->predecessor;
		int64_t mean_ns = old ? sink_mean_cost_ns(&old->sink) : 0;
		same[i] = does_same_work(st, same);
		if (same[i] && stage_has_width(st))
			graph_width_carry(st, old);
		if (mean_ns <= 0 || !same[i])
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
	graph_overrides_carry(g, old);
	graph_changes_carry(g, old);
	carry_learned(g);
}

/* Pause or drain the stages whose counterparts in `old` are paused or draining. */
static void carry_steer(struct weir_graph *g, struct weir_graph *old) WEIR_REQUIRES(&g->lock)
{
	for (int i = 0; i < old->n_stages; i++) {
		int how = atomic_load(&old->stages[i]->steer);
		const char *name = old->stages[i]->name;
		struct weir_stage *st = graph_match(g, old->stages[i]);
		char why[192] = "the stage no longer exists";
		if (how == WEIR_STEER_RUN)
			continue;
		if (st && graph_may_steer(g, st, (enum weir_steer)how, why, sizeof(why)) == 0)
			graph_steer_turn(st, how);
		else
			graph_dropped(g, "reload", name, graph_steer_word(how), why);
	}
}

/* Resume the sources, which were started paused. */
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
	struct weir_change act = {.actor = "reload", .what = "reload"};
	struct weir_decision d = {.actor = "reload", .action = "reload"};

	graph_cut(act.target, sizeof(act.target), g->spec->name);
	snprintf(d.rule, sizeof(d.rule), "a new graph of %d stages takes over", g->n_stages);
	snprintf(act.to, sizeof(act.to), "a new graph of %d stages", g->n_stages);
	journal_add(control_journal(g->control), d);
	graph_change(g, &act, NULL);
}

/* If `closed` is set, reject operator changes to `old` from now on, since the new graph would miss
 * them; otherwise accept them again. */
static void close_changes(struct weir_graph *old, bool closed)
{
	lock_take(&old->lock);
	old->succeeded = closed;
	lock_release(&old->lock);
}

bool weir_graph_stay(struct weir_graph *g)
{
	lock_take(&g->lock);
	bool stays = !g->followed;
	g->stays |= stays;
	lock_release(&g->lock);
	return stays;
}

static int refuse(struct weir_errs *errs)
{
	return weir_errs_add(errs, NULL, WEIR_EBUSY, NULL, "the running graph is about to stop");
}

/* Make `g` the successor of `old`, unless weir_graph_stay was called for `old`. */
static int commit(struct weir_graph *g, struct weir_graph *old, struct weir_errs *errs)
{
	lock_take(&old->lock);
	bool stays = old->stays;
	old->followed = !stays;
	lock_release(&old->lock);
	if (!stays) {
		tell_successors(g);
		return 0;
	}
	graph_abort(g, g->n_stages);
	return refuse(errs);
}

static int start_behind(struct weir_graph *g, struct weir_graph *old, struct weir_errs *errs)
{
	int rc = reload_state_begin(g, old);

	if (rc != 0)
		return weir_errs_add(errs, NULL, rc, NULL, "out of memory");
	rc = graph_start(g, old, errs);
	return rc == 0 ? commit(g, old, errs) : rc;
}

static bool is_to_stay(struct weir_graph *g)
{
	lock_take(&g->lock);
	bool stays = g->stays;
	lock_release(&g->lock);
	return stays;
}

int weir_graph_succeed(struct weir_graph *g, struct weir_graph *old, struct weir_errs *errs)
{
	if (is_to_stay(old))
		return refuse(errs);
	close_changes(old, true);
	tell_predecessors(g, old);
	lock_take(&g->lock);
	carry_states(g, old);
	lock_release(&g->lock);
	int rc = start_behind(g, old, errs);
	if (rc == 0) {
		lock_take(&g->lock);
		carry_steer(g, old);
		let_go(g);
		note_succession(g);
		lock_release(&g->lock);
	} else {
		reload_state_drop(g);
		reload_state_end(old);
		close_changes(old, false);
	}
	if (rc == 0)
		log_dropped(g);
	forget_predecessors(g);
	return rc;
}
