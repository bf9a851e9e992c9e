/* SPDX-License-Identifier: MIT */
/* reload, diff: what a changed configuration means, and to make it so. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/graph.h>

#include "act.h"
#include "base/clock.h"
#include "config.h"
#include "diff.h"

/* A server answers its reload as soon as the new graph runs; longer than any start takes. */
#define RELOAD_WAIT_NS (60 * NS_PER_S)
/* Between two questions whether it has. */
#define RELOAD_LOOK_NS (20 * NS_PER_MS)

static const char *sign_of(const char *effect)
{
	return strcmp(effect, "add") == 0 ? "+" : strcmp(effect, "remove") == 0 ? "-" : "~";
}

static const char *note_of(const char *effect)
{
	return strcmp(effect, "live") == 0      ? ""
	       : strcmp(effect, "restart") == 0 ? "  (at the next start)"
	       : strcmp(effect, "rebuild") == 0 ? "  (made anew)"
						: "";
}

static void print_change(const char *effect, const char *path, const char *from, const char *to)
{
	printf("  %s %s", sign_of(effect), path);
	if (from && to)
		printf(": %s -> %s", from, to);
	else if (from || to)
		printf(": %s%s", from ? from : to, from ? " -> (gone)" : "");
	printf("%s\n", note_of(effect));
}

static void print_changes(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *c = json_array_get(list, i);
		bool hidden = json_is_true(json_object_get(c, "hidden"));
		print_change(act_text(c, "effect"), act_text(c, "path"),
		    hidden ? "(hidden)" : json_string_value(json_object_get(c, "from")),
		    hidden ? "(hidden)" : json_string_value(json_object_get(c, "to")));
	}
}

/* Ask until order `id` is done. */
static int await(const struct verb *verb, const struct verb_args *args, json_int_t id, json_t **doc)
{
	const struct timespec look = {0, RELOAD_LOOK_NS};
	int64_t until_ns = clock_now_ns() + RELOAD_WAIT_NS;
	int rc;

	while ((rc = act_ask(verb, args, "GET", "/api/v1/reload", NULL, doc)) == VERB_OK) {
		if (json_integer_value(json_object_get(*doc, "done")) >= id)
			return VERB_OK;
		json_decref(*doc);
		*doc = NULL;
		if (clock_now_ns() > until_ns) {
			fprintf(
			    stderr, "weir %s: the server has not answered for 60 s\n", verb->name);
			return VERB_FINDING;
		}
		nanosleep(&look, NULL);
	}
	return rc;
}

static int tell(const json_t *last)
{
	bool failed = strcmp(act_text(last, "result"), "failed") == 0;

	if (failed) {
		fputs(act_text(last, "text"), stderr);
		fprintf(stderr, "%s\n", act_text(last, "summary"));
		return VERB_FINDING;
	}
	printf("%s%s\n", act_text(last, "summary"),
	    json_is_true(json_object_get(last, "preview")) ? " (nothing was done)" : "");
	print_changes(json_object_get(last, "changes"));
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
		json_dumpf(last, stdout, JSON_INDENT(2));
		putchar('\n');
		rc = strcmp(act_text(last, "result"), "failed") == 0 ? VERB_FINDING : VERB_OK;
	} else {
		rc = tell(last);
	}
	json_decref(doc);
	return rc;
}

/* ---- diff ---- */

static char *values_of_file(const char *path)
{
	struct weir_errs errs = {0};
	struct weir_spec *spec = NULL;
	char *text = NULL;

	if (config_load(path, NULL, 0, &spec, &errs) == 0 && weir_spec_check(spec, &errs) == 0)
		text = config_values_text(spec);
	if (errs.total > 0)
		verb_print_errors(&errs, "Nothing was compared.");
	weir_spec_free(spec);
	return text;
}

static int print_diff_json(const struct config_diff *diff, const char *sentence)
{
	json_t *list = json_array();

	for (int i = 0; i < diff->n; i++) {
		const struct config_difference *d = &diff->item[i];
		json_array_append_new(
		    list, json_pack("{s:s, s:s?, s:s?, s:s}", "path", d->path, "from", d->from,
			      "to", d->to, "effect", config_effect_word(d->effect)));
	}
	json_t *doc = json_pack("{s:s, s:o}", "summary", sentence, "changes", list);
	int rc = doc ? json_dumpf(doc, stdout, JSON_INDENT(2)) : -1;
	putchar('\n');
	json_decref(doc);
	return rc;
}

int verb_diff(const struct verb *verb, const struct verb_args *args)
{
	struct config_diff diff = {0};
	char sentence[256];
	char *before = values_of_file(args->operand[0]);
	char *after = before ? values_of_file(args->operand[1]) : NULL;
	int rc = after ? config_diff(before, after, &diff) : WEIR_EINVAL;

	if (rc == 0) {
		config_diff_say(&diff, sentence, sizeof(sentence));
		if (args->json)
			rc = print_diff_json(&diff, sentence);
		else
			printf("%s\n", sentence);
		for (int i = 0; !args->json && i < diff.n; i++)
			print_change(config_effect_word(diff.item[i].effect), diff.item[i].path,
			    diff.item[i].from, diff.item[i].to);
	} else if (rc == WEIR_ENOMEM) {
		fprintf(stderr, "weir %s: out of memory\n", verb->name);
	}
	rc = rc == 0 && diff.n == 0 ? VERB_OK : VERB_FINDING;
	config_diff_free(&diff);
	free(before);
	free(after);
	return rc;
}
