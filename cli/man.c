/* SPDX-License-Identifier: MIT */
/*
 * man: write the manual pages. weir(1) comes from the tables of verbs and options. weir.yaml(5) and
 * the page of each stage type come from what `weir describe` prints: its lines without indentation
 * are headings, and its rows become tagged paragraphs (man(7)).
 */
#include "verb.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/stage.h>

#include "config.h"
#include "describe.h"

/* Write a text so that roff prints it as it is. A line must not begin with a control character; a
 * plain hyphen would be printed as another character. */
static void put_text(FILE *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool begins = i == 0 || text[i - 1] == '\n';
		if (begins && (text[i] == '.' || text[i] == '\''))
			fputs("\\&", out);
		if (text[i] == '\\')
			fputs("\\e", out);
		else if (text[i] == '-')
			fputs("\\-", out);
		else
			fputc(text[i], out);
	}
}

static void put(FILE *out, const char *text)
{
	put_text(out, text, strlen(text));
}

/* Write a line with a text, with `before` and `after` it that roff interprets. */
static void put_line(FILE *out, const char *before, const char *text, const char *after)
{
	fputs(before, out);
	put(out, text);
	fprintf(out, "%s\n", after);
}

static void put_title(FILE *out, const char *name, int section, const char *manual)
{
	fprintf(out,
	    ".\\\" Made by 'weir man'; do not edit.\n.TH \"%s\" %d \"\" \"weir %s\" \"%s\"\n", name,
	    section, WEIR_VERSION, manual);
}

/* Write a heading in capital letters. */
static void put_heading(FILE *out, const char *text, size_t n)
{
	fputs(".SH \"", out);
	for (size_t i = 0; i < n; i++) {
		char c = (char)toupper((unsigned char)text[i]);
		put_text(out, &c, 1);
	}
	fputs("\"\n", out);
}

/* ---- weir(1) ---- */

static void put_options(FILE *out, const struct verb *verb)
{
	if (verb->options & VERB_RAW) {
		fputs(".PP\n.EX\n", out);
		char *text = NULL;
		size_t n = 0;
		FILE *to = open_memstream(&text, &n);
		if (!to)
			return;
		verb_print_raw_options(verb, to);
		fclose(to);
		put_text(out, text, n);
		free(text);
		fputs(".EE\n", out);
		return;
	}
	for (const struct verb_option_row *row = verb_option_rows; row->form; row++) {
		if (row->bit == 0 || !verb_takes(verb, row))
			continue;
		put_line(out, ".TP\n\\fB", row->form, "\\fR");
		put_line(out, "", row->help, "");
	}
}

static void put_group(const char *name, const char *title, FILE *out)
{
	put_heading(out, title, strlen(title));
	for (const struct verb *v = verb_table; v->name; v++) {
		if (strcmp(v->group, name) != 0)
			continue;
		fprintf(out, ".SS \"weir %s", v->name);
		put_line(out, *v->usage ? " " : "", v->usage, "\"");
		put_line(out, "", v->help, ".");
		fputs(".RS\n", out);
		put_options(out, v);
		put_line(out, ".PP\nExample: \\fB", v->example, "\\fR\n.RE");
	}
}

static const char man_end[] =
    ".SH EXIT STATUS\n"
    ".TP\n0\nsuccess\n"
    ".TP\n1\na finding, such as a mistake in a file, or a failure\n"
    ".TP\n2\nwrong usage\n"
    ".TP\n3\nno server answers, or it requires another token\n"
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBWEIR_ADMIN\\fR\naddress of the admin endpoint, in place of \\fB\\-\\-admin\\fR\n"
    ".TP\n\\fBWEIR_TOKEN_FILE\\fR\nfile with its token, in place of \\fB\\-\\-token\\-file\\fR\n"
    ".TP\n\\fBWEIR_TRUST_FILES\\fR\n"
    "\\fBany\\fR also loads files and plug\\-ins that other users may change; for tests\n"
    ".TP\n\\fBNO_COLOR\\fR\nno styled output\n"
    ".SH SIGNALS\n"
    ".TP\nSIGTERM, SIGINT\n\\fBweir run\\fR finishes the work that it has accepted, then exits; a "
    "second\n"
    "signal ends it at once\n"
    ".TP\nSIGHUP\nreload the configuration\n"
    ".TP\nSIGUSR1\nreopen the log files\n"
    ".SH SEE ALSO\n";

