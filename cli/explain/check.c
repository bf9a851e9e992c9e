/* SPDX-License-Identifier: MIT */
/*
 * check, explain, graph: check a configuration or show its meaning, without running it.
 *
 * `check` does everything that `run` does before it starts the first thread: it checks syntax and
 * meaning, loads plug-ins, and builds the stages. Building a stage may check further conditions,
 * for example whether a root folder can be read.
 */
#include "cli/verb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <weir/graph.h>
#include <weir/spec.h>

#include "cli/act.h"
#include "cli/client/plain.h"
#include "config.h"
#include "framework/base/json.h"
#include "server/build.h"
#include "server/user.h"

void verb_print_errors(const struct weir_errs *errs, const char *consequence)
{
	size_t size = weir_errs_format(errs, NULL, 0) + 1;
	char *text = malloc(size);

	if (text) {
		weir_errs_format(errs, text, size);
		plain_lines(stderr, text);
	}
	free(text);
	plain_print(stderr, "%d error%s", errs->total, errs->total == 1 ? "" : "s");
	if (errs->total > errs->n)
		plain_print(stderr, ", of which the first %d are shown", errs->n);
	plain_print(stderr, ". %s\n", consequence);
}

static int check_print_json(const struct weir_errs *errs)
{
	json_t *doc =
	    json_pack("{s:i, s:o}", "total", errs->total, "errors", build_errors_json(errs));

	if (!doc || json_dumpf(doc, stdout, JSON_INDENT(2)) != 0) {
		fputs("weir check: cannot write the errors as JSON: memory ran out, or writing to "
		      "standard output failed\n",
		    stderr);
		json_decref(doc);
		return VERB_FINDING;
	}
	json_decref(doc);
	putchar('\n');
	return errs->total ? VERB_FINDING : VERB_OK;
}

int verb_check(const struct verb *verb, const struct verb_args *args)
{
	struct weir_errs errs = {0};
	struct weir_graph *graph = NULL;

	(void)verb;
	struct build_input in = {.path = args->operand[0],
	    .n_sets = args->n_sets,
	    .sets = args->sets,
	    .serve = true,
	    .become = true}; /* check as the user that will run the server */
	int rc = build_graph(&in, &graph, NULL, &errs);
	if (rc == 0)
		user_warn(weir_graph_spec(graph));
	if (args->json) {
		weir_graph_free(graph);
		return check_print_json(&errs);
	}
	if (rc != 0) {
		verb_print_errors(&errs, "Nothing was started.");
		return VERB_FINDING;
	}
	int n = weir_graph_spec(graph)->n_stages;
	plain_print(stdout, "%s: fine, %d stage%s\n", args->operand[0], n, n == 1 ? "" : "s");
	weir_graph_free(graph);
	return VERB_OK;
}

static int check_load(const struct verb_args *args, struct weir_spec **spec)
{
	struct weir_errs errs = {0};

	int rc = config_load(args->operand[0], args->sets, args->n_sets, spec, &errs);
	if (rc != 0)
		verb_print_errors(&errs, "Nothing can be shown until the file is correct.");
	return rc;
}

/* Add a key to the list `arg`. */
static void explain_add(void *arg, const struct config_value *v)
{
	json_t **list = arg;

	json_push(list, json_pack("{s:s, s:s, s:s, s:s?, s:o}", "path", v->path, "value", v->value,
			    "origin", v->origin, "file", v->file, "line",
			    v->line > 0 ? json_integer(v->line) : json_null()));
}

static int explain_json(const struct weir_spec *spec, const char *path)
{
	json_t *list = json_array();
	int rc = config_explain_each(spec, path, explain_add, &list);
	json_t *doc = json_pack("{s:o}", "keys", list);

	if (rc == 0 && doc)
		act_print_json(doc, JSON_INDENT(2));
	json_decref(doc);
	return rc == 0 && !doc ? WEIR_ENOMEM : rc;
}

int verb_explain(const struct verb *verb, const struct verb_args *args)
{
	const char *path = args->n > 1 ? args->operand[1] : NULL;
	struct weir_spec *spec;

	if (check_load(args, &spec) != 0)
		return VERB_FINDING;
	int rc = args->json ? explain_json(spec, path) : config_explain(spec, path, stdout);
	if (rc == WEIR_ENOENT)
		plain_print(stderr, "weir %s: %s has nothing called '%s'\n", verb->name,
		    args->operand[0], path ? path : "");
	weir_spec_free(spec);
	return rc == 0 ? VERB_OK : VERB_FINDING;
}

int verb_graph(const struct verb *verb, const struct verb_args *args)
{
	const char *format = args->format ? args->format : "text";
	struct weir_spec *spec;

	if (check_load(args, &spec) != 0)
		return VERB_FINDING;
	int rc = config_graph(spec, format, stdout);
	weir_spec_free(spec);
	if (rc == WEIR_EINVAL)
		return verb_misused(verb, "-f takes text, dot or mermaid, not '%s'", format);
	return rc == 0 ? VERB_OK : VERB_FINDING;
}
