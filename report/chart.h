/* SPDX-License-Identifier: MIT */
/*
 * A chart as plain data: axes, series and marks. Builders (chart_load.c, chart_time.c ...) fill it
 * in, and svg.c draws it with a legend and a table. Charts do not depend on run files.
 *
 * All arrays belong to the chart. If memory runs out, `failed` is set and additions are dropped.
 * The caller checks `failed` once, at the end.
 */
#ifndef WEIR_REPORT_CHART_H
#define WEIR_REPORT_CHART_H

#include <stdbool.h>
#include <stdio.h>

#include "report/format.h"
#include "report/scale.h"

/** Number of line styles. Each style has its own colour, dash pattern and marker. */
#define CHART_STYLES 8

#define CHART_SERIES_MAX 32
#define CHART_RULES_MAX  4
#define CHART_BANDS_MAX  256
#define CHART_PINS_MAX   256

enum series_shape {
	SERIES_LINE,   /* a line with hover values */
	SERIES_MARKED, /* a line with hover values and a marker at each value */
	SERIES_AREA,   /* filled between `base` and `y` */
	SERIES_GUIDE,  /* a thin reference line, not in the table */
	SERIES_POINTS, /* a marker and hover values at each value, without a line */
};

/* Fills of areas. Each outcome has its own. */
enum series_fill { FILL_OK, FILL_DEGRADED, FILL_SHED, FILL_ERROR, FILL_TIMEOUT };

struct series {
	char name[112];
	enum series_shape shape;
	int style; /* 0..CHART_STYLES-1; for an area, enum series_fill */
	int n;
	double *x, *y;      /* a y of NAN is a gap */
	double *base;       /* lower edge of an area, whose values are y - base; NULL for lines */
	double *low, *high; /* spread around y; NULL if there is none */
};

/** A straight line across the whole plot. */
struct rule {
	bool vertical;
	double at;
	char text[64];
};

/** A named interval of x, such as a phase. */
struct band {
	double from, to;
	char text[32];
};

/** A point in time with a label. */
struct pin {
	double at;
	int number; /* number in the list below the chart, from 1; 0 draws a line without a flag */
	char text[96];
};

struct chart {
	const char *title;
	char about[200]; /* what the chart shows and how to read it; its caption */
	const char *x_name, *y_name;
	format_fn *print_x, *print_y;
	struct scale x, y;
	double gap; /* a greater distance between x values interrupts the line; 0: never */
	int height_px;
	bool failed;
	int n_series, n_rules, n_bands, n_pins;
	struct series series[CHART_SERIES_MAX];
	struct rule rule[CHART_RULES_MAX];
	struct band band[CHART_BANDS_MAX];
	struct pin pin[CHART_PINS_MAX];
};

/** Create an empty chart, to be freed with chart_free. Returns NULL if out of memory. */
struct chart *chart_new(const char *title, const char *x_name, const char *y_name);
void chart_free(struct chart *c);

/** Add a series of `n` values. Allocates x and y, also low and high if `spread` is set, and base
 * for an area. Returns NULL if there are too many series or memory runs out. */
struct series *chart_series(
    struct chart *c, const char *name, enum series_shape shape, int style, int n, bool spread);

/** Remove the last series. */
void chart_drop(struct chart *c);

/** Add a rule, a band or a pin. It is dropped if the chart has the maximum number of them. */
void chart_rule(struct chart *c, bool vertical, double at, const char *text);
void chart_band(struct chart *c, double from, double to, const char *text);
void chart_pin(struct chart *c, double at, int number, const char *text);

/** Return the greatest y of all series, including the spread; 0 if there are no values. */
double chart_max_y(const struct chart *c);

/** Return a logarithmic scale that contains all y above 0, including the spread. Its upper end is
 * at least `room` times the greatest y. */
struct scale chart_log_y(const struct chart *c, double room);

/** Store the smallest and the greatest x of all series; INFINITY and 0 if there are none. */
void chart_span_x(const struct chart *c, double *low, double *high);

/** Return whether any series has a value. Guides do not count. */
bool chart_has_values(const struct chart *c);

/* ---- drawing ---- */

/** Write the markers and patterns that all charts of a page share. Call this once per page. */
void svg_definitions(FILE *out);

/** Write the chart as an HTML figure with caption, legend, SVG and table. `id` must be unique on
 * the page and valid in an attribute. */
void svg_chart(FILE *out, const struct chart *c, const char *id);

/** Write a short line in the style of a series, for legends and tables. */
void svg_swatch(FILE *out, enum series_shape shape, int style);

#endif
