/* SPDX-License-Identifier: MIT */
/*
 * ps: show a running server, as reported by its admin endpoint: a line that identifies the server,
 * followed by one line per stage. The table fits into 100 columns, so long names are truncated, and
 * counts over a million are rounded. `-o json` prints names and counts in full.
 *
 * Rates are of the last second, from the history of the server; "-" means that it has none yet.
 * Totals are counted since startup and summed over classes. SHED and SHED/S include connections and
 * requests that a source turned away before the graph; a line below the table names the limits that
 * caused this. Further lines describe the core groups, and the sources whose I/O threads have a limit of
 * clients, and name the stages that an operator has paused or drained, and those in trouble.
 * BUSY does not count the spare threads of core groups, which the lines of the groups name.
 * The wait is the highest of the classes' 99th percentiles; a mean over all classes would hide it.
 */
#include "cli/verb.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/act.h"
#include "cli/client/client.h"
#include "admin/text/number_format.h"
#include "core_groups.h"
#include "payloads.h"
#include "stage_state.h"
#include "turned_away.h"
#include "cli/client/plain.h"

struct ps_row {
	const char *name, *use, *place;
	long long queued, limit, busy, now, shed, failed;
	double in, done, shed_per_s; /* per second; -1 if unknown */
	double wait_p99_s;           /* -1 if no event has been dequeued yet */
};

static long long ps_integer(const json_t *map, const char *key)
{
	return json_integer_value(json_object_get(map, key));
}

static const char *ps_text(const json_t *map, const char *key)
{
	const char *text = json_string_value(json_object_get(map, key));

	return text ? text : "?";
}

static void ps_add_class(struct ps_row *row, const json_t *class)
{
	const json_t *p99 = json_object_get(json_object_get(class, "wait_seconds"), "p99");
	json_t *shed = json_object_get(class, "shed_total");

	row->failed += ps_integer(class, "failed_total");
	for (void *it = json_object_iter(shed); it; it = json_object_iter_next(shed, it))
		row->shed += json_integer_value(json_object_iter_value(it));
	if (json_is_number(p99) && json_number_value(p99) > row->wait_p99_s)
		row->wait_p99_s = json_number_value(p99);
}

static void ps_fill(struct ps_row *row, const json_t *stage, const json_t *history)
{
	const json_t *queue = json_object_get(stage, "queue");
	const json_t *threads = json_object_get(stage, "threads");
	const char *group = ps_text(stage, "group");
	const json_t *classes = json_object_get(stage, "classes");

	*row = (struct ps_row){.wait_p99_s = -1};
	row->name = ps_text(stage, "name");
	row->use = ps_text(stage, "use");
	row->place = ps_text(stage, "placement");
	if (strcmp(row->place, "group") == 0)
		row->place = group;
	row->queued = ps_integer(queue, "length");
	row->limit = ps_integer(queue, "limit");
	row->busy = ps_integer(threads, "busy") - ps_integer(threads, "spares_busy");
	row->now = ps_integer(threads, "now") - ps_integer(threads, "spares");
	row->shed = (long long)turned_away(stage);
	row->in = stage_rate(history, row->name, "in");
	row->done = stage_rate(history, row->name, "done");
	row->shed_per_s = stage_rate(history, row->name, "shed");
	for (size_t i = 0; i < json_array_size(classes); i++)
		ps_add_class(row, json_array_get(classes, i));
}

/** Format a duration with about three digits: "35us", "1.2ms", "2.5s"; "-" for a negative value. */
static void ps_print_duration(char *buf, size_t size, double s)
{
	if (s < 0)
		snprintf(buf, size, "-");
	else if (s < 1e-3)
		snprintf(buf, size, "%.0fus", s * 1e6);
	else if (s < 1)
		snprintf(buf, size, "%.3gms", s * 1e3);
	else
		snprintf(buf, size, "%ss", number_text(NUMBER_ROOM, s, 3));
}

/** Format a count in at most seven characters: in full below a million, otherwise like
 *  "12.35M". */
static const char *ps_count(char buf[24], long long n)
{
	if (n < 1000000)
		snprintf(buf, 24, "%lld", n);
	else if (n < 1000000000)
		snprintf(buf, 24, "%.2fM", (double)n / 1e6);
	else
		snprintf(buf, 24, "%.2fG", (double)n / 1e9);
	return buf;
}

/** Print a name in `width` characters; '~' marks a truncated one. */
static void ps_print_name(const char *name, int width)
{
	if ((int)strlen(name) <= width)
		plain_print(stdout, "%-*s ", width, name);
	else
		plain_print(stdout, "%.*s~ ", width - 1, name);
}

