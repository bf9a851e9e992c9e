/* SPDX-License-Identifier: MIT */
/* save: write the knobs that were set permanently on a running server to its YAML file
 * (config_save). */
#include "cli/act.h"

#include <stdlib.h>
#include <string.h>

#include <weir/graph.h>

#include "config.h"
#include "cli/client/plain.h"

/* Maximum number of overridden knobs of a server. The number is a guess: more than an operator
 * sets. */
#define SAVE_MAX VERB_SETS_MAX

struct save {
	const struct verb *verb;
	const struct verb_args *args;
	struct config_change change[SAVE_MAX];
	int n;
	json_t *kept[SAVE_MAX]; /* responses of the server, which hold the texts of the changes */
	int n_kept;
	char class_name[WEIR_CLASSES_MAX][128]; /* as owners of knobs */
};

/* ---- overridden knobs ---- */

static void warn_brief(const char *stage, const json_t *knob)
{
	char at[32];

	plain_print(stderr, "weir save: %s.%s is %s only until %s, so it is not saved\n", stage,
	    act_text(knob, "name"), act_text(knob, "effective"),
	    act_time(at, json_number_value(json_object_get(knob, "expires_at"))));
}

static int add_change(struct save *s, const char *stage, const json_t *knob, const char *value)
{
	const char *name = act_text(knob, "name");

	if (s->n == SAVE_MAX) {
		plain_print(stderr,
		    "weir save: more than %d knobs are overridden, which is more than can be "
		    "saved\n",
		    SAVE_MAX);
		return VERB_FINDING;
	}
	s->change[s->n++] =
	    (struct config_change){stage, name, value, strcmp(act_text(knob, "type"), "bool") == 0};
	return VERB_OK;
}

/* `kind` is "stages", "groups" or "classes", and `stage` the name under which the knobs of the owner are
 * set: that of a class begins with "classes.". */
static int add_owner(struct save *s, const char *kind, const char *stage)
{
	const char *name = stage + (strcmp(kind, "classes") == 0 ? sizeof(ACT_CLASSES) - 1 : 0);
	char path[ACT_PATH_MAX];
	json_t *doc;
	int had = s->n;

	if (!act_name_fits(s->verb, stage))
		return VERB_FINDING;
	snprintf(path, sizeof(path), "/api/v1/%s/%s/knobs", kind, name);
	int rc = act_ask(s->verb, s->args, "GET", path, NULL, &doc);
	if (rc != VERB_OK)
		return rc;
	const json_t *knobs = json_object_get(doc, "knobs");
	for (size_t i = 0; rc == VERB_OK && i < json_array_size(knobs); i++) {
		const json_t *knob = json_array_get(knobs, i);
		if (!json_is_string(json_object_get(knob, "overridden")))
			continue;
		const json_t *kept = json_object_get(knob, "kept");
		bool brief = json_is_number(json_object_get(knob, "expires_at"));
		if (brief)
			warn_brief(stage, knob);
		if (json_is_string(kept)) /* the permanent value, if a temporary one hides it */
			rc = add_change(s, stage, knob, json_string_value(kept));
		else if (!brief)
			rc = add_change(s, stage, knob, act_text(knob, "overridden"));
	}
	if (s->n > had)
		s->kept[s->n_kept++] = doc; /* the texts of the changes are in this response */
	else
		json_decref(doc);
	return rc;
}

/* Whether one of the stages before `i` is in the group. */
static bool is_repeated(const json_t *stages, size_t i, const char *group)
{
	while (i-- > 0)
		if (strcmp(act_text(json_array_get(stages, i), "group"), group) == 0)
			return true;
	return false;
}

static int fetch(struct save *s, json_t **graph)
{
	int rc = act_ask(s->verb, s->args, "GET", "/api/v1/graph", NULL, graph);
	const json_t *stages = json_object_get(*graph, "stages");

	for (size_t i = 0; rc == VERB_OK && i < json_array_size(stages); i++)
		rc = add_owner(s, "stages", act_text(json_array_get(stages, i), "name"));
	for (size_t i = 0; rc == VERB_OK && i < json_array_size(stages); i++) {
		const char *group = act_text(json_array_get(stages, i), "group");
		if (act_is_group(*graph, group) && !is_repeated(stages, i, group))
			rc = add_owner(s, "groups", group);
	}
	const json_t *classes = json_object_get(*graph, "classes");
	for (size_t i = 0; rc == VERB_OK && i < json_array_size(classes) && i < WEIR_CLASSES_MAX;
	     i++) {
		const char *name = json_string_value(json_array_get(classes, i));
		snprintf(
		    s->class_name[i], sizeof(s->class_name[i]), ACT_CLASSES "%s", name ? name : "");
		rc = add_owner(s, "classes", s->class_name[i]);
	}
	return rc;
}

static void forget(struct save *s)
{
	for (int i = 0; i < s->n_kept; i++)
		json_decref(s->kept[i]);
}

static const struct config_reading reading = {config_load, weir_spec_check};

static int save(const struct save *s, const char *path)
{
	struct weir_errs errs = {0};
	char *changes;

	if (config_save(path, s->change, s->n, &reading, s->args->dry_run, &changes, &errs) != 0) {
		verb_print_errors(&errs, "Nothing was written.");
		return VERB_FINDING;
	}
	plain_lines(stdout, changes);
	plain_print(stdout, "%s: %d value%s %s\n", path, s->n, s->n == 1 ? "" : "s",
	    s->args->dry_run ? "would be saved" : "saved");
	free(changes);
	return VERB_OK;
}

int verb_save(const struct verb *verb, const struct verb_args *args)
{
	struct save s = {.verb = verb, .args = args};
	json_t *graph = NULL;

	if (!*args->operand[0])
		return verb_misused(verb, "FILE is empty");
	int rc = fetch(&s, &graph);

	if (rc == VERB_OK && s.n == 0)
		puts("no knob is overridden permanently, so there is nothing to save");
	else if (rc == VERB_OK)
		rc = save(&s, args->operand[0]);
	forget(&s);
	json_decref(graph);
	return rc;
}
