/* SPDX-License-Identifier: MIT */
/*
 * completion: print scripts that complete weir command lines in a shell. The verbs, their options
 * and the kind of their first operand are printed from the table of verbs, so a script is always
 * complete. Everything else is queried from weir when the script runs: the stages of a server, and
 * the options of verbs that parse their own.
 */
#include "verb.h"

#include <string.h>

#include <weir/stage.h>

#include "config.h"

static const char completion_head[] =
    "# Completion of weir for bash, made by 'weir completion bash'. Put it into\n"
    "# ~/.local/share/bash-completion/completions/weir, or: source <(weir completion bash)\n"
    "\n"
    "# Names of the stages and core groups of a server at the default address; truncated ones are "
    "left out.\n"
    "_weir_stages() {\n"
    "\ttimeout 1 \"${COMP_WORDS[0]}\" ps 2>/dev/null |\n"
    "\t\tawk '$1 == \"group\" && sub(/:$/, \"\", $2) { print $2; next }\n"
    "\t\t\ton && $1 !~ /~$/ { print $1 } $1 == \"STAGE\" { on = 1 }'\n"
    "}\n"
    "\n"
    "_weir() {\n"
    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} options='' "
    "operand=''\n";

/* Printed after the `case` statement for the verbs, which sets `options` and `operand`. */
static const char completion_tail[] =
    "\tif [ \"$COMP_CWORD\" = 1 ]; then\n"
    "\t\tCOMPREPLY=($(compgen -W \"$verbs --help --version\" -- \"$cur\"))\n"
    "\t\treturn\n"
    "\tfi\n"
    "\tcase \"$cur\" in\n"
    "\t-*)\n"
    "\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
    "\t\treturn\n"
    "\t\t;;\n"
    "\tesac\n"
    "\tcase \"$prev\" in\n"
    "\t-o | --output)\n"
    "\t\t[[ $options != *--json* ]] || operand=json\n"
    "\t\t;;\n"
    "\t-f | --format) operand='text|dot|mermaid' ;;\n"
    "\tesac\n"
    "\tcase \"$operand\" in\n"
    "\t'') ;;\n"
    "\tFILE* | RUN) compopt -o default 2>/dev/null ;;\n"
    "\tSTAGE) COMPREPLY=($(compgen -W \"$(_weir_stages)\" -- \"$cur\")) ;;\n"
    "\tSTAGE.*)\n"
    "\t\tCOMPREPLY=($(compgen -W \"$(_weir_stages)\" -S . -- \"$cur\"))\n"
    "\t\tcompopt -o nospace 2>/dev/null\n"
    "\t\t;;\n"
    "\tTYPE) COMPREPLY=($(compgen -W \"$types\" -- \"$cur\")) ;;\n"
    "\tVERB) COMPREPLY=($(compgen -W \"$verbs\" -- \"$cur\")) ;;\n"
    "\t[[:upper:]]*) ;;\n"
    "\t*) COMPREPLY=($(compgen -W \"${operand//|/ }\" -- \"$cur\")) ;;\n"
    "\tesac\n"
    "}\n"
    "complete -F _weir weir\n";

/** Print an assignment of the first operand in the usage, without its brackets: FILE, STAGE or
 *  off|shadow|enforce. The value is "" if the usage begins with an option. */
static void completion_print_operand(const struct verb *verb, FILE *out)
{
	const char *word = verb->usage + strspn(verb->usage, "[");
	int n = (int)strcspn(word, " ]");

	while (n > 0 && word[n - 1] == '.') /* "RUN..." stands for any number of operands */
		n--;
	fprintf(out, "operand='%.*s'", *word == '-' ? 0 : n, word);
}

static void completion_print_verb(const struct verb *verb, FILE *out)
{
	fprintf(out, "\t%s)\n\t\t", verb->name);
	completion_print_operand(verb, out);
	if (verb->options & VERB_RAW) {
		fprintf(out,
		    "\n\t\toptions=$(\"${COMP_WORDS[0]}\" %s --help | grep -oE '^  --[a-z-]+')",
		    verb->name);
	} else {
		fputs(" options='", out);
		verb_print_options(verb, out);
		fputc('\'', out);
	}
	fputs("\n\t\t;;\n", out);
}

/* Print all names that `weir describe` knows, separated by spaces. */
static void print_described(FILE *out)
{
	const struct weir_stage_ops *type;
	const char *name;

	for (int i = 0; (name = config_described(i)); i++)
		fprintf(out, "%s%s", i == 0 ? "" : " ", name);
	for (int i = 0; (type = weir_stage_type_at(i)); i++)
		fprintf(out, " %s", type->name);
}

