/* SPDX-License-Identifier: MIT */
/* Formats core groups as JSON; see view_json_groups.h. */
#include "view_json_groups.h"

#include "framework/base/json.h"

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

static json_t *core_json(const struct weir_core_view *c)
{
	return json_pack(
	    "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:s?, s:f, s:I, "
	    "s:f, s:f, s:f, s:s?}",
	    "visits_total", (json_int_t)c->visits, "urgent_total", (json_int_t)c->urgent,
	    "starved_total", (json_int_t)c->starved, "cut_by_gate_total", (json_int_t)c->cut_gate,
	    "cut_by_urgent_total", (json_int_t)c->cut_urgent, "cut_by_starved_total",
	    (json_int_t)c->cut_starved, "batches_total", (json_int_t)c->batches, "events_total",
	    (json_int_t)c->events, "from_queue_total", (json_int_t)c->from_queue, "dealt_total",
	    (json_int_t)c->dealt, "moved_total", (json_int_t)c->moved, "blocked_total",
	    (json_int_t)c->blocked, "blocked_seconds", seconds(c->blocked_ns), "blocked_in",
	    c->blocked_in, "busy_seconds_total", (double)c->busy_ns / 1e9, "waiting",
	    (json_int_t)c->waiting, "oldest_wait_seconds", seconds(c->oldest_wait_ns),
	    "longest_wait_seconds", seconds(c->longest_wait_ns), "spare_blocked_seconds",
	    seconds(c->spare_blocked_ns), "spare_blocked_in", c->spare_blocked_in);
}

json_t *view_json_cores(const struct weir_core_view *core, int n)
{
	json_t *list = json_array();

	for (int k = 0; k < n; k++)
		json_push(&list, core_json(&core[k]));
	return list;
}

static json_t *urgent_json(const struct weir_group_stage_view *s)
{
	if (s->urgent_events == 0 && s->urgent_wait_ns == 0)
		return json_null();
	return json_pack("{s:I, s:f}", "events", (json_int_t)s->urgent_events, "wait_seconds",
	    seconds(s->urgent_wait_ns));
}

static json_t *stages_json(const struct weir_group_view *g)
{
	json_t *list = json_array();

	for (int i = 0; i < g->n_stages; i++)
		json_push(&list, json_pack("{s:s, s:o}", "name", g->stages[i].stage->name, "urgent",
				     urgent_json(&g->stages[i])));
	return list;
}

static json_t *group_json(const struct weir_group_view *g, bool whole)
{
	json_t *group = json_pack("{s:s, s:s?, s:s, s:s, s:f, s:b, s:s, s:i, s:o}", "name", g->name,
	    "source", g->source, "schedule", g->schedule, "gate", g->gate, "starve_seconds",
	    seconds(g->starve_ns), "balance", g->balance, "order", g->newest ? "newest" : "arrival",
	    "cores_now", g->cores, "stages", stages_json(g));

	if (whole)
		json_put(&group, "cores", view_json_cores(g->core, g->n_cores));
	return group;
}

json_t *view_json_groups(const struct weir_graph_view *v, bool whole)
{
	json_t *list = json_array();

	for (int i = 0; i < v->n_groups; i++)
		json_push(&list, group_json(&v->groups[i], whole));
	return list;
}
