/* SPDX-License-Identifier: MIT */
/* Builds charts as plain data; see chart.h. */
#include "report/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct chart *chart_new(const char *title, const char *x_name, const char *y_name)
{
	struct chart *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->title = title;
	c->x_name = x_name;
	c->y_name = y_name;
	c->print_x = c->print_y = format_count;
	c->x = c->y = scale_exact(1);
	c->height_px = 260;
	return c;
}

void chart_free(struct chart *c)
{
	if (!c)
		return;
	while (c->n_series > 0)
		chart_drop(c);
	free(c);
}

struct series *chart_series(
    struct chart *c, const char *name, enum series_shape shape, int style, int n, bool spread)
{
	size_t columns = spread ? 4 : 3, rows = n > 0 ? (size_t)n : 1;

	if (c->n_series == CHART_SERIES_MAX)
		return NULL;
	double *values = calloc(columns * rows, sizeof(double));
	if (!values) {
		c->failed = true;
		return NULL;
	}
	struct series *s = &c->series[c->n_series++];
	*s = (struct series){.shape = shape, .style = style, .n = n};
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->x = values; /* all arrays are parts of one block, which is freed through `x` */
	s->y = values + rows;
	s->base = shape == SERIES_AREA ? values + 2 * rows : NULL;
	s->low = spread ? values + 2 * rows : NULL;
	s->high = spread ? values + 3 * rows : NULL;
	return s;
}

void chart_drop(struct chart *c)
{
	free(c->series[--c->n_series].x);
}

void chart_rule(struct chart *c, bool vertical, double at, const char *text)
{
	struct rule *rule = &c->rule[c->n_rules];

	if (c->n_rules == CHART_RULES_MAX)
		return;
	*rule = (struct rule){.vertical = vertical, .at = at};
	snprintf(rule->text, sizeof(rule->text), "%s", text);
	c->n_rules++;
}

void chart_band(struct chart *c, double from, double to, const char *text)
{
	struct band *band = &c->band[c->n_bands];

	if (c->n_bands == CHART_BANDS_MAX)
		return;
	*band = (struct band){.from = from, .to = to};
	snprintf(band->text, sizeof(band->text), "%s", text);
	c->n_bands++;
}

void chart_pin(struct chart *c, double at, int number, const char *text)
{
	struct pin *pin = &c->pin[c->n_pins];

	if (c->n_pins == CHART_PINS_MAX)
		return;
	*pin = (struct pin){.at = at, .number = number};
	snprintf(pin->text, sizeof(pin->text), "%s", text);
	c->n_pins++;
}

double chart_max_y(const struct chart *c)
{
	double max = 0;

	for (int i = 0; i < c->n_series; i++) {
		const struct series *s = &c->series[i];
		for (int k = 0; k < s->n; k++)
			max = fmax(max, s->high ? fmax(s->y[k], s->high[k]) : s->y[k]);
	}
	return max;
}

struct scale chart_log_y(const struct chart *c, double room)
{
	double min = INFINITY;

	for (int i = 0; i < c->n_series; i++) {
		const struct series *s = &c->series[i];
		for (int k = 0; k < s->n; k++) {
			double y = s->low ? fmin(s->y[k], s->low[k]) : s->y[k];
			min = y > 0 ? fmin(min, y) : min;
		}
	}
	return scale_log(isinf(min) ? 0 : min, chart_max_y(c) * room);
}

void chart_span_x(const struct chart *c, double *low, double *high)
{
	*low = INFINITY;
	*high = 0;
	for (int i = 0; i < c->n_series; i++) {
		for (int k = 0; k < c->series[i].n; k++) {
			*low = fmin(*low, c->series[i].x[k]);
			*high = fmax(*high, c->series[i].x[k]);
		}
	}
}

bool chart_has_values(const struct chart *c)
{
	for (int i = 0; i < c->n_series; i++)
		for (int k = 0; c->series[i].shape != SERIES_GUIDE && k < c->series[i].n; k++)
			if (!isnan(c->series[i].y[k]))
				return true;
	return false;
}