static void completion_print_bash(FILE *out)
{
	fputs(completion_head, out);
	fputs("\tlocal verbs='", out);
	for (const struct verb *v = verb_table; v->name; v++)
		fprintf(out, "%s%s", v == verb_table ? "" : " ", v->name);
	fputs("'\n\tlocal types='", out);
	print_described(out);
	fputs("'\n\n\tCOMPREPLY=()\n\tcase \"${COMP_WORDS[1]}\" in\n", out);
	for (const struct verb *v = verb_table; v->name; v++)
		completion_print_verb(v, out);
	fputs("\tesac\n", out);
	fputs(completion_tail, out);
}

/* ---- zsh ---- */

static const char zsh_head[] =
    "#compdef weir\n"
    "# Completion of weir for zsh, made by 'weir completion zsh'. Put it into a folder of $fpath "
    "as\n"
    "# _weir, or, after compinit: source <(weir completion zsh)\n"
    "\n"
    "# Names of the stages and core groups of a server at the default address; truncated ones are "
    "left out.\n"
    "_weir_stages() {\n"
    "\ttimeout 1 \"$words[1]\" ps 2>/dev/null |\n"
    "\t\tawk '$1 == \"group\" && sub(/:$/, \"\", $2) { print $2; next }\n"
    "\t\t\ton && $1 !~ /~$/ { print $1 } $1 == \"STAGE\" { on = 1 }'\n"
    "}\n"
    "\n"
    "_weir() {\n"
    "\tlocal operand='' prev=$words[CURRENT-1]\n"
    "\tlocal -a options verbs types\n";

/* Printed after the `case` statement for the verbs, which sets `options` and `operand`. */
static const char zsh_tail[] =
    "\tif ((CURRENT == 2)); then\n"
    "\t\t_describe -t verbs 'verb' verbs\n"
    "\t\tcompadd -- --help --version\n"
    "\t\treturn\n"
    "\tfi\n"
    "\tif [[ $PREFIX == -* ]]; then\n"
    "\t\tcompadd -a -- options\n"
    "\t\treturn\n"
    "\tfi\n"
    "\tcase \"$prev\" in\n"
    "\t-o | --output)\n"
    "\t\tif ((${options[(I)--json]})); then operand=json; else operand=FILE; fi\n"
    "\t\t;;\n"
    "\t-f | --format) operand='text|dot|mermaid' ;;\n"
    "\tesac\n"
    "\tcase \"$operand\" in\n"
    "\t'') ;;\n"
    "\tFILE* | RUN) _files ;;\n"
    "\tSTAGE) compadd -- ${(f)\"$(_weir_stages)\"} ;;\n"
    "\tSTAGE.*) compadd -S . -- ${(f)\"$(_weir_stages)\"} ;;\n"
    "\tTYPE) compadd -a -- types ;;\n"
    "\tVERB) _describe -t verbs 'verb' verbs ;;\n"
    "\t[[:upper:]]*) ;;\n"
    "\t*) compadd -- ${(s:|:)operand} ;;\n"
    "\tesac\n"
    "}\n"
    "\n"
    "if [[ $funcstack[1] == _weir ]]; then _weir \"$@\"; else compdef _weir weir; fi\n";

/* Print a text escaped for use within single quotes. A colon would have to be escaped in the name
 * of a verb, but no verb has one. */
static void zsh_quote(const char *text, FILE *out)
{
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc(*text, out);
}

static void zsh_print_verb(const struct verb *verb, FILE *out)
{
	fprintf(out, "\t%s)\n\t\t", verb->name);
	completion_print_operand(verb, out);
	if (verb->options & VERB_RAW) {
		fprintf(out,
		    "\n\t\toptions=(${=\"$(\"$words[1]\" %s --help | grep -oE '^  --[a-z-]+')\"})",
		    verb->name);
	} else {
		fputs(" options=(", out);
		verb_print_options(verb, out);
		fputc(')', out);
	}
	fputs("\n\t\t;;\n", out);
}

static void completion_print_zsh(FILE *out)
{
	fputs(zsh_head, out);
	fputs("\tverbs=(\n", out);
	for (const struct verb *v = verb_table; v->name; v++) {
		fprintf(out, "\t\t'%s:", v->name);
		zsh_quote(v->help, out);
		fputs("'\n", out);
	}
	fputs("\t)\n\ttypes=(", out);
	print_described(out);
	fputs(")\n\n\tcase \"$words[2]\" in\n", out);
	for (const struct verb *v = verb_table; v->name; v++)
		zsh_print_verb(v, out);
	fputs("\tesac\n", out);
	fputs(zsh_tail, out);
}

/* ---- fish ---- */

