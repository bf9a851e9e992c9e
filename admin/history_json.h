/* SPDX-License-Identifier: MIT */
/* GET /api/v1/history: a stretch of the rings as columns of JSON; docs/api.md has the shape. */
#ifndef WEIR_ADMIN_HISTORY_JSON_H
#define WEIR_ADMIN_HISTORY_JSON_H

#include "history.h"
#include "reply.h"

/**
 * Answer for the query "from=&to=&step=&stage=" (each may be missing, none may be twice), with
 * `now_s` as the Unix time that negative numbers count from. 400 for what is no such query, with
 * the range in the sentence; 404 for a stage without a history. Makes up to 3 MB of text for 30
 * stages and 6 hours, in about 20 ms.
 */
void history_json(
    const struct history *history, const char *query, double now_s, struct reply *reply);

#endif
