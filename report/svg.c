/* SPDX-License-Identifier: MIT */
/*
 * Draws charts as SVG within HTML.
 *
 * A chart must fit both a phone and a sheet of paper, without scaling its text and without a
 * script. The drawing therefore has no view box: positions along x are percentages, and positions
 * along y are pixels of a fixed height. Paths cannot use percentages, so they are in an inner svg
 * of width 1000, which is stretched; vector-effect preserves the width of their strokes.
 *
 * The values of each series are also in data attributes, for the read-out of html_script.c.
 */
#include "report/chart.h"

#include <math.h>
#include <string.h>

#include "report/html_parts.h"

#define TICKS_X 8
#define TICKS_Y 5

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
		markup(out, "<g class='area f%d'><rect x=2 y=1 width=30 height=12 />", style);
	else if (shape == SERIES_GUIDE)
		fputs("<g class=guide><path d='M1 7H33'/>", out);
	else if (shape == SERIES_POINTS)
		markup(out, "<g class='line s%d'>", style);
	else
		markup(out, "<g class='line s%d'><path d='M1 7H33'/>", style);
	if (shape == SERIES_MARKED || shape == SERIES_POINTS)
		markup(out, "<use href='#m%d' class=mark x=17 y=7 />", style);
	fputs("</g></svg>", out);
}

/* Positions within the plot: x in percent, y in pixels. */
static double at_x(const struct chart *c, double x)
{
	return scale_at(&c->x, x) * 100;
}

static double at_y(const struct chart *c, double y)
{
	return (1 - scale_at(&c->y, y)) * c->height_px;
}

/* ---- frame ---- */

/* Draw the ticks of both axes. On a narrow page, every second label of the x axis is hidden. */
static void draw_ticks(FILE *out, const struct chart *c)
{
	double tick[SCALE_TICKS_MAX];
	char text[FORMAT_MAX];
	int n = scale_ticks(&c->y, TICKS_Y, tick);

	for (int i = 0; i < n; i++) {
		double y = at_y(c, tick[i]);
		markup(out,
		    "<line class=grid x1=0 x2='100%%' y1='%.1f' y2='%.1f'/>"
		    "<text class=ty x='-8' y='%.1f' dy='.35em'>%s</text>\n",
		    y, y, y, c->print_y(text, tick[i]));
	}
	n = scale_ticks(&c->x, TICKS_X, tick);
	for (int i = 0; i < n; i++) {
		double x = at_x(c, tick[i]);
		markup(out,
		    "<line class=grid x1='%.2f%%' x2='%.2f%%' y1=0 y2=%d />"
		    "<text class='tx%s' x='%.2f%%' y=%d>%s</text>\n",
		    x, x, c->height_px, i % 2 ? " wide" : "", x, c->height_px + 18,
		    c->print_x(text, tick[i]));
	}
}

static void draw_bands(FILE *out, const struct chart *c)
{
	for (int i = 0; i < c->n_bands; i++) {
		const struct band *b = &c->band[i];
		double from = at_x(c, b->from), width = at_x(c, b->to) - from;
		if (width <= 0)
			continue;
		if (i % 2 == 1)
			markup(out, "<rect class=band x='%.2f%%' y=0 width='%.2f%%' height=%d />",
			    from, width, c->height_px);
		/* The width of a letter is about 0.8 % of that of a wide plot; 0.9 leaves a gap. */
		if (b->text[0] && width >= 0.9 * (double)strlen(b->text))
			markup(out, "<text class='tb%s' x='%.2f%%' y='-6'>%s</text>\n",
			    width < 16 ? " wide" : "", from + width / 2, b->text);
	}
}

static void draw_rules(FILE *out, const struct chart *c)
{
	for (int i = 0; i < c->n_rules; i++) {
		const struct rule *r = &c->rule[i];
		double at = r->vertical ? at_x(c, r->at) : at_y(c, r->at);
		if (r->vertical)
			markup(out,
			    "<line class=rule x1='%.2f%%' x2='%.2f%%' y1=0 y2=%d />"
			    "<text class='tr%s' x='%.2f%%' y=12 dx='%d'>%s</text>\n",
			    at, at, c->height_px, at > 70 ? " left" : "", at, at > 70 ? -5 : 5,
			    r->text);
		else
			markup(out,
			    "<line class=rule x1=0 x2='100%%' y1='%.1f' y2='%.1f'/>"
			    "<text class='tr left' x='100%%' y='%.1f' dx='-4' dy='-4'>%s</text>\n",
			    at, at, at < 14 ? 22 : at, r->text);
	}
}

/* ---- series ---- */

/* Whether the line has a gap between values i - 1 and i. */
static bool parted(const struct chart *c, const struct series *s, int i)
{
	return i == 0 || (c->gap > 0 && s->x[i] - s->x[i - 1] > c->gap);
}

