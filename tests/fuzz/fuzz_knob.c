/* SPDX-License-Identifier: MIT */
/*
 * Any text as a value of every type of knob: either refused with a message and the member
 * unchanged, or accepted; then it is within the bounds, and the same after printing and parsing
 * again.
 *
 * Input: one byte for the row; the rest is the text (up to its first NUL).
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/knob.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct all {
	bool flag;
	int choice;
	int64_t whole, size_bytes, wait_ns;
	double rate, share;
	char *text;
};

#define AT(member)    .offset = offsetof(struct all, member)
#define INT_MAX_VALUE 1e6

static const struct weir_knob rows[] = {{.name = "flag", .type = WEIR_KNOB_BOOL, AT(flag)},
    {.name = "whole", .type = WEIR_KNOB_INT, AT(whole)},
    {.name = "bounded", .type = WEIR_KNOB_INT, AT(whole), .min = -5, .max = INT_MAX_VALUE},
    {.name = "auto", .type = WEIR_KNOB_INT, AT(whole), .flags = WEIR_KNOB_AUTO},
    {.name = "size", .type = WEIR_KNOB_BYTES, AT(size_bytes)},
    {.name = "size_auto", .type = WEIR_KNOB_BYTES, AT(size_bytes), .flags = WEIR_KNOB_AUTO},
    {.name = "wait", .type = WEIR_KNOB_DURATION, AT(wait_ns)},
    {.name = "wait_bounded", .type = WEIR_KNOB_DURATION, AT(wait_ns), .min = 1e3, .max = 3600e9},
    {.name = "wait_auto", .type = WEIR_KNOB_DURATION, AT(wait_ns), .flags = WEIR_KNOB_AUTO},
    {.name = "rate", .type = WEIR_KNOB_RATE, AT(rate)},
    {.name = "share", .type = WEIR_KNOB_RATIO, AT(share)},
    {.name = "text", .type = WEIR_KNOB_STRING, AT(text)},
    {.name = "choice", .type = WEIR_KNOB_ENUM, AT(choice), .choices = "const|exp|bimodal"}};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static void expect(int cond, const char *row, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_knob: %s: %s\n", row, what);
	abort();
}

/* How far a real may be off after printing: the last of nine decimals (of a share in percent), and
 * the precision of a double. */
#define REAL_SLACK 1e-9

static int close_to(double a, double b)
{
	return fabs(a - b) <= REAL_SLACK + fabs(a) * DBL_EPSILON;
}

static int same(const struct all *a, const struct all *b)
{
	const char *at = a->text ? a->text : "", *bt = b->text ? b->text : "";

	return a->flag == b->flag && a->choice == b->choice && a->whole == b->whole &&
	       a->size_bytes == b->size_bytes && a->wait_ns == b->wait_ns &&
	       close_to(a->rate, b->rate) && close_to(a->share, b->share) && strcmp(at, bt) == 0;
}

static void check_bounds(const struct weir_knob *row, const struct all *a)
{
	double value = row->type == WEIR_KNOB_INT ? (double)a->whole : (double)a->wait_ns;

	expect(
	    row->max == 0 || (value >= row->min && value <= row->max), row->name, "out of bounds");
	expect(a->size_bytes >= -1 && a->wait_ns >= -1, row->name, "negative");
	expect(a->rate >= 0 && isfinite(a->rate), row->name, "no rate");
	expect(a->share >= 0 && a->share <= 1, row->name, "no share");
}

static void print_again(const struct weir_knob *row, const struct all *a)
{
	struct all again = {0};
	char why[256];
	int n = weir_knob_print(row, a, NULL, 0);

	expect(n >= 0, row->name, "can not be printed");
	char *text = malloc((size_t)n + 1);
	if (!text)
		return;
	expect(weir_knob_print(row, a, text, (size_t)n + 1) == n, row->name, "two lengths");
	expect(weir_knob_parse(row, text, &again, why, sizeof(why)) == 0, row->name,
	    "what is printed is refused");
	expect(same(a, &again), row->name, "another value after printing");
	weir_knobs_fini((const struct weir_knob[]){*row, {.name = NULL}}, &again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	const struct weir_knob *row = &rows[data[0] % N_ROWS];
	struct all a = {0}, zero = {0};
	char why[256] = "";
	char *text = strndup((const char *)data + 1, size - 1);

	if (!text)
		return 0;
	int rc = weir_knob_parse(row, text, &a, why, sizeof(why));
	if (rc == 0) {
		check_bounds(row, &a);
		print_again(row, &a);
	} else {
		expect(why[0] != '\0', row->name, "refused without a word");
		expect(same(&a, &zero), row->name, "refused, and changed all the same");
	}
	weir_knobs_fini((const struct weir_knob[]){*row, {.name = NULL}}, &a);
	free(text);
	return 0;
}
