/* SPDX-License-Identifier: MIT */
/*
 * Strictly checks a request head. The guard of the data plane (weir_http_guard) checks the bytes
 * first, then stricter rules apply: the target must be a plain path, no important field may appear
 * twice, transfer codings are not allowed, and Host must name this endpoint. The check stops at the
 * first problem; nothing is repaired.
 */
#include "head.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include <weir/http_guard.h>

/* Fields that the endpoint interprets. None of them may appear twice. */
enum known { HOST, LENGTH, TYPE, ORIGIN, FETCH_SITE, CODING, EXPECT, AUTHORIZATION, COOKIE, KNOWN };

static const char *const known_name[KNOWN] = {
    [HOST] = "Host",
    [LENGTH] = "Content-Length",
    [TYPE] = "Content-Type",
    [ORIGIN] = "Origin",
    [FETCH_SITE] = "Sec-Fetch-Site",
    [CODING] = "Transfer-Encoding",
    [EXPECT] = "Expect",
    [AUTHORIZATION] = "Authorization",
    [COOKIE] = "Cookie",
};

struct head {
	struct weir_slice value[KNOWN]; /* p is NULL for a field that was not sent */
};

static enum head_verdict bad(struct head_problem *problem, int status, const char *why)
{
	*problem = (struct head_problem){.status = status, .why = why};
	return HEAD_BAD;
}

/* ---- lines ---- */

static struct weir_slice take_line(const char **p)
{
	const char *end = strstr(*p, "\r\n");
	struct weir_slice line = {*p, (size_t)(end - *p)};

	*p = end + 2;
	return line;
}

static size_t span(const char *p, size_t n, const char *bytes)
{
	size_t i = 0;

	while (i < n && p[i] && strchr(bytes, p[i]))
		i++;
	return i;
}

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define TOKEN   "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz" LETTERS

/* Return whether the line is METHOD SP /target SP HTTP/1.x: one space each, a target of visible
 * ASCII. */
static bool request_line(struct weir_slice line)
{
	size_t method = span(line.p, line.n, LETTERS);
	const char *p = line.p + method;
	const char *end = line.p + line.n;

	if (method == 0 || method > 16 || end - p < 11 || p[0] != ' ' || p[1] != '/')
		return false;
	for (p++; p<end && * p> ' ' && *p < 127; p++)
		;
	return end - p == 9 && (memcmp(p, " HTTP/1.1", 9) == 0 || memcmp(p, " HTTP/1.0", 9) == 0);
}

static struct weir_slice trimmed(const char *p, size_t n)
{
	size_t skip = span(p, n, " \t");

	p += skip;
	n -= skip;
	while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
		n--;
	return (struct weir_slice){p, n};
}

/* Store one field in `h`. Returns false if it has no name, or is a known field that has appeared
 * before. */
static bool take_field(struct weir_slice line, struct head *h)
{
	size_t name = span(line.p, line.n, TOKEN);

	if (name == 0 || name == line.n || line.p[name] != ':')
		return false;
	for (int k = 0; k < KNOWN; k++) {
		if (strlen(known_name[k]) != name || strncasecmp(known_name[k], line.p, name) != 0)
			continue;
		if (h->value[k].p)
			return false;
		h->value[k] = trimmed(line.p + name + 1, line.n - name - 1);
	}
	return true;
}

/* ---- checking the values ---- */

/* Parse a number of at most 18 digits. Returns 0 if the field was not sent, and -1 for any other
 * value. */
static long long length_of(struct weir_slice value)
{
	long long length = 0;

	if (!value.p)
		return 0;
	if (value.n == 0 || value.n > 18 || span(value.p, value.n, "0123456789") != value.n)
		return -1;
	for (size_t i = 0; i < value.n; i++)
		length = length * 10 + (value.p[i] - '0');
	return length;
}

static enum head_verdict judge(const struct authority *address, const struct head *h, size_t behind,
    struct head_problem *problem)
{
	long long length = length_of(h->value[LENGTH]);

	if (!h->value[HOST].p)
		return bad(problem, 400, "the request has no header Host");
	if (h->value[CODING].p)
		return bad(problem, 400, "Transfer-Encoding is not supported");
	if (length < 0)
		return bad(problem, 400, "Content-Length is not a number");
	if (length > ADMIN_BODY_MAX)
		return bad(problem, 413, "the body is longer than 8192 bytes");
	if (h->value[EXPECT].p)
		return bad(
		    problem, 417, "the header Expect is not supported: send the body at once");
	if (!authority_allows_host(address, h->value[HOST]))
		return bad(problem, 421,
		    "the header Host is not an address of this endpoint: use localhost or "
		    "127.0.0.1 and its port, or list the name under 'admin: { hosts: }'");
	return behind < (size_t)length ? HEAD_MORE : HEAD_WHOLE;
}

/* Check the head in `text`, which has passed the guard. */
static enum head_verdict check_lines(
    const struct authority *address, const char *text, size_t behind, struct head_problem *problem)
{
	struct head h = {0};

	if (!request_line(take_line(&text)))
		return bad(problem, 400, "this endpoint does not accept the request line");
	for (struct weir_slice line = take_line(&text); line.n > 0; line = take_line(&text))
		if (!take_field(line, &h))
			return bad(problem, 400, "a header field appears twice or has no name");
	return judge(address, &h, behind, problem);
}

static const char *guard_sentence(int status)
{
	return status == 431 || status == 414 ? "the head is too long"
					      : "the head is not a well-formed HTTP/1.1 request";
}

enum head_verdict head_check(
    const struct authority *address, const char *p, size_t n, struct head_problem *problem)
{
	char text[HEAD_MAX + 1];
	size_t length = 0;
	int status = 400;
	int rc = weir_http_guard(p, n, &length, &status);

	if (rc < 0)
		return bad(problem, status, guard_sentence(status));
	if (rc == 0 ? n >= HEAD_MAX : length > HEAD_MAX)
		return bad(problem, 431, guard_sentence(431));
	if (rc == 0)
		return HEAD_MORE;
	memcpy(text, p, length);
	text[length] = '\0';
	return check_lines(address, text, n - length, problem);
}

/* ---- reading a complete request ---- */

/* Return the line at `p` without its end; `*next` is the offset of the next line. An empty line
 * ends the head. */
static struct weir_slice line_at(const char *p, size_t n, size_t *next)
{
	const char *end = memmem(p, n, "\r\n", 2);
	struct weir_slice line = {p, end ? (size_t)(end - p) : n};

	*next = end ? line.n + 2 : n;
	return line;
}

struct weir_slice head_target(const char *p, size_t n)
{
	size_t next;
	struct weir_slice line = line_at(p, n, &next);
	const char *from = memchr(line.p, ' ', line.n);
	const char *to = from ? memrchr(line.p, ' ', line.n) : NULL;

	if (!from || to == from)
		return (struct weir_slice){line.p, 0};
	return (struct weir_slice){from + 1, (size_t)(to - from - 1)};
}

struct weir_slice head_field(const char *p, size_t n, const char *name)
{
	size_t next, length = strlen(name);
	struct weir_slice line = line_at(p, n, &next);

	while (line.n > 0) {
		p += next;
		n -= next;
		line = line_at(p, n, &next);
		if (line.n > length && line.p[length] == ':' &&
		    strncasecmp(line.p, name, length) == 0)
			return trimmed(line.p + length + 1, line.n - length - 1);
	}
	return (struct weir_slice){0};
}
