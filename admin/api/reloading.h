/* SPDX-License-Identifier: MIT */
/* Routes for reloads, and their metrics. Admin thread only. */
#ifndef WEIR_ADMIN_RELOADING_H
#define WEIR_ADMIN_RELOADING_H

#include "routes.h"
#include "admin/text/textbuf.h"

/** Handle GET /api/v1/reload. */
void answer_reload_status(const struct call *call, struct reply *reply);

/** Handle POST /api/v1/reload. */
void answer_reload(const struct call *call, struct reply *reply);

/** Append the metrics; append nothing if `a` is NULL. */
void reloading_prom(const struct admin_reloading *a, struct textbuf *out);

/** Read {"preview": true} from the body. Returns false, with the reply filled, if the body is anything
 *  else. */
bool read_preview(const struct request *request, bool *preview, struct reply *reply);

#endif
