/* SPDX-License-Identifier: MIT */
/* Stores the results of reloads; see reload_report.h. The latest result is stored as the JSON in
 * which it is reported. */
#include "reload_report.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/log.h>

#include "config.h"
#include "build.h"

void report_init(struct report *r)
{
	*r = (struct report){.counts = {.last_ok = true}};
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->done, NULL);
}

void report_fini(struct report *r)
{
	json_decref(r->last);
	json_decref(r->failure);
	pthread_cond_destroy(&r->done);
	pthread_mutex_destroy(&r->lock);
}

/* ---- hidden values ---- */

static void hide_line(void *arg, const struct config_said *said)
{
	if (!said->value)
		json_object_set_new(arg, said->path, json_true());
}

json_t *report_hidden(const struct weir_spec *spec)
{
	json_t *hidden = json_object();

	if (hidden && config_said(spec, hide_line, hidden) == 0)
		return hidden;
	json_decref(hidden);
	return NULL;
}

json_t *report_hide_both(const json_t *before, json_t *after)
{
	json_t *both = before && after ? json_copy(after) : NULL;

	if (both && json_object_update(both, (json_t *)(uintptr_t)before) == 0)
		return both;
	json_decref(both);
	return NULL;
}

json_t *report_hide_carried(const struct config_diff *diff, const json_t *before, json_t *own)
{
	json_t *waiting = json_object(), *all = NULL;

	for (void *i = json_object_iter((json_t *)(uintptr_t)before); i;
	     i = json_object_iter_next((json_t *)(uintptr_t)before, i))
		if (config_diff_waits(diff, json_object_iter_key(i)))
			json_object_set_new(waiting, json_object_iter_key(i), json_true());
	if (before)
		all = report_hide_both(waiting, own);
	json_decref(waiting);
	json_decref(own);
	return all;
}

/* ---- external inputs ---- */

static void add_renewed(void *arg, const char *stage, const char *text)
{
	json_array_append_new(arg, json_pack("{s:s, s:s}", "stage", stage, "text", text));
}

json_t *report_renewed(const struct weir_graph *graph, const struct weir_graph *wanted)
{
	json_t *list = json_array();

	if (list)
		weir_graph_renewed(graph, wanted, add_renewed, list);
	return list;
}

/* ---- overrides ---- */

static void add_dropped(void *arg, const char *text)
{
	struct outcome *out = arg;

	if (out->n_dropped++ == 0)
		snprintf(out->dropped, sizeof(out->dropped), "%s", text);
}

void report_dropped(struct outcome *out, struct weir_graph *graph)
{
	weir_graph_dropped(graph, add_dropped, out);
}

/* Add what is dropped to the sentence. */
static void say_dropped(
    const struct outcome *out, const struct config_diff *diff, char *buf, size_t size)
{
	size_t n = strlen(buf);

	if (out->n_dropped == 0)
		return;
	n += (size_t)snprintf(buf + n, size - n, "; %s%s%s", diff->live ? "a new graph " : "",
	    diff->live ? out->preview ? "would be needed; " : "took over; " : "", out->dropped);
	if (out->n_dropped > 1 && n < size)
		snprintf(buf + n, size - n, " (and %d more)", out->n_dropped - 1);
}

/* ---- one reload ---- */

static json_t *change_json(const struct outcome *out, const struct config_difference *d)
{
	bool hidden = !out->hidden || json_object_get(out->hidden, d->path);

	return json_pack("{s:s, s:s?, s:s?, s:b, s:s}", "path", d->path, "from",
	    hidden ? NULL : d->from, "to", hidden ? NULL : d->to, "hidden", hidden, "effect",
	    config_effect_word(d->effect));
}

static json_t *changes_json(const struct outcome *out, const struct config_diff *diff)
{
	json_t *list = json_array();

	for (int i = 0; i < diff->n; i++)
		json_array_append_new(list, change_json(out, &diff->item[i]));
	return list;
}

/* Return the errors as the text that `check` prints, or NULL if out of memory. */
static char *errors_text(const struct weir_errs *errs)
{
	size_t size = weir_errs_format(errs, NULL, 0) + 1;
	char *text = malloc(size);

	if (text)
		weir_errs_format(errs, text, size);
	return text;
}

static const char *result_of(const struct outcome *out, const struct config_diff *diff)
{
	if (out->rc != 0)
		return "failed";
	if (out->preview)
		return "preview";
	if (out->followed)
		return "followed";
	return diff->n > 0 || json_array_size(out->renewed) > 0 ? "turned" : "unchanged";
}

void report_summary(const struct outcome *out, const struct config_diff *diff,
    const struct weir_errs *errs, char *buf, size_t size)
{
	size_t renewed = json_array_size(out->renewed);

	if (out->rc == 0 && renewed > 0 && diff->n == 0)
		snprintf(buf, size, "no value changes, but %zu stage%s renewed certificates",
		    renewed, renewed == 1 ? " has" : "s have");
	else if (out->rc == 0) {
		config_diff_say(diff, buf, size);
		say_dropped(out, diff, buf, size);
		size_t n = strlen(buf);
		if (out->preview && diff->n_plugins > 0)
			snprintf(buf + n, size - n,
			    "; a preview does not load plug-ins: 'weir check' does, in its own "
			    "process");
	} else
		snprintf(buf, size, "%d error%s. The running configuration was not changed.",
		    errs->total, errs->total == 1 ? "" : "s");
}

