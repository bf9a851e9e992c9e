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
	for (int i = 0; i < c->n_series; i++)
		chart_series_fini(&c->series[i]);
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
	s->x = values; /* all columns are in one block, which is freed through `x` */
	s->y = values + rows;
	s->base = shape == SERIES_AREA ? values + 2 * rows : NULL;
	s->low = spread ? values + 2 * rows : NULL;
	s->high = spread ? values + 3 * rows : NULL;
	return s;
}

void chart_series_fini(struct series *s)
{
	free(s->x);
	*s = (struct series){.n = 0};
}

void chart_rule(struct chart *c, bool vertical, double at, const char *text)
{
	if (c->n_rules == CHART_RULES_MAX)
		return;
	struct rule *rule = &c->rule[c->n_rules++];
	rule->vertical = vertical;
	rule->at = at;
	snprintf(rule->text, sizeof(rule->text), "%s", text);
}

void chart_band(struct chart *c, double from, double to, const char *text)
{
	if (c->n_bands == CHART_BANDS_MAX)
		return;
	struct band *band = &c->band[c->n_bands++];
	band->from = from;
	band->to = to;
	snprintf(band->text, sizeof(band->text), "%s", text);
}

void chart_pin(struct chart *c, double at, int number, const char *text)
{
	if (c->n_pins == CHART_PINS_MAX)
		return;
	struct pin *pin = &c->pin[c->n_pins++];
	pin->at = at;
	pin->number = number;
	snprintf(pin->text, sizeof(pin->text), "%s", text);
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

double chart_min_y(const struct chart *c)
{
	double min = INFINITY;

	for (int i = 0; i < c->n_series; i++) {
		const struct series *s = &c->series[i];
		for (int k = 0; k < s->n; k++) {
			double y = s->low ? fmin(s->y[k], s->low[k]) : s->y[k];
			if (y > 0)
				min = fmin(min, y);
		}
	}
	return isinf(min) ? 0 : min;
}

bool chart_has_values(const struct chart *c)
{
	for (int i = 0; i < c->n_series; i++)
		for (int k = 0; c->series[i].shape != SERIES_GUIDE && k < c->series[i].n; k++)
			if (!isnan(c->series[i].y[k]))
				return true;
	return false;
}