static void draw_point(FILE *out, const struct chart *c, bool line, double x, double y)
{
	fprintf(out, "%c%.1f %.1f", line ? 'L' : 'M', at_x(c, x) * 10, at_y(c, y));
}

static void draw_line(FILE *out, const struct chart *c, const struct series *s)
{
	bool pen = false;

	for (int i = 0; i < s->n; i++) {
		if (!isnan(s->y[i]))
			draw_point(out, c, pen && !parted(c, s, i), s->x[i], s->y[i]);
		pen = !isnan(s->y[i]);
	}
}

/* Draw each part of the area forward along the values, then back along the base. */
static void draw_area(FILE *out, const struct chart *c, const struct series *s)
{
	for (int from = 0, to; from < s->n; from = to) {
		for (to = from; to == from || (to < s->n && !parted(c, s, to)); to++)
			draw_point(out, c, to > from, s->x[to], s->y[to]);
		for (int i = to - 1; i >= from; i--)
			draw_point(out, c, true, s->x[i], s->base[i]);
		fputs("Z", out);
	}
}

static void draw_markers(FILE *out, const struct chart *c, const struct series *s)
{
	for (int i = 0; i < s->n; i++) {
		double x = at_x(c, s->x[i]);
		if (isnan(s->y[i]))
			continue;
		if (s->low && s->high[i] > s->low[i])
			markup(out,
			    "<line class=spread x1='%.2f%%' x2='%.2f%%' y1='%.1f' y2='%.1f'/>", x,
			    x, at_y(c, s->low[i]), at_y(c, s->high[i]));
		markup(out, "<use href='#m%d' class=mark x='%.2f%%' y='%.1f'/>", s->style, x,
		    at_y(c, s->y[i]));
	}
}

static double series_value(const struct series *s, int i)
{
	return s->base ? s->y[i] - s->base[i] : s->y[i];
}

/* Write the data for the read-out: positions in per mille, and the values as texts. */
static void draw_data(FILE *out, const struct chart *c, const struct series *s)
{
	char text[FORMAT_MAX];

	markup(out, " data-n='%s' data-x='", s->name);
	for (int i = 0; i < s->n; i++)
		markup(out, "%s%.0f", i ? " " : "", at_x(c, s->x[i]) * 10);
	fputs("' data-l='", out);
	for (int i = 0; i < s->n; i++)
		markup(out, "%s%s", i ? "|" : "", c->print_x(text, s->x[i]));
	fputs("' data-v='", out);
	for (int i = 0; i < s->n; i++)
		markup(out, "%s%s", i ? "|" : "", c->print_y(text, series_value(s, i)));
	fputs("'", out);
}

static void draw_series(FILE *out, const struct chart *c, const struct series *s)
{
	static const char *const kind[] = {"line s", "line s", "area f", "guide s", "line s"};

	markup(out, "<g class='%s%d'", kind[s->shape], s->style);
	if (s->shape != SERIES_GUIDE)
		draw_data(out, c, s);
	markup(out,
	    "><svg width='100%%' height=%d viewBox='0 0 1000 %d' preserveAspectRatio=none "
	    "overflow=visible><path d='",
	    c->height_px, c->height_px);
	if (s->shape != SERIES_POINTS)
		(s->shape == SERIES_AREA ? draw_area : draw_line)(out, c, s);
	fputs("'/></svg>", out);
	if (s->shape == SERIES_MARKED || s->shape == SERIES_POINTS)
		draw_markers(out, c, s);
	fputs("</g>\n", out);
}

/* ---- pins ---- */

/* A pin that is closer than this to the last pin with a flag, in percent of the chart's width, has
 * no flag of its own. */
#define PIN_ROOM 3.2
/* Distance in percent below which only the first of several flags is shown on a narrow page. */
#define PIN_ROOM_NARROW 8

static double pin_at(const struct chart *c, int i)
{
	return i < c->n_pins ? at_x(c, c->pin[i].at) : 100;
}

/* Draw the flag that pins `i` to `next` - 1 share. The text of a single pin is also drawn if it
 * fits between its flag and the next one on a wide page. */
static void draw_flag(FILE *out, const struct chart *c, int i, int next, bool narrow)
{
	const struct pin *pin = &c->pin[i];
	double at = pin_at(c, i);

	markup(out,
	    "<g class='flag%s'><use href='#flag' x='%.2f%%' y='-26'/>"
	    "<text class=tf x='%.2f%%' y='-22'>%d</text>",
	    narrow ? "" : " wide", at, at, pin->number);
	if (next == i + 1 && pin_at(c, next) - at >= 3 + 0.8 * (double)strlen(pin->text))
		markup(
		    out, "<text class='tp wide' x='%.2f%%' y='-22' dx=12>%s</text>", at, pin->text);
	markup(out, "<title>%s", pin->text);
	if (next > i + 1)
		markup(out, " and %d more", next - i - 1);
	fputs("</title></g>\n", out);
}

