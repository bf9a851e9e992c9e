/* SPDX-License-Identifier: MIT */
/*
 * Operator changes to a running graph: setting knobs, pausing and draining stages, and undo. A knob
 * has up to three values; the first of these that exists is in effect:
 *
 *   temporary   an override until until_ns
 *   permanent   an override
 *   configured  the value that the graph was built with
 *
 * Everything here is guarded by graph->lock. Every change takes the lock once and holds it until
 * the change is complete.
 */
#ifndef WEIR_OPERATE_CHANGES_H
#define WEIR_OPERATE_CHANGES_H

#include "graph/graph.h"

/** The override values of a knob; NULL for a kind of override that the knob does not have. The
 *  strings are owned. */
struct override_values {
	char *permanent;
	char *temporary;
	int64_t until_ns;
	uint64_t temporary_change; /* id of the change that set `temporary` */
	bool stuck;                /* `temporary` has expired, but the knob could not be set back */
	int64_t again_ns;          /* if stuck: when that is tried again */
};

/** The owner of knobs: a stage, a group or a class of events. The other two are NULL. */
struct owner {
	struct weir_graph *graph;
	struct weir_stage *stage;
	struct weir_group_spec *group; /* of graph->spec */
	struct graph_class *class; /* of graph->classes; it has a spec in graph->spec->classes */
};

/** The name under which operators set the knobs of the owner; of a class, "classes.NAME". */
static inline const char *owner_name(const struct owner *of)
{
	return of->stage ? of->stage->name : of->group ? of->group->name : of->class->path;
}

static inline const char *owner_kind(const struct owner *of)
{
	return of->stage ? "stage" : of->group ? "group" : "class";
}

static inline struct owner owner_stage(struct weir_stage *st)
{
	return (struct owner){.graph = st->graph, .stage = st};
}

/** A knob that has an override, and its values. */
struct override {
	struct override *next;
	struct owner of;
	char *knob, *configured; /* owned */
	struct override_values values;
};

/** The state before a change, which an undo restores. */
struct before {
	enum { BEFORE_KNOB, BEFORE_STEER, BEFORE_OVERLOAD } kind;
	struct owner of; /* of no use for the overload mode */
	char *knob;      /* owned */
	struct override_values values;
	int state; /* enum weir_steer, or enum weir_admission_mode */
};

/** Record `act` in the graph's change log. An undo of the change restores `before`, of which the
 *  log takes ownership. Returns the id of the change. */
uint64_t graph_change(struct weir_graph *g, const struct weir_change *act, struct before *before)
    WEIR_REQUIRES(&g->lock);
/** Record `act` like graph_change, and also write it to the journal as a decision about the stage or
 *  group `name`, with `rule` as the reason. */
uint64_t graph_change_noted(struct weir_graph *g, const struct weir_change *act,
    struct before *before, const char *name, const char *rule) WEIR_REQUIRES(&g->lock);
/** Record a change of the overload mode. `mode` is the previous mode. */
void graph_change_overload(struct weir_graph *g, const struct weir_change *act, int mode)
    WEIR_REQUIRES(&g->lock);

/** graph_overload_turn sets the overload mode. graph_overload_note journals the change from
 *  `before` to `mode`, and fills in `target`, `from` and `to` of `act`. */
void graph_overload_turn(struct weir_graph *g, int mode);
void graph_overload_note(struct weir_graph *g, int before, int mode, struct weir_change *act);

/** Check that the owner has this knob, and that the knob is live. Returns 0, or an error of
 *  weir_graph_set with the reason in why[size]. */
int graph_knob_live(const struct owner *of, const char *knob, char *why, size_t size);
/** Set a knob without recording the change. Returns what weir_graph_set returns. */
int graph_knob_turn(
    const struct owner *of, const char *knob, const char *value, char *why, size_t size);
/** Store `value` only in the spec of `st`. For framework knobs that have no effect on this
 *  stage. */
int graph_knob_store(
    struct weir_stage *st, const char *knob, const char *value, char *why, size_t size);
