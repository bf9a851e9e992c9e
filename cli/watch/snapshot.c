/* SPDX-License-Identifier: MIT */
/*
 * snapshot: write the state of a running server to one HTML file, for example to attach it to a bug
 * report. All data is read through the API, so every user with read access can take a snapshot. The
 * page needs neither a network nor scripts, and its content security policy forbids both. All texts
 * are escaped, and everything in the configuration that looks like a secret is left out
 * (snapshot_config.c). The charts are drawn by the code of the load report.
 */
#include "snapshot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/act.h"
#include "cli/client/client.h"
#include "cli/client/plain.h"
#include "framework/base/number_text.h"
#include "load/outfile.h"
#include "report/chart.h"
#include "report/html_parts.h"
#include "stage_state.h"

/* Seconds per point of a curve: 15 minutes are 180 points, about the resolution of a chart. */
#define BIN_S 5
/* Maximum number of decisions on the page, and maximum number of changes. */
#define ROWS 100
/* Maximum number of curves in a chart; more would be hard to tell apart. The stages with the
 * highest values are shown. */
#define CURVES 8

static double number(const json_t *map, const char *key)
{
	return json_number_value(json_object_get(map, key));
}

/* ---- requests ---- */

struct source {
	const char *path, *need; /* `need` is a member that the response must have */
	size_t offset;           /* offset of the response in struct snapshot */
};

static const struct source sources[] = {
    {"/api/v1", "routes", offsetof(struct snapshot, index)},
    {"/api/v1/stages", "stages", offsetof(struct snapshot, stages)},
    {"/api/v1/graph", "classes", offsetof(struct snapshot, graph)},
    {"/api/v1/overload", "mode", offsetof(struct snapshot, overload)},
    {"/api/v1/alerts", "active", offsetof(struct snapshot, alerts)},
    {"/api/v1/history?from=-900&step=1s", "stages", offsetof(struct snapshot, history)},
    {"/api/v1/decisions?limit=100", "decisions", offsetof(struct snapshot, decisions)},
    {"/api/v1/changes?limit=100", "changes", offsetof(struct snapshot, changes)},
    {"/api/v1/config", "files", offsetof(struct snapshot, config)},
};
#define SOURCES ((int)(sizeof(sources) / sizeof(sources[0])))

static json_t **place(struct snapshot *s, int i)
{
	return (json_t **)(void *)((char *)s + sources[i].offset);
}

static int snapshot_ask(struct snapshot *s, const struct verb *verb, const struct verb_args *args)
{
	for (int i = 0; i < SOURCES; i++) {
		int rc = act_ask(verb, args, "GET", sources[i].path, NULL, place(s, i));
		if (rc != VERB_OK)
			return rc;
		if (json_object_get(*place(s, i), sources[i].need))
			continue;
		plain_print(stderr,
		    "weir snapshot: the server at %s is not a weir admin endpoint\n",
		    args->admin ? args->admin : CLIENT_DEFAULT_URL);
		return VERB_UNREACHABLE;
	}
	return VERB_OK;
}

static void snapshot_fini(struct snapshot *s)
{
	for (int i = 0; i < SOURCES; i++)
		json_decref(*place(s, i));
}

/* ---- head ---- */

