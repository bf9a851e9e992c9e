/* SPDX-License-Identifier: MIT */
/* Handles /healthz and /readyz; see health.h. */
#include "health.h"

#include <stdio.h>
#include <string.h>

#include "admin/metrics/alerts.h"
#include "admin/text/textbuf.h"

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

static struct health health(const char *reason, const char *detail)
{
	struct health h = {.reason = reason};

	snprintf(h.detail, sizeof(h.detail), "%s", detail);
	return h;
}

struct health health_of(const struct admin_source *source, const struct weir_graph_view *v)
{
	const struct weir_stage_view *s = health_troubled(v);
	const struct alert *shed = source->unless_shed ? alerts_top_shed(source->alerts) : NULL;

	if (v->draining)
		return health("draining", "the server is draining: it accepts no new work");
	if (!v->ready && v->started_ns == 0)
		return health("starting", "the server is starting: it accepts no work yet");
	if (!v->ready)
		return health(
		    "stopped", "the server accepts no work: it is starting or has stopped");
	if (s) {
		struct health h = {.reason = "stage", .stage = s->name};
		snprintf(h.detail, sizeof(h.detail), "stage '%.64s' is not serving properly: %s",
		    s->name, s->trouble);
		return h;
	}
	return shed ? health("shed", shed->text) : (struct health){0};
}

/* Reply that the server accepts work, with what an operator should know nevertheless. */
static void answer_ready(const struct call *c, const struct weir_graph_view *v, struct reply *r)
{
	const struct alert *shed = alerts_top_shed(c->source->alerts);
	struct textbuf out = {0};
	size_t n;

	textbuf_printf(&out, "ready\n");
	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		if (s->state && strcmp(s->state, "running") != 0)
			textbuf_printf(&out, "%s: stage '%s'\n", s->state, s->name);
	}
	if (shed)
		textbuf_printf(&out, "shed: %s\n", shed->text);
	char *body = textbuf_take(&out, &n);
	reply_text(r, 200, "text/plain; charset=utf-8", body, n);
}

void answer_readyz(const struct call *c, struct reply *r)
{
	struct weir_graph_view *v = take_view(c, r);

	if (!v)
		return;
	struct health h = health_of(c->source, v);
	if (h.reason)
		reply_not_ready(r, h.reason, h.stage, h.detail);
	else
		answer_ready(c, v, r);
	c->source->view_free(v);
}
