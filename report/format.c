/* SPDX-License-Identifier: MIT */
/* Formats numbers with about three digits, and escapes texts; see format.h. */
#include "report/format.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */
#define EN_DASH     "\xE2\x80\x93"
#define MICRO       "\xC2\xB5"
#define TIMES       "\xC3\x97"
#define NBSP        "\xC2\xA0"

/* Format with three significant digits and without an exponent. */
static void format_3(char *buf, double v, const char *unit)
{
	int decimals = fabs(v) >= 99.95 ? 0 : fabs(v) >= 9.995 ? 1 : 2;
	char number[FORMAT_MAX];

	snprintf(number, sizeof(number), "%.*f", decimals, v);
	if (strchr(number, '.')) {
		char *end = number + strlen(number);
		while (end[-1] == '0')
			*--end = '\0';
		if (end[-1] == '.')
			end[-1] = '\0';
	}
	snprintf(buf, FORMAT_MAX, "%.18s%s", number, unit);
}

static bool format_unknown(char *buf, double v)
{
	if (isfinite(v))
		return false;
	snprintf(buf, FORMAT_MAX, EN_DASH);
	return true;
}

char *format_count(char *buf, double v)
{
	if (format_unknown(buf, v))
		return buf;
	if (fabs(v) >= 999.5e6)
		format_3(buf, v / 1e9, "G");
	else if (fabs(v) >= 999.5e3)
		format_3(buf, v / 1e6, "M");
	else if (fabs(v) >= 9999.5)
		format_3(buf, v / 1e3, "k");
	else
		format_3(buf, v, "");
	return buf;
}

char *format_rate(char *buf, double v)
{
	format_count(buf, v);
	if (isfinite(v))
		strncat(buf, "/s", FORMAT_MAX - 1 - strlen(buf));
	return buf;
}

char *format_time(char *buf, double s)
{
	if (format_unknown(buf, s))
		return buf;
	if (s <= 0)
		snprintf(buf, FORMAT_MAX, "0");
	else if (s < 999.5e-6)
		format_3(buf, s * 1e6, NBSP MICRO "s");
	else if (s < 0.9995)
		format_3(buf, s * 1e3, NBSP "ms");
	else
		format_3(buf, s, NBSP "s");
	return buf;
}

char *format_clock(char *buf, double s)
{
	if (!format_unknown(buf, s))
		snprintf(buf, FORMAT_MAX, "%.8g" NBSP "s", s);
	return buf;
}

char *format_share(char *buf, double share)
{
	if (!format_unknown(buf, share))
		format_3(buf, share * 100, NBSP "%");
	return buf;
}

/* A whole number of decades d is shown as 1 - 10^-d: 90, 99, 99.9 %. */
char *format_tail(char *buf, double decades)
{
	int digits = decades > 2 ? (int)ceil(decades - 1e-9) - 2 : 0;

	if (!format_unknown(buf, decades))
		snprintf(buf, FORMAT_MAX, "%.*f" NBSP "%%", digits > 6 ? 6 : digits,
		    100 * (1 - pow(10, -decades)));
	return buf;
}

char *format_ratio(char *buf, double ratio)
{
	if (format_unknown(buf, ratio))
		return buf;
	if (ratio < 0.0995)
		snprintf(buf, FORMAT_MAX, TIMES "%.2g", ratio);
	else
		snprintf(buf, FORMAT_MAX, TIMES "%.*f",
		    ratio >= 99.5   ? 0
		    : ratio >= 9.95 ? 1
				    : 2,
		    fmin(ratio, 1e9));
	return buf;
}

/* ---- texts ---- */

/* Decode the character at `s` and store its length in bytes in *n. If it is not valid UTF-8, the
 * result is 0xFFFD and the length 1. */
static uint32_t character(const char *s, size_t *n)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t more = p[0] < 0x80 ? 0 : p[0] < 0xC2 ? 9 : p[0] < 0xE0 ? 1 : p[0] < 0xF0 ? 2 : 3;
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
	uint32_t c = p[0] & (0x7FU >> (more ? more + 1 : 0));

	*n = 1;
	if (more == 9 || p[0] > 0xF4)
		return 0xFFFD;
	for (size_t i = 1; i <= more; i++) {
		if ((p[i] & 0xC0) != 0x80)
			return 0xFFFD;
		c = c << 6 | (p[i] & 0x3FU);
	}
	if (c < least[more] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
		return 0xFFFD;
	*n = more + 1;
	return c;
}

/* Whether `c` must be replaced: control characters, which HTML and XML forbid, and marks that
 * change the direction of the surrounding text. */
static bool unfit(uint32_t c)
{
	return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7F && c < 0xA0) ||
	       (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFFFE ||
	       c == 0xFFFF;
}

static const char *entity(uint32_t c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void markup_text(FILE *out, const char *text)
{
	size_t n;

	for (; *text; text += n) {
		uint32_t c = character(text, &n);
		if (entity(c))
			fputs(entity(c), out);
		else if (unfit(c) || c == 0xFFFD)
			fputs(REPLACEMENT, out);
		else
			fwrite(text, 1, n, out);
	}
}

void markup(FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	for (const char *p = format; *p; p++) {
		int digits = 6;
		if (*p != '%') {
			fputc(*p, out);
			continue;
		}
		if (*++p == '.') {
			digits = p[1] - '0';
			p += 2;
		}
		if (*p == 's')
			markup_text(out, va_arg(args, const char *));
		else if (*p == 'd')
			fprintf(out, "%d", va_arg(args, int));
		else if (*p == 'f')
			fprintf(out, "%.*f", digits, va_arg(args, double));
		else
			fputc('%', out);
	}
	va_end(args);
}
