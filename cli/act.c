/* SPDX-License-Identifier: MIT */
/* set, unset, undo, pause, resume, drain: change a running server with one request each, and print
 * the resulting state. This file also defines the functions of act.h, which are used by all verbs
 * that send requests to a server. */
#include "act.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/client/client.h"
#include "cli/client/plain.h"

/* ---- shared by verbs ---- */

static int say_refusal(const struct verb *verb, const struct client_answer *answer)
{
	json_t *doc = json_loadb(answer->body, answer->n, 0, NULL);
	const char *detail = json_string_value(json_object_get(doc, "detail"));

	if (detail)
		plain_print(stderr, "weir %s: %s\n", verb->name, detail);
	else
		plain_print(
		    stderr, "weir %s: the server answered %d\n", verb->name, answer->status);
	/* 404: unknown name */
	int rc = detail && answer->status == 404 ? VERB_USAGE : VERB_FINDING;
	json_decref(doc);
	return rc;
}

int act_ask(const struct verb *verb, const struct verb_args *args, const char *method,
    const char *path, const char *body, json_t **doc)
{
	const char *url = args->admin ? args->admin : CLIENT_DEFAULT_URL;
	struct client_answer answer = {0};
	struct weir_err err = {0};

	*doc = NULL;
	int rc = client_act(url, method, path, body, &answer, &err);
	if (rc == WEIR_EINVAL)
		return verb_misused(verb, "%s", err.text);
	if (rc != 0) {
		plain_print(stderr, "weir %s: %s\n", verb->name, err.text);
		return VERB_UNREACHABLE;
	}
	if (answer.status != 200) {
		rc = say_refusal(verb, &answer);
		free(answer.body);
		return rc;
	}
	*doc = json_loadb(answer.body, answer.n, 0, NULL);
	free(answer.body);
	if (*doc)
		return VERB_OK;
	plain_print(
	    stderr, "weir %s: the server at %s is not a weir admin endpoint\n", verb->name, url);
	return VERB_UNREACHABLE;
}

bool act_name_fits(const struct verb *verb, const char *name)
{
	size_t n =
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	if (n > 0 && n < 128 && name[n] == '\0')
		return true;
	verb_misused(verb, "'%s' cannot be the name of a stage or a knob", name);
	return false;
}

const char *act_text(const json_t *map, const char *key)
{
	const char *text = json_string_value(json_object_get(map, key));

	return text ? text : "";
}

const char *act_time(char buf[32], double at)
{
	time_t s = at > 0 && at < ACT_TIME_MAX ? (time_t)at : 0;
	struct tm tm = {0};
	int ms = s ? (int)((at - floor(at)) * 1000) : 0;

	localtime_r(&s, &tm);
	snprintf(buf, 32, "%02d:%02d:%02d.%03d", tm.tm_hour, tm.tm_min, tm.tm_sec, ms);
	return buf;
}

const char *act_duration(char buf[32], double s)
{
	if (s < 0)
		snprintf(buf, 32, "-");
	else if (s < 1e-3)
		snprintf(buf, 32, "%.0fus", s * 1e6);
	else if (s < 1)
		snprintf(buf, 32, "%.3gms", s * 1e3);
	else if (s < 1000)
		snprintf(buf, 32, "%.3gs", s);
	else
		snprintf(buf, 32, "%.0fs", s);
	return buf;
}

const char *act_rate(char buf[16], double v)
{
	if (v < 0)
		snprintf(buf, 16, "-");
	else if (v < 0.005)
		snprintf(buf, 16, "0");
	else if (v < 9.995)
		snprintf(buf, 16, "%.2f", v);
	else if (v < 99999.5)
		snprintf(buf, 16, "%.0f", v);
	else if (v < 9.9995e6)
		snprintf(buf, 16, "%.0fk", v / 1e3);
	else
		snprintf(buf, 16, "%.0fM", v / 1e6);
	return buf;
}

bool act_count(const struct verb *verb, const struct verb_args *args, int max, int *n)
{
	char *end;

	if (!args->count)
		return true;
	long value = strtol(args->count, &end, 10);
	if (end != args->count && *end == '\0' && value >= 1 && value <= max) {
		*n = (int)value;
		return true;
	}
	verb_misused(verb, "-n takes a number from 1 to %d, not '%s'", max, args->count);
	return false;
}

void act_print_json(const json_t *doc, size_t flags)
{
	char *text = json_dumps(doc, flags);

	plain_json(stdout, text ? text : "null", text ? strlen(text) : 4);
	putchar('\n');
	free(text);
}

