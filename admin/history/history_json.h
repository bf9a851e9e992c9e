/* SPDX-License-Identifier: MIT */
/* GET /api/v1/history: a range of the rings as columns of JSON; docs/api.md describes the JSON. */
#ifndef WEIR_ADMIN_HISTORY_JSON_H
#define WEIR_ADMIN_HISTORY_JSON_H

#include "history.h"
#include "admin/request/reply.h"

/**
 * Answer the query "from=&to=&step=&stage=". Each parameter is optional and may appear once;
 * negative times count from `now_s`, a Unix time. An invalid query is answered with 400 and a
 * message that contains the valid range; a stage without a history is answered with 404. Produces
 * up to 3 MB of text for 30 stages and 6 hours, in about 20 ms.
 */
void history_json(
    const struct history *history, const char *query, double now_s, struct reply *reply);

#endif
