/* SPDX-License-Identifier: MIT */
/*
 * Shows the core groups of a running server: `weir ps`, `weir top`, `weir show` and `weir why`. A
 * group is an element of `groups` of /api/v1/stages (docs/api.md).
 */
#ifndef WEIR_CLI_CORE_GROUPS_H
#define WEIR_CLI_CORE_GROUPS_H

#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

/** Describe a group in text[size]: its settings, how busy each core was between the responses `then`
 *  and `now`, which are `span_s` apart, and the mean size of a visit. `then` is NULL for all the time
 *  since the start of the server. */
void core_group_line(const json_t *then, const json_t *now, double span_s, char *text, size_t size);

/** Return the group called `name` in a response of /api/v1/stages, or NULL. */
const json_t *core_group_find(const json_t *stages, const char *name);

/** Print a line for each group of a response. */
void core_groups_print(const json_t *stages);

/** Number of cores of a group now. It may be less than the length of its member `cores`, whose last
 *  elements are then those of cores that have left. For a stage: that length. */
size_t core_group_cores(const json_t *group);

/** Print what each core has done: a table of `cores`, the member of a stage or a group. Those from `n`
 *  on have left the group. */
void core_group_table(const json_t *cores, size_t n);

/** Write to `out` what a group has done between two responses: its settings, how busy its cores are, why
 *  visits began and what has cut them, and which setting would help. If `stage` is not NULL, only if
 *  it is in the group. */
void core_groups_why(
    FILE *out, const json_t *then, const json_t *now, double span_s, const char *stage);

#endif
