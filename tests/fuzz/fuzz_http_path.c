/* SPDX-License-Identifier: MIT */
/*
 * Any path that the guard accepts: normalizing its normal spelling changes nothing; that spelling
 * is not longer than the path, and contains only allowed bytes. It equals the result of a second,
 * simple parser that decodes each segment and keeps a list of them. Two spellings are the same if
 * their decoded segments are.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/message/guard.h"
#include "http/message/normal_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PATH_MAX_ 4096

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_http_path: %s\n", what);
	abort();
}

/* Decoded segments. An escaped slash becomes the byte 1, which occurs in no other way: the driver
 * leaves it out. */
struct segments {
	char text[PATH_MAX_ + 2];
	size_t start[PATH_MAX_ + 2], n;
	bool directory, above;
};

static int hex(char c)
{
	return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

static void take_segment(struct segments *s, const char *p, const char *end)
{
	size_t from = s->start[s->n], at = from;

	while (p < end) {
		char c = *p == '%' ? (char)(hex(p[1]) << 4 | hex(p[2])) : *p;
		s->text[at++] = *p == '%' && c == '/' ? 1 : c;
		p += *p == '%' ? 3 : 1;
	}
	s->text[at] = '\0';
	const char *text = s->text + from;
	size_t n = at - from;
	bool dot = n == 1 && text[0] == '.', dots = n == 2 && text[0] == '.' && text[1] == '.';
	s->directory = n == 0 || dot || dots;
	if (dots && s->n == 0)
		s->above = true;
	else if (dots)
		s->n--;
	else if (n > 0 && !dot)
		s->start[++s->n] = at;
}

static void read_path(struct segments *s, const char *p, size_t n)
{
	const char *end = p + n;

	s->n = s->start[0] = 0;
	s->above = false;
	s->directory = true;
	while (p < end && !s->above) {
		const char *next = memchr(p + 1, '/', (size_t)(end - p - 1));
		next = next ? next : end;
		take_segment(s, p + 1, next);
		p = next;
	}
}

static bool same(const struct segments *a, const struct segments *b)
{
	return a->n == b->n && a->directory == b->directory &&
	       memcmp(a->start, b->start, (a->n + 1) * sizeof(a->start[0])) == 0 &&
	       memcmp(a->text, b->text, a->start[a->n]) == 0;
}

/* Only bytes that must be escaped are escaped, in upper case. */
static void check_bytes(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		expect(guard_is(p[i], GUARD_PATH) && p[i] != '?', "a byte that no path has");
		if (p[i] != '%')
			continue;
		expect(n - i >= 3 && strchr("0123456789ABCDEF", p[i + 1]) &&
			   strchr("0123456789ABCDEF", p[i + 2]),
		    "an escape that is none, or in small letters");
		char c = (char)(hex(p[i + 1]) << 4 | hex(p[i + 2]));
		expect(c == '%' || c == '/' || !guard_is(c, GUARD_PATH), "escaped for nothing");
	}
}

static bool takes(const char *p, size_t n)
{
	if (n > PATH_MAX_ || (n > 0 && p[0] != '/'))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!guard_is(p[i], GUARD_PATH))
			return false;
		if (p[i] == '%' &&
		    (n - i < 3 || !guard_is(p[i + 1], GUARD_HEX) || !guard_is(p[i + 2], GUARD_HEX)))
			return false;
		if (p[i] == '%' && p[i + 1] == '0' && (p[i + 2] == '0' || p[i + 2] == '1'))
			return false;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct segments sent, written;
	static char once[PATH_MAX_ + 1], twice[PATH_MAX_ + 1];
	const char *path = (const char *)data;
	char hint[160];

	if (!takes(path, size))
		return 0;
	long n = normal_path((struct weir_slice){path, size}, once);
	read_path(&sent, path, size);
	expect((n < 0) == sent.above, "above the root, or not");
	if (n < 0)
		return 0;
	expect(n > 0 && (size_t)n <= (size ? size : 1) && once[0] == '/', "its length");
	check_bytes(once, (size_t)n);
	read_path(&written, once, (size_t)n);
	expect(same(&sent, &written), "another path");
	expect(normal_path((struct weir_slice){once, (size_t)n}, twice) == n &&
		   memcmp(once, twice, (size_t)n) == 0,
	    "its normal spelling is not its own");
	expect(normal_path_pattern(once, (size_t)n, false, hint, sizeof(hint)),
	    "it is no pattern of itself");
	for (long i = 1; i <= n; i++) /* except in the middle of an escape */
		expect(normal_path_pattern(once, (size_t)i, true, hint, sizeof(hint)) ||
			   (i >= 1 && once[i - 1] == '%') || (i >= 2 && once[i - 2] == '%'),
		    "its beginning is no prefix");
	return 0;
}
