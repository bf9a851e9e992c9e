/* SPDX-License-Identifier: MIT */
/* reload: make a running server read its configuration file again, and print the changes in the
 * form of `diff`. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/act.h"
#include "base/clock.h"
#include "cli/client/client.h"
#include "verb_diff.h"
#include "cli/client/plain.h"

/* Time limit of a reload. A reload is complete when the new graph is running, so it may take as
 * long as a startup; 60 s is longer than any startup takes. */
#define RELOAD_WAIT_NS (60 * NS_PER_S)
/* Polling interval. */
#define RELOAD_LOOK_NS (20 * NS_PER_MS)

static void print_changes(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *c = json_array_get(list, i);
		bool hidden = json_is_true(json_object_get(c, "hidden"));
		diff_print(act_text(c, "effect"), act_text(c, "path"),
		    hidden ? "(hidden)" : json_string_value(json_object_get(c, "from")),
		    hidden ? "(hidden)" : json_string_value(json_object_get(c, "to")));
	}
}

static void print_renewed(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		plain_print(stdout, "  ~ %s: %s\n", act_text(one, "stage"), act_text(one, "text"));
	}
}

/* Poll until reload request `id` is done. */
static int await(const struct verb *verb, const struct verb_args *args, json_int_t id, json_t **doc)
{
	const struct timespec look = {0, RELOAD_LOOK_NS};
	int64_t until_ns = clock_now_ns() + RELOAD_WAIT_NS;
	int rc;

	client_renew();
	while ((rc = act_ask(verb, args, "GET", "/api/v1/reload", NULL, doc)) == VERB_OK) {
		if (json_integer_value(json_object_get(*doc, "done")) >= id)
			return VERB_OK;
		json_decref(*doc);
		*doc = NULL;
		if (clock_now_ns() > until_ns) {
			plain_print(
			    stderr, "weir %s: the server has not answered for 60 s\n", verb->name);
			return VERB_FINDING;
		}
		nanosleep(&look, NULL);
		client_renew(); /* reset the time limit of the client, since await() has its own */
	}
	return rc;
}

static int tell(const json_t *last)
{
	bool failed = strcmp(act_text(last, "result"), "failed") == 0;

	if (failed) {
		plain_lines(stderr, act_text(last, "text"));
		plain_print(stderr, "%s\n", act_text(last, "summary"));
		return VERB_FINDING;
	}
	plain_print(stdout, "%s%s\n", act_text(last, "summary"),
	    json_is_true(json_object_get(last, "preview")) ? " (nothing was done)" : "");
	print_changes(json_object_get(last, "changes"));
	print_renewed(json_object_get(last, "renewed"));
	return VERB_OK;
}

int verb_reload(const struct verb *verb, const struct verb_args *args)
{
	json_t *doc;
	int rc = act_ask(verb, args, "POST", "/api/v1/reload",
	    args->dry_run ? "{\"preview\":true}" : "{}", &doc);

	if (rc != VERB_OK)
		return rc;
	json_int_t id = json_integer_value(json_object_get(doc, "id"));
	json_decref(doc);
	rc = await(verb, args, id, &doc);
	if (rc != VERB_OK)
		return rc;
	const json_t *last = json_object_get(doc, "last");
	if (args->json) {
		act_print_json(last, JSON_INDENT(2));
		rc = strcmp(act_text(last, "result"), "failed") == 0 ? VERB_FINDING : VERB_OK;
	} else {
		rc = tell(last);
	}
	json_decref(doc);
	return rc;
}
