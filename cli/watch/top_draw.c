/* SPDX-License-Identifier: MIT */
/*
 * Draws the frames of `weir top`; see top.h.
 *
 * top_take() replaces the rows by those of the latest responses. top_arrange() sorts them and keeps
 * the selection on a visible row. top_draw() then prints the part of the rows that fits the screen
 * and contains the selection; the caller has moved the cursor to the top left corner.
 */
#include "top.h"

#include <stdlib.h>
#include <string.h>

#include "cli/act.h"
#include "cli/client/plain.h"
#include "core_groups.h"
#include "stage_state.h"

static const char *const order_words[TOP_ORDERS] = {
    [TOP_GRAPH] = "graph",
    [TOP_SHED] = "shed",
    [TOP_QUEUE] = "queue",
    [TOP_WAIT] = "wait",
    [TOP_BUSY] = "busy",
    [TOP_IN] = "in",
};

const char *top_order_word(enum top_order order)
{
	return order_words[order];
}

/* ---- rows ---- */

static void take_row(struct top_row *row, int place, const json_t *stages, const json_t *history)
{
	const json_t *stage = json_array_get(stages, (size_t)place);
	const json_t *queue = json_object_get(stage, "queue");
	const char *name = act_text(stage, "name");

	*row = (struct top_row){.place = place,
	    .queued = json_integer_value(json_object_get(queue, "length")),
	    .limit = json_integer_value(json_object_get(queue, "limit")),
	    .threads =
		(int)json_integer_value(json_object_get(json_object_get(stage, "threads"), "now")),
	    .in = stage_rate(history, name, "in"),
	    .done = stage_rate(history, name, "done"),
	    .shed = stage_rate(history, name, "shed"),
	    .busy = stage_rate(history, name, "busy"),
	    .wait_p99_s = stage_rate(history, name, "wait_p99")};
	snprintf(row->name, sizeof(row->name), "%s", act_text(stage, "name"));
	snprintf(row->state, sizeof(row->state), "%s", act_text(stage, "state"));
	stage_width_text(stage, row->wide, sizeof(row->wide));
	stage_awaits_text(stage, stages, row->awaits, sizeof(row->awaits));
}

/* Describe what the core groups have done since the last response, or since the start. */
static void take_groups(struct top *t, json_t *stages)
{
	const json_t *list = json_object_get(stages, "groups");
	double span_s = t->up_s;
	double past_s = json_number_value(json_object_get(t->before, "uptime_seconds"));
	bool renewed = past_s >= t->up_s; /* another server */

	if (t->before && !renewed)
		span_s -= past_s;
	t->n_groups = 0;
	for (size_t i = 0; i < json_array_size(list) && i < TOP_GROUPS_MAX; i++) {
		const json_t *now = json_array_get(list, i);
		const json_t *then =
		    renewed ? NULL : core_group_find(t->before, act_text(now, "name"));
		core_group_line(then, now, then ? span_s : t->up_s, t->group[t->n_groups++],
		    sizeof(t->group[0]));
	}
	json_decref(t->before);
	t->before = json_incref(stages);
}

bool top_take(struct top *t, json_t *stages, const json_t *history, const json_t *overload)
{
	const json_t *list = json_object_get(stages, "stages");

	if (!json_is_array(list) || !json_is_object(json_object_get(history, "stages")))
		return false;
	snprintf(t->name, sizeof(t->name), "%s", act_text(stages, "name"));
	snprintf(t->mode, sizeof(t->mode), "%s", act_text(overload, "mode"));
	const json_t *limit = json_object_get(stages, "bottleneck");
	bool limits = json_is_true(json_object_get(limit, "limits"));
	snprintf(t->limit, sizeof(t->limit), "%s", limits ? act_text(limit, "stage") : "");
	t->limit_used = json_number_value(json_object_get(limit, "used"));
	t->up_s = json_number_value(json_object_get(stages, "uptime_seconds"));
	t->response_p99_s = -1;
	t->n = 0;
	for (size_t i = 0; i < json_array_size(list) && t->n < TOP_STAGES_MAX; i++, t->n++) {
		take_row(&t->row[t->n], t->n, list, history);
		double p99_s = stage_rate(history, t->row[t->n].name, "response_p99");
		t->response_p99_s = p99_s > t->response_p99_s ? p99_s : t->response_p99_s;
	}
	take_groups(t, stages);
	return true;
}

