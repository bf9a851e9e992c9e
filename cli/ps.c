/* SPDX-License-Identifier: MIT */
/*
 * ps: a running server, one line per stage, over its admin endpoint.
 *
 * Totals are since the start and summed over classes; the wait is the 99th percentile of the class
 * that waits longest, since a mean over classes would hide it.
 */
#include "verb.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "client.h"

struct ps_row {
	const char *name, *use, *place;
	long long queued, limit, busy, now, offered, completed, shed, failed;
	double wait_p99_s; /* -1: nothing waited yet */
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

	row->offered += ps_integer(class, "offered_total");
	row->completed += ps_integer(class, "completed_total");
	row->failed += ps_integer(class, "failed_total");
	for (void *it = json_object_iter(shed); it; it = json_object_iter_next(shed, it))
		row->shed += json_integer_value(json_object_iter_value(it));
	if (json_is_number(p99) && json_number_value(p99) > row->wait_p99_s)
		row->wait_p99_s = json_number_value(p99);
}

static void ps_fill(struct ps_row *row, const json_t *stage)
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
	row->busy = ps_integer(threads, "busy");
	row->now = ps_integer(threads, "now");
	for (size_t i = 0; i < json_array_size(classes); i++)
		ps_add_class(row, json_array_get(classes, i));
}

/** A duration in three digits or so: "35us", "1.2ms", "2.5s", "-" for none. */
static void ps_print_duration(char *buf, size_t size, double s)
{
	if (s < 0)
		snprintf(buf, size, "-");
	else if (s < 1e-3)
		snprintf(buf, size, "%.0fus", s * 1e6);
	else if (s < 1)
		snprintf(buf, size, "%.3gms", s * 1e3);
	else
		snprintf(buf, size, "%.3gs", s);
}

static void ps_print_row(const struct ps_row *row)
{
	char queue[48] = "-", threads[48] = "-", wait[32];

	if (row->limit > 0)
		snprintf(queue, sizeof(queue), "%lld/%lld", row->queued, row->limit);
	if (row->now > 0)
		snprintf(threads, sizeof(threads), "%lld/%lld", row->busy, row->now);
	ps_print_duration(wait, sizeof(wait), row->wait_p99_s);
	printf("%-16s %-14s %-10s %12s %7s %12lld %12lld %10lld %8lld %9s\n", row->name, row->use,
	    row->place, queue, threads, row->offered, row->completed, row->shed, row->failed, wait);
}

static int ps_print_table(const struct client_answer *answer, const char *url)
{
	json_t *doc = json_loadb(answer->body, answer->n, 0, NULL);
	const json_t *stages = json_object_get(doc, "stages");
	bool bold = verb_styled(stdout);

	if (!json_is_array(stages)) {
		fprintf(stderr, "weir ps: what answers at %s is no weir admin endpoint\n", url);
		json_decref(doc);
		return VERB_UNREACHABLE;
	}
	printf("%s%-16s %-14s %-10s %12s %7s %12s %12s %10s %8s %9s%s\n", bold ? "\033[1m" : "",
	    "STAGE", "USE", "RUNS IN", "QUEUE", "BUSY", "OFFERED", "COMPLETED", "SHED", "FAILED",
	    "WAIT P99", bold ? "\033[0m" : "");
	for (size_t i = 0; i < json_array_size(stages); i++) {
		struct ps_row row;
		ps_fill(&row, json_array_get(stages, i));
		ps_print_row(&row);
	}
	json_decref(doc);
	return VERB_OK;
}

int verb_ps(const struct verb *verb, const struct verb_args *args)
{
	const char *url = args->admin ? args->admin : CLIENT_DEFAULT_URL;
	struct client_answer answer = {0};
	struct weir_err err = {0};

	int rc = client_get(url, "/api/v1/stages", &answer, &err);
	if (rc == WEIR_EINVAL)
		return verb_misused(verb, "%s", err.text);
	if (rc != 0) {
		fprintf(stderr, "weir ps: %s\n", err.text);
		return VERB_UNREACHABLE;
	}
	if (answer.status != 200) {
		fprintf(stderr, "weir ps: %s answers %d\n", url, answer.status);
		rc = VERB_UNREACHABLE;
	} else if (args->json) {
		fwrite(answer.body, 1, answer.n, stdout);
		rc = VERB_OK;
	} else {
		rc = ps_print_table(&answer, url);
	}
	free(answer.body);
	return rc;
}
