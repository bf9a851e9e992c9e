/* SPDX-License-Identifier: MIT */
/*
 * Reads requests from a log in the format of NCSA httpd, which other servers use, too:
 *
 *   HOST IDENT USER [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326 ...
 *
 * Everything after the status is ignored, so "combined" and longer formats can be read, too.
 * In place of bytes that could corrupt a log, servers write \", \\ or \xHH. These become %HH in the
 * path.
 */
#include "load/mix.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/lines.h"
#include "load/sentence.h"

#define NS_PER_S 1000000000LL

/* Longest time span in seconds that fits in 64 bits of ns. */
#define AT_S_MAX (INT64_MAX / NS_PER_S - 1)

/* ---- time ---- */

/* Return the number of days from 1970-01-01 to a day of the Gregorian calendar. Years begin in
 * March, so the leap day is the last day of a year (the constant 153 is from Zeller 1882). */
static int64_t days_of(int year, int month, int day)
{
	int64_t y = month > 2 ? year : year - 1;
	int64_t m = month > 2 ? month - 3 : month + 9;

	return y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

/* Parse a number of exactly `digits` digits at *p, followed by the byte `then`, and advance *p past
 * both. Returns -1 if the text has another form. */
static int number(const char **p, int digits, char then)
{
	int value = 0;

	for (int i = 0; i < digits; i++, (*p)++) {
		if (!isdigit((unsigned char)**p))
			return -1;
		value = value * 10 + (**p - '0');
	}
	if (**p != then)
		return -1;
	(*p)++;
	return value;
}

static int month_at(const char **p)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (int m = 0; m < 12; m++)
		if (strncmp(*p, names + 3 * m, 3) == 0 && (*p)[3] == '/') {
			*p += 4;
			return m + 1;
		}
	return -1;
}

/* Parse "10/Oct/2000:13:55:36 -0700]" at *p and advance past it. */
static bool read_time(const char **p, int64_t *at_s)
{
	int day = number(p, 2, '/');
	int month = day < 0 ? -1 : month_at(p);
	int year = month < 0 ? -1 : number(p, 4, ':');
	int hour = year < 0 ? -1 : number(p, 2, ':');
	int minute = hour < 0 ? -1 : number(p, 2, ':');
	int second = minute < 0 ? -1 : number(p, 2, ' ');

	if (second < 0 || (**p != '+' && **p != '-'))
		return false;
	int east = *(*p)++ == '+' ? 1 : -1;
	int zone = number(p, 4, ']');
	if (zone < 0 || zone % 100 > 59 || day < 1 || day > 31 || hour > 23 || minute > 59 ||
	    second > 60)
		return false;
	*at_s = days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second -
		east * (zone / 100 * 3600 + zone % 100 * 60);
	return true;
}

/* ---- request ---- */

