/* SPDX-License-Identifier: MIT */
/*
 * New configured values for a running graph: a reload that changes live knobs only, so that queues, books, caches and what
 * policies have learned stay.
 *
 * Knobs are turned one by one, as operators do; those that depend on each other (min and max) find their order by being
 * tried again. If one can not be turned at all, which only an override can cause, the others are turned back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/graph_acts.h"

/** A knob whose configured value is to change. */
struct turn {
	struct weir_stage *stage;
	char *knob, *from, *to; /* owned */
	bool done;
};

struct turns {
	struct turn *turn;
	int n;
	bool no_memory;
};

static void turns_free(struct turns *t)
{
	for (int i = 0; i < t->n; i++) {
		free(t->turn[i].knob);
		free(t->turn[i].from);
		free(t->turn[i].to);
	}
	free(t->turn);
}

static bool grow(struct turns *t)
{
	struct turn *more = realloc(t->turn, ((size_t)t->n + 1) * sizeof(*more));

	if (more)
		t->turn = more;
	return more;
}

/* Add `knob` if its configured value in `st` is not what it is in `wanted`. */
static void compare(struct weir_graph *g, struct turns *t, struct weir_stage *st,
    struct weir_stage *wanted, const char *knob) WEIR_REQUIRES(&g->lock)
{
	const struct override *o = graph_override(g, st, knob);
	struct turn new = {.stage = st, .knob = strdup(knob)};

	new.from = o ? strdup(o->configured) : graph_knob_text(st, knob);
	new.to = graph_knob_text(wanted, knob);
	bool whole = new.knob &&new.from &&new.to;
	bool same = whole && strcmp(new.from, new.to) == 0;
	if (whole && !same && grow(t)) {
		t->turn[t->n++] = new;
		return;
	}
	t->no_memory |= !same;
	free(new.knob);
	free(new.from);
	free(new.to);
}

static void compare_table(struct weir_graph *g, struct turns *t, struct weir_stage *st,
    struct weir_stage *wanted, const struct weir_knob *table, const char *prefix)
    WEIR_REQUIRES(&g->lock)
{
	for (const struct weir_knob *row = table; row && row->name; row++) {
		char path[128];
		snprintf(path, sizeof(path), "%s%s", prefix, row->name);
		if (row->type == WEIR_KNOB_MAP && table == weir_stage_knobs) {
			strncat(path, ".", sizeof(path) - strlen(path) - 1);
			compare_table(g, t, st, wanted, row->fields, path);
		} else if (row->flags & WEIR_KNOB_LIVE) {
			compare(g, t, st, wanted, path);
		}
	}
}

/* The knobs of an inline stage or a member of a group that have no pool to act on. */
static bool is_idle(const struct turn *t)
{
	return strncmp(t->knob, "threads.", 8) == 0 &&
	       (!t->stage->pool || t->stage->spec->group[0] != '\0');
}

/* Make `to` the configured value. False when the knob can not be turned now. */
static bool turn(struct weir_graph *g, const struct turn *t, const char *to) WEIR_REQUIRES(&g->lock)
{
	struct override *o = graph_override(g, t->stage, t->knob);
	char why[256];

	if (!o)
		return is_idle(t) || graph_knob_turn(t->stage, t->knob, to, why, sizeof(why)) == 0;
	char *text = strdup(to);
	if (!text)
		return false;
	free(o->configured);
	o->configured = text;
	return true;
}

/* Turn all to their new values, or back; returns whether that was possible for all. */
static bool turn_all(struct weir_graph *g, struct turns *t, bool back) WEIR_REQUIRES(&g->lock)
{
	bool moved = true, all = true;

	while (moved) {
		moved = false;
		all = true;
		for (int i = 0; i < t->n; i++) {
			struct turn *one = &t->turn[i];
			if (one->done != back)
				continue;
			bool ok = turn(g, one, back ? one->from : one->to);
			if (ok)
				one->done = !back;
			moved |= ok;
			all &= ok;
		}
	}
	return all;
}

/* What was overridden by just that value is configured now: `weir save`, then a reload. */
static void end_overrides(struct weir_graph *g, const struct turns *t) WEIR_REQUIRES(&g->lock)
{
	for (int i = 0; i < t->n; i++) {
		struct override *o = graph_override(g, t->turn[i].stage, t->turn[i].knob);
		if (o && !o->layers.brief && strcmp(o->layers.kept, o->configured) == 0)
			graph_override_drop(g, o);
	}
}

static void note(struct weir_graph *g, const struct turn *t) WEIR_REQUIRES(&g->lock)
{
	struct weir_act act = {.actor = "reload", .what = "reload"};
	char rule[96], to[48];

	snprintf(act.target, sizeof(act.target), "%.90s.%.90s", t->stage->name, t->knob);
	graph_cut(act.from, sizeof(act.from), t->from);
	graph_cut(act.to, sizeof(act.to), t->to);
	graph_cut(to, sizeof(to), t->to);
	snprintf(rule, sizeof(rule), "%.40s = %s", t->knob, to);
	graph_act_noted(g, &act, NULL, t->stage, rule);
}

/* What is not a stage's: an overload mode that was turned stays turned. */
static void configure_server(struct weir_graph *g, const struct weir_spec *wanted)
    WEIR_REQUIRES(&g->lock)
{
	struct weir_act act = {.actor = "reload", .what = "reload"};
	int before = g->spec->overload_mode;

	g->spec->grace_ns = wanted->grace_ns;
	g->spec->overload_mode = wanted->overload_mode;
	if (before == wanted->overload_mode || atomic_load(&g->overload_mode) != before)
		return;
	graph_overload_turn(g, wanted->overload_mode);
	graph_overload_note(g, before, wanted->overload_mode, &act);
	graph_act(g, &act, NULL);
}

static int configure(struct weir_graph *g, struct turns *t) WEIR_REQUIRES(&g->lock)
{
	if (t->no_memory)
		return WEIR_ENOMEM;
	if (!turn_all(g, t, false)) {
		turn_all(g, t, true);
		return WEIR_EBUSY;
	}
	end_overrides(g, t);
	for (int i = 0; i < t->n; i++)
		note(g, &t->turn[i]);
	return 0;
}

/* Under no lock: stages may log. Reloads come one at a time. */
static void refresh(struct weir_graph *g, const struct weir_graph *wanted)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		if (st->ops->refresh)
			st->ops->refresh(st, graph_twin(wanted, st));
	}
}

void weir_graph_renewed(const struct weir_graph *g, const struct weir_graph *wanted,
    weir_graph_renewed_fn *tell, void *arg)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i], *twin = graph_twin(wanted, st);
		char text[512];
		if (twin && st->ops->renewed && st->ops->renewed(st, twin, text, sizeof(text)))
			tell(arg, st->name, text);
	}
}

int weir_graph_configure(struct weir_graph *g, const struct weir_graph *wanted, int *n_turned)
{
	struct turns t = {0};

	WEIR_ASSERT(g->n_stages == wanted->n_stages);
	lock_take(&g->lock);
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i], *twin = graph_twin(wanted, st);
		WEIR_ASSERT(twin != NULL);
		compare_table(g, &t, st, twin, weir_stage_knobs, "");
		compare_table(g, &t, st, twin, st->ops->knobs, "with.");
	}
	int rc = configure(g, &t);
	if (rc == 0)
		configure_server(g, wanted->spec);
	lock_release(&g->lock);
	if (rc == 0)
		refresh(g, wanted);
	if (n_turned)
		*n_turned = rc == 0 ? t.n : 0;
	turns_free(&t);
	return rc;
}
