/* SPDX-License-Identifier: MIT */
/*
 * What libyaml says about a broken text, said for the person who wrote it.
 *
 * libyaml names the state of its scanner ("mapping values are not allowed in this context"); what a
 * person did is indent with a tab, indent too far, forget a quote. The place tells which: this file
 * looks at the line there and at the ones above. What it does not know it passes on.
 */
#include "tree.h"

#include <stdio.h>
#include <string.h>

/* A look at the place of a problem. */
struct view {
	const struct source *source;
	const struct tree_problem *problem;
	struct weir_mark at, context; /* the places of both */
	const char *line;             /* the text of the line `at` */
	size_t indent;                /* blanks and tabs before its first word */
};

struct words {
	struct weir_mark mark;
	const char *text, *hint;
};

static size_t indent_of(const char *line)
{
	return strspn(line, " \t");
}

static bool says(const struct view *v, const char *part)
{
	return strstr(v->problem->text, part) != NULL;
}

static struct weir_mark mark_in_line(const struct view *v, size_t offset, size_t len)
{
	struct weir_mark mark = v->at;

	mark.col = (int)offset + 1;
	mark.len = len > 0 ? (int)len : 1;
	return mark;
}

/* From the place to the end of the word. */
static size_t word_len(const char *s)
{
	return strcspn(s, " \t:,#{}[]");
}

/* The nearest line above that is neither blank nor a comment, "" when there is none. */
static const char *line_above(const struct view *v)
{
	for (int i = v->at.line - 1; i >= 1; i--) {
		const char *line = source_line(v->source, i);
		char first = line[indent_of(line)];
		if (first != '\0' && first != '#')
			return line;
	}
	return "";
}

static bool words_bytes(const struct view *v, struct words *w)
{
	if (!v->problem->has_offset)
		return false;
	w->mark = v->at;
	if (says(v, "control characters")) {
		w->text = "a control character can not stand here";
		w->hint = "write it as an escape in double quotes: \"\\x1b\"";
	} else {
		w->text = "this is not UTF-8";
	}
	return true;
}

static bool words_tab(const struct view *v, struct words *w)
{
	size_t tab = strcspn(v->line, "\t");

	if (tab >= v->indent && !says(v, "tab character"))
		return false;
	w->mark = mark_in_line(v, tab, 1);
	w->text = "a tab can not indent";
	w->hint = "write spaces";
	return true;
}

/* In { } and [ ] the '{' of an unquoted ${X} begins a map. */
static bool words_dollar(const struct view *v, struct words *w)
{
	size_t at = (size_t)v->at.col - 1;

	if (at == 0 || v->line[at] != '{' || v->line[at - 1] != '$')
		return false;
	w->mark = mark_in_line(v, at - 1, strcspn(v->line + at, "} ") + 2);
	w->text = "'${' inside { } or [ ] must be in quotes";
	w->hint = "write \"${NAME}\"";
	return true;
}

/* A key where the line above has a value already, or a second ':' in one line. */
static bool words_colon(const struct view *v, struct words *w)
{
	const char *above = line_above(v), *key = v->line + v->indent;

	if (!says(v, "mapping values are not allowed"))
		return false;
	if (v->indent > indent_of(above) && (size_t)v->at.col - 1 <= v->indent + word_len(key)) {
		w->mark = mark_in_line(v, v->indent, word_len(key));
		w->text = "this line is indented too far";
		w->hint = "the line above it has a value already: indent both alike";
		return true;
	}
	w->mark = v->at;
	w->text = "a second ':' can not stand in one line";
	w->hint = "put a text that holds ': ' in quotes";
	return true;
}

static bool words_indent(const struct view *v, struct words *w)
{
	if (!says(v, "did not find expected key") && !says(v, "expected '-' indicator"))
		return false;
	w->mark = v->at;
	if ((size_t)v->at.col - 1 == v->indent) {
		w->mark = mark_in_line(v, v->indent, word_len(v->line + v->indent));
		w->text = "this line is indented like none above it";
		w->hint = "indent the keys of one map, or the entries of one list, alike";
	} else {
		w->text = "this does not belong behind the value before it";
		w->hint = "put the whole value in quotes, or a key on a line of its own";
	}
	return true;
}