/** Print the effective value of a knob to buf[size]. Returns 0, WEIR_ENOENT or WEIR_EINVAL. */
int graph_knob_print(const struct owner *of, const char *knob, char *buf, size_t size);

/** The same for groups (group_knobs.c). */
int graph_group_knob_live(const struct owner *of, const char *knob, char *why, size_t size);
int graph_group_knob_turn(
    const struct owner *of, const char *knob, const char *value, char *why, size_t size);
/** Check that `value` of a knob of a group is valid when the temporary values of its other knobs that
 *  end before `until_ns` have ended. Returns 0, or WEIR_EINVAL with the reason in why[size]. Values
 *  that are invalid now are not reported. */
int graph_group_knob_lasts(const struct owner *of, const char *knob, const char *value,
    int64_t until_ns, char *why, size_t size) WEIR_REQUIRES(&of->graph->lock);
/** The same for classes (class_knobs.c). graph_class_find returns the class called "classes.NAME",
 *  or NULL, with a message in why[size]. graph_class_spec returns the spec of a class. */
struct graph_class *graph_class_find(
    struct weir_graph *g, const char *path, char *why, size_t size);
struct weir_class_spec *graph_class_spec(const struct owner *of);
int graph_class_knob_live(const struct owner *of, const char *knob, char *why, size_t size);
int graph_class_knob_turn(
    const struct owner *of, const char *knob, const char *value, char *why, size_t size);
/** A reload has made the objectives of `wanted` those of `g`. Whether a class has one of its own is
 *  as in `wanted`, too, except where an operator has set another one. */
void graph_classes_renew(struct weir_graph *g, const struct weir_spec *wanted)
    WEIR_REQUIRES(&g->lock);

/** Let the objective of the stage's spec take effect. */
void graph_stage_slo(struct weir_stage *st);
/** Check `wanted` as `weir check` would. Errors that `now` has, too, do not count. Returns 0, or
 *  WEIR_EINVAL or WEIR_ENOMEM with the reason in why[size]. */
int graph_check_spec(
    const struct weir_spec *now, const struct weir_spec *wanted, char *why, size_t size);
/** The stage's knobs are `next`. Check them as `weir check` would, together with the rest of the
 *  spec. Returns 0, or WEIR_EINVAL or WEIR_ENOMEM with the reason in why[size]. */
int graph_check_stage(
    const struct weir_stage *st, const struct weir_stage_spec *next, char *why, size_t size);

/** Find the row for `path`, such as "threads.max". *base is advanced to the struct that contains the
 *  member. Returns NULL if there is none. */
const struct weir_knob *graph_knob_row(
    const struct weir_knob *table, const char *path, void **base);
/** Parse `value` into the member of `base`. Returns what weir_knob_parse returns; the message has
 *  the whole range. */
int graph_knob_parse(
    const struct weir_knob *row, const char *value, void *base, char *why, size_t size);
/** Report that no row of `table` is called `knob`; `who` has the table. Returns WEIR_ENOENT. */
int graph_no_knob(const struct weir_knob *table, const char *who, const char *name,
    const char *knob, char *why, size_t size);

/** Find the stage called `name`. If there is none, returns NULL, with a message in why[size] that
 *  suggests the nearest name. */
struct weir_stage *graph_find_stage(
    const struct weir_graph *g, const char *name, char *why, size_t size);
/** Find the stage, group or class called `name`. Returns false with a message in why[size]. */
bool graph_find_owner(
    struct weir_graph *g, const char *name, struct owner *of, char *why, size_t size);

/** Restore the values saved in `before`, and fill in `from` and `to` of `act`. */
int graph_override_restore(struct weir_graph *g, const struct before *before,
    struct weir_change *act, char *why, size_t size) WEIR_REQUIRES(&g->lock);
/** Whether the knob has the values saved in `before` already. */
bool graph_override_same(const struct weir_graph *g, const struct before *before)
    WEIR_REQUIRES(&g->lock);
/** Remove expired overrides. The control thread calls this on every tick; if none has expired, the
 *  call costs one load. */
