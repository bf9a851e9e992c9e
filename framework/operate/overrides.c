/* SPDX-License-Identifier: MIT */
/*
 * Permanent and temporary overrides of the configured values of knobs.
 *
 * An override is allocated when its knob is first set, and freed when its last value is removed.
 * Strings are copied before the knob is set, so a failure changes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

#include "base/clock.h"
#include "control/control.h"
#include "operate/changes.h"

/* Retry interval for an expired override that could not be removed because the value of another
 * knob forbids it. */
#define EXPIRE_AGAIN_NS (100 * NS_PER_MS)

static int64_t due_ns(const struct override *o)
{
	return o->values.stuck ? o->values.again_ns : o->values.until_ns;
}

/* Set the time at which the control thread must next check for expired overrides. */
static void schedule(struct weir_graph *g) WEIR_REQUIRES(&g->lock)
{
	int64_t first_ns = INT64_MAX;

	for (const struct override *o = g->overrides; o; o = o->next)
		if (o->values.temporary && due_ns(o) < first_ns)
			first_ns = due_ns(o);
	atomic_store(&g->expires_ns, first_ns);
}

static struct before *before_of(const struct override *o)
{
	struct before *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->kind = BEFORE_KNOB;
	b->of = o->of;
	b->knob = strdup(o->knob);
	if (b->knob && override_values_copy(&b->values, &o->values) == 0)
		return b;
	free(b->knob);
	free(b);
	return NULL;
}

static void before_free(struct before *b)
{
	if (!b)
		return;
	override_values_free(&b->values);
	free(b->knob);
	free(b);
}

/* Set the knob to the value that is in effect with `l`, and make `l` its values. On success the
 * override takes ownership of `l`. */
static int put(
    struct override *o, struct override_values *l, struct weir_change *act, char *why, size_t size)
{
	graph_cut(act->from, sizeof(act->from), graph_override_value(o, &o->values));
	int rc = graph_knob_turn(&o->of, o->knob, graph_override_value(o, l), why, size);
	if (rc != 0)
		return rc;
	graph_cut(act->to, sizeof(act->to), graph_override_value(o, l));
	if (l->temporary)
		act->expires_wall_ns = clock_wall_ns() + l->until_ns - clock_now_ns();
	override_values_free(&o->values);
	o->values = *l;
	*l = (struct override_values){0};
	return 0;
}

static void name_target(struct weir_change *act, const struct override *o)
{
	snprintf(act->target, sizeof(act->target), "%.90s.%.90s", owner_name(&o->of), o->knob);
}

/* Record the change, and free the override if it has no values left. Returns the id of the
 * change. */
static uint64_t done(struct weir_graph *g, struct override *o, const struct weir_change *act,
    struct before *b) WEIR_REQUIRES(&g->lock)
{
	char rule[96], to[48];

	graph_cut(to, sizeof(to), act->to);
	snprintf(rule, sizeof(rule), "%.40s = %s", o->knob, to);
	uint64_t id = graph_change_noted(g, act, b, owner_name(&o->of), rule);
	if (!o->values.permanent && !o->values.temporary)
		graph_override_drop(g, o);
	schedule(g);
	return id;
}

/* ---- set ---- */

/* Store the override's value in the form in which knobs are printed, so that 1k and 1000 are stored
 * identically. */
static void normalize(struct override *o)
{
	char *text = graph_knob_text(&o->of, o->knob);
	char **at = o->values.temporary ? &o->values.temporary : &o->values.permanent;

	if (!text)
		return;
	free(*at);
	*at = text;
}

static int values_with(
    struct override_values *l, const struct override *o, const char *value, int64_t for_ns)
{
	*l = (struct override_values){0};
	if (for_ns == 0) {
		l->permanent = strdup(value);
		return l->permanent ? 0 : WEIR_ENOMEM;
	}
	l->temporary = strdup(value);
	l->permanent = o->values.permanent ? strdup(o->values.permanent) : NULL;
	l->until_ns = clock_now_ns() + for_ns;
	if (l->temporary && (!o->values.permanent || l->permanent))
		return 0;
	override_values_free(l);
	return WEIR_ENOMEM;
}

