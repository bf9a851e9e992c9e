/* SPDX-License-Identifier: MIT */
/* Provides the creator of a refused event with its shed id, as text, and the time to wait before a
 * retry. */
#include "base/clock.h"
#include "graph/graph.h"
#include "event/local.h"
#include "stage/shed_token.h"

bool weir_shed_id(const struct weir_event *ev, char text[WEIR_SHED_ID_BYTES])
{
	struct shed_token t;

	text[0] = '\0';
	if (!shed_token_unpack(ev->trace_id, &t))
		return false;
	shed_token_print(ev->trace_id, text);
	return true;
}

int64_t weir_retry_after_ns(const struct weir_event *ev)
{
	const struct weir_graph *g = thread_current ? thread_current->graph : NULL;
	struct shed_token t;

	if (!shed_token_unpack(ev->trace_id, &t))
		return 0;
	bool known_stage = g && t.stage < g->n_stages && t.stage != SHED_TOKEN_STAGE_UNKNOWN;
	return shed_token_retry_ns(&t, (ev->session & ~WEIR_SESSION_RETRY) != 0,
	    known_stage ? sink_slo_ns(&g->stages[t.stage]->sink) : 0);
}
