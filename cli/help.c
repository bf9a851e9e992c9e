/* SPDX-License-Identifier: MIT */
/* help and version: print help from the table of verbs, and the version. */
#include "verb.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <weir/stage.h>

#include "cli/load/bench.h"
#include "cli/load/simulate.h"

/** Groups in the order of the overview, with their titles. */
static const struct {
	const char *name, *title;
} help_groups[] = {
    {"writing", "Writing a server"},
    {"checking", "Checking one"},
    {"running", "Running it"},
    {"watching", "Watching it"},
    {"acting", "Changing it"},
    {"measuring", "Measuring it"},
    {"more", "More"},
};

static void help_heading(FILE *out, const char *text)
{
	if (verb_styled(out))
		fprintf(out, "\033[1m%s\033[0m\n", text);
	else
		fprintf(out, "%s\n", text);
}

void verb_print_raw_options(const struct verb *verb, FILE *out)
{
	if (verb->fn == verb_simulate)
		simulate_print_options(out);
	else
		bench_print_options(out);
}

static void help_options(const struct verb *verb, FILE *out)
{
	for (const struct verb_option_row *row = verb_option_rows; row->form; row++)
		if (verb_takes(verb, row))
			fprintf(out, "  %-24s %s\n", row->form, row->help);
}

void verb_each_group(void (*fn)(const char *name, const char *title, FILE *out), FILE *out)
{
	for (size_t g = 0; g < sizeof(help_groups) / sizeof(help_groups[0]); g++)
		fn(help_groups[g].name, help_groups[g].title, out);
}

void verb_print_help(const struct verb *verb, FILE *out)
{
	fprintf(out, "usage: weir %s%s%s\n\n%s.\n\n", verb->name, *verb->usage ? " " : "",
	    verb->usage, verb->help);
	help_heading(out, "Example");
	fprintf(out, "  %s\n\n", verb->example);
	help_heading(out, "Options");
	if (verb->options & VERB_RAW)
		verb_print_raw_options(verb, out);
	else
		help_options(verb, out);
	fputc('\n', out);
	help_heading(out, "Exit codes");
	fputs("  0 success   1 a finding or a failure   2 wrong usage   3 no server answers, or it "
	      "requires another token\n",
	    out);
}

static void help_group(const char *name, const char *title, FILE *out)
{
	help_heading(out, title);
	for (const struct verb *v = verb_table; v->name; v++)
		if (strcmp(v->group, name) == 0)
			fprintf(out, "  %-10s %s\n", v->name, v->help);
	fputc('\n', out);
}

void verb_print_overview(FILE *out)
{
	fputs("weir runs servers that are declared in YAML as graphs of stages.\n\n", out);
	verb_each_group(help_group, out);
	help_heading(out, "Next steps");
	fputs(
	    "  weir list                    which stage types a server can use\n"
	    "  weir check FILE.yaml         find the mistakes in a configuration\n"
	    "  weir run FILE.yaml           start a server; its admin endpoint shows every stage\n"
	    "  weir help VERB               details of one verb\n",
	    out);
}

int verb_help(const struct verb *verb, const struct verb_args *args)
{
	if (args->n == 0) {
		verb_print_overview(stdout);
		return VERB_OK;
	}
	const struct verb *about = verb_find(args->operand[0]);
	if (!about) {
		const char *near = verb_nearest(args->operand[0]);
		return verb_misused(verb, "unknown verb '%s'%s%s%s", args->operand[0],
		    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	}
	verb_print_help(about, stdout);
	return VERB_OK;
}

int verb_version(const struct verb *verb, const struct verb_args *args)
{
	(void)verb;
	if (!args->json) {
		printf("weir %s (commit %s, stage ABI %d)\n", WEIR_VERSION, WEIR_COMMIT,
		    WEIR_STAGE_ABI);
		return VERB_OK;
	}
	json_t *doc = json_pack("{s:s, s:s, s:i}", "version", WEIR_VERSION, "commit", WEIR_COMMIT,
	    "stage_abi", WEIR_STAGE_ABI);
	if (!doc || json_dumpf(doc, stdout, JSON_INDENT(2)) != 0) {
		json_decref(doc);
		return VERB_FINDING;
	}
	json_decref(doc);
	putchar('\n');
	return VERB_OK;
}
