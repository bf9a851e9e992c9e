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

#include "report/svg_parts.h"

#define TICKS_X 8
#define TICKS_Y 5

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

static void draw_ticks_y(FILE *out, const struct chart *c)
{
	double tick[SCALE_TICKS_MAX];
	int n = scale_ticks(&c->y, TICKS_Y, tick);
	char text[FORMAT_MAX];

	for (int i = 0; i < n; i++) {
		double y = at_y(c, tick[i]);
		fprintf(out, "<line class=grid x1=0 x2='100%%' y1='%.1f' y2='%.1f'/>", y, y);
		fprintf(out, "<text class=ty x='-8' y='%.1f' dy='.35em'>", y);
		markup_text(out, c->print_y(text, tick[i]));
		fputs("</text>\n", out);
	}
}

/* Draw the ticks of the x axis. On a narrow page, every second label is hidden. */
static void draw_ticks_x(FILE *out, const struct chart *c)
{
	double tick[SCALE_TICKS_MAX];
	int n = scale_ticks(&c->x, TICKS_X, tick);
	char text[FORMAT_MAX];

	for (int i = 0; i < n; i++) {
		double x = at_x(c, tick[i]);
		fprintf(out, "<line class=grid x1='%.2f%%' x2='%.2f%%' y1=0 y2=%d />", x, x,
		    c->height_px);
		fprintf(out, "<text class='tx%s' x='%.2f%%' y=%d>", i % 2 ? " wide" : "", x,
		    c->height_px + 18);
		markup_text(out, c->print_x(text, tick[i]));
		fputs("</text>\n", out);
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
			fprintf(out, "<rect class=band x='%.2f%%' y=0 width='%.2f%%' height=%d />",
			    from, width, c->height_px);
		/* The width of a letter is about 0.8 % of that of a wide plot; 0.9 leaves a gap. */
		if (!b->text[0] || width < 0.9 * (double)strlen(b->text))
			continue;
		fprintf(out, "<text class='tb%s' x='%.2f%%' y='-6'>", width < 16 ? " wide" : "",
		    from + width / 2);
		markup_text(out, b->text);
		fputs("</text>\n", out);
	}
}

static void draw_rules(FILE *out, const struct chart *c)
{
	for (int i = 0; i < c->n_rules; i++) {
		const struct rule *r = &c->rule[i];
		double at = r->vertical ? at_x(c, r->at) : at_y(c, r->at);
		if (r->vertical)
			fprintf(out,
			    "<line class=rule x1='%.2f%%' x2='%.2f%%' y1=0 y2=%d />"
			    "<text class='tr%s' x='%.2f%%' y=12 dx='%s'>",
			    at, at, c->height_px, at > 70 ? " left" : "", at, at > 70 ? "-5" : "5");
		else
			fprintf(out,
			    "<line class=rule x1=0 x2='100%%' y1='%.1f' y2='%.1f'/>"
			    "<text class='tr left' x='100%%' y='%.1f' dx='-4' dy='-4'>",
			    at, at, at < 14 ? 22 : at);
		markup_text(out, r->text);
		fputs("</text>\n", out);
	}
}

/* ---- series ---- */

/* Whether the line has a gap between values i - 1 and i. */
static bool parted(const struct chart *c, const struct series *s, int i)
{
	return i == 0 || (c->gap > 0 && s->x[i] - s->x[i - 1] > c->gap);
}

static void draw_path(FILE *out, const struct chart *c, const struct series *s)
{
	bool pen = false;

	fputs("<path d='", out);
	for (int i = 0; i < s->n; i++) {
		pen = pen && !parted(c, s, i);
		if (!isnan(s->y[i]))
			fprintf(out, "%c%.1f %.1f", pen ? 'L' : 'M', at_x(c, s->x[i]) * 10,
			    at_y(c, s->y[i]));
		pen = !isnan(s->y[i]);
	}
	fputs("'/>", out);
}

/* Draw the area of values `from` to `to` - 1: forward along the values, then back along the
 * base. */
static void draw_area_part(
    FILE *out, const struct chart *c, const struct series *s, int from, int to)
{
	for (int i = from; i < to; i++)
		fprintf(out, "%c%.1f %.1f", i > from ? 'L' : 'M', at_x(c, s->x[i]) * 10,
		    at_y(c, s->y[i]));
	for (int i = to - 1; i >= from; i--)
		fprintf(out, "L%.1f %.1f", at_x(c, s->x[i]) * 10, at_y(c, s->base[i]));
	fputs("Z", out);
}

static void draw_area(FILE *out, const struct chart *c, const struct series *s)
{
	fputs("<path d='", out);
	for (int from = 0, to; from < s->n; from = to) {
		for (to = from + 1; to < s->n && !parted(c, s, to); to++)
			;
		draw_area_part(out, c, s, from, to);
	}
	fputs("'/>", out);
}

