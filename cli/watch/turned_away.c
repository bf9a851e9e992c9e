/* SPDX-License-Identifier: MIT */
/* Sums the metric rows that count what sources refused before it became an event; see
 * turned_away.h. */
#include "turned_away.h"

#include <stdio.h>
#include <string.h>

#include "admin/text/number_format.h"
#include "cli/client/plain.h"
#include "framework/base/json.h"

static const char *text(const json_t *map, const char *key)
{
	const char *s = json_string_value(json_object_get(map, key));

	return s ? s : "";
}

/* Return the value of row `name` of `stage`, or 0 if there is no such row or it does not count
 * refusals. */
static double row_value(const json_t *stage, const char *name)
{
	const json_t *rows = json_object_get(stage, "metrics");

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *m = json_array_get(rows, i);
		if (json_is_true(json_object_get(m, "turned_away")) &&
		    strcmp(text(m, "name"), name) == 0)
			return json_number_value(json_object_get(m, "value"));
	}
	return 0;
}

double turned_away(const json_t *stage)
{
	const json_t *rows = json_object_get(stage, "metrics");
	double sum = 0;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *m = json_array_get(rows, i);
		if (json_is_true(json_object_get(m, "turned_away")))
			sum += json_number_value(json_object_get(m, "value"));
	}
	return sum;
}

void turned_away_print(const json_t *stage, const json_t *then, double span_s)
{
	const json_t *rows = json_object_get(stage, "metrics");
	double all = turned_away(stage) - turned_away(then);
	const char *before = "";

	if (!(all > 0))
		return;
	if (then)
		plain_print(stdout,
		    "%s turns away %s/s in front of the graph: ", text(stage, "name"),
		    number_text(NUMBER_ROOM, all / span_s, 4));
	else
		plain_print(stdout,
		    "%s turned away %.0f in front of the graph: ", text(stage, "name"), all);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *m = json_array_get(rows, i);
		const char *name = text(m, "name");
		double n = row_value(stage, name) - row_value(then, name);
		if (!(n > 0))
			continue;
		if (then)
			plain_print(stdout, "%s%s/s %s", before,
			    number_text(NUMBER_ROOM, n / span_s, 4), text(m, "help"));
		else
			plain_print(stdout, "%s%.0f %s", before, n, text(m, "help"));
		before = ", ";
	}
	putchar('\n');
}

json_t *turned_away_json(const json_t *stage, const json_t *then, double span_s)
{
	const json_t *rows = json_object_get(stage, "metrics");
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *m = json_array_get(rows, i);
		const char *name = text(m, "name");
		double n = row_value(stage, name) - row_value(then, name);
		if (n > 0)
			json_push(&list, json_pack("{s:s, s:s, s:f}", "metric", name, "limit",
					     text(m, "help"), "per_second", n / span_s));
	}
	return list;
}
