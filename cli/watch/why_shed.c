/* SPDX-License-Identifier: MIT */
/*
 * why --shed: explain why a request was refused. The only input is the id in its response
 * (X-Weir-Shed-Id).
 *
 * The id encodes the reason (stage/shed_token.h). A running server is only needed to look up names,
 * the objective and the time of day. Without a server, or if it was started after the refusal,
 * numbers are printed instead of names. The exit code is the same in both cases, since the id alone
 * explains the refusal.
 */
#include "why_shed.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "cli/act.h"
#include "cli/client/client.h"
#include "framework/base/number_text.h"
#include "framework/base/json.h"
#include "stage/shed_token.h"
#include "cli/client/plain.h"

/* What the server reports about the objects in an id. Texts point into the response of the
 * server. */
struct about {
	const char *stage, *class_name; /* NULL if unknown */
	double slo_s;                   /* 0 if unknown */
	double wall_s;                  /* Unix time of the refusal; 0 if unknown */
};

static double number(const json_t *map, const char *key)
{
	return json_number_value(json_object_get(map, key));
}

/* Fill in `about` from `doc` (/api/v1/stages). Returns false if the server was started after the
 * refusal. */
static bool look_up(const json_t *doc, const struct shed_token *t, struct about *about)
{
	double up_s = number(doc, "uptime_seconds");
	double at_s = (double)shed_token_since_ns(t, (int64_t)(up_s * 1e9)) / 1e9;
	const json_t *stage = json_array_get(json_object_get(doc, "stages"), t->stage);

	if (at_s > up_s)
		return false;
	about->wall_s = number(doc, "time") - up_s + at_s;
	if (t->stage == SHED_TOKEN_STAGE_UNKNOWN || !stage)
		return true;
	about->stage = json_string_value(json_object_get(stage, "name"));
	about->slo_s = number(stage, "slo_seconds");
	about->class_name = json_string_value(json_object_get(
	    json_array_get(json_object_get(stage, "classes"), t->class_id), "name"));
	return true;
}

/* Query the server at `url` and fill in `about`. Returns the response, which the caller must
 * release. On failure, prints the reason on stderr and returns NULL. */
static json_t *ask_names(const char *url, const struct shed_token *t, struct about *about)
{
	struct client_answer answer = {0};
	struct weir_err err = {0};
	int rc = client_get(url, "/api/v1/stages", &answer, &err);
	json_t *doc =
	    rc == 0 && answer.status == 200 ? json_loadb(answer.body, answer.n, 0, NULL) : NULL;

	free(answer.body);
	if (doc && look_up(doc, t, about))
		return doc;
	if (rc != 0)
		plain_print(stderr, "weir why: %s", err.text);
	else
		plain_print(stderr, "weir why: the server at %s %s", url,
		    doc ? "was started after the refusal" : "is not a weir admin endpoint");
	fputs(", so numbers are shown instead of names\n", stderr);
	json_decref(doc);
	return NULL;
}

/* ---- the sentence ---- */

static void print_when(const struct shed_token *t, const struct about *about)
{
	time_t whole = (time_t)about->wall_s;
	struct tm tm;

	if (!(about->wall_s > 0 && about->wall_s < ACT_TIME_MAX)) {
		plain_print(stdout, "%u.%u s after the start", t->at / 10, t->at % 10);
		return;
	}
	localtime_r(&whole, &tm);
	plain_print(stdout, "at %02d:%02d:%02d.%d", tm.tm_hour, tm.tm_min, tm.tm_sec,
	    (int)((about->wall_s - (double)whole) * 10));
}

static void print_who(const struct shed_token *t, const struct about *about)
{
	if (about->stage)
		plain_print(stdout, " '%s' refused", about->stage);
	else if (t->stage == SHED_TOKEN_STAGE_UNKNOWN)
		fputs(" a stage refused", stdout);
	else
		plain_print(stdout, " stage %u refused", t->stage);
	if (about->class_name)
		plain_print(stdout, " class '%s'", about->class_name);
	else
		plain_print(stdout, " class %u", t->class_id);
}