/* Name the other pages: weir(1), weir.yaml(5) and those of the stage types. */
static void put_see_also(FILE *out)
{
	const struct weir_stage_ops *type;

	fputs(".BR weir (1),\n.BR weir.yaml (5)", out);
	for (int i = 0; (type = weir_stage_type_at(i)); i++)
		fprintf(out, ",\n.BR weir\\-%s (5)", type->name);
	fputc('\n', out);
}

static int write_weir(FILE *out)
{
	put_title(out, "WEIR", 1, "weir");
	fputs(".SH NAME\nweir \\- servers declared in YAML as graphs of stages\n"
	      ".SH SYNOPSIS\n.B weir\n.I VERB\n.RI [ ARGUMENT ...]\n"
	      ".SH DESCRIPTION\n"
	      "weir runs servers that are declared in a YAML file as graphs of stages. Each stage "
	      "has a\n"
	      "queue, a pool of threads and admission control, so a server under overload keeps "
	      "doing\n"
	      "useful work and refuses the rest early.\n"
	      ".BR weir.yaml (5)\ndescribes the file. \\fBweir help\\fR \\fIVERB\\fR describes one "
	      "verb.\n",
	    out);
	verb_each_group(put_group, out);
	fputs(man_end, out);
	put_see_also(out);
	return 0;
}

/* ---- what `weir describe` prints ---- */

/* Levels of indentation of the rows that are open, for .RS and .RE. */
struct levels {
	int n, indent[8];
};

/* Close the levels that are deeper than `indent`, and open one for it; -1 closes all. */
static void to_level(FILE *out, struct levels *l, int indent)
{
	while (l->n > 0 && l->indent[l->n - 1] > indent) {
		l->n--;
		if (l->n > 0)
			fputs(".RE\n", out);
	}
	if (indent < 0 || (l->n > 0 && l->indent[l->n - 1] == indent))
		return;
	if (l->n == (int)(sizeof(l->indent) / sizeof(l->indent[0])))
		return;
	if (l->n > 0)
		fputs(".RS\n", out);
	l->indent[l->n++] = indent;
}

/* A row is "    NAME   text"; a line that begins further to the right than any name continues it. */
static void put_row(FILE *out, struct levels *l, const char *line, size_t n)
{
	int indent = (int)strspn(line, " ");

	if (indent - NAME_WIDTH >= (l->n > 0 ? l->indent[l->n - 1] : 0)) {
		fputs(".br\n", out);
		put_text(out, line + indent, n - (size_t)indent);
		fputc('\n', out);
		return;
	}
	to_level(out, l, indent);
	size_t name = strcspn(line + indent, " \n");
	fputs(".TP\n\\fB", out);
	put_text(out, line + indent, name);
	fputs("\\fR\n", out);
	size_t rest = (size_t)indent + name;
	rest += strspn(line + rest, " ");
	if (rest < n) {
		put_text(out, line + rest, n - rest);
		fputc('\n', out);
	}
}

/* Write the text of `weir describe`, from its second line on, as roff. */
static void put_described(FILE *out, const char *text)
{
	struct levels levels = {0};
	bool example = false;

	for (const char *line = text, *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		size_t n = (size_t)(end - line);
		if (n == 0)
			continue;
		if (*line == ' ' && example) {
			put_text(out, line, n + 1);
		} else if (*line == ' ') {
			put_row(out, &levels, line, n);
		} else {
			to_level(out, &levels, -1);
			put_heading(out, line, line[n - 1] == ':' ? n - 1 : n);
			example = strncmp(line, "example", n) == 0;
			fputs(example ? ".EX\n" : "", out);
		}
	}
	to_level(out, &levels, -1);
	if (example)
		fputs(".EE\n", out);
}