static double key_of(const struct top_row *row, enum top_order order)
{
	switch (order) {
	case TOP_SHED:
		return row->shed;
	case TOP_QUEUE:
		return (double)row->queued;
	case TOP_WAIT:
		return row->wait_p99_s;
	case TOP_BUSY:
		return row->busy;
	case TOP_IN:
		return row->in;
	default:
		return -row->place;
	}
}

static bool comes_first(const struct top_row *a, const struct top_row *b, enum top_order order)
{
	double x = key_of(a, order), y = key_of(b, order);

	return x > y || (!(x < y) && a->place < b->place);
}

static bool is_shown(const struct top *t, const struct top_row *row)
{
	return strstr(row->name, t->filter) != NULL;
}

static bool is_selected(const struct top *t, const struct top_row *row)
{
	return strcmp(row->name, t->selected) == 0;
}

void top_arrange(struct top *t)
{
	bool found = false;

	/* insertion sort, since there are few rows and they are nearly sorted */
	for (int i = 1; i < t->n; i++) {
		struct top_row row = t->row[i];
		int k = i;
		for (; k > 0 && comes_first(&row, &t->row[k - 1], t->order); k--)
			t->row[k] = t->row[k - 1];
		t->row[k] = row;
	}
	for (int i = 0; i < t->n; i++)
		found = found || (is_shown(t, &t->row[i]) && is_selected(t, &t->row[i]));
	if (!found) {
		t->selected[0] = '\0';
		top_move(t, 1);
	}
}

void top_move(struct top *t, int by)
{
	int shown[TOP_STAGES_MAX], n = 0, at = -1;

	for (int i = 0; i < t->n; i++) {
		if (!is_shown(t, &t->row[i]))
			continue;
		if (strcmp(t->row[i].name, t->selected) == 0)
			at = n;
		shown[n++] = i;
	}
	if (n == 0)
		return;
	at = at < 0 ? 0 : at + by;
	at = at < 0 ? 0 : at >= n ? n - 1 : at;
	snprintf(t->selected, sizeof(t->selected), "%s", t->row[shown[at]].name);
}

/* ---- the frame ---- */

/* Print `line`, truncated to `columns` characters, and a newline. */
static void put_line(FILE *out, const char *line, int columns, const char *style)
{
	char plain[1024]; /* escape before truncating, so that the width of the line is correct */
	bool styled = style && *style;

	if (styled)
		fputs(style, out);
	plain_print(out, "%.*s", columns, plain_text(plain, sizeof(plain), line));
	if (styled)
		fputs("\033[0m", out);
	fputs(style ? "\033[K\n" : "\n", out);
}

static void put_row(
    const struct top *t, const struct top_row *row, FILE *out, int columns, bool styled)
{
	char line[256], queue[32] = "-", busy[16] = "-", wait[32], r[3][16], name[16];
	const char *style = styled ? "" : NULL;

	if (row->limit > 0)
		snprintf(queue, sizeof(queue), "%lld", row->queued);
	if (row->busy >= 0)
		snprintf(busy, sizeof(busy), "%.0f%%", 100 * row->busy);
	snprintf(name, sizeof(name), strlen(row->name) > 15 ? "%.14s~" : "%s", row->name);
	snprintf(line, sizeof(line), "%-15s %-8s %7s %7d %5s %7s %7s %7s %8s", name, row->state,
	    queue, row->threads, busy, act_rate(r[0], row->in), act_rate(r[1], row->done),
	    act_rate(r[2], row->shed), act_duration(wait, row->wait_p99_s));
	if (styled && is_selected(t, row))
		style = "\033[7m";
	else if (styled && row->shed > 0.005)
		style = "\033[33m";
	else if (styled && strcmp(row->state, "running") != 0)
		style = "\033[36m";
	put_line(out, line, columns, style);
}

