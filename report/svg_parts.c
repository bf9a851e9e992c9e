/* SPDX-License-Identifier: MIT */
/* Writes the definitions, legends and tables of charts; see chart.h and svg_parts.h. */
#include "report/svg_parts.h"

#include <math.h>
#include <string.h>

/* Markers by style, centred at (0, 0). */
static const char *const markers[CHART_STYLES] = {
    "<circle r='4'/>",
    "<rect x='-3.7' y='-3.7' width='7.4' height='7.4'/>",
    "<path d='M0-5L4.8 3.6H-4.8Z'/>",
    "<path d='M0-5.2L5.2 0L0 5.2L-5.2 0Z'/>",
    "<circle r='3.6' class='hollow'/>",
    "<rect x='-3.4' y='-3.4' width='6.8' height='6.8' class='hollow'/>",
    "<path d='M0 5L4.8-3.6H-4.8Z'/>",
    "<path d='M-4-4L4 4M-4 4L4-4' class='cross'/>",
};

void svg_definitions(FILE *out)
{
	fputs("<svg width=0 height=0 aria-hidden=true class=defs><defs>\n", out);
	for (int i = 0; i < CHART_STYLES; i++)
		fprintf(out, "<g id=m%d>%s</g>\n", i, markers[i]);
	fputs("<rect id=flag x=-9 y=-6.5 width=18 height=15 rx=4 />\n"
	      "<pattern id=p2 width=7 height=7 patternUnits=userSpaceOnUse "
	      "patternTransform='rotate(45)'>"
	      "<rect width=7 height=7 class=p2 /><rect width=2 height=7 class=ink /></pattern>\n"
	      "<pattern id=p3 width=6 height=6 patternUnits=userSpaceOnUse>"
	      "<rect width=6 height=6 class=p3 /><circle cx=3 cy=3 r=1.3 class=ink /></pattern>\n"
	      "<pattern id=p4 width=6 height=5 patternUnits=userSpaceOnUse>"
	      "<rect width=6 height=5 class=p4 /><rect width=6 height=1.6 class=ink "
	      "/></pattern>\n</defs></svg>\n",
	    out);
}

void svg_swatch(FILE *out, enum series_shape shape, int style)
{
	fputs("<svg class=swatch width=34 height=14 aria-hidden=true>", out);
	if (shape == SERIES_AREA)
		fprintf(out, "<g class='area f%d'><rect x=2 y=1 width=30 height=12 /></g>", style);
	else if (shape == SERIES_GUIDE)
		fputs("<g class=guide><path d='M1 7H33'/></g>", out);
	else
		fprintf(out, "<g class='line s%d'><path d='M1 7H33'/>", style);
	if (shape == SERIES_MARKED)
		fprintf(out, "<use href='#m%d' class=mark x=17 y=7 />", style);
	if (shape == SERIES_LINE || shape == SERIES_MARKED)
		fputs("</g>", out);
	fputs("</svg>", out);
}

void svg_legend(FILE *out, const struct chart *c)
{
	if (c->n_series < 2)
		return;
	fputs("<ul class=legend>", out);
	for (int i = 0; i < c->n_series; i++) {
		fputs("<li>", out);
		svg_swatch(out, c->series[i].shape, c->series[i].style);
		markup_text(out, c->series[i].name);
		fputs("</li>", out);
	}
	fputs("</ul>\n", out);
}

/* ---- the table ---- */

static bool in_table(const struct series *s)
{
	return s->shape != SERIES_GUIDE;
}

/* Whether all series have the same x values as the first. */
static bool same_x(const struct chart *c)
{
	const struct series *first = NULL;

	for (int i = 0; i < c->n_series; i++) {
		const struct series *s = &c->series[i];
		if (!in_table(s))
			continue;
		if (!first)
			first = s;
		if (s->n != first->n || memcmp(s->x, first->x, (size_t)s->n * sizeof(double)) != 0)
			return false;
	}
	return true;
}

static void head_cell(FILE *out, const char *text)
{
	fputs("<th scope=col>", out);
	markup_text(out, text);
}

static void value_cell(FILE *out, format_fn *print, double value)
{
	char text[FORMAT_MAX];

	fputs("<td>", out);
	markup_text(out, print(text, value));
}

static double shown(const struct series *s, int i)
{
	return s->base ? s->y[i] - s->base[i] : s->y[i];
}

static void wide_table(FILE *out, const struct chart *c)
{
	const struct series *first = NULL;
	char text[FORMAT_MAX];

	fputs("<thead><tr>", out);
	head_cell(out, c->x_name);
	for (int i = 0; i < c->n_series; i++) {
		if (!in_table(&c->series[i]))
			continue;
		first = first ? first : &c->series[i];
		head_cell(out, c->series[i].name);
	}
	fputs("</thead><tbody>\n", out);
	for (int k = 0; first && k < first->n; k++) {
		fputs("<tr><th scope=row>", out);
		markup_text(out, c->print_x(text, first->x[k]));
		for (int i = 0; i < c->n_series; i++)
			if (in_table(&c->series[i]))
				value_cell(out, c->print_y, shown(&c->series[i], k));
		fputs("\n", out);
	}
}

static void long_table(FILE *out, const struct chart *c)
{
	fputs("<thead><tr><th scope=col>series", out);
	head_cell(out, c->x_name);
	head_cell(out, c->y_name);
	fputs("</thead><tbody>\n", out);
	for (int i = 0; i < c->n_series; i++) {
		const struct series *s = &c->series[i];
		for (int k = 0; in_table(s) && k < s->n; k++) {
			fputs("<tr><th scope=row>", out);
			markup_text(out, s->name);
			value_cell(out, c->print_x, s->x[k]);
			value_cell(out, c->print_y, shown(s, k));
			fputs("\n", out);
		}
	}
}

void svg_table(FILE *out, const struct chart *c)
{
	fputs("<details class=twin><summary>These values as a table</summary>"
	      "<div class=scroll tabindex=0 role=region aria-label='",
	    out);
	markup_text(out, c->title);
	fputs("'><table><caption>", out);
	markup_text(out, c->title);
	fputs("</caption>", out);
	if (same_x(c))
		wide_table(out, c);
	else
		long_table(out, c);
	fputs("</tbody></table></div></details>\n", out);
}
