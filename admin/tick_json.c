/* SPDX-License-Identifier: MIT */
/*
 * A tick. What of the whole server goes in and is done, per class, follows from the stages:
 *
 *   in     offered at stages that sources lead to, by the share of their events that comes from there
 *   done   what non-sources complete, less what they hand on, which is what is offered anywhere less `in`
 *   shed   of all stages, since each refused event is counted at one
 *
 * An event that a stage makes of another counts as one that was handed on, so where stages make
 * several events of one, `done` is too small; it is never below 0.
 */
#include "tick_json.h"

#include <math.h>
#include <string.h>

#include "digits.h"
#include "json_put.h"

static json_t *number(double v)
{
	double r = digits_round(v);

	if (isnan(r))
		return json_null();
	return r == floor(r) ? json_integer((json_int_t)r) : json_real(r);
}

/* ---- a stage ---- */

static json_t *shed_json(const struct sample *s)
{
	json_t *map = json_object();

	for (int i = 0; i < WEIR_SHED_REASONS; i++)
		if (s->shed_by[i] > 0)
			json_put(&map, weir_error_word(weir_shed_code(i)), number(s->shed_by[i]));
	return map;
}

static json_t *stage_json(const struct weir_stage_view *v, const struct sample *s)
{
	json_t *stage = json_pack("{s:s}", "name", v->name);

	for (int f = 0; f < SAMPLE_FIELDS; f++)
		json_put(&stage, sample_field_name[f], s->known ? number(s->v[f]) : json_null());
	json_put(&stage, "shed_by", shed_json(s));
	return stage;
}

static json_t *stages_json(const struct weir_graph_view *v, const struct sample *sample)
{
	json_t *list = json_array();

	for (int i = 0; i < v->n_stages; i++)
		json_push(&list, stage_json(&v->stages[i], &sample[i]));
	return list;
}

/* ---- the whole server ---- */

static bool is_source(const struct weir_stage_view *s)
{
	return strcmp(s->placement, "source") == 0;
}

/* Share of the events of `to` that come straight from sources: 1 when no link leads to it, since
 * then threads of the program's own offer them. */
static double share_from_sources(const struct weir_graph_view *v, const char *to)
{
	uint64_t all = 0, from_sources = 0;

	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		for (int k = 0; k < s->n_links; k++) {
			if (!s->links[k].to || strcmp(s->links[k].to, to) != 0)
				continue;
			all += s->links[k].events_total;
			from_sources += is_source(s) ? s->links[k].events_total : 0;
		}
	}
	return all ? (double)from_sources / (double)all : 1;
}

struct flow {
	double in, offered, completed, shed;
};

static json_t *classes_json(const struct weir_graph_view *v, const struct sample *sample)
{
	struct flow flow[WEIR_CLASSES_MAX] = {0};
	json_t *list = json_array();

	for (int i = 0; i < v->n_stages; i++) {
		bool source = is_source(&v->stages[i]);
		double share = source ? 0 : share_from_sources(v, v->stages[i].name);
		for (int c = 0; sample[i].known && c < v->n_classes; c++) {
			const double *s = sample[i].class_v[c];
			flow[c].shed += s[SAMPLE_CLASS_SHED];
			if (source)
				continue;
			flow[c].in += share * s[SAMPLE_CLASS_IN];
			flow[c].offered += s[SAMPLE_CLASS_IN];
			flow[c].completed += s[SAMPLE_CLASS_DONE];
		}
	}
	for (int c = 0; c < v->n_classes; c++) {
		double done = flow[c].completed - (flow[c].offered - flow[c].in);
		json_push(&list,
		    json_pack("{s:s, s:o, s:o, s:o}", "name", v->class_name[c], "in",
			number(flow[c].in), "done", number(done), "shed", number(flow[c].shed)));
	}
	return list;
}

json_t *tick_json(
    const struct tick_about *a, const struct weir_graph_view *v, const struct sample *sample)
{
	static const char *const mode[] = {"off", "shadow", "enforce"};
	double uptime = v->started_ns ? (double)(v->now_ns - v->started_ns) / 1e9 : 0;

	return json_pack("{s:f, s:f, s:i, s:s, s:b, s:b, s:o, s:o, s:n, s:{s:o, s:i}}", "at",
	    rint((double)v->wall_ns / 1e6) / 1e3, "uptime", rint(uptime * 1e3) / 1e3, "hz", a->hz,
	    "overload", mode[a->overload], "ready", v->ready, "draining", v->draining, "stages",
	    stages_json(v, sample), "classes", classes_json(v, sample), "bottleneck", "self", "cpu",
	    number(a->self_cpu), "watchers", a->watchers);
}