/* Remove every occurrence of `folder` from text[]. */
static void cut_out(char *text, const char *folder)
{
	size_t n = strlen(folder);

	for (char *at = text; n > 0 && (at = strstr(at, folder)) != NULL;)
		memmove(at, at + n, strlen(at + n) + 1);
}

void report_name_as_given(struct weir_errs *errs, const char *folder)
{
	for (int i = 0; i < errs->n; i++) {
		cut_out(errs->err[i].file, folder);
		cut_out(errs->err[i].text, folder);
		cut_out(errs->err[i].hint, folder);
	}
}

/* Log an error, with its location if it belongs to a line of a file. */
static void log_error(const struct weir_err *e)
{
	if (e->line > 0)
		weir_log(WEIR_LOG_ERROR, "reload: %s:%d:%d: %s", e->file, e->line, e->col, e->text);
	else
		weir_log(WEIR_LOG_ERROR, "reload: %s", e->text);
}

static void log_order(const struct outcome *out, const char *result, const char *sentence,
    const struct weir_errs *errs)
{
	if (out->preview)
		return;
	weir_log(out->rc == 0 ? WEIR_LOG_INFO : WEIR_LOG_ERROR, "reload by %s: %s: %s", out->by,
	    result, sentence);
	for (int i = 0; out->rc != 0 && i < errs->n; i++)
		log_error(&errs->err[i]);
}

/* Fill in the result that report_await waits for. The caller holds the lock. */
static void fulfil(struct report *r, const struct outcome *out, bool changed, const char *sentence,
    const struct weir_errs *errs)
{
	struct report_result *result = r->result;

	if (!result || out->preview || out->id < r->result_id)
		return;
	*result = (struct report_result){
	    .rc = out->rc, .changed = changed, .followed = out->followed, .errs = *errs};
	snprintf(result->text, sizeof(result->text), "%s", sentence);
	r->result = NULL;
	pthread_cond_broadcast(&r->done);
}

void report_expect(struct report *r, uint64_t id, struct report_result *result)
{
	pthread_mutex_lock(&r->lock);
	r->result = result;
	r->result_id = id;
	pthread_mutex_unlock(&r->lock);
}

void report_await(struct report *r)
{
	pthread_mutex_lock(&r->lock);
	while (r->result)
		pthread_cond_wait(&r->done, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

void report_order(struct report *r, const struct outcome *out, const struct config_diff *diff,
    const struct weir_errs *errs)
{
	const char *result = result_of(out, diff);
	char sentence[768];
	char *text = errors_text(errs);
	json_t *list = build_errors_json(errs);
	int64_t now_ns = weir_clock_ns(CLOCK_REALTIME);

	report_summary(out, diff, errs, sentence, sizeof(sentence));
	json_t *last = json_pack("{s:I, s:f, s:f, s:s, s:b, s:s, s:s, s:o, s:o, s:o, s:s}", "id",
	    (json_int_t)out->id, "at", (double)now_ns / 1e9, "took", (double)out->took_ns / 1e9,
	    "by", out->by, "preview", out->preview, "result", result, "summary", sentence,
	    "changes", changes_json(out, diff), "renewed",
	    out->renewed ? json_incref(out->renewed) : json_array(), "errors",
	    list ? list : json_array(), "text", text ? text : "");
	free(text);
	log_order(out, result, sentence, errs);
	pthread_mutex_lock(&r->lock);
	json_decref(r->last);
	r->last = last;
	r->done_id = out->id;
	if (!out->preview) {
		json_decref(r->failure);
		r->failure = out->rc != 0 ? json_incref(last) : NULL;
		r->counts.total++;
		r->counts.failed += out->rc != 0;
		r->counts.graphs += out->followed;
		r->counts.last_ok = out->rc == 0;
		int64_t now_s = now_ns / 1000000000;
		if (out->rc == 0)
			r->counts.last_ok_at = (double)now_s;
	}
	fulfil(r, out, out->rc == 0 && strcmp(result, "unchanged") != 0, sentence, errs);
	pthread_mutex_unlock(&r->lock);
}

char *report_json(struct report *r, int draining)
{
	pthread_mutex_lock(&r->lock);
	json_t *doc = json_pack("{s:I, s:I, s:I, s:I, s:i, s:O?, s:O?}", "done",
	    (json_int_t)r->done_id, "graph", (json_int_t)r->counts.graphs, "total",
	    (json_int_t)r->counts.total, "failed", (json_int_t)r->counts.failed, "draining",
	    draining, "last", r->last, "failure", r->failure);
	char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	pthread_mutex_unlock(&r->lock);
	return text;
}

void report_counts(struct report *r, struct admin_reload_counts *counts)
{
	pthread_mutex_lock(&r->lock);
	*counts = r->counts;
	pthread_mutex_unlock(&r->lock);
}
