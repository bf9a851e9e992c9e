/* SPDX-License-Identifier: MIT */
/*
 * Translates libyaml's error messages into messages that the author of the file understands.
 *
 * libyaml describes the state of its scanner, as in "mapping values are not allowed in this
 * context". The actual mistake is a tab used for indentation, too much indentation, or a missing
 * quote. It is found by examining the line at the reported position and the lines above it. Unknown
 * messages are passed on unchanged.
 */
#include "tree.h"

#include <stdio.h>
#include <string.h>

/* A libyaml problem and the line where it occurred. */
struct view {
	const struct source *source;
	const struct tree_problem *problem;
	struct weir_mark at, context; /* positions of the problem and of its context */
	const char *line;             /* the text of the line of `at` */
	size_t indent;                /* number of spaces and tabs before its first word */
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

/* Return the length of the word at `s`. */
static size_t word_len(const char *s)
{
	return strcspn(s, " \t:,#{}[]");
}

/* Return the nearest line above the problem that is neither blank nor a comment, or "" if there is
 * none. */
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
		w->text = "a control character is not allowed here";
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
	w->text = "tabs cannot be used for indentation";
	w->hint = "use spaces";
	return true;
}

/* Detect an unquoted ${X} inside { } or [ ], where its '{' begins a map. */
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

/* Detect a key below a line that already has a value, or a second ':' in one line. */
static bool words_colon(const struct view *v, struct words *w)
{
	const char *above = line_above(v), *key = v->line + v->indent;

	if (!says(v, "mapping values are not allowed"))
		return false;
	if (v->indent > indent_of(above) && (size_t)v->at.col - 1 <= v->indent + word_len(key)) {
		w->mark = mark_in_line(v, v->indent, word_len(key));
		w->text = "this line is indented too far";
		w->hint = "the line above already has a value: indent both alike";
		return true;
	}
	w->mark = v->at;
	w->text = "a ':' is not allowed here";
	w->hint = "put a value that contains ': ' in quotes";
	return true;
}

static bool words_indent(const struct view *v, struct words *w)
{
	if (!says(v, "did not find expected key") && !says(v, "expected '-' indicator"))
		return false;
	w->mark = v->at;
	if ((size_t)v->at.col - 1 == v->indent) {
		w->mark = mark_in_line(v, v->indent, word_len(v->line + v->indent));
		w->text = "the indentation of this line matches no line above";
		w->hint = "indent the keys of one map, or the entries of one list, alike";
	} else {
		w->text = "this cannot follow the value before it";
		w->hint = "put the whole value in quotes, or begin a new line for another key";
	}
	return true;
}

static bool words_end(const struct view *v, struct words *w)
{
	if (!says(v, "expected <document start>"))
		return false;
	w->mark = v->at;
	w->text = "this follows the end of the configuration";
	w->hint =
	    "a value that begins with { or [ needs quotes; a line of three dots ends the document";
	return true;
}

/* Return whether only spaces and comments follow the position. */
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
		w->text = "this escape is not valid in double quotes";
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
	w->text = "a value that begins with '*' or '&' needs quotes";
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
	w->text = "a value cannot begin with this character";
	w->hint = "put the value in quotes";
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
		w->text = "a list cannot begin here";
		w->hint = "begin the list on the next line, or write [a, b]";
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
	for (size_t i = 0; !readers[i](&v, &w);)
		i++;
	return weir_errs_add(errs, &w.mark, WEIR_EINVAL, w.hint, "%s", w.text);
}
