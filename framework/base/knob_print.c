/* SPDX-License-Identifier: MIT */
/*
 * Prints values as a user would write them, so that parsing the text gives the same value. A string
 * is printed without quotes if it is the whole value, and quoted if necessary inside a list or a
 * map.
 */
#include "base/knob_in.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* Maximum number of decimals printed for a real number, more than a rate or a share needs. */
#define DECIMALS 9

/* Print `value` / 10^decimals without trailing zeros, then `suffix`. `decimals` is at most
 * DECIMALS. */
static void put_fixed(struct text_out *out, uint64_t value, int decimals, const char *suffix)
{
	char whole[24], fraction[DECIMALS + 2];

	while (decimals > 0 && value % 10 == 0) {
		value /= 10;
		decimals--;
	}
	fraction[decimals + (decimals > 0)] = '\0';
	for (int i = decimals; i > 0; i--, value /= 10)
		fraction[i] = (char)('0' + value % 10);
	if (decimals > 0)
		fraction[0] = '.';
	snprintf(whole, sizeof(whole), "%" PRIu64, value);
	text_put(out, whole);
	text_put(out, fraction);
	text_put(out, suffix);
}

/* Print a duration: in hours or minutes only if that gives a whole number, else in smaller units
 * with up to three decimals, as in 1.5s and 200us. */
static void put_duration(struct text_out *out, uint64_t ns)
{
	static const struct {
		uint64_t ns, fine;
		const char *suffix;
		int decimals;
	} unit[] = {{3600 * NS_PER_S, 3600 * NS_PER_S, "h", 0},
	    {60 * NS_PER_S, 60 * NS_PER_S, "m", 0}, {NS_PER_S, NS_PER_MS, "s", 3},
	    {NS_PER_MS, NS_PER_US, "ms", 3}, {NS_PER_US, 1, "us", 3}};

	for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]); i++)
		if (ns >= unit[i].ns && ns % unit[i].fine == 0) {
			put_fixed(out, ns / unit[i].fine, unit[i].decimals, unit[i].suffix);
			return;
		}
	put_fixed(out, ns, 0, ns == 0 ? "" : "ns");
}

/* Print `bytes` in the largest unit that divides it, preferring powers of two. */
static void put_bytes(struct text_out *out, uint64_t bytes)
{
	static const struct knob_unit unit[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20},
	    {"KiB", 1 << 10}, {"GB", 1000000000}, {"MB", 1000000}, {"kB", 1000}, {"", 1}};
	size_t i = 0;

	while (unit[i].factor > 1 && (bytes == 0 || bytes % (uint64_t)unit[i].factor != 0))
		i++;
	put_fixed(out, bytes / (uint64_t)unit[i].factor, 0, unit[i].suffix);
}

void knob_put_whole(struct text_out *out, enum weir_knob_type type, int64_t value)
{
	uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;

	if (value < 0)
		text_put(out, "-");
	if (type == WEIR_KNOB_DURATION)
		put_duration(out, size);
	else if (type == WEIR_KNOB_BYTES)
		put_bytes(out, size);
	else
		put_fixed(out, size, 0, "");
}

void knob_put_real(struct text_out *out, enum weir_knob_type type, double value)
{
	bool ratio = type == WEIR_KNOB_RATIO;
	double scaled = (ratio ? value * 100 : value) * pow(10, DECIMALS);

	/* Parsing limits rates to 1e9, but a spec built by a program may hold anything. */
	scaled = scaled > 0 ? scaled : 0;
	put_fixed(out, scaled < 1e19 ? (uint64_t)(scaled + 0.5) : (uint64_t)1e19, DECIMALS,
	    ratio ? "%" : "");
}

static void put_enum(struct text_out *out, const struct weir_knob *row, int value)
{
	const char *c = row->choices;

	for (int i = 0; c; i++) {
		const char *name = c;
		size_t n = knob_choice(&c);
		if (i == value)
			text_put_bytes(out, name, n);
	}
}

