/* SPDX-License-Identifier: MIT */
/* top -o json: prints a frame as one line of JSON; see top.h. */
#include "top.h"

#include <stdio.h>

#include "cli/act.h"
#include "framework/base/json.h"

/* A measured number, or null if it is unknown, which is -1 in a row. */
static json_t *known(double v)
{
	return v < 0 ? json_null() : json_real(v);
}

static json_t *text_or_null(const char *text)
{
	return *text ? json_string(text) : json_null();
}

static json_t *row_json(const struct top_row *row)
{
	json_t *doc = json_pack(
	    "{s:s, s:s, s:i}", "name", row->name, "state", row->state, "threads", row->threads);

	json_put(&doc, "queued", row->limit > 0 ? json_integer(row->queued) : json_null());
	json_put(&doc, "queue_limit", row->limit > 0 ? json_integer(row->limit) : json_null());
	json_put(&doc, "busy_ratio", known(row->busy));
	json_put(&doc, "per_second",
	    json_pack("{s:o, s:o, s:o}", "in", known(row->in), "done", known(row->done), "shed",
		known(row->shed)));
	json_put(&doc, "wait_p99_seconds", known(row->wait_p99_s));
	json_put(&doc, "width", text_or_null(row->wide));
	json_put(&doc, "children", text_or_null(row->awaits));
	return doc;
}

void top_print_json(const struct top *t)
{
	json_t *stages = json_array(), *groups = json_array(), *limit = json_null();

	/* the rows are sorted, and every place is that of one row */
	for (int place = 0; place < t->n; place++)
		for (int i = 0; i < t->n; i++)
			if (t->row[i].place == place)
				json_push(&stages, row_json(&t->row[i]));
	for (int i = 0; i < t->n_groups; i++)
		json_push(&groups, json_string(t->group[i]));
	if (t->limit[0])
		limit = json_pack("{s:s, s:f}", "stage", t->limit, "used_ratio", t->limit_used);
	json_t *doc =
	    json_pack("{s:s, s:f, s:s, s:o, s:o, s:o, s:o}", "server", t->name, "uptime_seconds",
		t->up_s, "overload", t->mode, "bottleneck", limit, "response_p99_seconds",
		known(t->response_p99_s), "core_groups", groups, "stages", stages);
	act_print_json(doc, JSON_COMPACT | JSON_REAL_PRECISION(15));
	fflush(stdout);
	json_decref(doc);
}
