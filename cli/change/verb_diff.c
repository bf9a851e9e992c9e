/* SPDX-License-Identifier: MIT */
/*
 * diff: show what a configuration file would change in a running server, or how two files differ.
 *
 * Files are read, expanded and checked in this process, with its environment and plug-ins. From the
 * server, only its values are requested (/api/v1/config): nothing from the file is sent, and the
 * server is not changed.
 *
 * A server does not reveal values that come from ${}. If the value in the file also comes from ${},
 * the two are not compared, since the environment of the server may differ from that of this
 * process.
 */
#include "verb_diff.h"

#include <stdlib.h>
#include <string.h>

#include "cli/act.h"
#include "config.h"
#include "diff.h"
#include "server/reload_report.h"
#include "cli/client/plain.h"

#define HIDDEN "(hidden)"

/** The two sides of the comparison. */
struct sides {
	char *before, *after; /* texts from config_values */
	json_t *hidden;       /* paths whose value in `after` comes from ${}, or NULL */
	int uncompared;       /* number of values that come from ${} on both sides */
};

/* ---- printing ---- */

static const char *sign_of(const char *effect)
{
	return strcmp(effect, "add") == 0 ? "+" : strcmp(effect, "remove") == 0 ? "-" : "~";
}

static const char *note_of(const char *effect)
{
	return strcmp(effect, "live") == 0      ? ""
	       : strcmp(effect, "restart") == 0 ? "  (at the next start)"
	       : strcmp(effect, "rebuild") == 0 ? "  (rebuilt)"
						: "";
}

void diff_print(const char *effect, const char *path, const char *from, const char *to)
{
	plain_print(stdout, "  %s %s", sign_of(effect), path);
	if (from && to)
		plain_print(stdout, ": %s -> %s", from, to);
	else if (from || to)
		plain_print(stdout, ": %s%s", from ? from : to, from ? " -> (gone)" : "");
	plain_print(stdout, "%s\n", note_of(effect));
}

static const char *shown(const struct sides *s, const struct config_difference *d)
{
	return d->to && s->hidden && json_object_get(s->hidden, d->path) ? HIDDEN : d->to;
}

static int print_json(const struct sides *s, const struct config_diff *diff, const char *sentence)
{
	json_t *list = json_array();

	for (int i = 0; i < diff->n; i++) {
		const struct config_difference *d = &diff->item[i];
		json_array_append_new(
		    list, json_pack("{s:s, s:s?, s:s?, s:s}", "path", d->path, "from", d->from,
			      "to", shown(s, d), "effect", config_effect_word(d->effect)));
	}
	return act_print(json_pack(
	    "{s:s, s:o, s:i}", "summary", sentence, "changes", list, "uncompared", s->uncompared));
}

static void print_text(const struct sides *s, const struct config_diff *diff, const char *sentence)
{
	plain_print(stdout, "%s\n", sentence);
	for (int i = 0; i < diff->n; i++)
		diff_print(config_effect_word(diff->item[i].effect), diff->item[i].path,
		    diff->item[i].from, shown(s, &diff->item[i]));
	if (s->uncompared > 0)
		plain_print(stdout, "  (%d value%s from ${} on both sides, so %s not compared)\n",
		    s->uncompared, s->uncompared == 1 ? " comes" : "s come",
		    s->uncompared == 1 ? "it was" : "they were");
}

/* ---- the two sides ---- */

static char *values_of_file(const char *path, json_t **hidden)
{
	struct weir_errs errs = {0};
	struct weir_spec *spec = NULL;
	char *text = NULL;

	if (config_load(path, NULL, 0, &spec, &errs) == 0 && weir_spec_check(spec, &errs) == 0) {
		text = config_values_text(spec);
		if (hidden && !(*hidden = report_hidden(spec))) {
			free(text);
			text = NULL;
		}
	}
	if (errs.total > 0)
		verb_print_errors(&errs, "Nothing was compared.");
	weir_spec_free(spec);
	return text;
}

/* Return the value of `path` in `text` (from config_values), and its length in *n. The result
 * points into `text`; it is NULL if there is no value. */
