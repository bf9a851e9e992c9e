/* SPDX-License-Identifier: MIT */
/*
 * The knobs of a stage, a group or a class as JSON. The rows are those of the tables that the loader and
 * `describe` read; the effective values come from the graph. The functions return new references, or NULL if
 * out of memory.
 */
#ifndef WEIR_ADMIN_KNOBS_H
#define WEIR_ADMIN_KNOBS_H

#include <jansson.h>

#include "graph_source.h"
#include "routes.h"

/** Return all knobs of the stage `name` of type `use` that have a value, in table order. If `use` is
 *  NULL, `name` is a group, or "classes." and the name of a class. */
json_t *knobs_json(const struct admin_source *source, const char *name, const char *use);

/** Return the knob at `path` ("threads.max"). `*found` reports whether it exists; if it does not,
 *  the function returns NULL. */
json_t *knob_json(const struct admin_source *source, const char *name, const char *use,
    const char *path, bool *found);

/** Whether the request is for the knobs of a class. Its first name then begins with "classes.". */
bool knobs_of_class(const struct call *call);

/** Return false, with the reply filled, if the path names a group as a stage, or a group or a class
 *  that does not exist. */
bool knobs_owned(const struct call *call, struct reply *reply);

/** Handle GET /api/v1/stages/{stage}/knobs, the same below /api/v1/groups/{group} and
 *  /api/v1/classes/{class}, and GET of a single knob below these. */
void answer_knobs(const struct call *call, struct reply *reply);
void answer_knob(const struct call *call, struct reply *reply);

#endif
