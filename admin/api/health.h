/* SPDX-License-Identifier: MIT */
/* /healthz and /readyz. */
#ifndef WEIR_ADMIN_HEALTH_H
#define WEIR_ADMIN_HEALTH_H

#include "routes.h"

/** Return the first stage that cannot work normally, or NULL if there is none. */
const struct weir_stage_view *health_troubled(const struct weir_graph_view *v);

void answer_healthz(const struct call *c, struct reply *r);
/** Reply with 503 while the server starts or drains, and while a stage cannot work normally: the
 *  member `trouble` of its view then holds the reason. */
void answer_readyz(const struct call *c, struct reply *r);

#endif
