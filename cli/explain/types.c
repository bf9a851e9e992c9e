/* SPDX-License-Identifier: MIT */
/* list, describe, schema: print the stage types that a server can be built from. */
#include "cli/verb.h"

#include <string.h>

#include <jansson.h>

#include <weir/knob.h>
#include <weir/stage.h>

#include "config.h"

/** Maximum number of stage types and sections from which `describe` suggests a name. 256 is a
 *  guess: far more than are built in. */
#define TYPES_MAX 256

static int types_print_json(void)
{
	json_t *list = json_array();
	const struct weir_stage_ops *ops;
	int rc = list ? 0 : -1;

	for (int i = 0; rc == 0 && (ops = weir_stage_type_at(i)); i++)
		rc = json_array_append_new(
		    list, json_pack("{s:s, s:s, s:b}", "type", ops->name, "summary", ops->summary,
			      "source", (ops->flags & WEIR_STAGE_SOURCE) != 0));
	if (rc == 0)
		rc = json_dumpf(list, stdout, JSON_INDENT(2));
	json_decref(list);
	putchar('\n');
	return rc == 0 ? VERB_OK : VERB_FINDING;
}

static int types_name_width(void)
{
	const struct weir_stage_ops *ops;
	int width = 0;

	for (int i = 0; (ops = weir_stage_type_at(i)); i++)
		if ((int)strlen(ops->name) > width)
			width = (int)strlen(ops->name);
	return width;
}

/** Load the plug-ins that are named in the configuration file in operand `i`, if it was given. */
static int types_load(const struct verb_args *args, int i)
{
	struct weir_errs errs = {0};

	if (args->n <= i)
		return VERB_OK;
	if (config_load_plugins(args->operand[i], &errs) == 0)
		return VERB_OK;
	verb_print_errors(&errs, "Nothing can be shown until the file is correct.");
	return VERB_FINDING;
}

int verb_list(const struct verb *verb, const struct verb_args *args)
{
	const struct weir_stage_ops *ops;

	(void)verb;
	if (types_load(args, 0) != VERB_OK)
		return VERB_FINDING;
	if (args->json)
		return types_print_json();
	int width = types_name_width();
	for (int i = 0; (ops = weir_stage_type_at(i)); i++)
		printf("%-*s  %s%s\n", width, ops->name, ops->summary,
		    ops->flags & WEIR_STAGE_SOURCE ? " [source]" : "");
	puts("\n'weir describe TYPE' shows the settings of one type.");
	return VERB_OK;
}

static void types_print_sections(FILE *out)
{
	const char *name;

	fputs("other names are", out);
	for (int i = 0; (name = config_described(i)); i++)
		fprintf(out, "%s %s", i ? "," : "", name);
	fputc('\n', out);
}

static int types_unknown(const char *type)
{
	const char *names[TYPES_MAX];
	const struct weir_stage_ops *ops;
	int n = 0;

	while (n < TYPES_MAX && (ops = weir_stage_type_at(n)))
		names[n++] = ops->name;
	for (int i = 0; n < TYPES_MAX && (names[n] = config_described(i)); i++)
		n++;
	const char *near = weir_nearest(type, names, n);
	fprintf(stderr, "weir describe: unknown stage type '%s'", type);
	if (near)
		fprintf(stderr, "; did you mean '%s'?", near);
	fputs("\n'weir list' lists them all; ", stderr);
	types_print_sections(stderr);
	return VERB_FINDING;
}

int verb_describe(const struct verb *verb, const struct verb_args *args)
{
	(void)verb;
	if (types_load(args, 1) != VERB_OK)
		return VERB_FINDING;
	/* Sections such as "stage" and "class" are described, too. */
	int rc = args->json ? config_describe_json(args->operand[0], stdout)
			    : config_describe(args->operand[0], stdout);
	if (rc == WEIR_ENOENT)
		return types_unknown(args->operand[0]);
	return rc == 0 ? VERB_OK : VERB_FINDING;
}

int verb_schema(const struct verb *verb, const struct verb_args *args)
{
	(void)args;
	if (config_schema(stdout) == 0)
		return VERB_OK;
	fprintf(stderr, "weir %s: out of memory\n", verb->name);
	return VERB_FINDING;
}