/* Return what `weir describe NAME` prints, to be freed; NULL if out of memory. */
static char *described(const char *name)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	if (!to)
		return NULL;
	bool good = config_describe(name, to) == 0;
	if (fclose(to) == 0 && good)
		return text;
	free(text);
	return NULL;
}

static int write_yaml(FILE *out)
{
	const char *name;

	put_title(out, "WEIR.YAML", 5, "weir");
	fputs(".SH NAME\nweir.yaml \\- the description of a server for weir\n"
	      ".SH SYNOPSIS\n.EX\nweir: 1\nname: shop\nstages:\n"
	      "  http:  { use: http.server, to: { request: hello } }\n"
	      "  hello: { use: respond, with: { body: \"hello\\en\" } }\n.EE\n"
	      ".SH DESCRIPTION\n"
	      "The file declares stages, the links between them, and settings of the server.\n"
	      "\\fBweir check\\fR \\fIFILE\\fR reports every mistake in it. The settings of a "
	      "stage type,\n"
	      "under \\fBwith:\\fR, are on the page of that type.\n",
	    out);
	for (int i = 0; (name = config_described(i)); i++) {
		char *text = described(name);
		if (!text)
			return WEIR_ENOMEM;
		size_t head = strcspn(text, "\n");
		put_heading(out, name, strlen(name));
		put_text(out, text, head);
		fputs(".\n", out);
		put_described(out, text + head);
		free(text);
	}
	fputs(".SH SEE ALSO\n", out);
	put_see_also(out);
	return 0;
}

static int write_type(FILE *out, const struct weir_stage_ops *type)
{
	char title[100];
	char *text = described(type->name);

	if (!text)
		return WEIR_ENOMEM;
	snprintf(title, sizeof(title), "weir-%s", type->name);
	put_title(out, title, 5, "stage types of weir");
	fprintf(out, ".SH NAME\nweir\\-%s \\- ", type->name);
	put_line(out, "", type->summary, "\n.SH DESCRIPTION");
	/* lines about the nature of the type, then a blank line, then sections */
	const char *line = strchr(text, '\n') + 1;
	for (; *line && *line != '\n'; line += strcspn(line, "\n") + 1) {
		put_text(out, line, strcspn(line, "\n"));
		fputs(".\n.br\n", out);
	}
	put_described(out, line);
	fputs(".SH SEE ALSO\n.BR weir (1),\n.BR weir.yaml (5)\n", out);
	free(text);
	return 0;
}

/* Open FOLDER/NAME, have it written, and close it. `type` is for the page of a stage type. */
static int write_page(const char *folder, const char *name, int (*write)(FILE *out),
    const struct weir_stage_ops *type)
{
	char path[4096];

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return WEIR_ESYS;
	}
	FILE *out = fopen(path, "we");
	if (!out)
		return WEIR_ESYS;
	int rc = type ? write_type(out, type) : write(out);
	if (fclose(out) != 0 && rc == 0)
		rc = WEIR_ESYS;
	return rc;
}

int verb_man(const struct verb *verb, const struct verb_args *args)
{
	const char *folder = args->operand[0];
	const struct weir_stage_ops *type;
	char name[100];
	int rc = write_page(folder, "weir.1", write_weir, NULL);

	(void)verb;
	if (rc == 0)
		rc = write_page(folder, "weir.yaml.5", write_yaml, NULL);
	for (int i = 0; rc == 0 && (type = weir_stage_type_at(i)); i++) {
		snprintf(name, sizeof(name), "weir-%s.5", type->name);
		rc = write_page(folder, name, NULL, type);
	}
	if (rc == 0)
		return VERB_OK;
	fprintf(stderr, "weir man: cannot write the pages to '%s': %s\n", folder,
	    rc == WEIR_ENOMEM ? "out of memory" : strerror(errno));
	return VERB_FINDING;
}