static void ps_print_row(const struct ps_row *row)
{
	char queue[48] = "-", threads[48] = "-", wait[32], count[2][24], rate[3][16];

	if (row->limit > 0)
		snprintf(queue, sizeof(queue), "%lld/%lld", row->queued, row->limit);
	if (row->now > 0)
		snprintf(threads, sizeof(threads), "%lld/%lld", row->busy, row->now);
	ps_print_duration(wait, sizeof(wait), row->wait_p99_s);
	ps_print_name(row->name, 14);
	ps_print_name(row->use, 12);
	ps_print_name(row->place, 8);
	plain_print(stdout, "%9s %5s %7s %6s %6s %7s %7s %8s\n", queue, threads,
	    act_rate(rate[0], row->in), act_rate(rate[1], row->done),
	    act_rate(rate[2], row->shed_per_s), ps_count(count[0], row->shed),
	    ps_count(count[1], row->failed), wait);
}

/** Print the head line, such as "shop  http://127.0.0.1:9900  up 38 s". */
static void ps_print_head(const json_t *doc, const char *url)
{
	long long up_s = (long long)json_number_value(json_object_get(doc, "uptime_seconds"));
	bool bold = verb_styled(stdout);

	plain_print(stdout, "%s  %s  up ", ps_text(doc, "name"), url);
	if (up_s < 120)
		plain_print(stdout, "%lld s\n", up_s);
	else if (up_s < 7200)
		plain_print(stdout, "%lld min\n", up_s / 60);
	else
		plain_print(stdout, "%lld h %lld min\n", up_s / 3600, up_s / 60 % 60);
	fputs(bold ? "\033[1m" : "", stdout);
	plain_print(stdout, "%-14s %-12s %-8s %9s %5s %7s %6s %6s %7s %7s %8s", "STAGE", "USE",
	    "RUNS IN", "QUEUE", "BUSY", "IN/S", "DONE/S", "SHED/S", "SHED", "FAILED", "WAIT P99");
	fputs(bold ? "\033[0m\n" : "\n", stdout);
}

static void ps_print_table(const json_t *doc, const json_t *history, const char *url)
{
	const json_t *stages = json_object_get(doc, "stages");

	ps_print_head(doc, url);
	for (size_t i = 0; i < json_array_size(stages); i++) {
		struct ps_row row;
		ps_fill(&row, json_array_get(stages, i), history);
		ps_print_row(&row);
	}
	for (size_t i = 0; i < json_array_size(stages); i++)
		turned_away_print(json_array_get(stages, i), NULL, 0);
	core_groups_print(doc);
	stages_width_print(stages);
	payloads_print(doc, NULL);
	stages_clients_print(stages);
	stages_awaits_print(stages);
	stages_held_print(stages);
	stages_trouble_print(stages);
}

/** Add to each stage of `doc` its rates, as they are in the table. */
static void ps_add_rates(json_t *doc, const json_t *history)
{
	static const char *const keys[] = {"in", "done", "shed"};
	const json_t *stages = json_object_get(doc, "stages");

	for (size_t i = 0; i < json_array_size(stages); i++) {
		json_t *stage = json_array_get(stages, i), *rates = json_object();
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			double v = stage_rate(history, ps_text(stage, "name"), keys[k]);
			json_object_set_new(rates, keys[k], v < 0 ? json_null() : json_real(v));
		}
		json_object_set_new(stage, "per_second", rates);
	}
}

int verb_ps(const struct verb *verb, const struct verb_args *args)
{
	const char *url = args->admin ? args->admin : CLIENT_DEFAULT_URL;
	json_t *doc, *history = NULL;

	int rc = act_ask(verb, args, "GET", "/api/v1/stages", NULL, &doc);
	if (rc != VERB_OK)
		return rc == VERB_USAGE ? rc : VERB_UNREACHABLE;
	if (!json_is_array(json_object_get(doc, "stages"))) {
		plain_print(
		    stderr, "weir ps: the server at %s is not a weir admin endpoint\n", url);
		json_decref(doc);
		return VERB_UNREACHABLE;
	}
	rc = act_ask(verb, args, "GET", STAGE_HISTORY_PATH, NULL, &history);
	if (rc == VERB_OK && args->json)
		ps_add_rates(doc, history);
	if (rc == VERB_OK && args->json)
		act_print_json(doc, JSON_COMPACT | JSON_REAL_PRECISION(15));
	else if (rc == VERB_OK)
		ps_print_table(doc, history, url);
	json_decref(history);
	json_decref(doc);
	return rc;
}
