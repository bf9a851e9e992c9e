/* SPDX-License-Identifier: MIT */
/*
 * Formats a snapshot as JSON; see view_json.h. There is one function for each object of
 * docs/api.md, in the order of that page.
 *
 * json_pack with "o" consumes the reference even on failure, and fails if the value is NULL. A
 * failure at any level therefore turns the whole value into NULL and leaks nothing.
 */
#include "view_json.h"
#include "view_json_groups.h"

#include <math.h>
#include <string.h>

#include <weir/clock.h>

#include "framework/base/json.h"

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

/* Return the upper bound of a bucket. The last bucket has no bound: the result is null, since JSON
 * has no infinity. */
static json_t *upper_json(int64_t upper_ns)
{
	return upper_ns == INT64_MAX ? json_null() : json_real(seconds(upper_ns));
}

json_t *view_json_buckets(const struct weir_hist *h)
{
	json_t *list = json_array();

	for (int b = 0; b < WEIR_HIST_BUCKETS; b++) {
		if (h->count[b] == 0)
			continue;
		json_t *pair =
		    json_pack("[o,I]", upper_json(weir_hist_upper_ns(b)), (json_int_t)h->count[b]);
		json_push(&list, pair);
	}
	return list;
}

/* Return a quantile of `h`, or null if there are no events. */
static json_t *quantile_json(const struct weir_hist *h, uint64_t total, double q)
{
	return total ? upper_json(weir_hist_quantile_ns(h, q)) : json_null();
}

static json_t *hist_json(const struct weir_hist *h)
{
	uint64_t n = weir_hist_total(h);

	return json_pack("{s:I, s:f, s:o, s:o, s:o, s:o, s:o}", "count", (json_int_t)n, "sum",
	    (double)h->sum_ns / 1e9, "p50", quantile_json(h, n, 0.5), "p90",
	    quantile_json(h, n, 0.9), "p99", quantile_json(h, n, 0.99), "p999",
	    quantile_json(h, n, 0.999), "buckets", view_json_buckets(h));
}

/* Return how many events the calls of the handler had, in the form of hist_json. */
static json_t *cohorts_json(const struct weir_stage_view *s)
{
	json_t *list = json_array();
	uint64_t n = 0;

	for (int b = 0; b < WEIR_COHORT_BUCKETS; b++) {
		n += s->cohorts[b];
		if (s->cohorts[b] == 0)
			continue;
		json_t *pair = json_pack("[i,I]", 1 << b, (json_int_t)s->cohorts[b]);
		json_push(&list, pair);
	}
	return json_pack("{s:I, s:I, s:o}", "count", (json_int_t)n, "sum",
	    (json_int_t)s->batch_events, "buckets", list);
}

static json_t *shed_json(const uint64_t shed[WEIR_SHED_REASONS])
{
	json_t *map = json_object();

	for (int i = 0; i < WEIR_SHED_REASONS; i++)
		json_put(
		    &map, weir_error_word(weir_shed_code(i)), json_integer((json_int_t)shed[i]));
	return map;
}

/* The response times of a source. NULL: another stage, which has none. */
static json_t *answers_json(const struct weir_answer_view *a)
{
	if (!a)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "ok", hist_json(&a->by[WEIR_OUTCOME_DONE]), "shed",
	    hist_json(&a->by[WEIR_OUTCOME_SHED]), "failed", hist_json(&a->by[WEIR_OUTCOME_FAILED]));
}

static json_t *class_json(
    const char *name, const struct weir_class_view *c, const struct weir_answer_view *answers)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:o, s:o, s:o}",
	    "name", name, "offered_total", (json_int_t)c->offered, "admitted_total",
	    (json_int_t)c->admitted, "completed_total", (json_int_t)c->completed, "failed_total",
	    (json_int_t)c->failed, "spawned_total", (json_int_t)c->spawned, "departed_total",
	    (json_int_t)c->departed, "shed_total", shed_json(c->shed), "shadow_shed_total",
	    (json_int_t)c->shadow_shed, "refused_ahead_total", (json_int_t)c->refused_ahead,
	    "queued", (json_int_t)c->queued, "wait_seconds", hist_json(&c->wait), "service_seconds",
	    hist_json(&c->service), "response_seconds", answers_json(answers));
}

