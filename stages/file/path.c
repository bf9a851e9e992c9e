/* SPDX-License-Identifier: MIT */
/*
 * Request path to file name. See path.h for the rules.
 *
 * One pass: a segment is decoded to the end of `out`, looked at, and kept, dropped ("", ".") or
 * dropped with the one before it (".."). Looking only at decoded segments is what makes "%2e%2e"
 * and
 * ".." the same thing; an encoded slash never becomes a separator, it is refused.
 */
#include "path.h"

#include <string.h>

/* NAME_MAX of every file system in use; longer names cannot exist. */
#define PATH_SEGMENT_MAX 255

struct walk {
	const char *p, *end; /* what is left of the request path */
	char *out;
	size_t n, size; /* bytes written, room */
	bool directory; /* the path, so far, names a directory */
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The next byte of a segment, decoded, or a WEIR_E code. */
static int walk_byte(struct walk *w)
{
	unsigned char c = (unsigned char)*w->p++;

	if (c == '%') {
		int high = w->end - w->p >= 2 ? hex_digit(w->p[0]) : -1;
		int low = high >= 0 ? hex_digit(w->p[1]) : -1;
		if (low < 0)
			return WEIR_EINVAL;
		c = (unsigned char)(high << 4 | low);
		w->p += 2;
		if (c == '/')
			return WEIR_ENOENT;
	}
	if (c < 0x20 || c == 0x7f)
		return WEIR_EINVAL;
	return c == '\\' ? WEIR_ENOENT : c;
}

/* Decode up to the next slash or the end, behind what is kept. Room for '/' and NUL stays. */
static int walk_decode(struct walk *w, size_t *length)
{
	size_t start = w->n;

	while (w->p < w->end && *w->p != '/') {
		int c = walk_byte(w);
		if (c < 0)
			return c;
		if (w->n - start == PATH_SEGMENT_MAX || w->n + 2 >= w->size)
			return WEIR_ENOENT;
		w->out[w->n++] = (char)c;
	}
	*length = w->n - start;
	return 0;
}

/* Drop the last kept segment and its slash. */
static int walk_up(struct walk *w)
{
	if (w->n == 0)
		return WEIR_EINVAL;
	w->n--;
	while (w->n > 0 && w->out[w->n - 1] != '/')
		w->n--;
	return 0;
}

/* Is the segment at `s`, which begins with a dot, one to serve? RFC 8615: only at the root. */
static bool dot_segment_allowed(const struct walk *w, const char *s, size_t length)
{
	static const char well_known[] = ".well-known";

	return s == w->out && length == sizeof(well_known) - 1 &&
	       memcmp(s, well_known, length) == 0;
}

static int walk_segment(struct walk *w)
{
	char *s = w->out + w->n;
	size_t length;
	int rc = walk_decode(w, &length);

	if (rc < 0)
		return rc;
	bool dot = length == 1 && s[0] == '.';
	bool dots = length == 2 && s[0] == '.' && s[1] == '.';
	w->directory = length == 0 || dot || dots || w->p < w->end;
	if (length == 0)
		return 0;
	if (dot || dots) {
		w->n -= length;
		return dots ? walk_up(w) : 0;
	}
	if (s[0] == '.' && !dot_segment_allowed(w, s, length))
		return WEIR_ENOENT;
	w->out[w->n++] = '/';
	return 0;
}

/* Every kept segment ends in a slash by now: put the index behind it, or take the last one away. */
static int walk_end(struct walk *w, const char *index)
{
	if (!w->directory) {
		w->out[w->n - 1] = '\0';
		return 0;
	}
	size_t length = strlen(index);
	if (length == 0 || w->n + length >= w->size)
		return WEIR_ENOENT;
	memcpy(w->out + w->n, index, length + 1);
	return 0;
}

/* Walk all of `path`. */
static int walk_path(struct walk *w, struct weir_slice path, char *out, size_t size)
{
	if (path.n == 0 || path.p[0] != '/' || size < 2)
		return WEIR_EINVAL;
	*w = (struct walk){.p = path.p, .end = path.p + path.n, .out = out, .size = size};
	int rc = 0;
	while (w->p < w->end && rc == 0) {
		w->p++; /* the slash */
		rc = walk_segment(w);
	}
	return rc;
}

int path_map(struct weir_slice path, const char *index, char *out, size_t size)
{
	struct walk w;
	int rc = walk_path(&w, path, out, size);

	return rc < 0 ? rc : walk_end(&w, index);
}

int path_map_directory(struct weir_slice path, char *out, size_t size)
{
	struct walk w;
	int rc = walk_path(&w, path, out, size);

	if (rc == 0 && !w.directory)
		rc = WEIR_ENOENT;
	if (rc < 0)
		return rc;
	if (w.n == 0)
		out[w.n++] = '.';
	else
		w.n--; /* the slash */
	out[w.n] = '\0';
	return 0;
}

bool path_is_plain(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c != '\0' && strchr("-._~/!$&'()*+,;=:@", c));
}

/* Length of the segment character at `p` when it is in its canonical spelling, else 0. */
static size_t canonical_length(const char *p, const char *end)
{
	if (*p != '%')
		return path_is_plain((unsigned char)*p) ? 1 : 0;
	int high = end - p >= 3 ? hex_digit(p[1]) : -1;
	int low = high >= 0 ? hex_digit(p[2]) : -1;
	if (low < 0)
		return 0;
	bool capitals = !(p[1] >= 'a' && p[1] <= 'f') && !(p[2] >= 'a' && p[2] <= 'f');
	bool needed = !path_is_plain((unsigned char)(high << 4 | low));
	return capitals && needed ? 3 : 0;
}

/* Is the segment in front of `end` (a slash or the end of the path) one that a name may have? */
static bool segment_is_canonical(const char *start, const char *end)
{
	size_t n = (size_t)(end - start);

	return n > 0 && !(n == 1 && start[0] == '.') &&
	       !(n == 2 && start[0] == '.' && start[1] == '.');
}

bool path_is_canonical(struct weir_slice path)
{
	const char *end = path.p + path.n, *start = path.p + 1;

	if (path.n == 0 || path.p[0] != '/')
		return false;
	for (const char *p = start; p < end;) {
		size_t n = canonical_length(p, end);
		if (n == 0 || (*p == '/' && !segment_is_canonical(start, p)))
			return false;
		if (*p == '/')
			start = p + 1;
		p += n;
	}
	return start == end || segment_is_canonical(start, end);
}

int path_directory(const char *name, char *out, size_t size)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t n = 0;

	if (size < 3)
		return WEIR_EINVAL;
	out[n++] = '/';
	for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
		size_t need = path_is_plain(*p) ? 1 : 3;
		if (n + need + 2 > size) /* the last slash and NUL */
			return WEIR_EINVAL;
		if (need == 1) {
			out[n++] = (char)*p;
			continue;
		}
		out[n++] = '%';
		out[n++] = hex[*p >> 4];
		out[n++] = hex[*p & 15];
	}
	out[n++] = '/';
	out[n] = '\0';
	return 0;
}