/* Whether `s` needs no quotes in a flow list or map. True for most names, numbers and paths. */
static bool is_plain(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-");

	return n > 0 && s[n] == '\0' && s[0] != '-' && s[0] != '.';
}

static void put_text(struct text_out *out, const char *s)
{
	char piece[8];

	if (is_plain(s)) {
		text_put(out, s);
		return;
	}
	text_put(out, "\"");
	for (const char *p = s; *p; p++) {
		snprintf(piece, sizeof(piece), "%c", *p);
		if (*p == '"' || *p == '\\')
			snprintf(piece, sizeof(piece), "\\%c", *p);
		else if (*p == '\n')
			snprintf(piece, sizeof(piece), "\\n");
		else if ((unsigned char)*p < 0x20 || *p == 0x7f)
			snprintf(piece, sizeof(piece), "\\x%02x", (unsigned char)*p);
		text_put(out, piece);
	}
	text_put(out, "\"");
}

static void put_member(
    struct text_out *out, const struct weir_knob *row, const void *base, bool nested);

static void put_map(struct text_out *out, const struct weir_knob *table, const void *base)
{
	text_put(out, "{");
	for (const struct weir_knob *row = table; row && row->name; row++) {
		text_put(out, row == table ? " " : ", ");
		text_put(out, row->name);
		text_put(out, ": ");
		put_member(out, row, base, true);
	}
	text_put(out, table && table->name ? " }" : "}");
}

static void put_strings(struct text_out *out, const struct weir_strings *list)
{
	text_put(out, "[");
	for (int i = 0; i < list->n; i++) {
		text_put(out, i > 0 ? ", " : "");
		put_text(out, list->items[i]);
	}
	text_put(out, "]");
}

static void put_records(
    struct text_out *out, const struct weir_knob *row, const struct weir_records *list)
{
	text_put(out, "[");
	for (int i = 0; i < list->n; i++) {
		text_put(out, i > 0 ? ", " : "");
		put_map(out, row->fields, list->items + (size_t)i * row->record_size);
	}
	text_put(out, "]");
}

static void put_whole(struct text_out *out, const struct weir_knob *row, int64_t value)
{
	if (value == KNOB_AUTO && (row->flags & WEIR_KNOB_AUTO))
		text_put(out, "auto");
	else
		knob_put_whole(out, row->type, value);
}

static void put_real(struct text_out *out, const struct weir_knob *row, double value)
{
	if (value < 0 && (row->flags & WEIR_KNOB_AUTO))
		text_put(out, "auto");
	else
		knob_put_real(out, row->type, value);
}

static void put_member(
    struct text_out *out, const struct weir_knob *row, const void *base, bool nested)
{
	const void *member = knob_member_const(row, base);
	const char *text;

	switch (row->type) {
	case WEIR_KNOB_BOOL:
		text_put(out, *(const bool *)member ? "true" : "false");
		break;
	case WEIR_KNOB_INT:
	case WEIR_KNOB_BYTES:
	case WEIR_KNOB_DURATION:
		put_whole(out, row, *(const int64_t *)member);
		break;
	case WEIR_KNOB_RATE:
	case WEIR_KNOB_RATIO:
		put_real(out, row, *(const double *)member);
		break;
	case WEIR_KNOB_STRING:
		text = *(char *const *)member ? *(char *const *)member : "";
		nested ? put_text(out, text) : text_put(out, text);
		break;
	case WEIR_KNOB_ENUM:
		put_enum(out, row, *(const int *)member);
		break;
	case WEIR_KNOB_STRINGS:
		put_strings(out, member);
		break;
	case WEIR_KNOB_RECORDS:
		put_records(out, row, member);
		break;
	case WEIR_KNOB_MAP:
		put_map(out, row->fields, member);
		break;
	}
}

int weir_knob_print(const struct weir_knob *row, const void *base, char *buf, size_t size)
{
	struct text_out out = {buf, size, 0};

	put_member(&out, row, base, false);
	return (int)text_end(&out);
}
