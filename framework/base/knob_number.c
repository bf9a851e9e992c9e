/* SPDX-License-Identifier: MIT */
/*
 * Parses numbers with units, as users write them: 20k, 64KiB, 1.5s, 5%.
 *
 * strtod is not used, since it accepts too much (nan, inf, hexadecimal, a locale's decimal comma)
 * and does not tell what is wrong. A number consists of digits, optionally a point and more digits,
 * and a unit. A value that is not whole in base units is refused. So is a leading 0, since YAML 1.1
 * reads 010 as eight.
 */
#include "base/knob_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Maximum number of digits. INT64_MAX, the largest value, has 19, and every number of 19 digits
 * fits into a uint64_t. */
#define DIGITS_MAX 19

/* The highest rate: one per nanosecond, the resolution of the clock. */
#define RATE_MAX 1e9

struct decimal {
	bool negative;
	uint64_t digits; /* all digits as one integer */
	int scale;       /* number of digits after the point */
	const char *unit;
};

static const struct knob_unit plain_units[] = {{"", 1}, {"k", 1000}, {"M", 1000000}, {NULL, 0}};

static const struct knob_unit bytes_units[] = {{"", 1}, {"B", 1}, {"kB", 1000}, {"KiB", 1 << 10},
    {"MB", 1000000}, {"MiB", 1 << 20}, {"GB", 1000000000}, {"GiB", 1 << 30}, {NULL, 0}};

static const struct knob_unit duration_units[] = {{"ns", 1}, {"us", NS_PER_US}, {"ms", NS_PER_MS},
    {"s", NS_PER_S}, {"m", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S}, {NULL, 0}};

/* The base unit is one percent, so that both factors are integers. */
static const struct knob_unit ratio_units[] = {{"%", 1}, {"", 100}, {NULL, 0}};

const struct knob_unit *knob_units(enum weir_knob_type type)
{
	switch (type) {
	case WEIR_KNOB_INT:
	case WEIR_KNOB_RATE:
		return plain_units;
	case WEIR_KNOB_BYTES:
		return bytes_units;
	case WEIR_KNOB_DURATION:
		return duration_units;
	case WEIR_KNOB_RATIO:
		return ratio_units;
	default:
		return NULL;
	}
}

/* Return the rest of the message "'x' is not ...". */
static const char *what_it_is(enum weir_knob_type type)
{
	switch (type) {
	case WEIR_KNOB_BYTES:
		return "a size: write it like 64KiB or 1MB";
	case WEIR_KNOB_DURATION:
		return "a duration: write it like 10ms or 1.5s";
	case WEIR_KNOB_RATE:
		return "a rate per second: write it like 500 or 20k";
	case WEIR_KNOB_RATIO:
		return "a share: write it like 5% or 0.05";
	default:
		return "a whole number";
	}
}

