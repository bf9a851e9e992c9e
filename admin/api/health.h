/* SPDX-License-Identifier: MIT */
/* /healthz and /readyz. */
#ifndef WEIR_ADMIN_HEALTH_H
#define WEIR_ADMIN_HEALTH_H

#include "routes.h"

/** Whether the server accepts work, and if not, why. */
struct health {
	/* "starting", "draining", "stopped", "stage" (one cannot work normally) or "shed" (the highest
	 * class is shed, and `admin: { ready: { unless_shed } }` is set); NULL: it accepts work */
	const char *reason;
	const char *stage; /* for "stage", as in the view; otherwise NULL */
	char detail[400];  /* a sentence; "" if reason is NULL */
};

/** Return the first stage that cannot work normally, or NULL if there is none. */
const struct weir_stage_view *health_troubled(const struct weir_graph_view *v);

/** Judge the server by a view and the alerts of `source`. */
struct health health_of(const struct admin_source *source, const struct weir_graph_view *v);

void answer_healthz(const struct call *c, struct reply *r);
/** Reply with 503 and the reason while the server does not accept work (struct health). A reply of 200
 *  lists what does not prevent that: paused and draining stages, and a highest class that is shed. */
void answer_readyz(const struct call *c, struct reply *r);

#endif
