/* SPDX-License-Identifier: MIT */
/* Writes tables cell by cell; see html_parts.h. Optional end tags are omitted. */
#include "report/html_parts.h"

#include "report/format.h"

void html_table(FILE *out, const char *caption, const char *const *heading, int n)
{
	fputs("<div class=scroll tabindex=0 role=region aria-label='", out);
	markup_text(out, caption);
	fputs("'><table><caption>", out);
	markup_text(out, caption);
	fputs("</caption><thead><tr>", out);
	for (int i = 0; i < n; i++) {
		fputs("<th scope=col>", out);
		markup_text(out, heading[i]);
	}
	fputs("</thead><tbody>\n", out);
}

void html_table_end(FILE *out)
{
	fputs("</tbody></table></div>\n", out);
}

void html_row(FILE *out, const char *heading)
{
	fputs("<tr><th scope=row>", out);
	markup_text(out, heading);
}

void html_cell(FILE *out, const char *text)
{
	fputs("<td>", out);
	markup_text(out, text);
}

void html_cell_value(FILE *out, char *(*print)(char *, double), double value)
{
	char text[FORMAT_MAX];

	html_cell(out, print(text, value));
}