static const char *known_units(enum weir_knob_type type)
{
	switch (type) {
	case WEIR_KNOB_BYTES:
		return "B, kB, MB, GB, KiB, MiB or GiB";
	case WEIR_KNOB_DURATION:
		return "ns, us, ms, s, m or h";
	case WEIR_KNOB_RATIO:
		return "%";
	default:
		return "k or M";
	}
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Parse the number at the start of `text` into `d`, and store the count of its digits in *n.
 * Returns false if `text` does not begin with a number. */
static bool read_digits(struct decimal *d, const char *text, int *n)
{
	const char *p = text;
	bool point = false;

	d->negative = *p == '-';
	p += d->negative;
	if (!is_digit(*p))
		return false;
	for (; is_digit(*p) || (*p == '.' && !point && is_digit(p[1])); p++) {
		if (*p == '.') {
			point = true;
			continue;
		}
		if (++*n <= DIGITS_MAX)
			d->digits = d->digits * 10 + (uint64_t)(*p - '0');
		d->scale += point;
	}
	d->unit = p;
	return true;
}

static int complain(char *why, size_t size, const char *text, const char *what)
{
	snprintf(why, size, "'%.60s' %s", text, what);
	return WEIR_EINVAL;
}

static int read_decimal(
    enum weir_knob_type type, const char *text, struct decimal *d, char *why, size_t size)
{
	char what[80];
	int n = 0;

	*d = (struct decimal){0};
	if (!read_digits(d, text, &n)) {
		snprintf(what, sizeof(what), "is not %s", what_it_is(type));
		return complain(why, size, text, what);
	}
	const char *first = text + d->negative;
	if (first[0] == '0' && is_digit(first[1]))
		return complain(why, size, text, "must not begin with 0");
	if (n > DIGITS_MAX)
		return complain(why, size, text, "has too many digits");
	return 0;
}

static int no_unit(
    enum weir_knob_type type, const char *text, const struct decimal *d, char *why, size_t size)
{
	char what[120];

	if (d->unit[0] == '\0')
		snprintf(what, sizeof(what), "needs a unit: write %.40sms or %.40ss", text, text);
	else
		snprintf(what, sizeof(what), "has the unknown unit '%.20s': write %s", d->unit,
		    known_units(type));
	return complain(why, size, text, what);
}

/* Return the factor of the unit of `d`, or 0 if the unit is unknown. The number 0 needs no unit. */
static int64_t find_factor(enum weir_knob_type type, const struct decimal *d)
{
	for (const struct knob_unit *u = knob_units(type); u->suffix; u++)
		if (strcmp(u->suffix, d->unit) == 0)
			return u->factor;
	return d->unit[0] == '\0' && d->digits == 0 ? 1 : 0;
}

bool knob_bounds(const struct weir_knob *row, double *min, double *max)
{
	bool given = row->min != 0 || row->max != 0;

	*min = row->min;
	*max = row->max;
	if (row->type == WEIR_KNOB_RATIO && !given)
		*max = 1;
	if (row->type == WEIR_KNOB_RATE && (!given || row->max > RATE_MAX))
		*max = RATE_MAX;
	return given || row->type == WEIR_KNOB_RATIO || row->type == WEIR_KNOB_RATE;
}

static bool is_real(enum weir_knob_type type)
{
	return type == WEIR_KNOB_RATE || type == WEIR_KNOB_RATIO;
}

static int check_bounds(
    const struct weir_knob *row, const char *text, double value, char *why, size_t size)
{
	char what[80];
	double min, max;

	if (!knob_bounds(row, &min, &max) || (value >= min && value <= max))
		return 0;
	struct text_out out = {what, sizeof(what), 0};
	text_put(&out, value < min ? "is too small: at least " : "is too large: at most ");
	double bound = value < min ? min : max;
	if (is_real(row->type))
		knob_put_real(&out, row->type, bound);
	else
		knob_put_whole(&out, row->type, (int64_t)bound);
	text_end(&out);
	return complain(why, size, text, what);
}

static __int128 power_of_ten(int n)
{
	__int128 p = 1;

	while (n-- > 0)
		p *= 10;
	return p;
}

static int whole_value(const struct weir_knob *row, const char *text, const struct decimal *d,
    int64_t factor, int64_t *value, char *why, size_t size)
{
	__int128 exact = (__int128)d->digits * factor, ten = power_of_ten(d->scale);

	if (exact % ten != 0)
		return complain(why, size, text,
		    row->type == WEIR_KNOB_DURATION ? "is finer than 1ns"
		    : row->type == WEIR_KNOB_BYTES  ? "is not a whole number of bytes"
						    : "is not a whole number");
	exact /= ten;
	if (exact > INT64_MAX)
		return complain(why, size, text, "is too large");
	*value = d->negative ? -(int64_t)exact : (int64_t)exact;
	return 0;
}

/* Whether the value may be negative. Only an INT may be negative, and only if `auto`, which is
 * stored as -1, is not allowed. */
static bool may_be_negative(const struct weir_knob *row)
{
	return row->type == WEIR_KNOB_INT && !(row->flags & WEIR_KNOB_AUTO);
}

int knob_parse_number(const struct weir_knob *row, const char *text, int64_t *whole, double *real,
    char *why, size_t size)
{
	struct decimal d;

	int rc = read_decimal(row->type, text, &d, why, size);
	if (rc != 0)
		return rc;
	int64_t factor = find_factor(row->type, &d);
	if (factor == 0)
		return no_unit(row->type, text, &d, why, size);
	if (d.negative && d.digits != 0 && !may_be_negative(row))
		return complain(why, size, text, "is negative");
	if (!is_real(row->type)) {
		rc = whole_value(row, text, &d, factor, whole, why, size);
		return rc != 0 ? rc : check_bounds(row, text, (double)*whole, why, size);
	}
	long double v = (long double)d.digits * factor / power_of_ten(d.scale);
	*real = (double)(row->type == WEIR_KNOB_RATIO ? v / 100 : v);
	return check_bounds(row, text, *real, why, size);
}
