/* SPDX-License-Identifier: MIT */
/* Owners of knobs in a snapshot of the graph: its stages, groups and classes, by the names in requests. */
#ifndef WEIR_ADMIN_OWNERS_H
#define WEIR_ADMIN_OWNERS_H

#include <stdbool.h>

#include <weir/view.h>

#include "admin/request/reply.h"

/** Below it are the knobs of groups. */
#define GROUPS_PATH "/api/v1/groups"
/** Below it are the knobs of classes. A call for one has "classes.NAME" as its first name, since the
 *  graph knows the class by that as an owner of knobs. */
#define CLASSES_PATH  "/api/v1/classes"
#define CLASSES_OWNER "classes."

/** Whether `name` is the name of a group. */
bool has_group(const struct weir_graph_view *v, const char *name);

/** Return stage `name` of `v`. If there is none, return NULL and reply with a 404 that says that there
 *  is no such `what`, and suggests the most similar name. */
const struct weir_stage_view *find_named(
    const struct weir_graph_view *v, const char *name, const char *what, struct reply *r);

static inline const struct weir_stage_view *find_stage(
    const struct weir_graph_view *v, const char *name, struct reply *r)
{
	return find_named(v, name, "stage", r);
}

/** The same, where the name of a group was possible, too. */
static inline const struct weir_stage_view *find_owner(
    const struct weir_graph_view *v, const char *name, struct reply *r)
{
	return find_named(v, name, "stage or group", r);
}

/** Whether `owner`, "classes.NAME", is a class of `v`. If not, reply with a 404 that suggests the most
 *  similar name. */
bool find_class(const struct weir_graph_view *v, const char *owner, struct reply *r);

#endif