static int hex(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* Decode the escape sequence at *p, which points after the backslash, and advance *p past it.
 * Returns the byte, or -1 if the sequence is unknown. */
static int unescape(const char **p)
{
	static const char letters[] = "\"\\nrtbvf", bytes[] = "\"\\\n\r\t\b\v\f";
	const char *known = **p ? strchr(letters, **p) : NULL;

	if (known) {
		(*p)++;
		return bytes[known - letters];
	}
	if (**p != 'x' || hex((*p)[1]) < 0 || hex((*p)[2]) < 0)
		return -1;
	int byte = hex((*p)[1]) * 16 + hex((*p)[2]);
	*p += 3;
	return byte;
}

/* Copy the quoted text at *p to `out` and advance *p past the closing quote. Escaped bytes and
 * bytes that are not visible ASCII become %HH. Returns false if the text is malformed or too
 * long. */
static bool read_quoted(const char **p, char *out, size_t size)
{
	size_t n = 0;

	while (**p && **p != '"' && n + 4 < size) {
		bool escaped = **p == '\\';
		int byte = (unsigned char)*(*p)++;
		if (escaped && (byte = unescape(p)) < 0)
			return false;
		if (escaped || byte < 0x20 || byte >= 0x7f)
			n += (size_t)snprintf(out + n, size - n, "%%%02X", (unsigned)byte);
		else
			out[n++] = (char)byte;
	}
	out[n] = '\0';
	return **p == '"' && (*p)++;
}

/* Parse a status such as " 200", followed by a space or the end. Returns -1 if it is malformed. */
static int read_status(const char *p)
{
	if (p[0] != ' ' || strspn(p + 1, "0123456789") != 3 || (p[4] != ' ' && p[4] != '\0'))
		return -1;
	return (p[1] - '0') * 100 + (p[2] - '0') * 10 + (p[3] - '0');
}

/* Split "METHOD PATH[ HTTP/1.1]" in line->buf. Returns false if it is malformed. */
static bool split_request(struct mix_log_line *line)
{
	char *path = strchr(line->buf, ' ');
	char *end = path ? strchr(path + 1, ' ') : NULL;

	if (!path || path == line->buf || (end && strncmp(end, " HTTP/", 6) != 0))
		return false;
	if (path[1] != '/' && path[1] != '*')
		return false;
	for (const char *c = line->buf; c < path; c++)
		if ((*c < 'A' || *c > 'Z') && *c != '-' && *c != '_')
			return false;
	*path = '\0';
	if (end)
		*end = '\0';
	line->method = line->buf;
	line->path = path + 1;
	return strcmp(line->method, "CONNECT") != 0;
}

int mix_log_parse(const char *text, struct mix_log_line *line, struct weir_err *err)
{
	const char *time = strstr(text, " ["), *p = time ? time + 2 : NULL;

	line->method = line->path = NULL;
	if (!p)
		return sentence(err, WEIR_EINVAL,
		    "'%.60s' is not a log line: it has no [time] after the client", text);
	if (!read_time(&p, &line->at_s))
		return sentence(err, WEIR_EINVAL,
		    "'%.30s' is not a log time, such as [10/Oct/2000:13:55:36 -0700]", time + 1);
	const char *request = p;
	p += 2;
	if (strncmp(request, " \"", 2) != 0 || !read_quoted(&p, line->buf, sizeof(line->buf)))
		return sentence(
		    err, WEIR_EINVAL, "'%.60s' after the time is not a request in quotes", request);
	line->status = read_status(p);
	if (line->status < 0)
		return sentence(err, WEIR_EINVAL,
		    "'%.30s' after the request is not a status of three digits", p);
	if (split_request(line))
		return 0;
	line->method = line->path = NULL;
	if (line->status >= 400 && line->status < 500)
		return 0;
	return sentence(
	    err, WEIR_EINVAL, "'%.60s' is not a request, such as GET /path HTTP/1.1", request);
}

/* ---- the log ---- */

/* Add the request of one line. Its members are not final until the whole log has been read and
 * sorted: at_ns contains seconds since 1970, and `cumulative` the position in the log. */
static int add_line(struct load_class *cls, const struct mix_head *head, const struct lines *l,
    struct mix_log_line *line, struct weir_err *err)
{
	struct mix_head own = *head;
	struct weir_err why = {0};

	int rc = mix_log_parse(l->text, line, &why);
	if (rc == 0 && !line->path)
		return 0;
	if (rc == 0) {
		own.method = line->method;
		rc = mix_add(cls, &own, line->path, 1, NULL, 0, &why);
	}
	if (rc == WEIR_EINVAL)
		return lines_refuse(l, why.text, err);
	if (rc != 0)
		return sentence(err, rc, "%s", why.text);
	struct load_request *r = &cls->request[cls->n_requests - 1];
	r->at_ns = line->at_s;
	r->cumulative = cls->n_requests;
	return 0;
}

/* Compare requests by time, then by position. Lines of a log may be out of order: most servers
 * write a line when the response is complete, but with the time of the request. */
static int by_time(const void *a, const void *b)
{
	const struct load_request *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->cumulative < y->cumulative ? -1 : 1;
}

/* Convert seconds since 1970 to ns since the first request, and spread requests evenly over their
 * second. */
static void spread(struct load_request *r, int n)
{
	int64_t first_s = r[0].at_ns;

	for (int i = 0; i < n;) {
		int64_t at_s = r[i].at_ns;
		int same = 1;
		while (i + same < n && r[i + same].at_ns == at_s)
			same++;
		for (int k = 0; k < same; k++, i++) {
			r[i].at_ns = (at_s - first_s) * NS_PER_S + NS_PER_S * k / same;
			r[i].cumulative = 1;
		}
	}
}

static int finish(struct load_class *cls, int first, const char *file, struct weir_err *err)
{
	int n = cls->n_requests - first;

	if (n == 0)
		return sentence(err, WEIR_EINVAL, "%.180s has no request to replay", file);
	struct load_request *r = cls->request + first;
	qsort(r, (size_t)n, sizeof(*r), by_time);
	if (r[n - 1].at_ns - r[0].at_ns > AT_S_MAX)
		return sentence(err, WEIR_EINVAL, "%.180s spans more than 292 years", file);
	spread(r, n);
	cls->in_order = true;
	return 0;
}

int mix_add_log(
    struct load_class *cls, const struct mix_head *head, const char *file, struct weir_err *err)
{
	int first = cls->n_requests, more;
	struct mix_log_line line;
	struct lines l;

	int rc = lines_open(&l, file, err);
	if (rc != 0)
		return rc;
	while (rc == 0 && (more = lines_next(&l, err)) != 0)
		rc = more < 0 ? more : add_line(cls, head, &l, &line, err);
	lines_close(&l);
	return rc != 0 ? rc : finish(cls, first, file, err);
}
