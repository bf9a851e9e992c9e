/* SPDX-License-Identifier: MIT */
/*
 * Handlers of routes_table for changes made by operators, and for the list of past changes.
 * docs/api.md describes the JSON. Admin thread only.
 */
#ifndef WEIR_ADMIN_CHANGES_H
#define WEIR_ADMIN_CHANGES_H

#include "routes.h"

void change_set(const struct call *c, struct reply *r);
void change_unset(const struct call *c, struct reply *r);
void change_pause(const struct call *c, struct reply *r);
void change_drain(const struct call *c, struct reply *r);
void change_resume(const struct call *c, struct reply *r);
void change_purge(const struct call *c, struct reply *r);
void change_undo(const struct call *c, struct reply *r);
void answer_changes(const struct call *c, struct reply *r);
/** Like answer_changes, for /api/v1/acts: the path and the member name of version 0.1. */
void answer_acts(const struct call *c, struct reply *r);
void answer_queue(const struct call *c, struct reply *r);

/** Build the JSON of one change for /api/v1/changes and the stream. Returns a new reference, or
 *  NULL if out of memory. */
json_t *change_json(const struct weir_change *act);

#endif
