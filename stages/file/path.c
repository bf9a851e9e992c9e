/* SPDX-License-Identifier: MIT */
/*
 * Maps a request path to a file name in one pass. See path.h for the rules.
 *
 * Each segment is decoded, appended to `out`, and checked. It is then kept, removed ("", "."), or
 * removed together with the segment before it (".."). Only decoded segments are checked, so
 * "%2e%2e" is treated as "..". An encoded slash never becomes a separator; it is refused.
 */
#include "path.h"

#include <string.h>

/* Longest segment: NAME_MAX of the common file systems, so longer names cannot exist. */
#define PATH_SEGMENT_MAX 255

struct walk {
	const char *p, *end; /* the unread part of the request path */
	char *out;
	size_t n, size; /* bytes written, bytes available */
	bool directory; /* the path read so far names a directory */
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Read and decode the next byte of a segment. Returns the byte or a WEIR_E code. */
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

/* Append the decoded bytes up to the next slash or the end to `out`, leaving space for '/' and
 * NUL. */
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

/* Remove the last segment and its slash from `out`. */
static int walk_up(struct walk *w)
{
	if (w->n == 0)
		return WEIR_EINVAL;
	w->n--;
	while (w->n > 0 && w->out[w->n - 1] != '/')
		w->n--;
	return 0;
}

/* Whether the segment at `s`, which begins with a dot, may be served. Only ".well-known" at the
 * root may (RFC 8615). */
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

/* Finish the name, in which every kept segment ends in a slash: append the index to a directory, or
 * remove the slash after a file. */
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

/* Read all of `path`. */
static int walk_path(struct walk *w, struct weir_slice path, char *out, size_t size)
{
	if (path.n == 0 || path.p[0] != '/' || size < 2)
		return WEIR_EINVAL;
	*w = (struct walk){.p = path.p, .end = path.p + path.n, .out = out, .size = size};
	int rc = 0;
	while (w->p < w->end && rc == 0) {
		w->p++; /* skip the slash */
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
		w.n--; /* drop the last slash */
	out[w.n] = '\0';
	return 0;
}

bool path_is_plain(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c != '\0' && strchr("-._~/!$&'()*+,;=:@", c));
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
