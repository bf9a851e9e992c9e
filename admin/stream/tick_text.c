/* SPDX-License-Identifier: MIT */
/*
 * Formats a tick; see tick_text.h. The server-wide rates per class are derived from the stages. A
 * source is a stage that creates events itself, for example from the requests of its connections.
 *
 *   in     events offered to stages that are not sources, times the share that comes from sources
 *   done   events completed by stages that are not sources, minus those that they pass on to other
 *          stages (all offered events minus `in`)
 *   shed   sum over all stages, since each refused event is counted at only one
 *
 * An event that a stage creates from another counts as passed on. If stages create several events
 * from one, `done` is therefore too small, but never below 0.
 */
#include "tick_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "admin/text/number_format.h"
#include "admin/request/reply.h"

static void put(struct textbuf *t, const char *text)
{
	textbuf_append(t, text, strlen(text));
}

/* Append `before`, which is `,"name":`, and a number; NaN is written as null. */
static void put_number(struct textbuf *t, const char *before, double v)
{
	char number[NUMBER_MAX];

	put(t, before);
	textbuf_append(t, number, number_print(number, v));
}

/* ---- a stage ---- */

static void put_shed(struct textbuf *t, const struct sample *s)
{
	bool first = true;

	put(t, ",\"shed_by\":{");
	for (int i = 0; i < WEIR_SHED_REASONS; i++) {
		if (!(s->shed_by[i] > 0))
			continue;
		put(t, first ? "\"" : ",\"");
		put(t, weir_error_word(weir_shed_code(i)));
		put_number(t, "\":", s->shed_by[i]);
		first = false;
	}
	put(t, "}}");
}

static void put_stage(struct textbuf *t, const struct weir_stage_view *v, const struct sample *s)
{
	put(t, "{\"name\":");
	textbuf_json_string(t, v->name);
	for (int f = 0; f < SAMPLE_FIELDS; f++) {
		put(t, ",\"");
		put(t, sample_field_name[f]);
		put_number(t, "\":", s->known ? s->v[f] : NAN);
	}
	put_shed(t, s);
}

/* ---- the whole server ---- */

static bool is_source(const struct weir_stage_view *s)
{
	return strcmp(s->placement, "source") == 0;
}

/* Return the share of the events of `to` that come directly from sources. If no link leads to `to`,
 * the program's own threads offer its events, and the share is 1. */
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
	double response; /* the longest p99 of the sources' response times; NaN if there was none */
};

static void sum_flow(
    const struct weir_graph_view *v, const struct sample *sample, struct flow *flow)
{
	for (int i = 0; i < v->n_stages; i++) {
		bool source = is_source(&v->stages[i]);
		double share =
		    source || !sample[i].known ? 0 : share_from_sources(v, v->stages[i].name);
		for (int c = 0; sample[i].known && c < v->n_classes; c++) {
			const double *s = sample[i].class_v[c];
			flow[c].shed += s[SAMPLE_CLASS_SHED];
			if (!(flow[c].response >= s[SAMPLE_CLASS_RESPONSE_P99]))
				flow[c].response = s[SAMPLE_CLASS_RESPONSE_P99];
			if (source)
				continue;
			flow[c].in += share * s[SAMPLE_CLASS_IN];
			flow[c].offered += s[SAMPLE_CLASS_IN];
			flow[c].completed += s[SAMPLE_CLASS_DONE];
		}
	}
}

static void put_classes(
    struct textbuf *t, const struct weir_graph_view *v, const struct sample *sample)
{
	struct flow flow[WEIR_CLASSES_MAX];

	for (int c = 0; c < v->n_classes; c++)
		flow[c] = (struct flow){.response = NAN};
	sum_flow(v, sample, flow);
	put(t, "],\"classes\":[");
	for (int c = 0; c < v->n_classes; c++) {
		put(t, c ? ",{\"name\":" : "{\"name\":");
		textbuf_json_string(t, v->class_name[c]);
		put_number(t, ",\"in\":", flow[c].in);
		put_number(t, ",\"done\":", flow[c].completed - (flow[c].offered - flow[c].in));
		put_number(t, ",\"shed\":", flow[c].shed);
		put_number(t, ",\"response_p99\":", flow[c].response);
		put(t, "}");
	}
}

/* Append the bottleneck. It has only a few numbers, so the JSON of the API is reused. */
static void put_bottleneck(struct textbuf *t, const struct bottleneck *b)
{
	json_t *json = bottleneck_json(b);
	char *text =
	    json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | ADMIN_JSON_REALS) : NULL;

	put(t, "],\"bottleneck\":");
	put(t, text ? text : "null");
	json_decref(json);
	free(text);
}

void tick_text(struct textbuf *t, const struct tick_about *a, const struct weir_graph_view *v,
    const struct sample *sample)
{
	static const char *const mode[] = {"off", "shadow", "enforce"};
	double uptime = v->started_ns ? (double)(v->now_ns - v->started_ns) / 1e9 : 0;

	textbuf_printf(t,
	    "{\"at\":%.3f,\"uptime\":%.3f,\"hz\":%d,\"overload\":\"%s\",\"ready\":%s,\"draining\":%"
	    "s,"
	    "\"stages\":[",
	    (double)v->wall_ns / 1e9, uptime, a->hz, mode[a->overload], v->ready ? "true" : "false",
	    v->draining ? "true" : "false");
	for (int i = 0; i < v->n_stages; i++) {
		if (i > 0)
			put(t, ",");
		put_stage(t, &v->stages[i], &sample[i]);
	}
	put_classes(t, v, sample);
	put_bottleneck(t, a->bottleneck);
	put_number(t, ",\"self\":{\"cpu\":", a->self_cpu);
	textbuf_printf(t, ",\"watchers\":%d}}", a->watchers);
}