/* The caller holds the lock of the override's graph, which it knows by another pointer. */
static int lasts(const struct override *o, const char *value, int64_t until_ns, char *why,
    size_t size) WEIR_NO_THREAD_SAFETY
{
	return graph_group_knob_lasts(&o->of, o->knob, value, until_ns, why, size);
}

static int set_locked(struct weir_graph *g, struct override *o, const char *value, int64_t for_ns,
    char *why, size_t size) WEIR_REQUIRES(&g->lock)
{
	struct weir_change act = {.actor = "operator", .what = "set"};
	struct before *b = before_of(o);
	struct override_values l;
	int rc = b ? values_with(&l, o, value, for_ns) : WEIR_ENOMEM;

	if (rc != 0) {
		before_free(b);
		return graph_say(why, size, rc, "out of memory");
	}
	name_target(&act, o);
	if (o->of.group)
		rc = lasts(o, value, for_ns > 0 ? l.until_ns : INT64_MAX, why, size);
	if (rc == 0)
		rc = put(o, &l, &act, why, size);
	if (rc != 0) {
		override_values_free(&l);
		before_free(b);
		return rc;
	}
	normalize(o);
	graph_cut(act.to, sizeof(act.to), graph_override_value(o, &o->values));
	o->values.temporary_change = done(g, o, &act, b);
	return 0;
}

int weir_graph_set_for(struct weir_graph *g, const char *stage, const char *knob, const char *value,
    int64_t for_ns, char *why, size_t size)
{
	struct owner of;
	bool missing;
	int rc;

	if (!graph_find_owner(g, stage, &of, why, size))
		return WEIR_ENOENT;
	if (for_ns < 0 || for_ns > WEIR_FOR_MAX_NS)
		return graph_say(why, size, WEIR_EINVAL,
		    "a value can be set for 1 ns to 31 days, or permanently");
	lock_take(&g->lock);
	struct override *o = NULL;
	rc = graph_changes_open(g, why, size);
	if (rc != 0) {
		lock_release(&g->lock);
		return rc;
	}
	o = graph_override_need(g, &of, knob, &missing);
	if (o)
		rc = set_locked(g, o, value, for_ns, why, size);
	else if (missing) /* this call fails and writes the message */
		rc = graph_knob_turn(&of, knob, value, why, size);
	else
		rc = graph_say(why, size, WEIR_ENOMEM, "out of memory");
	if (o && rc != 0 && !o->values.permanent && !o->values.temporary)
		graph_override_drop(g, o);
	lock_release(&g->lock);
	return rc;
}

int weir_graph_set(struct weir_graph *g, const char *stage, const char *knob, const char *value,
    char *why, size_t size)
{
	return weir_graph_set_for(g, stage, knob, value, 0, why, size);
}

/* ---- unset and restore ---- */

static int unset_locked(struct weir_graph *g, const struct owner *of, const char *knob, char *why,
    size_t size) WEIR_REQUIRES(&g->lock)
{
	struct weir_change act = {.actor = "operator", .what = "unset"};
	struct override *o = graph_override(g, of, knob);
	struct override_values none = {0};
	char probe[2];

	/* this call fails and writes the message */
	if (!o && graph_knob_print(of, knob, probe, sizeof(probe)) != 0)
		return graph_knob_turn(of, knob, "", why, size);
	if (!o)
		return graph_say(why, size, WEIR_EBUSY,
		    "'%s' of %s '%s' already has its configured value", knob, owner_kind(of),
		    of->class ? of->class->name : owner_name(of));
	struct before *b = before_of(o);
	if (!b)
		return graph_say(why, size, WEIR_ENOMEM, "out of memory");
	name_target(&act, o);
	int rc = put(o, &none, &act, why, size);
	if (rc == 0)
		done(g, o, &act, b);
	else
		before_free(b);
	return rc;
}