static const char fish_head[] =
    "# Completion of weir for fish, made by 'weir completion fish'. Put it into\n"
    "# ~/.config/fish/completions/weir.fish, or: weir completion fish | source\n"
    "\n"
    "# Names of the stages and core groups of a server at the default address; truncated ones are "
    "left out.\n"
    "function __weir_stages\n"
    "\ttimeout 1 weir ps 2>/dev/null |\n"
    "\t\tawk '$1 == \"group\" && sub(/:$/, \"\", $2) { print $2; next }\n"
    "\t\t\ton && $1 !~ /~$/ { print $1 } $1 == \"STAGE\" { on = 1 }'\n"
    "end\n"
    "\n"
    "complete -c weir -f\n"
    "complete -c weir -n __fish_use_subcommand -l help -l version\n";

/* Print a text within single quotes, for fish. */
static void fish_quote(const char *text, FILE *out)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

/* Print what the first operand may be. */
static void fish_print_operand(const struct verb *verb, FILE *out)
{
	const char *word = verb->usage + strspn(verb->usage, "[");
	size_t n = strcspn(word, " ].");

	fprintf(out, "complete -c weir -n '__fish_seen_subcommand_from %s' ", verb->name);
	if (strncmp(word, "FILE", 4) == 0 || strncmp(word, "RUN", 3) == 0) {
		fputs("-F\n", out);
	} else if (strncmp(word, "STAGE", n) == 0) {
		fprintf(out, "-a '(__weir_stages%s)'\n",
		    word[n] == '.' ? " | string replace -r \"\\$\" ." : "");
	} else if (strncmp(word, "TYPE", n) == 0) {
		fputs("-a '", out);
		print_described(out);
		fputs("'\n", out);
	} else if (strncmp(word, "VERB", n) == 0) {
		fputs("-a '", out);
		for (const struct verb *v = verb_table; v->name; v++)
			fprintf(out, "%s ", v->name);
		fputs("'\n", out);
	} else {
		fputs("-a '", out);
		for (size_t i = 0; i < n && (word[i] < 'A' || word[i] > 'Z'); i++)
			fputc(word[i] == '|' ? ' ' : word[i], out);
		fputs("'\n", out);
	}
}

/* Print an option of a verb: its long name, and how it is completed. */
static void fish_print_option(const struct verb *verb, const struct verb_option_row *row, FILE *out)
{
	const char *word = strstr(row->form, "--");
	const char *value = strchr(row->form, ' ');
	size_t n = word ? strcspn(word + 2, " ,") : 0;

	fprintf(out, "complete -c weir -n '__fish_seen_subcommand_from %s'", verb->name);
	if (n > 0)
		fprintf(out, " -l %.*s", (int)n, word + 2);
	if (row->form[1] != '-')
		fprintf(out, " -s %c", row->form[1]);
	if (row->bit == VERB_JSON)
		fputs(" -xa json", out);
	else if (row->bit == VERB_FORMAT)
		fputs(" -xa 'text dot mermaid'", out);
	else if (value && strstr(value, "FILE"))
		fputs(" -rF", out);
	else if (value && value[-1] != ',')
		fputs(" -x", out);
	fputs(" -d ", out);
	fish_quote(row->help, out);
	fputc('\n', out);
}

static void completion_print_fish(FILE *out)
{
	fputs(fish_head, out);
	for (const struct verb *v = verb_table; v->name; v++) {
		fprintf(out, "complete -c weir -n __fish_use_subcommand -a %s -d ", v->name);
		fish_quote(v->help, out);
		fputc('\n', out);
		if (*v->usage && *v->usage != '-' && strncmp(v->usage, "[-", 2) != 0)
			fish_print_operand(v, out);
		if (v->options & VERB_RAW)
			fprintf(out,
			    "complete -c weir -n '__fish_seen_subcommand_from %s' -a '(weir %s "
			    "--help | "
			    "string match -r \"^  --[a-z-]+\" | string trim)'\n",
			    v->name, v->name);
		for (const struct verb_option_row *row = verb_option_rows; row->form; row++)
			if (!(v->options & VERB_RAW) && verb_takes(v, row))
				fish_print_option(v, row, out);
	}
}

int verb_completion(const struct verb *verb, const struct verb_args *args)
{
	if (strcmp(args->operand[0], "bash") == 0)
		completion_print_bash(stdout);
	else if (strcmp(args->operand[0], "zsh") == 0)
		completion_print_zsh(stdout);
	else if (strcmp(args->operand[0], "fish") == 0)
		completion_print_fish(stdout);
	else
		return verb_misused(verb,
		    "completion exists for 'bash', 'zsh' and 'fish', not for '%s'",
		    args->operand[0]);
	return VERB_OK;
}
