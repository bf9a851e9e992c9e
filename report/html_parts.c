/* SPDX-License-Identifier: MIT */
/* Writes the parts that all pages share; see html_parts.h. Optional end tags are omitted. */
#include "report/html_parts.h"

#include <string.h>

/* Content security policy: only the page's own style and script, nothing from elsewhere. */
void html_begin(FILE *out, const char *of, const char *kind, bool script, const char *css)
{
	markup(out,
	    "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n"
	    "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src "
	    "'unsafe-inline'; ");
	fputs(script ? "script-src 'unsafe-inline'; " : "", out);
	markup(out,
	    "img-src data:; base-uri 'none'; form-action 'none'\">\n"
	    "<meta name=viewport content='width=device-width, initial-scale=1'>\n"
	    "<meta name=referrer content=no-referrer>\n<link rel=icon href='data:,'>\n"
	    "<title>%s%sweir %s</title>\n<style>\n",
	    of, *of ? " \xE2\x80\x93 " : "", kind);
	fputs(html_style, out);
	fputs(css, out);
	fputs("</style></head><body>\n", out);
	svg_definitions(out);
	markup(out, "<header><p class=brand>weir <span>%s</span></p></header><main>\n", kind);
}

void html_verdict(FILE *out, const char *level, const char *of, const char *text)
{
	markup(out, "<p class='verdict %s'><span>", level);
	if (*of)
		markup(out, "<b>%s</b> ", of);
	markup(out, "%s</span></p>\n", text);
}

void html_chart(struct html_page *p, struct chart *c)
{
	char id[16];

	p->failed = p->failed || !c || c->failed;
	if (c && !c->failed && chart_has_values(c)) {
		snprintf(id, sizeof(id), "f%d", ++p->figures);
		svg_chart(p->out, c, id);
	}
	chart_free(c);
}

void html_table(FILE *out, const char *caption, const struct html_column *column, int n)
{
	markup(out,
	    "<div class=scroll tabindex=0 role=region aria-label='%s'><table>"
	    "<caption>%s</caption><thead><tr>",
	    caption, caption);
	for (int i = 0; i < n; i++)
		markup(out, "<th scope=col>%s", column[i].heading);
	fputs("</thead><tbody>\n", out);
}

void html_table_end(FILE *out)
{
	fputs("</tbody></table></div>\n", out);
}

void html_row(FILE *out, const char *heading)
{
	markup(out, "<tr><th scope=row>%s", heading);
}

void html_cell(FILE *out, const char *text)
{
	markup(out, "<td>%s", text);
}

void html_cell_value(FILE *out, format_fn *print, double value)
{
	char text[FORMAT_MAX];

	html_cell(out, print(text, value));
}

void html_values(FILE *out, const struct html_column *column, int n, const double *value)
{
	for (int i = 0; i < n; i++)
		html_cell_value(out, column[i].print, value[i]);
	fputs("\n", out);
}

void html_term(FILE *out, const char *name, const char *text)
{
	if (text && *text)
		markup(out, "<dt>%s<dd>%s\n", name, text);
}
