/* SPDX-License-Identifier: MIT */
/*
 * Collects startup errors with their positions, and prints them in the style of a compiler.
 *
 *     shop.yaml:5:5: unknown key 'treads' in stage 'parse'
 *         5 |     treads: 4
 *           |     ^^^^^^ did you mean 'threads'?
 *
 * Columns count bytes. The underline counts characters, and its padding repeats the tabs of the
 * source line, so that it lines up in a terminal and in an editor. If the source line is too long,
 * only the part around the position is stored. Texts come from untrusted files, so control bytes
 * are escaped, or replaced by '?' in the source line, where columns must not change.
 */
#include <weir/error.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Number of bytes of a long source line that are stored before the position. 40 is a guess: half a
 * terminal line. */
#define EXCERPT_LEAD 40

/* Marks a source line whose beginning was cut off. */
#define CUT_MARK       "..."
#define CUT_MARK_BYTES 3

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Copy the source line without control bytes. If the line is too long, start the copy close enough
 * to the error's position to include it. */
static void excerpt_copy(struct weir_err *err, const char *line)
{
	size_t from = 0, used = 0, whole = strlen(line);
	char *out = err->excerpt;

	err->caret = err->col;
	if (whole >= sizeof(err->excerpt) && err->col > EXCERPT_LEAD + CUT_MARK_BYTES &&
	    (size_t)err->col <= whole + 1) {
		from = (size_t)err->col - 1 - EXCERPT_LEAD;
		while (is_continuation(line[from]))
			from++;
		memcpy(out, CUT_MARK, CUT_MARK_BYTES);
		used = CUT_MARK_BYTES;
		err->caret = err->col - (int)from + CUT_MARK_BYTES;
	}
	while (line[from]) {
		size_t n = text_char(line + from), bytes = n > 0 ? n : 1;
		if (used + bytes >= sizeof(err->excerpt))
			break;
		memcpy(out + used, line + from, bytes);
		if (n == 0 || (line[from] != '\t' && text_is_control(line + from)))
			memset(out + used, '?', bytes);
		used += bytes;
		from += bytes;
	}
	out[used] = '\0';
}

static void place_copy(struct weir_err *err, const struct weir_mark *mark)
{
	if (!mark)
		return;
	text_escape(err->file, sizeof(err->file), mark->file ? mark->file : "", "");
	err->line = mark->line > 0 ? mark->line : 0;
	err->col = mark->col > 0 ? mark->col : 1;
	err->len = mark->len > 0 ? mark->len : 1;
	if (mark->excerpt)
		excerpt_copy(err, mark->excerpt);
}

int weir_errs_add(struct weir_errs *errs, const struct weir_mark *mark, int code, const char *hint,
    const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	errs->total++;
	if (errs->n == WEIR_ERRS_MAX)
		return code;
	struct weir_err *err = &errs->err[errs->n++];
	*err = (struct weir_err){.code = code};
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_escape(err->text, sizeof(err->text), text, "");
	text_escape(err->hint, sizeof(err->hint), hint ? hint : "", "");
	place_copy(err, mark);
	return code;
}

/* ---- printing ---- */

static void out_place(struct text_out *o, const struct weir_err *e)
{
	char numbers[32];

	text_put(o, e->file);
	if (e->line > 0) {
		snprintf(numbers, sizeof(numbers), ":%d:%d", e->line, e->col);
		text_put(o, numbers);
	}
	if (e->file[0] || e->line > 0)
		text_put(o, ": ");
}

/* Print blanks up to the position in the excerpt, then one caret for each character. */
static void out_underline(struct text_out *o, const struct weir_err *e)
{
	size_t n = strlen(e->excerpt), at = (size_t)e->caret - 1, i = 0;

	for (; i < at && i < n; i++)
		if (!is_continuation(e->excerpt[i]))
			text_put(o, e->excerpt[i] == '\t' ? "\t" : " ");
	text_put(o, "^");
	for (i = i + 1; i < at + (size_t)e->len && i < n; i++)
		if (!is_continuation(e->excerpt[i]))
			text_put(o, "^");
}

static void out_excerpt(struct text_out *o, const struct weir_err *e)
{
	char gutter[32];
	int width = snprintf(gutter, sizeof(gutter), "%5d | ", e->line);

	text_put(o, gutter);
	text_put(o, e->excerpt);
	snprintf(gutter, sizeof(gutter), "\n%*s | ", width - 3, "");
	text_put(o, gutter);
	out_underline(o, e);
}

static void out_error(struct text_out *o, const struct weir_err *e)
{
	out_place(o, e);
	text_put(o, e->text);
	if (e->line > 0 && e->excerpt[0]) {
		text_put(o, "\n");
		out_excerpt(o, e);
		if (e->hint[0])
			text_put(o, " ");
	} else if (e->hint[0]) {
		text_put(o, ": ");
	}
	text_put(o, e->hint);
	text_put(o, "\n");
}

size_t weir_errs_format(const struct weir_errs *errs, char *buf, size_t size)
{
	struct text_out o = {buf, size, 0};

	for (int i = 0; i < errs->n; i++)
		out_error(&o, &errs->err[i]);
	return text_end(&o);
}
