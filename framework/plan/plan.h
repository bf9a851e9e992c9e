/* SPDX-License-Identifier: MIT */
/*
 * A plan is a spec in which every name is resolved and every assumption of handlers is checked.
 *
 * plan_make() builds a plan from a spec. weir_spec_check() discards the plan, and
 * weir_graph_build() builds a graph from it, so the check and the build cannot disagree. Building a
 * plan acquires no resources other than memory.
 */
#ifndef WEIR_PLAN_PLAN_H
#define WEIR_PLAN_PLAN_H

#include <weir/spec.h>
#include <weir/stage.h>

#include "stage/sink.h"

struct plan_outlet {
	const char *name; /* from the ops table or the spec */
	int to;           /* id of the stage that it leads to, -1 if unlinked */
	/* type of the events emitted here; NULL if unknown, if any type is allowed, or if the stage
	 * emits no events here */
	const struct weir_event_type *type;
	bool optional, any, loop;
	bool children; /* the stage awaits what it sends here */
	bool typed;    /* `type` is known, and the link has been checked */
	struct weir_mark mark;
};

struct plan_stage {
	const struct weir_stage_spec *spec;
	const struct weir_stage_ops *ops;   /* NULL if `use` is unknown, which is an error */
	const struct weir_event_type *type; /* type of the input events, NULL if unknown */
	int depth;
	int group;          /* index into spec->groups, or -1 */
	int64_t service_ns; /* configured service time of an event; 0 if unknown */
	int64_t per_loop;   /* of a source: ops->per_loop; 0 if there is no limit */
	int n_outlets;
	struct plan_outlet *outlets;
	struct key_source key;   /* key.field.arg points into the spec */
	struct cost_source cost; /* likewise */
	bool serial;             /* `key` is a serial key (sched/serial.h) */
};

struct plan {
	const struct weir_spec *spec;
	int n;
	struct plan_stage *stages;                 /* in spec order; the index is the stage id */
	int *order;                                /* stage ids, upstream first */
	const struct weir_event_type *source_type; /* what the first source emits, or NULL */
	struct weir_errs *errs;
};

/** Check `spec` and fill in `plan`. All errors are added to `errs`. Returns 0, WEIR_EINVAL or
 *  WEIR_ENOMEM. The caller must call plan_free in every case. */
int plan_make(const struct weir_spec *spec, struct plan *plan, struct weir_errs *errs);
void plan_free(struct plan *plan);

/* The steps of plan_make. */
void plan_links(struct plan *p);     /* plan/links.c: outlets, targets, reachability */
void plan_order(struct plan *p);     /* plan/order.c: cycles, depth, order */
void plan_types(struct plan *p);     /* plan/order.c: types along links */
void plan_children(struct plan *p);  /* plan/children.c: cycles of awaits */
void plan_classes(struct plan *p);   /* plan/classes.c: fields, reach, priorities, guarantees */
void plan_placement(struct plan *p); /* plan/placement.c: pools, modes, keys, policies, budget */
void plan_payloads(struct plan *p);  /* plan/payloads.c: what stages need and give */
void plan_payloads_many(struct plan *p); /* plan/payloads_many.c: more than an event can have */
int plan_link_names(struct plan *p);     /* plan/links.c: names of outlets and stages */
void plan_slo(struct plan *p);           /* plan/slo.c: objectives that no event can meet */

/** Why no event of a stage of this type can have children, as in "stage 'x' ...", or NULL: some may.
 *  The text is static. */
const char *plan_childless(const struct weir_stage_ops *ops);

/** Check `width:` of a stage; a part of plan_placement. */
void plan_width(struct plan *p, const struct plan_stage *ps);

/** Check `queue:` of a stage; a part of plan_placement. */
void plan_queue(struct plan *p, struct plan_stage *ps, bool queued);

/** The name of the first source in group `g`, or NULL. */
const char *plan_source_in(const struct plan *p, int g);
/** The position of `key` under `with:` of the stage, or that of the stage. plan/hosts.c */
const struct weir_mark *plan_with_mark(const struct weir_stage_spec *s, const char *key);
/** Check where a source runs; part of plan_placement (plan/hosts.c). */
void plan_source(struct plan *p, const struct plan_stage *ps);

/** Whether the inline stage may block the threads of its callers, since these are loops that have
 *  one client each. If not, the reason and what to change are written to why[size].
 *  plan/per_loop.c */
bool plan_may_block(const struct plan *p, const struct plan_stage *ps, char *why, size_t size);
/** Log a warning of each source with a limit of clients per loop and a queue behind it. For plans without
 *  errors. */
void plan_per_loop_warn(const struct plan *p);

