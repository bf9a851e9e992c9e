/* SPDX-License-Identifier: MIT */
/*
 * overload: show or set the kill switch of a running server, which caps the admission modes of all
 * its stages.
 */
#include "cli/verb.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <weir/knob.h>

#include "cli/act.h"
#include "cli/client/client.h"
#include "cli/client/plain.h"

#define OVERLOAD_PATH "/api/v1/overload"

static const char *const meaning[] = {
    "off: no admission policy is consulted; only full queues and deadlines refuse",
    "shadow: admission policies count what they would refuse, and admit it",
    "enforce: each stage uses its own admission mode",
};

/* The mode, parsed by the same rule as in the server. The choices have the order of `meaning`. */
static const struct weir_knob mode_row = {
    .name = "mode", .type = WEIR_KNOB_ENUM, .choices = "off|shadow|enforce"};

/* Print why the server refused. */
static int refused(const struct client_answer *answer)
{
	json_t *doc = json_loadb(answer->body, answer->n, 0, NULL);
	const char *detail = json_string_value(json_object_get(doc, "detail"));

	plain_print(stderr, "weir overload: the server answered %d%s%s\n", answer->status,
	    detail ? ": " : "", detail ? detail : "");
	json_decref(doc);
	return VERB_FINDING;
}

/* Return the mode in `answer`, or -1 if there is none. */
static int mode_of(const struct client_answer *answer)
{
	json_t *doc = json_loadb(answer->body, answer->n, 0, NULL);
	const char *word = json_string_value(json_object_get(doc, "mode"));
	char why[200];
	int mode = -1;

	if (!word || weir_knob_parse(&mode_row, word, &mode, why, sizeof(why)) != 0)
		mode = -1;
	json_decref(doc);
	return mode;
}

/* The text is "MODE: MEANING". */
static void print_mode_json(int mode)
{
	size_t n = strcspn(meaning[mode], ":");

	act_print(json_pack("{s:s%, s:s}", "mode", meaning[mode], n, "meaning",
	    meaning[mode] + n + strspn(meaning[mode] + n, ": ")));
}

int verb_overload(const struct verb *verb, const struct verb_args *args)
{
	const char *url = args->admin ? args->admin : CLIENT_DEFAULT_URL;
	const char *word = args->n ? args->operand[0] : NULL;
	struct client_answer answer = {0};
	struct weir_err err = {0};
	char why[200], body[64];
	int mode;

	if (word && weir_knob_parse(&mode_row, word, &mode, why, sizeof(why)) != 0)
		return verb_misused(verb, "%s", why);
	snprintf(body, sizeof(body), "{\"mode\": \"%s\"}", word ? word : "");
	int rc = word ? client_put(url, OVERLOAD_PATH, body, &answer, &err)
		      : client_get(url, OVERLOAD_PATH, &answer, &err);
	if (rc != 0) {
		plain_print(stderr, "weir overload: %s\n", err.text);
		return VERB_UNREACHABLE;
	}
	mode = answer.status == 200 ? mode_of(&answer) : -1;
	if (mode >= 0 && args->json)
		print_mode_json(mode);
	else if (mode >= 0)
		plain_print(stdout, "%s\n", meaning[mode]);
	else
		rc = refused(&answer);
	free(answer.body);
	return rc;
}
