/* SPDX-License-Identifier: MIT */
#include "rows.h"

#include <stdio.h>
#include <string.h>

#include <weir/rows.h>

#include "admin/metrics/prom.h"

/* ---- JSON ---- */

struct to_json {
	const struct weir_rows *rows;
	json_t *columns, *list;
};

static void begin_json(void *arg, const struct weir_rows *rows)
{
	static const char *const kind[] = {"label", "text", "gauge", "counter"};
	struct to_json *to = arg;

	to->rows = rows;
	for (const struct weir_row_column *c = rows->column; c->name; c++)
		json_array_append_new(
		    to->columns, json_pack("{s:s, s:s, s:s, s:s}", "name", c->name, "kind",
				     kind[c->kind], "unit", c->unit, "help", c->help));
}

static void row_json(void *arg, const struct weir_row_value *value)
{
	struct to_json *to = arg;
	json_t *row = json_object();

	for (const struct weir_row_column *c = to->rows->column; c->name; c++, value++)
		json_object_set_new(row, c->name,
		    c->kind <= WEIR_ROW_TEXT ? json_string(value->text) : json_real(value->number));
	json_array_append_new(to->list, row);
}

json_t *rows_json(const struct admin_source *source, const char *stage)
{
	struct to_json to = {.columns = json_array(), .list = json_array()};

	if (source->rows)
		source->rows(source->arg, stage, begin_json, row_json, &to);
	return json_pack("{s:s, s:o, s:o}", "what", to.rows ? to.rows->what : "", "columns",
	    to.columns, "rows", to.list);
}

/* ---- Prometheus: a column at a time, since the lines of a family belong together ---- */

struct to_prom {
	struct textbuf *out;
	const char *stage;
	const struct weir_rows *rows;
	int column; /* the one that is written now */
	bool *said; /* HELP and TYPE of it are written */
};

static void begin_prom(void *arg, const struct weir_rows *rows)
{
	((struct to_prom *)arg)->rows = rows;
}

static void row_prom(void *arg, const struct weir_row_value *value)
{
	const struct to_prom *to = arg;
	const struct weir_row_column *c = &to->rows->column[to->column];

	char name[80];

	snprintf(name, sizeof(name), "weir_%s_%s", to->rows->what, c->name);
	if (!*to->said)
		prom_head(
		    to->out, name, c->kind == WEIR_ROW_COUNTER ? "counter" : "gauge", c->help);
	*to->said = true;
	prom_begin(to->out, name, "");
	prom_label(to->out, "stage", to->stage);
	for (int i = 0; to->rows->column[i].kind == WEIR_ROW_LABEL; i++)
		prom_label(to->out, to->rows->column[i].name, value[i].text);
	prom_real(to->out, value[to->column].number);
}

static void none(void *arg, const struct weir_row_value *value)
{
	(void)arg;
	(void)value;
}

/* Write column `k` of all tables about `what`. */
static void family(const struct admin_source *source, const struct weir_graph_view *v,
    const struct weir_rows *rows, int k, struct textbuf *out)
{
	bool said = false;

	for (int i = 0; i < v->n_stages; i++) {
		struct to_prom to = {
		    .out = out, .stage = v->stages[i].name, .column = k, .said = &said};
		if (source->rows(source->arg, to.stage, begin_prom, none, &to) == 0 &&
		    to.rows == rows)
			source->rows(source->arg, to.stage, begin_prom, row_prom, &to);
	}
}

void rows_prom(
    const struct admin_source *source, const struct weir_graph_view *v, struct textbuf *out)
{
	const struct weir_rows *done[8];
	size_t n = 0;

	for (int i = 0; source->rows && i < v->n_stages; i++) {
		struct to_prom to = {0};
		bool again = false;
		if (source->rows(source->arg, v->stages[i].name, begin_prom, none, &to) != 0)
			continue;
		for (size_t k = 0; k < n; k++)
			again |= done[k] == to.rows;
		if (again || n == sizeof(done) / sizeof(done[0]))
			continue;
		done[n++] = to.rows;
		for (int k = 0; to.rows->column[k].name; k++)
			if (to.rows->column[k].kind >= WEIR_ROW_GAUGE)
				family(source, v, to.rows, k, out);
	}
}

/* ---- the route ---- */

void answer_rows(const struct call *c, struct reply *r)
{
	struct weir_graph_view *v = take_view(c, r);

	if (!v)
		return;
	if (find_stage(v, c->name[0], r))
		reply_json(r, 200, rows_json(c->source, c->name[0]));
	c->source->view_free(v);
}
