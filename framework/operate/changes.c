/* SPDX-License-Identifier: MIT */
/* Records operator changes in the change log and the journal, and undoes them; see changes.h. */
#include "operate/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "graph/group.h"

int graph_say(char *why, size_t size, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return code;
}

void graph_cut(char *buf, size_t size, const char *text)
{
	size_t n = strlen(text);

	if (n < size)
		memcpy(buf, text, n + 1);
	else {
		size_t keep = size - 4;
		/* never cut inside a UTF-8 character: the JSON would be invalid */
		while (keep > 0 && (text[keep] & 0xc0) == 0x80)
			keep--;
		snprintf(buf, size, "%.*s...", (int)keep, text);
	}
}

static struct weir_stage *find_named(
    const struct weir_graph *g, const char *name, const char *what, char *why, size_t size)
{
	struct weir_stage *st = weir_graph_stage(g, name);
	const char *names[WEIR_STAGES_MAX];
	int n = 0;

	if (st)
		return st;
	if (graph_group_spec(g, name)) {
		graph_say(why, size, 0, "there is no stage '%s': it is a group", name);
		return NULL;
	}
	for (; n < g->n_stages; n++)
		names[n] = g->stages[n]->name;
	const char *near = weir_nearest(name, names, n);
	graph_say(why, size, 0, "there is no %s '%s'%s%s%s", what, name,
	    near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
	return NULL;
}

struct weir_stage *graph_find_stage(
    const struct weir_graph *g, const char *name, char *why, size_t size)
{
	return find_named(g, name, "stage", why, size);
}

bool graph_find_owner(
    struct weir_graph *g, const char *name, struct owner *of, char *why, size_t size)
{
	*of = (struct owner){.graph = g, .group = graph_group_spec(g, name)};
	if (!of->group)
		of->stage = weir_graph_stage(g, name);
	if (of->group || of->stage)
		return true;
	if (strncmp(name, CLASSES_PREFIX, sizeof(CLASSES_PREFIX) - 1) == 0)
		of->class = graph_class_find(g, name, why, size);
	else
		find_named(g, name, "stage or group", why, size);
	return of->class;
}

static void forget(void *arg)
{
	struct before *b = arg;

	if (!b)
		return;
	override_values_free(&b->values);
	free(b->knob);
	free(b);
}

static void init(struct weir_graph *g)
{
	change_log_init(&g->change_log, forget);
	atomic_init(&g->expires_ns, INT64_MAX);
}

static void fini(struct weir_graph *g)
{
	struct override *next;

	for (struct override *o = g->overrides; o; o = next) {
		next = o->next;
		override_values_free(&o->values);
		free(o->knob);
		free(o->configured);
		free(o);
	}
	g->overrides = NULL;
	weir_graph_dropped(g, NULL, NULL);
	change_log_fini(&g->change_log);
}

const struct graph_operator graph_operator = {
    .init = init,
    .fini = fini,
    .started = graph_steer_begin,
    .drains = graph_steer_end,
    .tick = graph_expire,
};

/* Name of the user on whose behalf this thread acts, or "" if none was given. */
static _Thread_local char acting[sizeof(((struct weir_change *)0)->actor)];

void weir_graph_change_as(const char *name)
{
	snprintf(acting, sizeof(acting), "%s", name ? name : "");
}

int graph_changes_open(const struct weir_graph *g, char *why, size_t size)
{
	if (!g->succeeded)
		return 0;
	return graph_say(why, size, WEIR_EBUSY,
	    "the server is switching to a new configuration: try again in a moment");
}

/* Whether `of` may be put back into the state saved in `b`, given its type and placement. */
static bool can_return(const struct owner *of, const struct before *b)
{
	char why[256];

	return b->kind == BEFORE_STEER
		   ? graph_can_steer(of->stage, (enum weir_steer)b->state, why, sizeof(why)) == 0
		   : graph_knob_live(of, b->knob, why, sizeof(why)) == 0;
}

/* Copy `before` for graph `arg`. Returns NULL if out of memory, if that graph has no such stage, or
 * or group, or if that has no such knob or state. */
static void *before_carried(void *arg, const void *before)
{
	const struct before *from = before;
	struct owner of = {0};
	bool can = from->kind == BEFORE_OVERLOAD ||
		   (graph_match_owner(arg, &from->of, &of) && can_return(&of, from));
	struct before *b = can ? calloc(1, sizeof(*b)) : NULL;

	if (!b)
		return NULL;
	b->kind = from->kind;
	b->of = of;
	b->state = from->state;
	b->knob = from->knob ? strdup(from->knob) : NULL;
	if ((!from->knob || b->knob) && override_values_copy(&b->values, &from->values) == 0)
		return b;
	free(b->knob);
	free(b);
	return NULL;
}

void graph_changes_carry(struct weir_graph *g, struct weir_graph *old)
{
	change_log_copy(&g->change_log, &old->change_log, before_carried, g);
}

uint64_t graph_change(struct weir_graph *g, const struct weir_change *act, struct before *before)
{
	struct weir_change told = *act;

	if (acting[0] && (strcmp(told.actor, "operator") == 0 || strcmp(told.actor, "reload") == 0))
		memcpy(told.actor, acting, sizeof(acting));
	return change_log_add(&g->change_log, told, before);
}

uint64_t graph_change_noted(struct weir_graph *g, const struct weir_change *act,
    struct before *before, const char *name, const char *rule)
{
	struct weir_decision d = {0};

	snprintf(d.stage, sizeof(d.stage), "%s", name);
	snprintf(d.actor, sizeof(d.actor), "%s", act->actor);
	snprintf(d.action, sizeof(d.action), "%s", act->what);
	snprintf(d.rule, sizeof(d.rule), "%.95s", rule);
	if (act->from[0])
		snprintf(d.inputs, sizeof(d.inputs), "it was %s", act->from);
	journal_add(control_journal(g->control), d);
	return graph_change(g, act, before);
}

void graph_change_overload(struct weir_graph *g, const struct weir_change *act, int mode)
{
	struct before *b = calloc(1, sizeof(*b));

	if (b) { /* if out of memory, the change cannot be undone */
		b->kind = BEFORE_OVERLOAD;
		b->state = mode;
	}
	graph_change(g, act, b);
}

int weir_graph_changes(const struct weir_graph *cg, struct weir_change *out, int n)
{
	struct weir_graph *g = cg->stages[0]->graph; /* drops const, since reading takes a lock */

	return change_log_read(&g->change_log, out, n);
}

static void restore_overload(struct weir_graph *g, const struct before *b, struct weir_change *act)
    WEIR_REQUIRES(&g->lock)
{
	int now = atomic_load(&g->overload_mode);

	graph_overload_turn(g, b->state);
	graph_overload_note(g, now, b->state, act);
	graph_change(g, act, NULL);
}

static int restore_steer(struct weir_graph *g, const struct before *b, struct weir_change *act,
    char *why, size_t size) WEIR_REQUIRES(&g->lock)
{
	struct weir_stage *st = b->of.stage;
	int rc = graph_may_steer(g, st, (enum weir_steer)b->state, why, size);

	if (rc != 0)
		return rc;
	graph_cut(act->from, sizeof(act->from), graph_steer_word(atomic_load(&st->steer)));
	graph_cut(act->to, sizeof(act->to), graph_steer_word(b->state));
	graph_steer_turn(st, b->state);
	return 0;
}

/* Undo `last`. The undo is itself recorded, as a change that cannot be undone, so that repeated
 * undo does not alternate between two states. */
static int take_back(struct weir_graph *g, const struct weir_change *last, const struct before *b,
    char *why, size_t size) WEIR_REQUIRES(&g->lock)
{
	struct weir_change act = {.actor = "operator", .what = "undo"};
	char rule[96];
	int rc = 0;

	memcpy(act.target, last->target, sizeof(act.target));
	if (b->kind == BEFORE_OVERLOAD) {
		restore_overload(g, b, &act);
		return 0;
	}
	if (b->kind == BEFORE_STEER)
		rc = restore_steer(g, b, &act, why, size);
	else
		rc = graph_override_restore(g, b, &act, why, size);
	if (rc != 0)
		return rc;
	char to[48];
	graph_cut(to, sizeof(to), act.to);
	snprintf(rule, sizeof(rule), "%.40s = %s", b->kind == BEFORE_KNOB ? b->knob : "state", to);
	graph_change_noted(g, &act, NULL, owner_name(&b->of), rule);
	return 0;
}

/* Note that `act` will never be undone in this graph. The next undo then picks an older change. */
static void forget_change(struct weir_graph *g, const struct weir_change *act, const char *reason)
    WEIR_REQUIRES(&g->lock)
{
	struct weir_decision d = {.actor = "operator", .action = "dropped"};

	snprintf(d.rule, sizeof(d.rule), "undo of '%s' of '%.64s'", act->what, act->target);
	graph_cut(d.inputs, sizeof(d.inputs), reason);
	journal_add(control_journal(g->control), d);
	change_log_set_aside(&g->change_log, act->id);
}

/* Report that `act` can never be undone in this graph. */
static void set_aside(struct weir_graph *g, const struct weir_change *act, char *why, size_t size)
    WEIR_REQUIRES(&g->lock)
{
	char reason[256];

	graph_cut(reason, sizeof(reason), why);
	graph_say(why, size, 0,
	    "'%s' of '%s' can no longer be undone: %s; another undo reverts the change before it",
	    act->what, act->target, reason);
	forget_change(g, act, reason);
}

/* Whether an undo of `act` would change nothing, although `act` did: for example, a reload has
 * dropped the override, or the file now has its value. */
static bool is_void(struct weir_graph *g, const struct weir_change *act, const struct before *b)
    WEIR_REQUIRES(&g->lock)
{
	if (strcmp(act->from, act->to) == 0)
		return false;
	if (b->kind == BEFORE_OVERLOAD)
		return atomic_load(&g->overload_mode) == b->state;
	if (b->kind == BEFORE_STEER)
		return atomic_load(&b->of.stage->steer) == b->state;
	return graph_override_same(g, b);
}

/* Find the last change that an undo would take back. Changes after it that have no effect any more
 * are set aside. */
static bool find_last(struct weir_graph *g, struct weir_change *last, void **before)
    WEIR_REQUIRES(&g->lock)
{
	while (change_log_last(&g->change_log, last, before)) {
		if (!is_void(g, last, *before))
			return true;
		forget_change(g, last, "it has no effect any more");
	}
	return false;
}

int weir_graph_undo(struct weir_graph *g, struct weir_change *undone, char *why, size_t size)
{
	struct weir_change last;
	void *before;

	lock_take(&g->lock);
	int rc = graph_changes_open(g, why, size);
	bool found = rc == 0 && find_last(g, &last, &before);
	if (rc == 0)
		rc = found ? take_back(g, &last, before, why, size)
			   : graph_say(why, size, WEIR_ENOENT, "no change is left to undo");
	if (rc == 0)
		change_log_undone(&g->change_log, last.id);
	else if (found && rc != WEIR_ENOMEM && rc != WEIR_EBUSY)
		set_aside(g, &last, why, size);
	lock_release(&g->lock);
	if (rc == 0 && undone) {
		last.undone = true;
		*undone = last;
	}
	return rc;
}