int act_print(json_t *doc)
{
	act_print_json(doc, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	json_decref(doc);
	return VERB_OK;
}

/* ---- knobs ---- */

struct target {
	char name[128], knob[128]; /* `name` of a class begins with "classes." */
	const char *kind;          /* "stages", "groups" or "classes", as in the paths of the API */
};

/* Return the length of the longest name of a stage or group that `path` begins with, or 0 if it
 * begins with none. A name may contain dots, so the first dot does not always end it. */
static size_t name_length(const json_t *graph, const char *path)
{
	static const char *const keys[] = {"name", "group"};
	const json_t *stages = json_object_get(graph, "stages");
	size_t best = 0;

	for (size_t i = 0; i < 2 * json_array_size(stages); i++) {
		const char *name = act_text(json_array_get(stages, i / 2), keys[i % 2]);
		size_t n = strlen(name);
		if (n > best && strncmp(path, name, n) == 0 && path[n] == '.')
			best = n;
	}
	return best;
}

/* Return the length of the longest "classes.NAME" that `path` begins with, NAME being a class of the
 * server; 0 if there is none. */
static size_t class_length(const json_t *graph, const char *path)
{
	const json_t *classes = json_object_get(graph, "classes");
	size_t best = 0, skip = sizeof(ACT_CLASSES) - 1;

	if (strncmp(path, ACT_CLASSES, skip) != 0)
		return 0;
	for (size_t i = 0; i < json_array_size(classes); i++) {
		const char *name = json_string_value(json_array_get(classes, i));
		size_t n = name ? strlen(name) : 0;
		if (n > 0 && skip + n > best && strncmp(path + skip, name, n) == 0 &&
		    path[skip + n] == '.')
			best = skip + n;
	}
	return best;
}

bool act_is_group(const json_t *graph, const char *name)
{
	const json_t *stages = json_object_get(graph, "stages");

	/* a stage with a pool of its own has its own name as that of its group */
	for (size_t i = 0; i < json_array_size(stages); i++) {
		const json_t *stage = json_array_get(stages, i);
		if (*name && strcmp(act_text(stage, "group"), name) == 0 &&
		    strcmp(act_text(stage, "name"), name) != 0)
			return true;
	}
	return false;
}

/* Split the path of a knob into t->name and t->knob, at path[dot]. */
static void split(struct target *t, const char *path, size_t dot)
{
	snprintf(t->name, sizeof(t->name), "%.*s", (int)dot, path);
	snprintf(t->knob, sizeof(t->knob), "%s", path[dot] ? path + dot + 1 : "");
}

/* Return where the name of the owner ends in `path`, and set t->kind. If there is no such owner, it
 * ends at the first dot, or at the second one behind "classes", so that the server can suggest a
 * name. */
static size_t find_owner(struct target *t, const json_t *graph, const char *path)
{
	const size_t skip = sizeof(ACT_CLASSES) - 1;
	size_t owner = name_length(graph, path), class = class_length(graph, path);

	t->kind = "stages";
	if (owner > class)
		return owner;
	if (class == 0 && strncmp(path, ACT_CLASSES, skip) != 0)
		return strcspn(path, ".");
	t->kind = "classes";
	return class ? class : skip + strcspn(path + skip, ".");
}

/* Split STAGE.KNOB, GROUP.KNOB or classes.CLASS.KNOB. */
static int take_target(const struct verb *verb, const struct verb_args *args, const char *text,
    size_t n, struct target *t)
{
	char path[256];
	json_t *graph;

	if (n >= sizeof(path) || !memchr(text, '.', n) || text[0] == '.')
		return verb_misused(
		    verb, "'%.*s' is not STAGE.KNOB, as in work.threads.max", (int)n, text);
	snprintf(path, sizeof(path), "%.*s", (int)n, text);
	int rc = act_ask(verb, args, "GET", "/api/v1/graph", NULL, &graph);
	if (rc != VERB_OK)
		return rc;
	size_t dot = find_owner(t, graph, path);
	split(t, path, dot);
	if (act_is_group(graph, t->name))
		t->kind = "groups";
	json_decref(graph);
	if (!path[dot])
		return verb_misused(
		    verb, "'%s' is not classes.CLASS.KNOB, as in classes.bulk.slo", path);
	if (dot >= sizeof(t->name) || n - dot - 1 >= sizeof(t->knob))
		return verb_misused(verb, "'%s' is too long", path);
	return act_name_fits(verb, t->name) && act_name_fits(verb, t->knob) ? VERB_OK : VERB_USAGE;
}

/* Print a knob: "work.threads.max = 5 (configured 2), until 10:41:02.114" */
static int print_knob(const struct verb_args *args, const struct target *t, json_t *knob)
{
	const json_t *expires = json_object_get(knob, "expires_at");
	const char *configured = act_text(knob, "configured");
	char at[32];

	if (args->json)
		return act_print(knob);
	plain_print(stdout, "%s.%s = %s", t->name, t->knob, act_text(knob, "effective"));
	if (json_is_string(json_object_get(knob, "overridden")))
		plain_print(stdout, " (configured %s)", configured);
	else
		plain_print(stdout, " (as configured)");
	if (json_is_number(expires))
		plain_print(stdout, ", until %s", act_time(at, json_number_value(expires)));
	putchar('\n');
	json_decref(knob);
	return VERB_OK;
}

static int ask_knob(const struct verb *verb, const struct verb_args *args, const struct target *t,
    const char *method, const char *body)
{
	char path[ACT_PATH_MAX];
	json_t *knob;

	bool class = strcmp(t->kind, "classes") == 0;
	snprintf(path, sizeof(path), "/api/v1/%s/%s/knobs/%s", t->kind,
	    t->name + (class ? sizeof(ACT_CLASSES) - 1 : 0), t->knob);
	int rc = act_ask(verb, args, method, path, body, &knob);
	return rc == VERB_OK ? print_knob(args, t, knob) : rc;
}

int verb_set(const struct verb *verb, const struct verb_args *args)
{
	const char *text = args->operand[0], *equals = strchr(text, '=');
	struct target t = {0};

	if (!equals)
		return verb_misused(
		    verb, "'%s' is not STAGE.KNOB=VALUE, as in work.threads.max=8", text);
	int rc = take_target(verb, args, text, (size_t)(equals - text), &t);
	if (rc != VERB_OK)
		return rc;
	json_t *wish = json_pack("{s:s}", "value", equals + 1);
	if (wish && args->for_)
		json_object_set_new(wish, "for", json_string(args->for_));
	char *body = json_dumps(wish, 0);
	json_decref(wish);
	if (!body)
		return verb_misused(verb, "the value is not UTF-8 text");
	rc = ask_knob(verb, args, &t, "PUT", body);
	free(body);
	return rc;
}

int verb_unset(const struct verb *verb, const struct verb_args *args)
{
	struct target t = {.kind = ""};
	int rc = take_target(verb, args, args->operand[0], strlen(args->operand[0]), &t);

	return rc == VERB_OK ? ask_knob(verb, args, &t, "DELETE", "{}") : rc;
}

/* ---- the other verbs ---- */

int verb_undo(const struct verb *verb, const struct verb_args *args)
{
	json_t *doc;
	int rc = act_ask(verb, args, "POST", "/api/v1/undo", "{}", &doc);

	if (rc != VERB_OK || args->json)
		return rc != VERB_OK ? rc : act_print(doc);
	const json_t *act = json_object_get(doc, "undone");
	plain_print(stdout, "undid '%s %s': %s again, no longer %s\n", act_text(act, "what"),
	    act_text(act, "target"), act_text(act, "from"), act_text(act, "to"));
	json_decref(doc);
	return VERB_OK;
}

int verb_purge(const struct verb *verb, const struct verb_args *args)
{
	json_t *ask = json_pack("{s:s}", "what", args->operand[0]), *doc;
	char *body = ask ? json_dumps(ask, 0) : NULL;

	json_decref(ask);
	if (!body)
		return verb_misused(verb, "'%s' is not UTF-8", args->operand[0]);
	int rc = act_ask(verb, args, "POST", "/api/v1/purge", body, &doc);
	free(body);
	if (rc != VERB_OK || args->json)
		return rc != VERB_OK ? rc : act_print(doc);
	plain_print(stdout, "%lld removed\n",
	    (long long)json_integer_value(json_object_get(doc, "purged")));
	json_decref(doc);
	return VERB_OK;
}

int verb_steer(const struct verb *verb, const struct verb_args *args)
{
	const char *stage = args->operand[0];
	char path[ACT_PATH_MAX];
	json_t *doc;

	if (!act_name_fits(verb, stage))
		return VERB_USAGE;
	snprintf(path, sizeof(path), "/api/v1/stages/%s/%s", stage, verb->name);
	int rc = act_ask(verb, args, "POST", path, "{}", &doc);
	if (rc != VERB_OK || args->json)
		return rc != VERB_OK ? rc : act_print(doc);
	plain_print(stdout, "%s is %s, %lld in flight\n", stage, act_text(doc, "state"),
	    (long long)json_integer_value(json_object_get(doc, "in_flight")));
	json_decref(doc);
	return VERB_OK;
}