static void draw_markers(FILE *out, const struct chart *c, const struct series *s)
{
	for (int i = 0; i < s->n; i++) {
		double x = at_x(c, s->x[i]);
		if (isnan(s->y[i]))
			continue;
		if (s->low && s->high[i] > s->low[i])
			fprintf(out,
			    "<line class=spread x1='%.2f%%' x2='%.2f%%' y1='%.1f' y2='%.1f'/>", x,
			    x, at_y(c, s->low[i]), at_y(c, s->high[i]));
		fprintf(out, "<use href='#m%d' class=mark x='%.2f%%' y='%.1f'/>", s->style, x,
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

	fputs(" data-n='", out);
	markup_text(out, s->name);
	fputs("' data-x='", out);
	for (int i = 0; i < s->n; i++)
		fprintf(out, "%s%.0f", i ? " " : "", at_x(c, s->x[i]) * 10);
	fputs("' data-l='", out);
	for (int i = 0; i < s->n; i++) {
		fputs(i ? "|" : "", out);
		markup_text(out, c->print_x(text, s->x[i]));
	}
	fputs("' data-v='", out);
	for (int i = 0; i < s->n; i++) {
		fputs(i ? "|" : "", out);
		markup_text(out, c->print_y(text, series_value(s, i)));
	}
	fputs("'", out);
}

static void draw_series(FILE *out, const struct chart *c, const struct series *s)
{
	static const char *const kind[] = {"line", "line", "area", "guide"};

	fprintf(out, "<g class='%s %c%d'", kind[s->shape], s->shape == SERIES_AREA ? 'f' : 's',
	    s->style);
	if (s->shape != SERIES_GUIDE)
		draw_data(out, c, s);
	fprintf(out,
	    "><svg width='100%%' height=%d viewBox='0 0 1000 %d' preserveAspectRatio=none "
	    "overflow=visible>",
	    c->height_px, c->height_px);
	if (s->shape == SERIES_AREA)
		draw_area(out, c, s);
	else
		draw_path(out, c, s);
	fputs("</svg>", out);
	if (s->shape == SERIES_MARKED)
		draw_markers(out, c, s);
	fputs("</g>\n", out);
}

/* ---- pins ---- */

/* Distance in percent of the width below which pins share one flag. */
#define PIN_ROOM 3.2

/* Return the first pin after `i` that does not share its flag. */
static int pin_next(const struct chart *c, int i)
{
	double at = at_x(c, c->pin[i].at);

	while (++i < c->n_pins && at_x(c, c->pin[i].at) - at < PIN_ROOM)
		;
	return i;
}

/* Draw the text of a pin if it fits before the next flag on a wide page. */
static void draw_pin_text(FILE *out, const struct chart *c, int i, int next)
{
	double at = at_x(c, c->pin[i].at);
	double end = next < c->n_pins ? at_x(c, c->pin[next].at) : 100;

	if (next != i + 1 || end - at < 3 + 0.8 * (double)strlen(c->pin[i].text))
		return;
	fprintf(out, "<text class='tp wide' x='%.2f%%' y='-22' dx=12>", at);
	markup_text(out, c->pin[i].text);
	fputs("</text>", out);
}

/* Distance in percent below which only the first of several flags is shown on a narrow page. */
#define PIN_ROOM_NARROW 8

static void draw_pins(FILE *out, const struct chart *c)
{
	double last = -PIN_ROOM_NARROW;

	for (int i = 0, next; i < c->n_pins; i = next) {
		double at = at_x(c, c->pin[i].at);
		next = pin_next(c, i);
		for (int k = i; k < next; k++)
			fprintf(out, "<line class=pin x1='%.2f%%' x2='%.2f%%' y1='-20' y2=%d />",
			    at_x(c, c->pin[k].at), at_x(c, c->pin[k].at), c->height_px);
		if (c->pin[i].number == 0)
			/* only the line is drawn here; the first chart of the run has the flag */
			continue;
		bool narrow = at - last >= PIN_ROOM_NARROW;
		last = narrow ? at : last;
		fprintf(out, "<g class='flag%s'><use href='#flag' x='%.2f%%' y='-26'/>",
		    narrow ? "" : " wide", at);
		fprintf(out, "<text class=tf x='%.2f%%' y='-22'>%d</text>", at, c->pin[i].number);
		draw_pin_text(out, c, i, next);
		fputs("<title>", out);
		markup_text(out, c->pin[i].text);
		if (next > i + 1)
			fprintf(out, " and %d more", next - i - 1);
		fputs("</title></g>\n", out);
	}
}

/* ---- the whole ---- */

static void draw_plot(FILE *out, const struct chart *c, const char *id)
{
	fprintf(out,
	    "<div class=plot><svg class=chart width='100%%' height=%d role=img "
	    "aria-labelledby='%s-t %s-d'><title id='%s-t'>",
	    c->height_px, id, id, id);
	markup_text(out, c->title);
	fprintf(out, "</title><desc id='%s-d'>", id);
	markup_text(out, c->about);
	fputs("</desc>\n", out);
	draw_bands(out, c);
	draw_ticks_y(out, c);
	draw_ticks_x(out, c);
	for (int i = 0; i < c->n_series; i++)
		draw_series(out, c, &c->series[i]);
	draw_rules(out, c);
	draw_pins(out, c);
	fprintf(out, "<line class=axis x1=0 x2='100%%' y1=%d y2=%d /></svg></div>\n", c->height_px,
	    c->height_px);
}

void svg_chart(FILE *out, const struct chart *c, const char *id)
{
	bool flags = c->n_pins > 0 && c->pin[0].number > 0;

	fprintf(out, "<figure id='%s' class='fig%s%s'><figcaption><h3>", id, flags ? " flags" : "",
	    c->n_bands > 0 ? " bands" : "");
	markup_text(out, c->title);
	fputs("</h3><p>", out);
	markup_text(out, c->about);
	fputs("</p></figcaption>\n", out);
	svg_legend(out, c);
	fputs("<p class=yname>", out);
	markup_text(out, c->y_name);
	fputs("</p>", out);
	draw_plot(out, c, id);
	fputs("<p class=xname>", out);
	markup_text(out, c->x_name);
	fputs("</p>\n", out);
	svg_table(out, c);
	fputs("</figure>\n", out);
}
