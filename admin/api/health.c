/* SPDX-License-Identifier: MIT */
/* Handles /healthz and /readyz; see health.h. */
#include "health.h"

void answer_healthz(const struct call *c, struct reply *r)
{
	(void)c;
	reply_static(r, 200, "text/plain; charset=utf-8", "ok\n", 3);
}

const struct weir_stage_view *health_troubled(const struct weir_graph_view *v)
{
	for (int i = 0; i < v->n_stages; i++)
		if (v->stages[i].trouble[0])
			return &v->stages[i];
	return NULL;
}

void answer_readyz(const struct call *c, struct reply *r)
{
	struct weir_graph_view *v = take_view(c, r);
	const struct weir_stage_view *s;

	if (!v)
		return;
	if (v->draining)
		reply_problem(r, 503, "the server is draining: it accepts no new work");
	else if (!v->ready)
		reply_problem(r, 503, "the server accepts no work: it is starting or has stopped");
	else if ((s = health_troubled(v)) != NULL)
		reply_problem(
		    r, 503, "stage '%s' is not serving properly: %s", s->name, s->trouble);
	else
		reply_static(r, 200, "text/plain; charset=utf-8", "ready\n", 6);
	c->source->view_free(v);
}