int weir_graph_unset(
    struct weir_graph *g, const char *stage, const char *knob, char *why, size_t size)
{
	struct owner of;

	if (!graph_find_owner(g, stage, &of, why, size))
		return WEIR_ENOENT;
	lock_take(&g->lock);
	int rc = graph_changes_open(g, why, size);
	if (rc == 0)
		rc = unset_locked(g, &of, knob, why, size);
	lock_release(&g->lock);
	return rc;
}

/* Mark change `id`, whose temporary override has expired, as undone. If it replaced another
 * temporary override, mark the change that set that one, too, and so on. */
static void forget_temporary(struct weir_graph *g, uint64_t id) WEIR_REQUIRES(&g->lock)
{
	while (id != 0) {
		const struct before *b = change_log_before(&g->change_log, id);
		change_log_undone(&g->change_log, id);
		id = b && b->kind == BEFORE_KNOB && b->values.temporary ? b->values.temporary_change
									: 0;
	}
}

int graph_override_restore(
    struct weir_graph *g, const struct before *b, struct weir_change *act, char *why, size_t size)
{
	bool missing;
	struct override *o = graph_override_need(g, &b->of, b->knob, &missing);
	struct override_values l;

	if (!o || override_values_copy(&l, &b->values) != 0) {
		if (o && !o->values.permanent && !o->values.temporary)
			graph_override_drop(g, o);
		return graph_say(why, size, WEIR_ENOMEM, "out of memory");
	}
	uint64_t expired = 0;
	if (l.temporary && l.until_ns <= clock_now_ns()) { /* expired since the change */
		free(l.temporary);
		l.temporary = NULL;
		expired = l.temporary_change;
	}
	int rc = put(o, &l, act, why, size);
	override_values_free(&l);
	if (rc == 0)
		forget_temporary(g, expired);
	if (!o->values.permanent && !o->values.temporary)
		graph_override_drop(g, o);
	schedule(g);
	return rc;
}

/** One check for expired overrides. */
struct expiry {
	int64_t now_ns;
	char text[512]; /* to be logged when no lock is held, or "" */
};

/* Record that the knob cannot return to its value in `l`. */
static void note_stuck(struct weir_graph *g, const struct override *o,
    const struct override_values *l, const char *why, struct expiry *e) WEIR_REQUIRES(&g->lock)
{
	struct weir_change act = {.actor = "expiry", .what = "expire failed"};
	struct weir_decision d = {.actor = "expiry", .action = "expire failed"};
	char to[48];

	name_target(&act, o);
	graph_cut(act.from, sizeof(act.from), o->values.temporary);
	graph_cut(act.to, sizeof(act.to), graph_override_value(o, l));
	graph_cut(to, sizeof(to), act.to);
	graph_cut(d.stage, sizeof(d.stage), owner_name(&o->of));
	snprintf(d.rule, sizeof(d.rule), "%.30s cannot return to %.40s", o->knob, to);
	graph_cut(d.inputs, sizeof(d.inputs), why);
	journal_add(control_journal(g->control), d);
	graph_change(g, &act, NULL);
	snprintf(e->text, sizeof(e->text), "%.100s stays %.40s and cannot return to %.40s: %.180s",
	    act.target, act.from, to, why);
}

/* Remove the temporary value. Returns false if the knob could not be set back: for example,
 * threads.max cannot return to a value below an overridden threads.min. The failure is recorded
 * once. */
static bool expire(struct weir_graph *g, struct override *o, struct expiry *e)
    WEIR_REQUIRES(&g->lock)
{
	struct weir_change act = {.actor = "expiry", .what = "expire"};
	struct override_values l = {
	    .permanent = o->values.permanent ? strdup(o->values.permanent) : NULL};
	uint64_t id = o->values.temporary_change;
	char why[256] = "out of memory";

	name_target(&act, o);
	if ((o->values.permanent && !l.permanent) || put(o, &l, &act, why, sizeof(why)) != 0) {
		if (!o->values.stuck)
			note_stuck(g, o, &l, why, e);
		override_values_free(&l);
		o->values.again_ns = e->now_ns + EXPIRE_AGAIN_NS;
		o->values.stuck = true;
		return false;
	}
	forget_temporary(g, id);
	done(g, o, &act, NULL);
	return true;
}

