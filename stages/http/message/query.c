/* SPDX-License-Identifier: MIT */
/* Percent-decoding and the parameters of a query; see weir/http.h. */
#include <string.h>

#include <weir/http.h>

#include "http/message/guard.h"

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
}

/* Decode the byte at text.p[*at] and advance *at behind it. Returns -1 if it is not valid. */
static int decode(struct weir_slice text, bool plus, size_t *at)
{
	const char *p = text.p + *at;

	(*at)++;
	if (*p == '+' && plus)
		return ' ';
	if (*p != '%')
		return (unsigned char)*p;
	if (text.n - *at < 2 || !is_hex(p[1]) || !is_hex(p[2]))
		return -1;
	*at += 2;
	return (int)(guard_hex(p[1]) << 4 | guard_hex(p[2]));
}

int64_t weir_http_percent_decode(struct weir_slice text, bool plus, char *buf, size_t size)
{
	size_t n = 0;

	if (size == 0)
		return WEIR_EINVAL;
	for (size_t at = 0; at < text.n;) {
		int c = decode(text, plus, &at);
		if (c <= 0 || n + 1 >= size) {
			buf[0] = '\0';
			return WEIR_EINVAL;
		}
		buf[n++] = (char)c;
	}
	buf[n] = '\0';
	return (int64_t)n;
}

bool weir_http_query_next(
    struct weir_slice *query, struct weir_slice *name, struct weir_slice *value)
{
	while (query->n > 0) {
		const char *p = query->p, *end = memchr(p, '&', query->n);
		size_t n = end ? (size_t)(end - p) : query->n;
		size_t used = end ? n + 1 : n;

		*query = (struct weir_slice){p + used, query->n - used};
		if (n == 0)
			continue;
		const char *sign = memchr(p, '=', n);
		*name = (struct weir_slice){p, sign ? (size_t)(sign - p) : n};
		*value = sign ? (struct weir_slice){sign + 1, n - name->n - 1}
			      : (struct weir_slice){NULL, 0};
		return true;
	}
	return false;
}

/* Whether `text` is `name` when it is decoded. */
static bool decodes_to(struct weir_slice text, const char *name)
{
	size_t at = 0;

	for (; at < text.n && *name; name++)
		if (decode(text, true, &at) != (unsigned char)*name)
			return false;
	return at == text.n && !*name;
}

int64_t weir_http_query_get(struct weir_slice query, const char *name, char *buf, size_t size)
{
	struct weir_slice found, value;

	if (size > 0)
		buf[0] = '\0';
	while (weir_http_query_next(&query, &found, &value))
		if (decodes_to(found, name))
			return weir_http_percent_decode(value, true, buf, size);
	return WEIR_ENOENT;
}
