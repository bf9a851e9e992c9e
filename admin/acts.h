/* SPDX-License-Identifier: MIT */
/*
 * What operators do through the endpoint, and what tells what they did: rows of routes_table.
 * docs/api.md has the shapes. The admin thread.
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

/** One act, as /api/v1/acts and the stream tell it. A new reference, NULL without memory. */
json_t *act_json(const struct weir_act *act);

#endif
