/* SPDX-License-Identifier: MIT */
/* Routes and metrics of reloads. Admin thread only. */
#ifndef WEIR_ADMIN_RELOADING_H
#define WEIR_ADMIN_RELOADING_H

#include "routes.h"
#include "admin/text/textbuf.h"

/** GET /api/v1/reload */
void answer_reload_status(const struct call *call, struct reply *reply);

/** POST /api/v1/reload */
void answer_reload(const struct call *call, struct reply *reply);

/** Append the metrics; nothing when `a` is NULL. */
void reloading_prom(const struct admin_reloading *a, struct textbuf *out);

#endif
