/* SPDX-License-Identifier: MIT */
/*
 * Normalizes paths; see normal_path.h.
 *
 * The path is normalized in one pass: each segment is decoded, appended to `out`, checked there,
 * and kept or removed again. Since only decoded segments are checked, "%2e%2e" is treated as "..".
 */
#include "http/message/normal_path.h"

#include <stdio.h>
#include <string.h>

#include "http/message/guard.h"

/* Append the byte or escape at the start of `p` to `out`. An escape is decoded if its byte may
 * occur in a path and is neither '%' nor '/'; otherwise it is appended in upper case. `p` must not
 * begin with '/'. Returns the number of bytes of `p` used. */
static size_t put_byte(const char *p, char *out, size_t *n)
{
	if (*p != '%') {
		out[(*n)++] = *p;
		return 1;
	}
	char high = p[1], low = p[2];
	char c = (char)(guard_hex(high) << 4 | guard_hex(low));
	if (guard_is(c, GUARD_PATH) && c != '%' && c != '/') {
		out[(*n)++] = c;
		return 3;
	}
	out[(*n)++] = '%';
	out[(*n)++] = (char)(high >= 'a' ? high - 0x20 : high);
	out[(*n)++] = (char)(low >= 'a' ? low - 0x20 : low);
	return 3;
}

/* Remove the last segment of out[0..n) and the '/' before it. Returns the new length; -1 if no
 * segment is left. */
static long go_up(const char *out, size_t n)
{
	if (n == 0)
		return -1;
	while (out[--n] != '/')
		;
	return (long)n;
}

long normal_path(struct weir_slice path, char *out)
{
	const char *p = path.p, *end = path.p + path.n;
	bool directory = true; /* the path so far ends in '/' */
	size_t n = 0;

	while (p < end) {
		size_t start = n;
		while (p < end && *p == '/')
			p++;
		out[n++] = '/';
		while (p < end && *p != '/')
			p += put_byte(p, out, &n);
		size_t len = n - start - 1;
		bool dot = len == 1 && out[n - 1] == '.';
		bool dots = len == 2 && out[n - 1] == '.' && out[n - 2] == '.';
		directory = len == 0 || dot || dots;
		if (directory)
			n = start;
		long above = dots ? go_up(out, n) : (long)n;
		if (above < 0)
			return -1;
		n = (size_t)above;
	}
	if (directory)
		out[n++] = '/';
	return (long)n;
}

/* ---- patterns in configurations ---- */

static bool bytes_good(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!guard_is(p[i], GUARD_PATH))
			return false;
		if (p[i] == '%' &&
		    (n - i < 3 || !guard_is(p[i + 1], GUARD_HEX) || !guard_is(p[i + 2], GUARD_HEX)))
			return false;
	}
	return true;
}

/* Return the length of the segments of the pattern that can be normalized. In a prefix, a last
 * segment "." or ".." is excluded, since the path may continue with other bytes, as in "/..x". */
static size_t whole_segments(const char *p, size_t n, bool prefix)
{
	size_t last = n;

	while (last > 0 && p[last - 1] != '/')
		last--;
	bool dots = n - last <= 2 && strspn(p + last, ".") >= n - last;
	return prefix && dots ? last : n;
}

bool normal_path_pattern(const char *pattern, size_t n, bool prefix, char *hint, size_t size)
{
	char out[WEIR_HTTP_TARGET_MAX + 1];

	if (n == 0 && prefix)
		return true;
	if (n == 1 && pattern[0] == '*') /* for OPTIONS */
		return true;
	if (pattern[0] != '/' || n > WEIR_HTTP_TARGET_MAX || !bytes_good(pattern, n)) {
		snprintf(hint, size,
		    "begin the path with '/'; write all but letters, digits and "
		    "-._~!$&'()*+,;=:@[]|/ as %%XX");
		return false;
	}
	size_t whole = whole_segments(pattern, n, prefix);
	long normal = normal_path((struct weir_slice){pattern, whole}, out);
	if (normal == (long)whole && memcmp(out, pattern, whole) == 0)
		return true;
	if (normal < 0)
		snprintf(hint, size, "the path leads above the root");
	else
		snprintf(hint, size, "write the path in its normal form: '%.*s%.*s%s'",
		    normal > 100 ? 100 : (int)normal, out, (int)(n - whole), pattern + whole,
		    prefix ? "*" : "");
	return false;
}