void graph_expire(struct weir_graph *g, int64_t now_ns);
void override_values_free(struct override_values *l);

/** Return the name of a state: "running", "paused" or "draining". */
const char *graph_steer_word(int how);
/** Set the state of `st` without recording the change. */
void graph_steer_turn(struct weir_stage *st, int how);
/** Allow operators to pause stages from now on. */
void graph_steer_begin(struct weir_graph *g);
/** Resume all stages and allow no more pauses. Called before a drain. */
void graph_steer_end(struct weir_graph *g);

/** Check that `st` supports state `how`, whatever the phase of the graph. Returns 0, or WEIR_EINVAL
 *  with the reason in why[size]. */
int graph_can_steer(const struct weir_stage *st, enum weir_steer how, char *why, size_t size);
/** Check that `st` may be brought into state `how` now. Returns 0, or WEIR_EINVAL or WEIR_EBUSY
 *  with the reason in why[size]. */
int graph_may_steer(const struct weir_graph *g, const struct weir_stage *st, enum weir_steer how,
    char *why, size_t size) WEIR_REQUIRES(&g->lock);

/** Return the stage of `g` with the name and type of `st`, or NULL if there is none. */
struct weir_stage *graph_match(const struct weir_graph *g, const struct weir_stage *st);
/** Find the owner in `g` that corresponds to `of` in another graph. Returns false if there is none. */
bool graph_match_owner(struct weir_graph *g, const struct owner *of, struct owner *match);
/** Report in the journal and the log that `what` of `stage` was lost in a reload, and why. */
void graph_dropped(struct weir_graph *g, const char *actor, const char *stage, const char *what,
    const char *why) WEIR_REQUIRES(&g->lock);
/** Copy the changes of `old` to `g`. Those whose stage still exists can be undone there. */
void graph_changes_carry(struct weir_graph *g, struct weir_graph *old) WEIR_REQUIRES(&g->lock);
/** Apply the overrides of `old` to `g`. `old` must no longer accept changes. */
void graph_overrides_carry(struct weir_graph *g, struct weir_graph *old) WEIR_REQUIRES(&g->lock);
/** Check that `g` still accepts changes. Returns 0, or WEIR_EBUSY with the reason in why[size] if
 *  another graph is replacing it or has replaced it. */
int graph_changes_open(const struct weir_graph *g, char *why, size_t size) WEIR_REQUIRES(&g->lock);
/** Copy the values to *to; the caller owns the copy. Returns 0, or WEIR_ENOMEM with *to empty. */
int override_values_copy(struct override_values *to, const struct override_values *from);

/** Return the override of `knob` at `st`, or NULL if there is none. */
struct override *graph_override(
    const struct weir_graph *g, const struct owner *of, const char *knob) WEIR_REQUIRES(&g->lock);
/** Return the override of a knob; allocate it first if necessary. Returns NULL if out of memory, or
 *  if the knob does not exist, in which case *missing is true. */
struct override *graph_override_need(struct weir_graph *g, const struct owner *of, const char *knob,
    bool *missing) WEIR_REQUIRES(&g->lock);
/** Return the value that would be in effect if `o` had the values `l`. */
const char *graph_override_value(const struct override *o, const struct override_values *l);
/** If the permanent value of `o` equals the configured value, remove it. The caller drops `o` if it
 *  has no values left. */
void graph_override_settle(struct override *o);
/** Remove `o` from the list and free it. */
void graph_override_drop(struct weir_graph *g, struct override *o) WEIR_REQUIRES(&g->lock);
/** Return the effective value of a knob, allocated with malloc, or NULL if there is no such knob or
 *  if out of memory. */
char *graph_knob_text(const struct owner *of, const char *knob);

/** Write a message to why[size]. Returns `code`. */
int graph_say(char *why, size_t size, int code, const char *fmt, ...) WEIR_PRINTF(4, 5);

/** Copy `text` to buf[size]. If it does not fit, truncate it and end it with "...". */
void graph_cut(char *buf, size_t size, const char *text);

#endif
