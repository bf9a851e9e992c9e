/* SPDX-License-Identifier: MIT */
/* Charts as SVG: as many marks as values, hostile names as text, and a table with the same
 * values. */
#include "report/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

/* The drawn chart, allocated. */
static char *drawn(const struct chart *c)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	svg_chart(out, c, "f1");
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	return text;
}

static int count(const char *text, const char *word)
{
	int n = 0;

	for (const char *p = strstr(text, word); p; p = strstr(p + 1, word))
		n++;
	return n;
}

/* y = x for x = 0 .. n-1. */
static struct series *straight(struct chart *c, const char *name, enum series_shape shape, int n)
{
	struct series *s = chart_series(c, name, shape, c->n_series % CHART_STYLES, n, false);

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	for (int i = 0; i < n; i++)
		s->x[i] = s->y[i] = i;
	return s;
}

static struct chart *new_chart(void)
{
	struct chart *c = chart_new("A title", "load", "served");

	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	c->x = c->y = scale_exact(4);
	snprintf(c->about, sizeof(c->about), "What it is.");
	return c;
}

static void test_marks(void)
{
	struct chart *c = new_chart();

	straight(c, "a", SERIES_MARKED, 5);
	struct series *b = straight(c, "b", SERIES_MARKED, 4);
	b->y[1] = NAN;
	char *text = drawn(c);
	CU_ASSERT_EQUAL(count(text, "<use href='#m0' class=mark x='"), 5);
	CU_ASSERT_EQUAL(count(text, "<use href='#m1' class=mark x='"), 3);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(text, "d='M0.0 260.0L250.0 195.0L500.0 130.0L750.0 65.0L1000.0 0.0'"));
	/* A gap interrupts the line. */
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "d='M0.0 260.0M500.0 130.0L750.0 65.0'"));
	CU_ASSERT_EQUAL(count(text, "<li>"), 2);
	free(text);
	chart_free(c);
}

static void test_described(void)
{
	struct chart *c = new_chart();

	straight(c, "a", SERIES_LINE, 3);
	char *text = drawn(c);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "role=img aria-labelledby='f1-t f1-d'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "<title id='f1-t'>A title</title>"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "<desc id='f1-d'>What it is.</desc>"));
	CU_ASSERT_EQUAL(count(text, "<ul class=legend>"), 0); /* a single series needs none */
	free(text);
	chart_free(c);
}

static void test_table(void)
{
	struct chart *c = new_chart();

	straight(c, "a", SERIES_LINE, 3);
	straight(c, "b", SERIES_LINE, 3);
	straight(c, "guide", SERIES_GUIDE, 50);
	char *text = drawn(c);
	CU_ASSERT_EQUAL(count(text, "<th scope=row>"), 3); /* one column for each */
	CU_ASSERT_EQUAL(count(text, "<td>2"), 2);
	CU_ASSERT_PTR_NULL(strstr(text, "<th scope=col>guide"));
	free(text);
	straight(c, "c", SERIES_LINE, 4);
	text = drawn(c);
	CU_ASSERT_EQUAL(count(text, "<th scope=row>"), 10); /* one row for each value */
	free(text);
	chart_free(c);
}

static void test_area(void)
{
	struct chart *c = new_chart();
	struct series *s = straight(c, "shed", SERIES_AREA, 2);

	s->style = FILL_SHED;
	s->base[1] = 1;
	s->y[1] = 3;
	char *text = drawn(c);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "d='M0.0 260.0L250.0 65.0L250.0 195.0L0.0 260.0Z'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "data-v='0|2'")); /* the difference, not the top */
	free(text);
	chart_free(c);
}

/* Distant points are not joined: another server was measured in between. */
static void test_gap(void)
{
	struct chart *c = new_chart();

	c->gap = 1.5;
	straight(c, "line", SERIES_LINE, 3)->x[2] = 4;
	struct series *area = straight(c, "area", SERIES_AREA, 3);
	area->style = FILL_OK;
	area->x[2] = 4;
	char *text = drawn(c);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "d='M0.0 260.0L250.0 195.0M1000.0 130.0'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "L0.0 260.0ZM1000.0 130.0L1000.0 260.0Z'"));
	free(text);
	chart_free(c);
}

static void test_hostile(void)
{
	static const char bad[] = "'\"><script>alert(1)</script>";
	struct chart *c = new_chart();

	straight(c, bad, SERIES_MARKED, 2);
	straight(c, bad, SERIES_AREA, 2);
	chart_rule(c, true, 1, bad);
	chart_rule(c, false, 1, bad);
	chart_band(c, 0, 4, bad);
	chart_pin(c, 2, 1, bad);
	snprintf(c->about, sizeof(c->about), "%s", bad);
	char *text = drawn(c);
	CU_ASSERT_PTR_NULL(strstr(text, "<script"));
	CU_ASSERT_TRUE(count(text, "&lt;script&gt;") >= 8);
	free(text);
	chart_free(c);
}

static void test_pins(void)
{
	struct chart *c = new_chart();

	chart_pin(c, 1, 1, "first");
	chart_pin(c, 1.01, 2, "second"); /* hidden under the flag of the first */
	chart_pin(c, 3, 3, "third");
	char *text = drawn(c);
	CU_ASSERT_EQUAL(count(text, "<line class=pin"), 3);
	CU_ASSERT_EQUAL(count(text, "href='#flag'"), 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "<title>first and 1 more</title>"));
	free(text);
	chart_free(c);
}

/* Additions beyond the limits are dropped. For a series NULL is returned. */
static void test_full(void)
{
	struct chart *c = new_chart();

	for (int i = 0; i < CHART_SERIES_MAX; i++)
		straight(c, "x", SERIES_LINE, 1);
	CU_ASSERT_PTR_NULL(chart_series(c, "x", SERIES_LINE, 0, 1, false));
	CU_ASSERT_FALSE(c->failed);
	for (int i = 0; i < 1000; i++) {
		chart_rule(c, true, i, "r");
		chart_band(c, i, i + 1, "b");
		chart_pin(c, i, i, "p");
	}
	CU_ASSERT_EQUAL(c->n_pins, CHART_PINS_MAX);
	CU_ASSERT_EQUAL(c->n_bands, CHART_BANDS_MAX);
	CU_ASSERT_EQUAL(c->n_rules, CHART_RULES_MAX);
	free(drawn(c));
	chart_free(c);
}

CUNIT_MAIN("svg", {"marks", test_marks}, {"described", test_described}, {"table", test_table},
    {"areas", test_area}, {"gaps", test_gap}, {"hostile texts", test_hostile}, {"pins", test_pins},
    {"full", test_full})
