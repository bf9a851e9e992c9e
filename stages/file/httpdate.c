/* SPDX-License-Identifier: MIT */
/*
 * Formats and parses HTTP dates. strftime and strptime are not used because they use the names of
 * the program's locale, and strptime accepts far more than the RFC.
 */
#include "httpdate.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Start of year 1 and end of year 9999: the range of years with four digits. */
#define HTTPDATE_MIN_S (-62135596800LL)
#define HTTPDATE_MAX_S 253402300799LL

static const char month_names[12][4] = {
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char day_names[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

void httpdate_format(int64_t at_s, char out[HTTPDATE_SIZE])
{
	time_t t = at_s < HTTPDATE_MIN_S   ? HTTPDATE_MIN_S
		   : at_s > HTTPDATE_MAX_S ? HTTPDATE_MAX_S
					   : at_s;
	struct tm tm;

	gmtime_r(&t, &tm);
	snprintf(out, HTTPDATE_SIZE, "%s, %02u %s %04u %02u:%02u:%02u GMT", day_names[tm.tm_wday],
	    (unsigned)tm.tm_mday % 100, month_names[tm.tm_mon],
	    (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)tm.tm_hour % 100,
	    (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
}

struct reader {
	const char *p, *end;
};

static bool read_text(struct reader *r, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(r->end - r->p) < n || memcmp(r->p, text, n) != 0)
		return false;
	r->p += n;
	return true;
}

/* Read exactly `digits` digits. If `padded`, the first may be a space (the day in asctime). */
static bool read_number(struct reader *r, int digits, bool padded, int *value)
{
	int v = 0;

	if (r->end - r->p < digits)
		return false;
	for (int i = 0; i < digits; i++) {
		char c = *r->p++;
		if (i == 0 && padded && c == ' ')
			c = '0';
		if (c < '0' || c > '9')
			return false;
		v = v * 10 + (c - '0');
	}
	*value = v;
	return true;
}

static bool read_month(struct reader *r, int *month)
{
	for (int i = 0; i < 12; i++) {
		if (read_text(r, month_names[i])) {
			*month = i;
			return true;
		}
	}
	return false;
}

static bool read_time(struct reader *r, struct tm *tm)
{
	return read_number(r, 2, false, &tm->tm_hour) && read_text(r, ":") &&
	       read_number(r, 2, false, &tm->tm_min) && read_text(r, ":") &&
	       read_number(r, 2, false, &tm->tm_sec);
}

/* Read "06 Nov 1994 08:49:37 GMT", or, if `separator` is "-", "06-Nov-94 08:49:37 GMT". */
static bool read_day_first(struct reader *r, const char *separator, struct tm *tm)
{
	bool old = *separator == '-';
	int year;

	if (!read_number(r, 2, false, &tm->tm_mday) || !read_text(r, separator) ||
	    !read_month(r, &tm->tm_mon) || !read_text(r, separator) ||
	    !read_number(r, old ? 2 : 4, false, &year) || !read_text(r, " ") || !read_time(r, tm))
		return false;
	/* RFC 9110: a two-digit year over 50 years ahead is in the past. Here 00 to 68 mean 2000 to
	 * 2068 and 69 to 99 mean 1969 to 1999, as in POSIX strptime, so that the result does not
	 * depend on the current date. */
	tm->tm_year = !old ? year - 1900 : year < 69 ? year + 100 : year;
	return read_text(r, " GMT");
}

/* Read "Nov 6 08:49:37 1994". */
static bool read_asctime(struct reader *r, struct tm *tm)
{
	int year;

	if (!read_month(r, &tm->tm_mon) || !read_text(r, " ") ||
	    !read_number(r, 2, true, &tm->tm_mday) || !read_text(r, " ") || !read_time(r, tm) ||
	    !read_text(r, " ") || !read_number(r, 4, false, &year))
		return false;
	tm->tm_year = year - 1900;
	return true;
}

/* Read any of the three forms, which differ after the name of the day. */
static bool read_date(struct reader *r, struct tm *tm)
{
	static const char *const rest[7] = {
	    "day", "day", "sday", "nesday", "rsday", "day", "urday"};

	for (int i = 0; i < 7; i++) {
		if (!read_text(r, day_names[i]))
			continue;
		if (read_text(r, ", "))
			return read_day_first(r, " ", tm);
		if (read_text(r, " "))
			return read_asctime(r, tm);
		return read_text(r, rest[i]) && read_text(r, ", ") && read_day_first(r, "-", tm);
	}
	return false;
}

int httpdate_parse(struct weir_slice text, int64_t *at_s)
{
	struct reader r = {text.p, text.p + text.n};
	struct tm tm = {0};

	if (!read_date(&r, &tm) || r.p != r.end)
		return WEIR_EINVAL;
	int day = tm.tm_mday, month = tm.tm_mon;
	if (tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60 || day < 1 || tm.tm_year < -1899)
		return WEIR_EINVAL;
	if (tm.tm_sec == 60) /* a leap second, which POSIX time does not have */
		tm.tm_sec = 59;
	int64_t t = timegm(&tm);
	if (tm.tm_mday != day || tm.tm_mon != month) /* 31 Feb became 3 March */
		return WEIR_EINVAL;
	*at_s = t;
	return 0;
}