static bool words_end(const struct view *v, struct words *w)
{
	if (!says(v, "expected <document start>"))
		return false;
	w->mark = v->at;
	w->text = "this stands behind the end of the configuration";
	w->hint = "a text that begins with { or [ needs quotes; '...' ends everything";
	return true;
}

/* Is nothing but blanks and comments left from the place on? */
static bool at_end(const struct view *v)
{
	const char *rest = v->line + v->at.col - 1;

	for (int i = v->at.line; i <= v->source->n_lines; rest = source_line(v->source, ++i)) {
		char first = rest[indent_of(rest)];
		if (first != '\0' && first != '#')
			return false;
	}
	return true;
}

static bool words_flow(const struct view *v, struct words *w)
{
	bool map = says(v, "did not find expected ',' or '}'");

	if (!map && !says(v, "did not find expected ',' or ']'"))
		return false;
	if (at_end(v)) {
		w->mark = v->context;
		w->text = map ? "this '{' is never closed" : "this '[' is never closed";
		return true;
	}
	w->mark = v->at;
	w->text = map ? "a ',' or the closing '}' is missing before this"
		      : "a ',' or the closing ']' is missing before this";
	return true;
}

static bool words_unclosed(const struct view *v, struct words *w)
{
	const char *context = v->problem->context ? v->problem->context : "";

	if (says(v, "unknown escape")) {
		w->mark = v->at;
		w->mark.len = 2;
		w->text = "there is no such escape in double quotes";
		w->hint = "write \\\\ for a backslash, or use single quotes";
		return true;
	}
	if (strcmp(context, "while scanning a quoted scalar") != 0 ||
	    (!says(v, "unexpected end of stream") && !says(v, "document indicator")))
		return false;
	w->mark = v->context;
	w->text = "this quote is never closed";
	return true;
}

static bool words_alias(const struct view *v, struct words *w)
{
	const char *context = v->problem->context ? v->problem->context : "";

	if (strcmp(context, "while scanning an alias") != 0 &&
	    strcmp(context, "while scanning an anchor") != 0)
		return false;
	w->mark = v->context;
	w->text = "a text that begins with '*' or '&' needs quotes";
	return true;
}

static bool words_start(const struct view *v, struct words *w)
{
	if (says(v, "could not find expected ':'")) {
		w->mark = v->context;
		w->mark.len = (int)strcspn(v->context.excerpt + v->context.col - 1, "#");
		while (w->mark.len > 1 &&
		       strchr(" \t", v->context.excerpt[v->context.col + w->mark.len - 2]))
			w->mark.len--;
		w->text = "this key has no ':'";
		w->hint = "write 'key: value'";
		return true;
	}
	if (!says(v, "cannot start any token"))
		return false;
	w->mark = v->at;
	w->text = "a text can not begin with this character";
	w->hint = "put it in quotes";
	return true;
}

static bool words_missing(const struct view *v, struct words *w)
{
	w->mark = v->at;
	if (says(v, "did not find expected node content")) {
		w->text = "a value is missing here";
		return true;
	}
	if (says(v, "block sequence entries are not allowed")) {
		w->text = "a list can not begin here";
		w->hint = "begin it on the next line, or write [a, b]";
		return true;
	}
	return false;
}

static bool words_libyaml(const struct view *v, struct words *w)
{
	w->mark = v->at;
	w->text = v->problem->text;
	w->hint = v->problem->context;
	return true;
}

int tree_explain(struct source *source, const struct tree_problem *problem, struct weir_errs *errs)
{
	static bool (*const readers[])(const struct view *v, struct words *w) = {words_bytes,
	    words_tab, words_dollar, words_colon, words_indent, words_end, words_flow,
	    words_unclosed, words_alias, words_start, words_missing, words_libyaml};
	struct view v = {.source = source, .problem = problem};
	struct words w = {.text = NULL};

	v.at = problem->has_offset ? source_mark_at(source, problem->offset)
				   : source_mark(source, problem->line, problem->col, 1);
	v.context = source_mark(source, problem->context_line, problem->context_col, 1);
	v.line = v.at.excerpt;
	v.indent = indent_of(v.line);
	for (size_t i = 0; !w.text; i++)
		readers[i](&v, &w);
	return weir_errs_add(errs, &w.mark, WEIR_EINVAL, w.hint, "%s", w.text);
}