static void print_wait(const struct shed_token *t, const struct about *about)
{
	double share = (double)t->wait / SHED_TOKEN_WAIT_UNIT;
	const char *over = t->wait == SHED_TOKEN_WAIT_MOST ? "over " : "";

	if (t->wait == SHED_TOKEN_WAIT_UNKNOWN)
		return;
	/* the id encodes the predicted wait in steps of 3 % of the objective */
	if (about->slo_s > 0)
		plain_print(stdout, "; the predicted wait was %s%.*f ms, the objective %s ms", over,
		    about->slo_s < 0.1, share * about->slo_s * 1e3,
		    number_text(NUMBER_ROOM, about->slo_s * 1e3, 4));
	else
		plain_print(stdout, "; the predicted wait was %s%.0f %% of the objective", over,
		    share * 100);
}

/* The highest class is refused for the sake of its own users only. */
static const char *reason_text(int code, const struct shed_token *t)
{
	return code == WEIR_EPRIORITY && t->class_id > 0 ? "more important work needs the capacity"
							 : weir_error_text(code);
}

static void print_token(const char *text, const struct shed_token *t, const struct about *about)
{
	int code = weir_shed_code(t->reason_index);

	plain_print(stdout, "shed %s: ", text);
	print_when(t, about);
	print_who(t, about);
	plain_print(stdout, " (%s): %s", weir_error_word(code), reason_text(code, t));
	print_wait(t, about);
	if (code == WEIR_EPRIORITY)
		plain_print(stdout,
		    "; %.0f %% of the class was admitted: the users whose number, from 0 to 1, is "
		    "below that share; this user's number was %.2f",
		    t->part * 100.0 / SHED_TOKEN_PART_ALL, t->user / 256.0);
	puts(".");
}

/* Print the same facts as JSON; null stands for an unknown one. */
static int print_token_json(const char *text, const struct shed_token *t, const struct about *about)
{
	int code = weir_shed_code(t->reason_index);
	bool waited = t->wait != SHED_TOKEN_WAIT_UNKNOWN, priority = code == WEIR_EPRIORITY;
	double share = (double)t->wait / SHED_TOKEN_WAIT_UNIT;
	json_t *doc = json_pack("{s:s, s:s, s:s, s:s?, s:i, s:s?}", "id", text, "reason",
	    weir_error_word(code), "text", reason_text(code, t), "class", about->class_name,
	    "class_number", (int)t->class_id, "stage", about->stage);

	json_put(&doc, "stage_number",
	    t->stage == SHED_TOKEN_STAGE_UNKNOWN ? json_null() : json_integer(t->stage));
	json_put(&doc, "time", about->wall_s > 0 ? json_real(about->wall_s) : json_null());
	json_put(&doc, "seconds_after_start", json_real(t->at / 10.0));
	json_put(
	    &doc, "objective_seconds", about->slo_s > 0 ? json_real(about->slo_s) : json_null());
	json_put(&doc, "predicted_wait_ratio", waited ? json_real(share) : json_null());
	json_put(&doc, "predicted_wait_is_minimum",
	    waited ? json_boolean(t->wait == SHED_TOKEN_WAIT_MOST) : json_null());
	json_put(&doc, "admitted_ratio",
	    priority ? json_real(t->part / (double)SHED_TOKEN_PART_ALL) : json_null());
	json_put(&doc, "user", priority ? json_real(t->user / 256.0) : json_null());
	if (doc)
		return act_print(doc);
	fputs("weir why: out of memory\n", stderr);
	return VERB_FINDING;
}

int why_shed(const char *id, const char *url, bool json)
{
	struct about about = {0};
	struct shed_token t;
	char text[WEIR_SHED_ID_BYTES];
	uint64_t value;

	if (shed_token_parse(id, &value) != 0 || !shed_token_unpack(value, &t)) {
		plain_print(stderr,
		    "weir why: '%s' is not a shed id: a shed id has 13 letters and digits, as in "
		    "the "
		    "field X-Weir-Shed-Id of a 503\n",
		    id);
		return VERB_USAGE;
	}
	json_t *doc = ask_names(url, &t, &about);
	shed_token_print(value, text);
	int rc = VERB_OK;
	if (json)
		rc = print_token_json(text, &t, &about);
	else
		print_token(text, &t, &about);
	json_decref(doc);
	return rc;
}