static json_t *classes_json(const struct weir_graph_view *v, const struct weir_stage_view *s)
{
	json_t *list = json_array();

	for (int i = 0; i < v->n_classes; i++) {
		json_t *c = class_json(
		    v->class_name[i], &s->class_view[i], s->answers ? &s->answers[i] : NULL);
		json_push(&list, c);
	}
	return list;
}

static json_t *threads_json(const struct weir_stage_view *s)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I}", "busy",
	    s->threads[WEIR_THREAD_BUSY], "spinning", s->threads[WEIR_THREAD_SPINNING], "idle",
	    s->threads[WEIR_THREAD_IDLE], "now", s->threads_now, "spares_busy", s->spares_busy,
	    "spares", s->spares_now, "target", s->threads_target, "min", s->threads_min, "max",
	    s->threads_max, "failures_total", (json_int_t)s->thread_failures, "deaths_total",
	    (json_int_t)s->thread_deaths, "stuck_total", (json_int_t)s->stuck);
}

/* Return a link. If `from` is not NULL, it becomes a member, which the list of the whole graph
 * needs; it is NULL for the list of a single stage. */
static json_t *link_json(const char *from, const struct weir_link_view *l)
{
	json_t *link = json_pack("{s:s, s:s?, s:s?, s:I, s:b}", "outlet",
	    l->outlet ? l->outlet : "", "to", l->to, "type", l->type ? l->type->name : NULL,
	    "events_total", (json_int_t)l->events_total, "loop", l->loop);

	if (from)
		json_put(&link, "from", json_string(from));
	return link;
}

static json_t *links_json(const struct weir_stage_view *s)
{
	json_t *list = json_array();

	for (int i = 0; i < s->n_links; i++)
		json_push(&list, link_json(NULL, &s->links[i]));
	return list;
}

static json_t *metrics_json(const struct weir_stage_view *s)
{
	json_t *list = json_array();

	for (int i = 0; i < s->n_metrics; i++) {
		const struct weir_metric *m = &s->metrics[i];
		json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:I, s:b}", "name", m->name, "kind",
		    weir_metric_counts(m) ? "counter" : "gauge", "unit", m->unit ? m->unit : "",
		    "help", m->help ? m->help : "", "value", (json_int_t)s->metric[i],
		    "turned_away", m->kind == WEIR_METRIC_TURNED_AWAY);
		json_push(&list, row);
	}
	return list;
}

static json_t *queue_json(const struct weir_stage_view *s)
{
	return json_pack("{s:I, s:I, s:f}", "length", (json_int_t)s->queue_length, "limit",
	    (json_int_t)s->queue_limit, "oldest_wait_seconds", seconds(s->oldest_wait_ns));
}

static json_t *refused_json(const struct weir_stage_view *s)
{
	const uint64_t *refused = s->payload_refused;

	return json_pack("{s:I, s:I, s:I, s:I}", "memory", (json_int_t)refused[WEIR_PAYLOAD_MEMORY],
	    "budget", (json_int_t)refused[WEIR_PAYLOAD_BUDGET], "slots",
	    (json_int_t)refused[WEIR_PAYLOAD_SLOTS], "family",
	    (json_int_t)refused[WEIR_PAYLOAD_FAMILY]);
}

static json_t *width_json(const struct weir_stage_view *s)
{
	if (s->width == 0)
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:i, s:I, s:s}", "now", s->width, "min", s->width_min,
	    "max", s->width_max, "in_work", s->in_work, "refused_total", (json_int_t)s->refusals,
	    "why", s->width_why);
}

static json_t *clients_json(const struct weir_clients *c)
{
	if (c->per_loop == 0)
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:I, s:I}", "threads", c->loops, "full", c->full, "idle",
	    c->idle, "per_thread", (json_int_t)c->per_loop, "waiting", (json_int_t)c->waiting);
}

/* The events that the stage has made. Counters are read while they change, so more may seem to have
 * ended than there are. */
