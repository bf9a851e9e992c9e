/* SPDX-License-Identifier: MIT */
/*
 * Applies new configured values to a running graph, for a reload that changes live knobs only.
 * Queues, counters, caches and the learned state of policies are preserved.
 *
 * Knobs are set one at a time, as an operator would set them. Knobs that depend on each other, such
 * as min and max, may have to be set in a certain order, which is found by retrying. Setting a knob
 * fails only if an override forbids the value, or if memory runs out. In that case, all other knobs
 * are reset to their previous values.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operate/changes.h"
#include "stage/replica.h"

/** A knob whose configured value is to change. */
struct turn {
	struct owner of;
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

/* Add `knob` to `t` if its configured values in `of` and `wanted` differ. */
static void compare(struct weir_graph *g, struct turns *t, const struct owner *of,
    const struct owner *wanted, const char *knob) WEIR_REQUIRES(&g->lock)
{
	const struct override *o = graph_override(g, of, knob);
	struct turn new = {.of = *of, .knob = strdup(knob)};

	new.from = o ? strdup(o->configured) : graph_knob_text(of, knob);
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

static void compare_table(struct weir_graph *g, struct turns *t, const struct owner *of,
    const struct owner *wanted, const struct weir_knob *table, const char *prefix)
    WEIR_REQUIRES(&g->lock)
{
	for (const struct weir_knob *row = table; row && row->name; row++) {
		char path[128];
		snprintf(path, sizeof(path), "%s%s", prefix, row->name);
		if (row->type == WEIR_KNOB_MAP &&
		    (table == weir_stage_knobs || table == weir_group_knobs)) {
			strncat(path, ".", sizeof(path) - strlen(path) - 1);
			compare_table(g, t, of, wanted, row->fields, path);
		} else if (row->flags & WEIR_KNOB_LIVE) {
			compare(g, t, of, wanted, path);
		}
	}
}

/* Whether the knob has no effect: it is a `threads` knob, and its stage is inline or in a group and
 * so has no pool of its own. */
static bool is_idle(const struct turn *t)
{
	const struct weir_stage *st = t->of.stage;

	return st && strncmp(t->knob, "threads.", 8) == 0 &&
	       (!st->pool || st->spec->group[0] != '\0');
}

/* Make `to` the configured value of the knob. Returns false if it cannot be set now. */
static bool turn(struct weir_graph *g, const struct turn *t, const char *to) WEIR_REQUIRES(&g->lock)
{
	struct override *o = graph_override(g, &t->of, t->knob);
	char why[256];

	if (!o && is_idle(t))
		return graph_knob_store(t->of.stage, t->knob, to, why, sizeof(why)) == 0;
	if (!o)
		return graph_knob_turn(&t->of, t->knob, to, why, sizeof(why)) == 0;
	char *text = strdup(to);
	if (!text)
		return false;
	free(o->configured);
	o->configured = text;
	return true;
}

/* Set all knobs to their new values, or to their old ones if `back` is set. Returns whether all
 * were set. */
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

/* Remove permanent overrides that equal the new configured value, as after `weir save` and a
 * reload. */
static void end_overrides(struct weir_graph *g, const struct turns *t) WEIR_REQUIRES(&g->lock)
{
	for (int i = 0; i < t->n; i++) {
		struct override *o = graph_override(g, &t->turn[i].of, t->turn[i].knob);
		if (!o)
			continue;
		graph_override_settle(o);
		if (!o->values.permanent && !o->values.temporary)
			graph_override_drop(g, o);
	}
}

static void note(struct weir_graph *g, const struct turn *t) WEIR_REQUIRES(&g->lock)
{
	struct weir_change act = {.actor = "reload", .what = "reload"};
	char rule[96], to[48];

	snprintf(act.target, sizeof(act.target), "%.90s.%.90s", owner_name(&t->of), t->knob);
	graph_cut(act.from, sizeof(act.from), t->from);
	graph_cut(act.to, sizeof(act.to), t->to);
	graph_cut(to, sizeof(to), t->to);
	snprintf(rule, sizeof(rule), "%.40s = %s", t->knob, to);
	graph_change_noted(g, &act, NULL, owner_name(&t->of), rule);
}

/* Apply the server-wide settings. An overload mode that was changed at run time is left
 * unchanged. */
static void configure_server(struct weir_graph *g, const struct weir_spec *wanted)
    WEIR_REQUIRES(&g->lock)
{
	struct weir_change act = {.actor = "reload", .what = "reload"};
	int before = g->spec->overload_mode;

	g->spec->grace_ns = wanted->grace_ns;
	g->spec->old_ns = wanted->old_ns;
	g->spec->payload_bytes = wanted->payload_bytes;
	atomic_store(&g->payloads->limit, (uint64_t)wanted->payload_bytes);
	g->spec->family_bytes = wanted->family_bytes;
	atomic_store(&g->payloads->family_limit, (uint64_t)wanted->family_bytes);
	g->spec->overload_mode = wanted->overload_mode;
	if (before == wanted->overload_mode || atomic_load(&g->overload_mode) != before)
		return;
	graph_overload_turn(g, wanted->overload_mode);
	graph_overload_note(g, before, wanted->overload_mode, &act);
	graph_change(g, &act, NULL);
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

/* Call ops->refresh of all stages. No lock is held, since stages may log. No lock is needed, since
 * there is only one reload at a time. */
static void refresh(struct weir_graph *g, const struct weir_graph *wanted)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		if (st->ops->refresh)
			stage_refresh(st, graph_match(wanted, st));
	}
}

void weir_graph_renewed(const struct weir_graph *g, const struct weir_graph *wanted,
    weir_graph_renewed_fn *tell, void *arg)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i], *counterpart = graph_match(wanted, st);
		char text[512];
		if (counterpart && stage_renewed(st, counterpart, text, sizeof(text)))
			tell(arg, st->name, text);
	}
}

