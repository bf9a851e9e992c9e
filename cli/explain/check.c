/* SPDX-License-Identifier: MIT */
/*
 * check, explain, graph: check a configuration or show what it means, without running it.
 *
 * `check` does what `run` does before it starts the first thread: it checks syntax and meaning,
 * loads plug-ins, and builds the stages, which for example check that a root folder can be read.
 */
#include "cli/verb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <weir/graph.h>
#include <weir/spec.h>

#include "admin/admin.h"
#include "config.h"
#include "server/listen.h"
#include "cli/client/plain.h"
#include "server/run_log.h"
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

json_t *verb_error_json(const struct weir_err *err)
{
	return json_pack("{s:s, s:i, s:i, s:i, s:s, s:s, s:s}", "file", err->file, "line",
	    err->line, "column", err->col, "length", err->len, "code", weir_error_word(err->code),
	    "text", err->text, "hint", err->hint);
}

static int check_print_json(const struct weir_errs *errs)
{
	json_t *list = json_array();
	int rc = list ? 0 : -1;

	for (int i = 0; rc == 0 && i < errs->n; i++)
		rc = json_array_append_new(list, verb_error_json(&errs->err[i]));
	json_t *doc = json_pack("{s:i, s:o}", "total", errs->total, "errors", list);
	if (rc != 0 || !doc || json_dumpf(doc, stdout, JSON_INDENT(2)) != 0) {
		fputs("weir check: cannot write the errors as JSON: out of memory\n", stderr);
		json_decref(doc);
		return VERB_FINDING;
	}
	json_decref(doc);
	putchar('\n');
	return errs->total ? VERB_FINDING : VERB_OK;
}

/** Change to the folder of the file at `path`. */
static int check_enter_folder(const char *path, struct weir_errs *errs)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : NULL;

	if (!slash)
		return 0;
	int rc = folder && chdir(folder) == 0 ? 0 : WEIR_ESYS;
	free(folder);
	return rc == 0 ? 0
		       : weir_errs_add(errs, NULL, rc, NULL, "cannot enter the folder of %s: %s",
			     path, strerror(errno));
}

/** Report settings that would prevent the admin endpoint from starting, and a stage that listens on
 *  the same address. */
static void check_admin(const struct weir_spec *spec, struct weir_errs *errs)
{
	const struct weir_admin_spec *admin = &spec->admin;
	if (!admin->listen || !*admin->listen)
		return;
	if (admin_check(admin, errs) != 0)
		return;
	const struct weir_stage_spec *stage = listen_clash(spec);
	if (stage)
		weir_errs_add(errs, &admin->mark, WEIR_EBUSY, "choose another port for one of them",
		    "the admin endpoint and stage '%s' would both listen on port %s", stage->name,
		    strrchr(admin->listen, ':') + 1);
}

int verb_build(const struct verb_args *args, struct weir_graph **graph, struct weir_errs *errs)
{
	return verb_build_values(args, graph, NULL, errs);
}

int verb_build_values(
    const struct verb_args *args, struct weir_graph **graph, char **values, struct weir_errs *errs)
{
	const char *path = args->operand[0];
	struct weir_spec *spec = NULL;

	int rc = (args->dry_run ? config_look : config_load)(
	    path, args->sets, args->n_sets, &spec, errs);
	if (rc == 0 && args->become)
		rc = user_become(spec, args->bind, errs);
	if (rc == 0)
		rc = check_enter_folder(path, errs);
	if (rc == 0 && values && !(*values = config_values_text(spec)))
		rc = weir_errs_add(errs, NULL, WEIR_ENOMEM, NULL, "out of memory");
	if (rc != 0) {
		weir_spec_free(spec);
		return rc;
	}
	rc = weir_graph_build(spec, graph, errs);
	/* `spec` is valid here, whether the graph owns it or not */
	check_admin(spec, errs);
	run_log_check(&spec->log, errs);
	listen_check(spec, errs);
	if (rc != 0) {
		weir_spec_free(spec);
	} else if (errs->total > 0) {
		weir_graph_free(*graph);
		*graph = NULL;
		rc = WEIR_EINVAL;
	}
	return rc;
}

int verb_check(const struct verb *verb, const struct verb_args *args)
{
	struct weir_errs errs = {0};
	struct weir_graph *graph = NULL;

	(void)verb;
	struct verb_args here = *args;
	here.become = true; /* check as the user that will run the server */
	int rc = verb_build(&here, &graph, &errs);
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
		verb_print_errors(&errs, "Nothing can be shown.");
	return rc;
}

int verb_explain(const struct verb *verb, const struct verb_args *args)
{
	const char *path = args->n > 1 ? args->operand[1] : NULL;
	struct weir_spec *spec;

	if (check_load(args, &spec) != 0)
		return VERB_FINDING;
	int rc = config_explain(spec, path, stdout);
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