static void draw_pins(FILE *out, const struct chart *c)
{
	double last = -PIN_ROOM_NARROW;

	for (int i = 0, next; i < c->n_pins; i = next) {
		double at = pin_at(c, i);
		for (next = i; next < c->n_pins && (next == i || pin_at(c, next) - at < PIN_ROOM);
		     next++)
			markup(out, "<line class=pin x1='%.2f%%' x2='%.2f%%' y1='-20' y2=%d />",
			    pin_at(c, next), pin_at(c, next), c->height_px);
		if (c->pin[i].number == 0)
			continue; /* the first chart of the run has the flag */
		bool narrow = at - last >= PIN_ROOM_NARROW;
		last = narrow ? at : last;
		draw_flag(out, c, i, next, narrow);
	}
}

/* ---- legend and table ---- */

static void svg_legend(FILE *out, const struct chart *c)
{
	if (c->n_series < 2)
		return;
	fputs("<ul class=legend>", out);
	for (int i = 0; i < c->n_series; i++) {
		fputs("<li>", out);
		svg_swatch(out, c->series[i].shape, c->series[i].style);
		markup(out, "%s</li>", c->series[i].name);
	}
	fputs("</ul>\n", out);
}

/* Store the series except guides in of[CHART_SERIES_MAX]. Sets *same to whether all have the same x
 * values. Returns their number. */
static int table_series(const struct chart *c, const struct series **of, bool *same)
{
	int n = 0;

	*same = true;
	for (int i = 0; i < c->n_series; i++) {
		const struct series *s = &c->series[i];
		if (s->shape == SERIES_GUIDE)
			continue;
		of[n++] = s;
		*same = *same && s->n == of[0]->n &&
			memcmp(s->x, of[0]->x, (size_t)s->n * sizeof(double)) == 0;
	}
	return n;
}

static void wide_table(FILE *out, const struct chart *c, const struct series **of, int n)
{
	struct html_column column[CHART_SERIES_MAX + 1] = {{c->x_name, c->print_x}};
	double value[CHART_SERIES_MAX];
	char text[FORMAT_MAX];

	for (int i = 0; i < n; i++)
		column[i + 1] = (struct html_column){of[i]->name, c->print_y};
	html_table(out, c->title, column, n + 1);
	for (int k = 0; n > 0 && k < of[0]->n; k++) {
		html_row(out, c->print_x(text, of[0]->x[k]));
		for (int i = 0; i < n; i++)
			value[i] = series_value(of[i], k);
		html_values(out, column + 1, n, value);
	}
}

static void long_table(FILE *out, const struct chart *c, const struct series **of, int n)
{
	const struct html_column column[] = {
	    {"series", NULL}, {c->x_name, c->print_x}, {c->y_name, c->print_y}};

	html_table(out, c->title, column, 3);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < of[i]->n; k++) {
			html_row(out, of[i]->name);
			html_values(out, column + 1, 2,
			    (const double[]){of[i]->x[k], series_value(of[i], k)});
		}
}

/* Write a table of the values, for readers who prefer tables or use a screen reader. The table has
 * a column per series if all series have the same x values, otherwise a row per value. */
static void svg_table(FILE *out, const struct chart *c)
{
	const struct series *of[CHART_SERIES_MAX];
	bool same;
	int n = table_series(c, of, &same);

	fputs("<details class=twin><summary>These values as a table</summary>", out);
	(same ? wide_table : long_table)(out, c, of, n);
	html_table_end(out);
	fputs("</details>\n", out);
}

/* ---- the whole ---- */

void svg_chart(FILE *out, const struct chart *c, const char *id)
{
	bool flags = c->n_pins > 0 && c->pin[0].number > 0;

	markup(out,
	    "<figure id='%s' class='fig%s%s'><figcaption><h3>%s</h3><p>%s</p></figcaption>\n", id,
	    flags ? " flags" : "", c->n_bands > 0 ? " bands" : "", c->title, c->about);
	svg_legend(out, c);
	markup(out,
	    "<p class=yname>%s</p><div class=plot><svg class=chart width='100%%' height=%d "
	    "role=img "
	    "aria-labelledby='%s-t %s-d'><title id='%s-t'>%s</title><desc id='%s-d'>%s</desc>\n",
	    c->y_name, c->height_px, id, id, id, c->title, id, c->about);
	draw_bands(out, c);
	draw_ticks(out, c);
	for (int i = 0; i < c->n_series; i++)
		draw_series(out, c, &c->series[i]);
	draw_rules(out, c);
	draw_pins(out, c);
	markup(out,
	    "<line class=axis x1=0 x2='100%%' y1=%d y2=%d /></svg></div>\n<p class=xname>%s</p>\n",
	    c->height_px, c->height_px, c->x_name);
	svg_table(out, c);
	fputs("</figure>\n", out);
}