static json_t *children_json(const struct weir_stage_view *s)
{
	uint64_t ended = s->joined + s->orphaned + s->cancelled;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "limit",
	    (json_int_t)s->children_max, "spawned_total", (json_int_t)s->spawned, "joined_total",
	    (json_int_t)s->joined, "orphaned_total", (json_int_t)s->orphaned, "cancelled_total",
	    (json_int_t)s->cancelled, "refused_total", (json_int_t)s->children_refused, "in_flight",
	    (json_int_t)(s->spawned > ended ? s->spawned - ended : 0));
}

static json_t *slo_json(int64_t slo_ns)
{
	return slo_ns > 0 ? json_real(seconds(slo_ns)) : json_null();
}

static json_t *place_json(const struct weir_stage_view *s)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i}", "name", s->name, "use",
	    s->use, "state", s->state ? s->state : "running", "trouble", s->trouble, "summary",
	    s->summary ? s->summary : "", "placement", s->placement, "group", s->group, "mode",
	    s->mode, "depth", s->depth);
}

/* How the threads spend their time. Null: the kernel does not tell. */
static json_t *times_json(const struct weir_stage_view *s)
{
	json_t *map = json_object();

	for (int i = 0; i < WEIR_TIMES; i++) {
		bool known = i != WEIR_TIME_RUNNABLE || s->times_known;
		json_put(&map, weir_thread_time_words[i],
		    known ? json_real((double)s->time_ns[i] / 1e9) : json_null());
	}
	return map;
}

/* Return the lines of `text` as a list. */
static json_t *lines_json(const char *text)
{
	json_t *list = json_array();

	while (*text) {
		size_t n = strcspn(text, "\n");
		json_push(&list, json_stringn(text, n));
		text += n + (text[n] == '\n');
	}
	return list;
}

static json_t *stuck_json(const struct weir_stuck_view *s)
{
	if (s->id == 0)
		return json_null();
	return json_pack("{s:I, s:f, s:f, s:b, s:s, s:s, s:o}", "id", (json_int_t)s->id, "time",
	    seconds(s->wall_ns), "seconds", seconds(s->for_ns), "running", s->runs, "thread",
	    s->thread, "type", s->type, "stack", lines_json(s->stack));
}

static json_t *numbers_json(const struct weir_graph_view *v, const struct weir_stage_view *s)
{
	return json_pack("{s:{s:s, s:s, s:s, s:I}, s:o, s:I, s:I, s:I, s:o, s:{s:I, s:I}, s:o, "
			 "s:f, s:o, s:o, s:I, s:I, s:o, s:I, s:I, "
			 "s:o, s:f, s:o, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o}",
	    "admission", "policy", s->admission, "mode", s->admission_mode, "why", s->admission_why,
	    "nonsense_total", (json_int_t)s->admission_nonsense, "queue", queue_json(s),
	    "in_flight", (json_int_t)s->in_flight, "held", (json_int_t)s->held, "awaiting",
	    (json_int_t)s->awaiting, "children", children_json(s), "law", "residual",
	    (json_int_t)s->law_residual, "slack", (json_int_t)s->law_slack, "threads",
	    threads_json(s), "busy_seconds_total", (double)s->busy_ns / 1e9, "thread_seconds_total",
	    times_json(s), "stuck_call", stuck_json(&s->stuck_call), "batches_total",
	    (json_int_t)s->batches, "batch_events_total", (json_int_t)s->batch_events,
	    "cohort_size", cohorts_json(s), "wakeups_total", (json_int_t)s->wakeups,
	    "unhandled_total", (json_int_t)s->unhandled, "payloads_refused_total", refused_json(s),
	    "longest_running_seconds", seconds(s->longest_running_ns), "slo_seconds",
	    slo_json(s->slo_ns), "pressure", isfinite(s->pressure) ? s->pressure : 0.0,
	    "degradation", s->degradation, "width", width_json(s), "clients",
	    clients_json(&s->clients), "cores", view_json_cores(s->cores, s->n_cores), "links",
	    links_json(s), "metrics", metrics_json(s), "classes", classes_json(v, s));
}

