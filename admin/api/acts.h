/* SPDX-License-Identifier: MIT */
/*
 * Handlers of routes_table for changes made by operators, and for the list of past changes.
 * docs/api.md describes the JSON. Admin thread only.
 */
#ifndef WEIR_ADMIN_ACTS_H
#define WEIR_ADMIN_ACTS_H

#include "routes.h"

void act_set(const struct call *c, struct reply *r);
void act_unset(const struct call *c, struct reply *r);
void act_pause(const struct call *c, struct reply *r);
void act_drain(const struct call *c, struct reply *r);
void act_resume(const struct call *c, struct reply *r);
void act_undo(const struct call *c, struct reply *r);
void answer_acts(const struct call *c, struct reply *r);
void answer_queue(const struct call *c, struct reply *r);

/** Build the JSON of one change for /api/v1/acts and the stream. Returns a new reference, or NULL
 *  if out of memory. */
json_t *act_json(const struct weir_act *act);

#endif