static void compare_all(struct weir_graph *g, const struct weir_graph *wanted, struct turns *t)
    WEIR_REQUIRES(&g->lock)
{
	struct weir_graph *other = wanted->stages[0]->graph; /* drops const; only read */
	struct owner of, counterpart;

	for (int i = 0; i < g->n_stages; i++) {
		of = owner_stage(g->stages[i]);
		bool found = graph_match_owner(other, &of, &counterpart);
		WEIR_ASSERT(found);
		compare_table(g, t, &of, &counterpart, weir_stage_knobs, "");
		compare_table(g, t, &of, &counterpart, of.stage->ops->knobs, "with.");
	}
	for (int k = 0; k < g->spec->n_groups; k++) {
		of = (struct owner){.graph = g, .group = &g->spec->groups[k]};
		if (graph_match_owner(other, &of, &counterpart))
			compare_table(g, t, &of, &counterpart, weir_group_knobs, "");
	}
	for (int c = 0; c < g->spec->n_classes; c++) {
		of = (struct owner){.graph = g, .class = &g->classes[c]};
		if (graph_match_owner(other, &of, &counterpart))
			compare_table(g, t, &of, &counterpart, weir_class_knobs, "");
	}
}

int weir_graph_configure(struct weir_graph *g, const struct weir_graph *wanted, int *n_turned)
{
	struct turns t = {0};

	WEIR_ASSERT(g->n_stages == wanted->n_stages);
	lock_take(&g->lock);
	compare_all(g, wanted, &t);
	int rc = configure(g, &t);
	if (rc == 0) {
		graph_classes_renew(g, wanted->spec);
		configure_server(g, wanted->spec);
	}
	lock_release(&g->lock);
	if (rc == 0)
		refresh(g, wanted);
	if (n_turned)
		*n_turned = rc == 0 ? t.n : 0;
	turns_free(&t);
	return rc;
}