static void put_when(FILE *out, double unix_s)
{
	time_t t = unix_s > 0 && unix_s < ACT_TIME_MAX ? (time_t)unix_s : 0;
	struct tm tm;
	char text[64];

	gmtime_r(&t, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	markup_text(out, text);
}

static void put_head(FILE *out, const struct snapshot *s)
{
	const char *name = act_text(s->graph, "name");

	html_begin(
	    out, name, "snapshot", false, "pre{overflow:auto;font-size:13px;line-height:1.45}");
	markup(out, "<h1>%s</h1>\n<p class=soft>", name);
	put_when(out, number(s->stages, "time"));
	markup(out, ", up %.0f s, overload control: %s, weir %s</p>\n",
	    number(s->stages, "uptime_seconds"), act_text(s->overload, "mode"),
	    act_text(s->index, "version"));
}

static void put_verdict(FILE *out, const struct snapshot *s)
{
	const json_t *limit = json_object_get(s->stages, "bottleneck");
	const json_t *active = json_object_get(s->alerts, "active");
	bool limits = json_is_true(json_object_get(limit, "limits"));

	if (!json_is_true(json_object_get(s->graph, "ready")))
		html_verdict(out, "plain", "",
		    "The server accepts no new work: it is starting, stopping or draining.");
	if (json_is_object(limit))
		html_verdict(out, limits ? "warn" : "ok", "", act_text(limit, "text"));
	if (*act_text(limit, "formula")) {
		fputs("<p class=soft>", out);
		markup_text(out, act_text(limit, "formula"));
		fputs(" (", out);
		markup_text(out, act_text(limit, "law"));
		fputs(")</p>\n", out);
	}
	for (size_t i = 0; i < json_array_size(active); i++) {
		const json_t *alert = json_array_get(active, i);
		html_verdict(out, strcmp(act_text(alert, "level"), "bad") == 0 ? "bad" : "warn", "",
		    act_text(alert, "text"));
	}
}

/* ---- the table ---- */

/* Return the last known value of a column, or NAN if there is none. */
static double last_of(const struct snapshot *s, const char *stage, const char *field)
{
	const json_t *column =
	    json_object_get(json_object_get(json_object_get(s->history, "stages"), stage), field);

	for (size_t i = json_array_size(column); i-- > 0;)
		if (json_is_number(json_array_get(column, i)))
			return json_number_value(json_array_get(column, i));
	return NAN;
}

/* What the policies of the stage say: "7 of 7 under way, 20 ms each, 300/s; NORMAL: ...". */
static const char *says_of(const json_t *stage, char *buf, size_t size)
{
	const char *why = act_text(json_object_get(stage, "admission"), "why");

	stage_width_text(stage, buf, size);
	size_t n = strlen(buf);
	snprintf(buf + n, size - n, "%s%s", n > 0 && *why ? "; " : "", why);
	return buf;
}

static void put_stage(FILE *out, const struct snapshot *s, const json_t *stage)
{
	const json_t *queue = json_object_get(stage, "queue");
	const json_t *threads = json_object_get(stage, "threads");
	const char *name = act_text(stage, "name");
	char text[96], says[400];

	html_row(out, name);
	html_cell(out, act_text(stage, "use"));
	html_cell(out, act_text(stage, "state"));
	html_cell_value(out, format_rate, last_of(s, name, "in"));
	html_cell_value(out, format_rate, last_of(s, name, "done"));
	html_cell_value(out, format_rate, last_of(s, name, "shed"));
	snprintf(
	    text, sizeof(text), "%.0f of %.0f", number(queue, "length"), number(queue, "limit"));
	html_cell(out, number(queue, "limit") > 0 ? text : "");
	html_cell_value(out, format_time, last_of(s, name, "wait_p99"));
	snprintf(text, sizeof(text), "%.0f of %.0f (min %.0f, max %.0f)", number(threads, "busy"),
	    number(threads, "now"), number(threads, "min"), number(threads, "max"));
	html_cell(out, number(threads, "max") > 0 ? text : "");
	html_cell_value(out, format_share, last_of(s, name, "busy"));
	html_cell(out, act_text(json_object_get(stage, "admission"), "policy"));
	html_cell(out, says_of(stage, says, sizeof(says)));
}

static void put_table(FILE *out, const struct snapshot *s)
{
	static const struct html_column column[] = {{"stage", NULL}, {"type", NULL},
	    {"state", NULL}, {"in", NULL}, {"done", NULL}, {"shed", NULL}, {"queue", NULL},
	    {"wait p99", NULL}, {"threads busy", NULL}, {"busy", NULL}, {"policy", NULL},
	    {"says", NULL}};
	const json_t *list = json_object_get(s->stages, "stages");

	fputs("<section><h2>Stages</h2>\n", out);
	html_table(
	    out, "All stages; rates, waits and use are those of the last second", column, 12);
	for (size_t i = 0; i < json_array_size(list); i++)
		put_stage(out, s, json_array_get(list, i));
	html_table_end(out);
	fputs("</section>\n", out);
}

/* ---- curves ---- */

struct curve {
	const char *stage;
	double sum;
};

static int by_sum(const void *a, const void *b)
{
	const struct curve *x = a, *y = b;

	return x->sum < y->sum ? 1 : x->sum > y->sum ? -1 : 0;
}

/* Select the stages with the highest sums of `field`, at most CURVES. Returns their number. */
static int pick_curves(const json_t *stages, const char *field, struct curve *curve)
{
	struct curve *all = calloc(json_object_size(stages) + 1, sizeof(*all));
	int n = 0;

	for (void *it = json_object_iter((json_t *)(uintptr_t)stages); all && it;
	     it = json_object_iter_next((json_t *)(uintptr_t)stages, it)) {
		const json_t *column = json_object_get(json_object_iter_value(it), field);
		struct curve c = {.stage = json_object_iter_key(it)};
		for (size_t i = 0; i < json_array_size(column); i++)
			c.sum += json_number_value(json_array_get(column, i));
		if (c.sum > 0)
			all[n++] = c;
	}
	if (!all)
		return 0;
	qsort(all, (size_t)n, sizeof(*all), by_sum);
	n = n < CURVES ? n : CURVES;
	memcpy(curve, all, (size_t)n * sizeof(*all));
	free(all);
	return n;
}

/* Return one value for the BIN_S seconds that begin at row `i`: their maximum if `worst` is set,
 * else their mean. Returns NAN if no value is known. */
static double bin_value(const json_t *column, int i, int n, bool worst)
{
	double sum = 0, most = 0;
	int known = 0;

	for (int k = i; k < i + BIN_S && k < n; k++) {
		const json_t *value = json_array_get(column, (size_t)k);
		double v = json_number_value(value);
		if (!json_is_number(value))
			continue;
		known++;
		sum += v;
		most = v > most ? v : most;
	}
	return !known ? NAN : worst ? most : sum / known;
}

static void put_curve(struct chart *c, const struct snapshot *s, const char *stage,
    const struct snapshot_curve *what, int style)
{
	const json_t *at = json_object_get(s->history, "at");
	const json_t *column = json_object_get(
	    json_object_get(json_object_get(s->history, "stages"), stage), what->field);
	int rows = (int)json_array_size(at), n = (rows + BIN_S - 1) / BIN_S;
	double end = number(s->history, "to");
	struct series *series = chart_series(c, stage, SERIES_LINE, style, n, false);

	for (int i = 0; series && i < n; i++) {
		series->x[i] = json_number_value(json_array_get(at, (size_t)i * BIN_S)) - end;
		series->y[i] = bin_value(column, i * BIN_S, rows, what->worst);
	}
}

/* Format a time relative to the snapshot: "-90 s", "-12 min". */
static char *format_ago(char *buf, double v)
{
	if (v > -0.5)
		snprintf(buf, FORMAT_MAX, "now");
	else if (v > -119)
		snprintf(buf, FORMAT_MAX, "%.0f s", v);
	else
		snprintf(buf, FORMAT_MAX, "%s min", number_text(NUMBER_ROOM, v / 60, 3));
	return buf;
}

static int put_chart(FILE *out, const struct snapshot *s, const struct snapshot_curve *what, int id)
{
	struct curve curve[CURVES];
	const json_t *stages = json_object_get(s->history, "stages");
	int n = pick_curves(stages, what->field, curve);
	struct chart *c = n ? chart_new(what->title, "before the snapshot", what->unit) : NULL;
	char name[16];

	if (n && (!c || c->failed)) {
		chart_free(c);
		return WEIR_ENOMEM;
	}
	if (!n)
		return 0;
	snprintf(c->about, sizeof(c->about), "%s%s", what->about,
	    (int)json_object_size(stages) > n
		? " Only the stages with the highest values are shown."
		: "");
	c->print_x = format_ago;
	c->print_y = what->print;
	c->gap = 3 * BIN_S;
	for (int i = 0; i < n; i++)
		put_curve(c, s, curve[i].stage, what, i);
	double from = number(s->history, "from") - number(s->history, "to");
	c->x = (struct scale){.kind = SCALE_LINEAR, .low = from < -60 ? from : -60, .high = 0};
	c->y = scale_linear(chart_max_y(c));
	bool failed = c->failed;
	snprintf(name, sizeof(name), "c%d", id);
	if (!failed && chart_has_values(c))
		svg_chart(out, c, name);
	chart_free(c);
	return failed ? WEIR_ENOMEM : 0;
}

static int put_charts(FILE *out, const struct snapshot *s)
{
	static const struct snapshot_curve curves[] = {
	    {"in", "Events in", "per second", "Events that arrived at each stage.", false,
		format_rate},
	    {"done", "Events done", "per second", "Events that each stage completed.", false,
		format_rate},
	    {"shed", "Shed", "per second", "Events that each stage refused or gave up.", false,
		format_rate},
	    {"queue", "Waiting", "events", "Length of each queue.", true, format_count},
	    {"wait_p99", "Wait, p99", "seconds", "99 of 100 events waited at most this long.", true,
		format_time},
	    {"busy", "Threads in use", "share",
		"Share of their time that the threads of the pool spent in handlers.", false,
		format_share},
	};
	int rc = 0;

	fputs("<section><h2>The last 15 minutes</h2>\n", out);
	for (int i = 0; rc == 0 && i < (int)(sizeof(curves) / sizeof(curves[0])); i++)
		rc = put_chart(out, s, &curves[i], i);
	fputs("</section>\n", out);
	return rc;
}

/* ---- decisions and changes ---- */

static void put_decisions(FILE *out, const struct snapshot *s)
{
	static const struct html_column column[] = {{"when", NULL}, {"stage", NULL}, {"by", NULL},
	    {"what", NULL}, {"why", NULL}, {"limit", NULL}, {"inputs", NULL}};
	const json_t *list = json_object_get(s->decisions, "decisions");
	char text[96];

	fputs("<section><h2>Decisions</h2>\n", out);
	html_table(out, "Decisions of controllers and operators, newest first", column, 7);
	for (size_t i = 0; i < json_array_size(list) && i < ROWS; i++) {
		const json_t *d = json_array_get(list, i);
		html_row(out, act_time(text, number(d, "time")));
		html_cell(out, act_text(d, "stage"));
		html_cell(out, act_text(d, "actor"));
		snprintf(text, sizeof(text), "%.40s %.0f to %.0f", act_text(d, "action"),
		    number(d, "from"), number(d, "to"));
		html_cell(out, number(d, "from") == number(d, "to") ? act_text(d, "action") : text);
		html_cell(out, act_text(d, "rule"));
		html_cell(out, act_text(d, "limit"));
		html_cell(out, act_text(d, "inputs"));
	}
	html_table_end(out);
	fputs("</section>\n", out);
}

static void put_changes(FILE *out, const struct snapshot *s)
{
	static const struct html_column column[] = {{"when", NULL}, {"by", NULL}, {"what", NULL},
	    {"target", NULL}, {"from", NULL}, {"to", NULL}, {"undone", NULL}};
	const json_t *list = json_object_get(s->changes, "changes");
	char text[96];

	if (json_array_size(list) == 0)
		return;
	fputs("<section><h2>Changes</h2>\n", out);
	html_table(out, "Changes by operators, newest first", column, 7);
	for (size_t i = 0; i < json_array_size(list) && i < ROWS; i++) {
		const json_t *a = json_array_get(list, i);
		bool hide = snapshot_is_secret(act_text(a, "target"));
		html_row(out, act_time(text, number(a, "at")));
		html_cell(out, act_text(a, "actor"));
		html_cell(out, act_text(a, "what"));
		html_cell(out, act_text(a, "target"));
		html_cell(out, hide ? SNAPSHOT_LEFT_OUT : act_text(a, "from"));
		html_cell(out, hide ? SNAPSHOT_LEFT_OUT : act_text(a, "to"));
		html_cell(out, json_is_true(json_object_get(a, "undone")) ? "yes" : "");
	}
	html_table_end(out);
	fputs("</section>\n", out);
}

/* ---- the file ---- */

static int snapshot_write(FILE *out, const struct snapshot *s)
{
	put_head(out, s);
	put_verdict(out, s);
	put_table(out, s);
	int rc = put_charts(out, s);
	put_decisions(out, s);
	put_changes(out, s);
	if (rc == 0)
		rc = snapshot_config(out, s->config);
	fputs("</main></body></html>\n", out);
	return rc;
}

int verb_snapshot(const struct verb *verb, const struct verb_args *args)
{
	struct snapshot s = {0};
	struct weir_err err = {0};
	struct outfile out;
	int rc = snapshot_ask(&s, verb, args);

	if (rc != VERB_OK) {
		snapshot_fini(&s);
		return rc;
	}
	rc = outfile_open(&out, args->operand[0], &err);
	if (rc == 0 && (rc = snapshot_write(out.file, &s)) != 0) {
		outfile_abandon(&out);
		snprintf(err.text, sizeof(err.text), "out of memory");
	} else if (rc == 0) {
		rc = outfile_commit(&out, &err);
	}
	snapshot_fini(&s);
	if (rc == 0)
		return VERB_OK;
	plain_print(stderr, "weir snapshot: %s\n", err.text);
	return VERB_FINDING;
}