/** Check the knobs of core groups in group `g` and in a stage; parts of plan_placement. */
void plan_group_cores(struct plan *p, int g);
void plan_stage_cores(struct plan *p, const struct plan_stage *ps);
/** The first key of the stage that needs a core group, or NULL. *mark is set to its position. */
const char *plan_cores_key(const struct weir_stage_spec *s, const struct weir_mark **mark);
/** Log warnings of core groups that share CPUs, and of lingering that ends visits. For plans without
 *  errors. */
void plan_cores_warn(const struct plan *p);
/** Check `serial:` of group `g`, and of a stage, and find the key of that; parts of plan_placement
 *  (plan/serial.c). */
void plan_group_serial(struct plan *p, int g);
void plan_stage_serial(struct plan *p, struct plan_stage *ps);
/** Whether a serial key is written for the stage, at it or at its group; it may be wrong. */
bool plan_has_serial_key(const struct plan *p, const struct plan_stage *ps);
/** Log a warning of each link on which the order of a serial key ends, although events come back to
 *  serial stages of the same group. For plans without errors. */
void plan_serial_warn(const struct plan *p);
/** Set the key of the stage to `name`: "event", "class", "stage" or a field. Returns false if there is
 *  no such key. */
bool plan_key(const struct plan *p, struct plan_stage *ps, const char *name);
/** Check `mode: replicated` of a stage; a part of plan_stage_cores. */
void plan_stage_replicas(struct plan *p, const struct plan_stage *ps);
/** Check `replicas` of core group `g`; a part of plan_group_cores. */
void plan_group_replicas(struct plan *p, int g);
/** Write `before` and the schedules of core groups, as "fifo, wavefront, ...", to `hint`. Returns
 *  `hint`. */
const char *plan_schedules(char *hint, size_t size, const char *before);
/** The threads of a group, if it is a core group: one per core. */
struct weir_threads_spec plan_core_threads(const struct weir_group_spec *gs);
/** The number of cores that core group `g` can get while it exists. */
int plan_cores_most(const struct plan *p, int g);
/** Whether the stage, which is no source, is in group `g`: its events wait for the group's threads. */
bool plan_is_member(const struct plan *p, const struct plan_stage *ps, int g);
/** Whether there is a schedule of this name. */
bool plan_schedule_known(const struct weir_group_spec *gs);
/** Whether the stage is in a core group. */
bool plan_in_cores(const struct plan *p, const struct plan_stage *ps);

/** Return `own`, the position of a key, or `whole`, the position of its section, if the key is
 *  absent. */
static inline const struct weir_mark *plan_mark(
    const struct weir_mark *own, const struct weir_mark *whole)
{
	return own->file ? own : whole;
}

/** Log a warning about what is at `mark`. */
void plan_warn(const struct weir_mark *mark, const char *fmt, ...) WEIR_PRINTF(2, 3);

/** Report `name` if it is not a valid name for a `kind`. */
void plan_name(struct plan *p, const char *kind, const char *name, const struct weir_mark *mark);

/** Return the field of `type` called `name`, such as "path" or "header.x-user", or NULL if there is
 *  none. *arg is set to the part after the dot if the field takes an argument, else to NULL. */
const struct weir_field *plan_field(
    const struct weir_event_type *type, const char *name, const char **arg);
/** Find the field `name` of `type`, or of a payload ("image.width"), and store it in *ref. ref->arg
 *  points into `name`. Returns false if there is none; *ref has no field then. Whether events have the
 *  payload is checked later (plan_payloads). */
bool plan_field_ref(const struct plan *p, const struct weir_event_type *type, const char *name,
    struct field_ref *ref);
/** Return a hint for `name`, which does not name a field of `type` (NULL: of any type): the list of the
 *  payload's fields, in hint[size], if it begins with the name of a payload; else the field of `type`
 *  that is like it, in hint[size]; else `otherwise`. */
const char *plan_field_hint(const struct plan *p, const struct weir_event_type *type,
    const char *name, const char *otherwise, char *hint, size_t size);
/** The payload type called name[0..n) that a stage of the spec uses, or else any known stage type, or
 *  NULL. */
const struct weir_payload_type *plan_payload_named(
    const struct plan *p, const char *name, size_t n);
/** Whether what leaves by `o` are the events that `ps` accepts, which keep their payloads. */
bool plan_same_event(const struct plan_stage *ps, const struct plan_outlet *o);
/** Write the names of the stages way[0..n) to text[size], or the first and the last ones of a long way. */
void plan_write_way(const struct plan *p, const int *way, int n, char *text, size_t size);
/** Whether a source gives payloads of `type`. */
bool plan_source_gives(const struct plan *p, const struct weir_payload_type *type);
/** Write the names of the stage types that give payloads of `type` to hint[size], as advice. Returns
 *  `hint`. */
const char *plan_givers(const struct weir_payload_type *type, char *hint, size_t size);

#endif