/* Add the members of `more` to `into`. `more` is consumed. Returns NULL if either is NULL. */
static json_t *merge(json_t *into, json_t *more)
{
	if (json_object_update(into, more) != 0) {
		json_decref(into);
		into = NULL;
	}
	json_decref(more);
	return into;
}

static json_t *stage_json(const struct weir_graph_view *v, const struct weir_stage_view *s)
{
	return merge(place_json(s), numbers_json(v, s));
}

/* Return the seconds from the start of the graph to `at_ns`, or 0 before the start. */
static double uptime(const struct weir_graph_view *v, int64_t at_ns)
{
	return v->started_ns ? seconds(at_ns - v->started_ns) : 0;
}

static json_t *time_json(const struct weir_graph_view *v)
{
	return json_pack(
	    "{s:f, s:f}", "time", seconds(v->wall_ns), "uptime_seconds", uptime(v, v->now_ns));
}

static json_t *class_names_json(const struct weir_graph_view *v)
{
	json_t *list = json_array();

	for (int i = 0; i < v->n_classes; i++)
		json_push(&list, json_string(v->class_name[i]));
	return list;
}

static json_t *places_json(const struct weir_graph_view *v)
{
	json_t *list = json_array();

	for (int i = 0; i < v->n_stages; i++)
		json_push(&list, place_json(&v->stages[i]));
	return list;
}

static json_t *all_links_json(const struct weir_graph_view *v)
{
	json_t *list = json_array();

	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		for (int k = 0; k < s->n_links; k++) {
			if (!s->links[k].to)
				continue; /* an optional outlet that is not connected */
			json_push(&list, link_json(s->name, &s->links[k]));
		}
	}
	return list;
}

json_t *view_json_graph(const struct weir_graph_view *v)
{
	return merge(time_json(v),
	    json_pack("{s:s, s:b, s:b, s:I, s:o, s:o, s:o, s:o}", "name", v->name, "ready",
		v->ready, "draining", v->draining, "decisions_total",
		(json_int_t)v->decisions_total, "classes", class_names_json(v), "stages",
		places_json(v), "links", all_links_json(v), "groups", view_json_groups(v, false)));
}

/* Return the user and system time of the whole process. The resolution is finer than that of
 * /proc. */
static double process_cpu(void)
{
	return (double)weir_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

json_t *view_json_stages(const struct weir_graph_view *v)
{
	json_t *list = json_array();

	for (int i = 0; i < v->n_stages; i++)
		json_push(&list, stage_json(v, &v->stages[i]));
	return merge(time_json(v),
	    json_pack("{s:s, s:f, s:{s:I, s:I}, s:o, s:o}", "name", v->name, "process_cpu_seconds",
		process_cpu(), "payloads", "reserved_bytes", (json_int_t)v->payload_bytes,
		"limit_bytes", (json_int_t)v->payload_bytes_limit, "stages", list, "groups",
		view_json_groups(v, true)));
}

json_t *view_json_stage(const struct weir_graph_view *v, const struct weir_stage_view *s)
{
	return merge(time_json(v), stage_json(v, s));
}

json_t *view_json_decision(const struct weir_graph_view *v, const struct weir_decision *d)
{
	return json_pack("{s:I, s:f, s:f, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:s?, s:s?}",
	    "id", (json_int_t)d->id, "time", seconds(d->wall_ns), "uptime_seconds",
	    uptime(v, d->at_ns), "stage", d->stage, "actor", d->actor, "action", d->action, "rule",
	    d->rule, "limit", d->limit, "inputs", d->inputs, "from", d->from, "to", d->to,
	    "outcome_5s", *d->outcome_5s ? d->outcome_5s : NULL, "outcome_30s",
	    *d->outcome_30s ? d->outcome_30s : NULL);
}

json_t *view_json_decisions(
    const struct weir_graph_view *v, const struct weir_decision *decision, int n)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_push(&list, view_json_decision(v, &decision[i]));
	return merge(time_json(v), json_pack("{s:I, s:o}", "decisions_total",
				       (json_int_t)v->decisions_total, "decisions", list));
}
