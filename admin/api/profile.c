/* SPDX-License-Identifier: MIT */
/* Shows the profile as JSON; see profile.h. */
#include "profile.h"

#include "framework/base/json.h"
#include "view_json.h"

static const char *const on_words[] = {[WEIR_PROFILE_CORE] = "core",
    [WEIR_PROFILE_THREAD] = "thread",
    [WEIR_PROFILE_IO] = "io",
    [WEIR_PROFILE_OTHERS] = "others"};

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

/* Return the name of the thread of a row: "parse/0". */
static json_t *on_json(const struct weir_profile_row *row)
{
	if (row->on == WEIR_PROFILE_OTHERS)
		return json_string("others");
	return json_sprintf("%s/%d", row->owner, row->number);
}

static json_t *wait_json(const struct weir_profile_row *row)
{
	return json_pack("{s:I, s:f, s:f, s:o}", "count", (json_int_t)weir_hist_total(&row->wait),
	    "sum", seconds((int64_t)row->wait.sum_ns), "restarted_sum",
	    seconds((int64_t)row->again_ns), "buckets", view_json_buckets(&row->wait));
}

static json_t *row_json(const struct weir_profile_row *row)
{
	return json_pack(
	    "{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, "
	    "s:o}",
	    "on", on_json(row), "kind", on_words[row->on], "offered_total",
	    (json_int_t)row->offered, "refused_total", (json_int_t)row->refused, "started_total",
	    (json_int_t)row->started, "restarted_total", (json_int_t)row->restarted,
	    "put_back_total", (json_int_t)row->put_back, "dropped_total", (json_int_t)row->dropped,
	    "completed_total", (json_int_t)row->completed, "failed_total", (json_int_t)row->failed,
	    "shed_total", (json_int_t)row->shed, "spawned_total", (json_int_t)row->spawned,
	    "departed_total", (json_int_t)row->departed, "busy_seconds_total",
	    seconds((int64_t)row->busy_ns), "batches_total", (json_int_t)row->batches, "waiting",
	    (json_int_t)row->waiting, "wait_seconds", wait_json(row));
}

static json_t *stage_json(const struct weir_profile_stage *s)
{
	json_t *rows = json_array();

	for (int i = 0; i < s->n_rows; i++)
		json_push(&rows, row_json(&s->row[i]));
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o}", "name", s->name, "placement",
	    s->placement, "group", s->group, "waiting", (json_int_t)s->waiting, "running",
	    (json_int_t)s->running, "held", (json_int_t)s->held, "awaiting",
	    (json_int_t)s->awaiting, "rows", rows);
}

/* Add the arcs of a stage. Outlets that are not linked, and threads that sent nothing, have none. */
static void add_arcs(json_t **list, const struct weir_profile_stage *s)
{
	for (int o = 0; o < s->n_outlets; o++)
		for (int i = 0; i < s->n_rows && s->outlet[o].to; i++) {
			const struct weir_profile_arc *arc = &s->row[i].arc[o];
			if (arc->sent == 0 && arc->offered == 0)
				continue;
			json_push(list,
			    json_pack("{s:s, s:s, s:s, s:o, s:I, s:I}", "from", s->name, "outlet",
				s->outlet[o].name ? s->outlet[o].name : "", "to", s->outlet[o].to,
				"on", on_json(&s->row[i]), "sent_total", (json_int_t)arc->sent,
				"offered_total", (json_int_t)arc->offered));
		}
}

json_t *profile_json(const struct weir_profile *p)
{
	json_t *stages = json_array(), *arcs = json_array();

	for (int i = 0; i < p->n_stages; i++) {
		json_push(&stages, stage_json(&p->stage[i]));
		add_arcs(&arcs, &p->stage[i]);
	}
	return json_pack("{s:s, s:f, s:f, s:f, s:o, s:o}", "name", p->name, "time",
	    seconds(p->wall_ns), "since", seconds(p->since_wall_ns), "counted_seconds",
	    seconds(p->now_ns - p->since_ns), "stages", stages, "arcs", arcs);
}

void answer_profile(const struct call *c, struct reply *r)
{
	struct weir_profile *p = NULL;

	if (!c->source->profile) {
		reply_problem(r, 503, "this server has no profile");
		return;
	}
	if (c->source->profile(c->source->arg, &p) != 0) {
		reply_problem(r, 503, "out of memory");
		return;
	}
	reply_json(r, 200, profile_json(p));
	weir_graph_profile_free(p);
}
