/* SPDX-License-Identifier: MIT */
/*
 * A plan: a spec with every name resolved and every assumption of handlers checked.
 *
 * Made by plan_make() from a spec, used by weir_spec_check() (which throws it away) and by
 * weir_graph_build() (which makes it real), so the two can not disagree. Nothing is acquired.
 */
#ifndef WEIR_FLOW_PLAN_H
#define WEIR_FLOW_PLAN_H

#include <weir/spec.h>
#include <weir/stage.h>

#include "flow/sink.h"

struct plan_outlet {
	const char *name; /* of the ops table or the spec */
	int to;           /* id, -1 unlinked */
	const struct weir_event_type
	    *type; /* what flows here; NULL not known: nothing flows or any */
	bool optional, any, loop;
	struct weir_mark mark;
};

struct plan_stage {
	const struct weir_stage_spec *spec;
	const struct weir_stage_ops *ops;   /* NULL when `use` is unknown: an error was added */
	const struct weir_event_type *type; /* of what comes in, NULL when not known */
	int depth;
	int group;          /* index into spec->groups, -1 */
	int64_t service_ns; /* that an event takes by configuration, 0 not known */
	int n_outlets;
	struct plan_outlet *outlets;
	struct key_source key; /* arg points into spec */
};

struct plan {
	const struct weir_spec *spec;
	int n;
	struct plan_stage *stages;                 /* in spec order: index is id */
	int *order;                                /* ids, upstream first */
	const struct weir_event_type *source_type; /* of the first source's outlet, NULL none */
	struct weir_errs *errs;
};

/** Check `spec` and fill `plan`; all mistakes go to `errs`. 0, WEIR_EINVAL or WEIR_ENOMEM;
 * plan_free in every case. */
int plan_make(const struct weir_spec *spec, struct plan *plan, struct weir_errs *errs);
void plan_free(struct plan *plan);

/* Parts of plan_make. */
void plan_links(struct plan *p);     /* plan_links.c: outlets, targets, reachability */
void plan_order(struct plan *p);     /* plan_order.c: cycles, depth, order */
void plan_types(struct plan *p);     /* plan_order.c: types along links */
void plan_classes(struct plan *p);   /* plan_classes.c: fields, reach, priorities, guarantees */
void plan_placement(struct plan *p); /* plan_placement.c: pools, modes, keys, policies, budget */
void plan_slo(struct plan *p);       /* plan_slo.c: objectives that no event can keep */

/** Report a name that can not be one of a `kind`. */
void plan_name(struct plan *p, const char *kind, const char *name, const struct weir_mark *mark);

/** The event field that "path" or "header.x-user" names in `type`, NULL when there is none; *arg is
 *  what follows the dot. */
const struct weir_field *plan_field(
    const struct weir_event_type *type, const char *name, const char **arg);

#endif
