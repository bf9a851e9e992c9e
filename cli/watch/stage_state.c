/* SPDX-License-Identifier: MIT */
/* Shows stages that are not running normally; see stage_state.h. */
#include "stage_state.h"

#include <stdio.h>
#include <string.h>

#include "cli/client/plain.h"

static const char *text(const json_t *map, const char *key)
{
	const char *s = json_string_value(json_object_get(map, key));

	return s ? s : "";
}

const char *stage_held(const json_t *stage)
{
	const char *state = text(stage, "state");

	if (*state == '\0' || strcmp(state, "running") == 0)
		return NULL;
	return strcmp(state, "draining") == 0 ? "being drained" : state;
}

void stages_held_print(const json_t *stages)
{
	for (size_t i = 0; i < json_array_size(stages); i++) {
		const json_t *stage = json_array_get(stages, i);
		const json_t *waiting = json_object_get(json_object_get(stage, "queue"), "length");
		const char *held = stage_held(stage);
		if (held)
			plain_print(stdout, "%s is %s by an operator, %lld waiting\n",
			    text(stage, "name"), held, (long long)json_integer_value(waiting));
	}
}

void stage_width_text(const json_t *stage, char *buf, size_t size)
{
	const json_t *width = json_object_get(stage, "width");

	buf[0] = '\0';
	if (json_is_object(width))
		snprintf(buf, size, "%lld of %lld under way%s%s",
		    (long long)json_integer_value(json_object_get(width, "in_work")),
		    (long long)json_integer_value(json_object_get(width, "now")),
		    *text(width, "why") ? ", " : "", text(width, "why"));
}

/* Print "NAME: TEXT\n" for each stage of which `describe` writes a text. */
static void print_each(
    const json_t *stages, void (*describe)(const json_t *stage, char *text, size_t size))
{
	char buf[200];

	for (size_t i = 0; i < json_array_size(stages); i++) {
		const json_t *stage = json_array_get(stages, i);
		describe(stage, buf, sizeof(buf));
		if (buf[0])
			plain_print(stdout, "%s: %s\n", text(stage, "name"), buf);
	}
}

void stages_width_print(const json_t *stages)
{
	print_each(stages, stage_width_text);
}

static long long whole(const json_t *map, const char *key)
{
	return (long long)json_integer_value(json_object_get(map, key));
}

void stage_clients_text(const json_t *stage, char *buf, size_t size)
{
	const json_t *c = json_object_get(stage, "clients");
	long long threads = whole(c, "threads"), full = whole(c, "full");
	long long most = whole(c, "per_thread"), idle = whole(c, "idle"),
		  waiting = whole(c, "waiting");
	char idlers[48] = "", more[80] = "";

	buf[0] = '\0';
	if (!json_is_object(c))
		return;
	if (idle > 0)
		snprintf(idlers, sizeof(idlers), ", %lld with an idle client", idle);
	if (waiting > 0)
		snprintf(more, sizeof(more), "; %lld more client%s wait%s%s", waiting,
		    waiting == 1 ? "" : "s", waiting == 1 ? "s" : "",
		    full == threads ? ": raise 'threads'" : "");
	snprintf(buf, size, "%lld of %lld I/O threads full (per_thread: %lld)%s%s", full, threads,
	    most, idlers, more);
}

void stages_clients_print(const json_t *stages)
{
	print_each(stages, stage_clients_text);
}

static const json_t *stage_named(const json_t *stages, const char *name)
{
	for (size_t i = 0; i < json_array_size(stages); i++)
		if (strcmp(text(json_array_get(stages, i), "name"), name) == 0)
			return json_array_get(stages, i);
	return NULL;
}

/* Return that of the stages to which `stage` is linked which has the most events in flight, or
 * NULL. */
static const json_t *fullest_after(const json_t *stage, const json_t *stages)
{
	const json_t *links = json_object_get(stage, "links"), *fullest = NULL;

	for (size_t i = 0; i < json_array_size(links); i++) {
		const json_t *to = stage_named(stages, text(json_array_get(links, i), "to"));
		if (to && whole(to, "in_flight") > whole(fullest, "in_flight"))
			fullest = to;
	}
	return fullest;
}

void stage_awaits_text(const json_t *stage, const json_t *stages, char *buf, size_t size)
{
	long long awaiting = whole(stage, "awaiting");
	long long children = whole(json_object_get(stage, "children"), "in_flight");
	const json_t *at = fullest_after(stage, stages);

	buf[0] = '\0';
	if (awaiting == 0)
		return;
	int n = snprintf(buf, size, "%lld event%s wait%s for children, %lld of which are in flight",
	    awaiting, awaiting == 1 ? "" : "s", awaiting == 1 ? "s" : "", children);
	if (at && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n,
		    "; of the stages after it, %s has most in flight, %lld", text(at, "name"),
		    whole(at, "in_flight"));
}

void stages_awaits_print(const json_t *stages)
{
	char buf[200];

	for (size_t i = 0; i < json_array_size(stages); i++) {
		const json_t *stage = json_array_get(stages, i);
		stage_awaits_text(stage, stages, buf, sizeof(buf));
		if (buf[0])
			plain_print(stdout, "%s: %s\n", text(stage, "name"), buf);
	}
}

void stages_trouble_print(const json_t *stages)
{
	for (size_t i = 0; i < json_array_size(stages); i++) {
		const json_t *stage = json_array_get(stages, i);
		if (*text(stage, "trouble"))
			plain_print(stdout, "%s is in trouble: %s\n", text(stage, "name"),
			    text(stage, "trouble"));
	}
}

double stage_rate(const json_t *history, const char *name, const char *key)
{
	const json_t *column =
	    json_object_get(json_object_get(json_object_get(history, "stages"), name), key);

	for (size_t i = json_array_size(column); i-- > 0;) {
		const json_t *value = json_array_get(column, i);
		if (json_is_number(value))
			return json_number_value(value);
	}
	return -1;
}
