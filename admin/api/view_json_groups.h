/* SPDX-License-Identifier: MIT */
/* Formats the core groups of a snapshot as JSON, as docs/api.md describes. */
#ifndef WEIR_ADMIN_VIEW_JSON_GROUPS_H
#define WEIR_ADMIN_VIEW_JSON_GROUPS_H

#include <jansson.h>
#include <stdbool.h>

#include <weir/view.h>

/** Return the member `cores` of a stage or group. NULL if out of memory. */
json_t *view_json_cores(const struct weir_core_view *core, int n);

/** Return the list of core groups, with what their cores have done if `whole`. NULL if out of
 *  memory. */
json_t *view_json_groups(const struct weir_graph_view *v, bool whole);

#endif