/* Remove expired overrides in one pass. Returns true if one was removed, since that may make it
 * possible to remove others. */
static bool expire_pass(struct weir_graph *g, struct expiry *e) WEIR_REQUIRES(&g->lock)
{
	struct override *next;
	bool moved = false;

	for (struct override *o = g->overrides; o; o = next) {
		next = o->next;
		if (o->values.temporary && due_ns(o) <= e->now_ns)
			moved |= expire(g, o, e);
	}
	/* Retry those that failed earlier in this pass. */
	for (struct override *o = g->overrides; o && moved; o = o->next)
		if (o->values.temporary && o->values.stuck)
			o->values.again_ns = e->now_ns;
	return moved;
}

void graph_expire(struct weir_graph *g, int64_t now_ns)
{
	if (WEIR_LIKELY(now_ns < atomic_load_explicit(&g->expires_ns, memory_order_relaxed)))
		return;
	struct expiry e = {.now_ns = now_ns};
	lock_take(&g->lock);
	/* if another graph takes over, that graph has copies of the overrides and expires them */
	while (!g->succeeded && expire_pass(g, &e))
		;
	schedule(g);
	lock_release(&g->lock);
	if (e.text[0]) /* no lock is held, since a log call may block */
		weir_log(WEIR_LOG_WARN, "%s", e.text);
}

/* ---- carrying over to a new graph ---- */

/* Override the knob of `of` as `from` did in the previous graph. Does nothing and returns 0 if the
 * new configuration already has that value. */
static int carry(struct weir_graph *g, const struct owner *of, const struct override *from,
    char *why, size_t size) WEIR_REQUIRES(&g->lock)
{
	struct weir_change ignored = {0};
	struct override_values l = {0};
	bool missing;
	struct override *o = graph_override_need(g, of, from->knob, &missing);
	int rc = missing                                              ? WEIR_ENOENT
		 : !o || override_values_copy(&l, &from->values) != 0 ? WEIR_ENOMEM
								      : 0;

	if (rc != 0)
		graph_say(why, size, rc, missing ? "the knob no longer exists" : "out of memory");
	else if (l.temporary || (l.permanent && strcmp(l.permanent, o->configured) != 0))
		rc = put(o, &l, &ignored, why, size);
	override_values_free(&l);
	if (rc == 0)
		graph_override_settle(o);
	if (o && !o->values.permanent && !o->values.temporary)
		graph_override_drop(g, o);
	return rc;
}

/* Make one pass over the overrides that are not `done`, and carry them over. Bounds that depend on
 * each other may need two passes. Returns whether any override was carried over. */
static bool carry_pass(struct weir_graph *g, const struct weir_graph *old, bool *done, bool say)
    WEIR_REQUIRES(&g->lock)
{
	bool moved = false;
	int i = 0;

	for (const struct override *o = old->overrides; o; o = o->next, i++) {
		struct owner of;
		char why[192];
		if (done[i])
			continue;
		graph_say(why, sizeof(why), 0, "the %s no longer exists", owner_kind(&o->of));
		done[i] =
		    graph_match_owner(g, &o->of, &of) && carry(g, &of, o, why, sizeof(why)) == 0;
		moved |= done[i];
		if (!done[i] && say)
			graph_dropped(g, "reload", owner_name(&o->of), o->knob, why);
	}
	return moved;
}

void graph_overrides_carry(struct weir_graph *g, struct weir_graph *old)
{
	int n = 0;

	lock_take(&old->lock);
	for (const struct override *o = old->overrides; o; o = o->next)
		n++;
	bool *done = calloc((size_t)n + 1, sizeof(*done));
	while (done && carry_pass(g, old, done, false))
		continue;
	if (done)
		carry_pass(g, old, done, true);
	lock_release(&old->lock);
	free(done);
	schedule(g);
}