static void put_head(const struct top *t, FILE *out, int columns, bool styled)
{
	char line[256], r[16], wait[32], response[48] = "";
	long long up = (long long)t->up_s;
	double shed = 0;

	for (int i = 0; i < t->n; i++)
		shed += t->row[i].shed > 0 ? t->row[i].shed : 0;
	if (t->response_p99_s >= 0)
		snprintf(response, sizeof(response), "  response p99 %s",
		    act_duration(wait, t->response_p99_s));
	snprintf(line, sizeof(line),
	    "%.40s  up %lld:%02lld:%02lld  %d stages%s  shed %s/s  overload %s", t->name, up / 3600,
	    up / 60 % 60, up % 60, t->n, response, act_rate(r, shed), t->mode);
	size_t n = strlen(line);
	if (t->limit[0] && n < sizeof(line))
		snprintf(line + n, sizeof(line) - n, "  limit %.40s %.0f%%", t->limit,
		    100 * t->limit_used);
	put_line(out, line, columns, styled ? "\033[1m" : NULL);
	snprintf(line, sizeof(line), "%-15s %-8s %7s %7s %5s %7s %7s %7s %8s", "STAGE", "STATE",
	    "QUEUE", "THREADS", "BUSY", "IN/S", "DONE/S", "SHED/S", "WAIT P99");
	put_line(out, line, columns, styled ? "\033[1m" : NULL);
}

static void put_foot(const struct top *t, FILE *out, int columns)
{
	char line[256];

	if (t->typing)
		snprintf(line, sizeof(line), "show stages with: %s_", t->filter);
	else if (t->message[0])
		snprintf(line, sizeof(line), "%s", t->message);
	else
		snprintf(line, sizeof(line),
		    "q quit  up/down  s sort (%s)  / filter%s%s  p pause  d drain  r resume  w why",
		    top_order_word(t->order), t->filter[0] ? " " : "", t->filter);
	put_line(out, line, columns, "\033[2m");
}

/* Print the widths of the shown stages and the events that wait for children there, or only those of
 * the selected one. */
static void put_widths(const struct top *t, FILE *out, int columns, bool all, bool styled)
{
	char line[WEIR_NAME_MAX + sizeof(t->row[0].wide) + 4];

	for (int i = 0; i < t->n; i++) {
		const struct top_row *row = &t->row[i];
		const char *const say[] = {row->wide, row->awaits};
		if (!is_shown(t, row) || (!all && !is_selected(t, row)))
			continue;
		for (size_t k = 0; k < sizeof(say) / sizeof(say[0]); k++) {
			snprintf(line, sizeof(line), "%s: %s", row->name, say[k]);
			if (say[k][0])
				put_line(out, line, columns, styled ? "" : NULL);
		}
	}
}

/* Print at most `room` rows, with the selected one among them. */
static void put_rows(const struct top *t, FILE *out, int columns, int room, bool styled)
{
	int at = 0, first = 0, shown = 0;

	for (int i = 0; i < t->n; i++) {
		if (!is_shown(t, &t->row[i]))
			continue;
		if (is_selected(t, &t->row[i]))
			at = shown;
		shown++;
	}
	if (at >= room)
		first = at - room + 1;
	for (int i = 0, k = 0; i < t->n && k < first + room; i++) {
		if (!is_shown(t, &t->row[i]))
			continue;
		if (k++ >= first)
			put_row(t, &t->row[i], out, columns, styled);
	}
}

/* The number of lines that put_widths prints for the row. */
static int notes_of(const struct top_row *row)
{
	return (row->wide[0] != '\0') + (row->awaits[0] != '\0');
}

void top_draw(const struct top *t, FILE *out, int columns, int lines, bool styled)
{
	/* 4 lines are not available for rows: two header lines, the footer, and the last line */
	int room = styled ? lines - 4 : 3 * t->n + t->n_groups, shown = 0, notes = 0;
	int of_selected = 0;

	for (int i = 0; i < t->n; i++) {
		const struct top_row *row = &t->row[i];
		shown += is_shown(t, row);
		notes += is_shown(t, row) ? notes_of(row) : 0;
		of_selected += is_selected(t, row) ? notes_of(row) : 0;
	}
	int groups = shown + t->n_groups <= room ? t->n_groups : 0;
	room -= groups;
	bool all = shown + notes <= room;
	int below = all ? notes : room > of_selected ? of_selected : 0;
	put_head(t, out, columns, styled);
	put_rows(t, out, columns, room - below, styled);
	for (int i = 0; i < groups; i++)
		put_line(out, t->group[i], columns, styled ? "" : NULL);
	if (below > 0)
		put_widths(t, out, columns, all, styled);
	if (styled) {
		fputs("\033[J", out); /* clear the remaining lines of the previous frame */
		put_foot(t, out, columns);
	}
}
