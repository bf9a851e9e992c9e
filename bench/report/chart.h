/* SPDX-License-Identifier: MIT */
/*
 * A chart as plain data: axes, series, marks. Builders (chart_load.c, chart_time.c ...) fill one, svg.c
 * draws it with its legend and its table. Nothing in here knows of runs.
 *
 * All arrays belong to the chart. When memory runs out `failed` is set, what would have been added
 * is left out, and the caller finds out once at the end.
 */
#ifndef WEIR_REPORT_CHART_H
#define WEIR_REPORT_CHART_H

#include <stdbool.h>
#include <stdio.h>

#include "report/format.h"
#include "report/scale.h"

/** Styles of lines: each a colour, a dash pattern and a marker of its own. */
#define CHART_STYLES 8

#define CHART_SERIES_MAX 32
#define CHART_RULES_MAX  4
#define CHART_BANDS_MAX  256
#define CHART_PINS_MAX   256

enum series_shape {
	SERIES_LINE,   /* a line with hover values */
	SERIES_MARKED, /* the same with a marker at each value */
	SERIES_AREA,   /* filled between `base` and `y` */
	SERIES_GUIDE,  /* a thin line for orientation, in no table */
};

/* Fills of areas: of an outcome each. */
enum series_fill { FILL_OK, FILL_DEGRADED, FILL_SHED, FILL_ERROR, FILL_TIMEOUT };

struct series {
	char name[112];
	enum series_shape shape;
	int style; /* 0..CHART_STYLES-1; of an area enum series_fill */
	int n;
	double *x, *y;      /* y NAN: a gap */
	double *base;       /* areas: lower edge, and y - base is the value; NULL for lines */
	double *low, *high; /* NULL, or the spread around y */
};

/** A straight line across the whole plot. */
struct rule {
	bool vertical;
	double at;
	char text[64];
};

/** A stretch of x with a name: phases. */
struct band {
	double from, to;
	char text[32];
};

/** A moment with a text. */
struct pin {
	double at;
	int number; /* 1 ..: shown, refers to the list below */
	char text[96];
};

struct chart {
	const char *title;
	char about[200]; /* what it shows and how to read it: caption and description */
	const char *x_name, *y_name;
	format_fn *print_x, *print_y;
	struct scale x, y;
	double gap; /* values of a series farther apart in x are not joined; 0: all are */
	int height_px;
	bool failed;
	int n_series, n_rules, n_bands, n_pins;
	struct series series[CHART_SERIES_MAX];
	struct rule rule[CHART_RULES_MAX];
	struct band band[CHART_BANDS_MAX];
	struct pin pin[CHART_PINS_MAX];
};

/** An empty chart on the heap, NULL when memory ran out. Free it with chart_free. */
struct chart *chart_new(const char *title, const char *x_name, const char *y_name);
void chart_free(struct chart *c);

/** A series of `n` values (x, y allocated, with `spread` low and high, of an area base), NULL when
 *  there are too many series or memory ran out. */
struct series *chart_series(
    struct chart *c, const char *name, enum series_shape shape, int style, int n, bool spread);

/** Free a series that was taken out of its chart. */
void chart_series_fini(struct series *s);

/** Add a rule, a band or a pin; more than there is space for are left out. */
void chart_rule(struct chart *c, bool vertical, double at, const char *text);
void chart_band(struct chart *c, double from, double to, const char *text);
void chart_pin(struct chart *c, double at, int number, const char *text);

/** Greatest y (and spread) of all series; 0 when there is none. */
double chart_max_y(const struct chart *c);

/** Smallest y above 0 of all series; 0 when there is none. */
double chart_min_y(const struct chart *c);

/** Does any series have a value? */
bool chart_has_values(const struct chart *c);

/* ---- drawing ---- */

/** What all charts of a page share: markers and patterns. Once per page. */
void svg_definitions(FILE *out);

/** The chart as a figure: caption, legend, SVG, table. `id` is unique on the page and fit for an attribute. */
void svg_chart(FILE *out, const struct chart *c, const char *id);

/** A short piece of line in the style of a series, for legends and tables. */
void svg_swatch(FILE *out, enum series_shape shape, int style);

#endif