static const char *value_in(const char *text, const char *path, size_t *n)
{
	size_t len = strlen(path);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, path, len) != 0 || line[len] != ' ')
			continue;
		*n = strcspn(line + len + 1, "\n");
		return line + len + 1;
	}
	return NULL;
}

/* Whether a --set option on the server's command line overrides `path` of its file. */
static bool is_set(const json_t *sets, const char *path)
{
	static const char stages[] = "stages.";
	size_t skip = sizeof(stages) - 1;
	bool set = false;

	for (size_t i = 0; !set && strncmp(path, stages, skip) == 0 && i < json_array_size(sets);
	     i++) {
		const char *name = json_string_value(json_array_get(sets, i));
		size_t n = name ? strlen(name) : 0;
		set = n > 0 && strncmp(path + skip, name, n) == 0 &&
		      (path[skip + n] == '\0' || path[skip + n] == '.');
	}
	return set;
}

/* Write a text as part of a line of config_values. Newlines in texts of the server would end the
 * line, so they become spaces; texts of this process contain none. */
static void put_text(FILE *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fputc(text[i] == '\n' ? ' ' : text[i], out);
}

/* Return the server's values in the form of config_values, or NULL if out of memory. Values that
 * come from ${} on both sides, or from --set on the server, are not compared: the value of our file
 * is written in their place, so that no difference is shown. */
static char *values_of_server(const json_t *config, struct sides *s)
{
	const json_t *sets = json_object_get(config, "sets");
	json_t *values = json_object_get(config, "values"), *value;
	const char *path;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	json_object_foreach(values, path, value)
	{
		size_t n = 0;
		const char *own = value_in(s->after, path, &n);
		bool both = json_is_null(value) && own && json_object_get(s->hidden, path);
		s->uncompared += both;
		if (!out)
			continue;
		if (!both && !(own && is_set(sets, path))) {
			own = json_is_string(value) ? json_string_value(value) : HIDDEN;
			n = strlen(own);
		}
		put_text(out, path, strlen(path));
		fputc(' ', out);
		put_text(out, own, n);
		fputc('\n', out);
	}
	if (out && fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static int ask_server(const struct verb *verb, const struct verb_args *args, struct sides *s)
{
	json_t *config;
	int rc = act_ask(verb, args, "GET", "/api/v1/config", NULL, &config);

	if (rc != VERB_OK)
		return rc;
	if (json_object_size(json_object_get(config, "values")) > 0) {
		s->before = values_of_server(config, s);
	} else {
		plain_print(stderr,
		    "weir %s: the server does not report its configuration: it is of an older "
		    "version, or was not started from a file\n",
		    verb->name);
		rc = VERB_FINDING;
	}
	json_decref(config);
	return rc;
}

/* ---- the verb ---- */

static int compare(const struct verb *verb, const struct verb_args *args, const struct sides *s)
{
	struct config_diff diff = {0};
	char sentence[256];
	int rc = s->before && s->after ? config_diff(s->before, s->after, &diff) : WEIR_ENOMEM;

	if (rc == 0) {
		config_diff_say(&diff, sentence, sizeof(sentence));
		if (args->json)
			print_json(s, &diff, sentence);
		else
			print_text(s, &diff, sentence);
		rc = diff.n == 0 ? VERB_OK : VERB_FINDING;
	} else {
		plain_print(stderr, "weir %s: out of memory\n", verb->name);
		rc = VERB_FINDING;
	}
	config_diff_free(&diff);
	return rc;
}

int verb_diff(const struct verb *verb, const struct verb_args *args)
{
	struct sides s = {0};
	bool served = args->n == 1;
	int rc = VERB_FINDING;

	if (served)
		s.after = values_of_file(args->operand[0], &s.hidden);
	else if ((s.before = values_of_file(args->operand[0], NULL)))
		s.after = values_of_file(args->operand[1], NULL);
	if (s.after)
		rc = served ? ask_server(verb, args, &s) : VERB_OK;
	if (s.after && rc == VERB_OK)
		rc = compare(verb, args, &s);
	json_decref(s.hidden);
	free(s.before);
	free(s.after);
	return rc;
}
