/* SPDX-License-Identifier: MIT */
/* Parses requests for /events; see sse_request.h. */
#include "sse_request.h"

#include <stdio.h>
#include <string.h>

static const char path[] = "/events";

bool sse_wants(const char *p, size_t n)
{
	struct weir_slice target = head_target(p, n);
	size_t length = strlen(path);

	return n > 4 && memcmp(p, "GET ", 4) == 0 && target.n >= length &&
	       memcmp(target.p, path, length) == 0 &&
	       (target.n == length || target.p[length] == '?');
}

/* Parse a number of at most 18 digits. */
static bool number(struct weir_slice s, uint64_t *out)
{
	uint64_t v = 0;

	if (s.n == 0 || s.n > 18)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(s.p[i] - '0');
	}
	*out = v;
	return true;
}

static bool take_param(struct weir_slice s, struct sse_request *ask)
{
	uint64_t v;

	if (s.n > 3 && memcmp(s.p, "hz=", 3) == 0) {
		if (!number((struct weir_slice){s.p + 3, s.n - 3}, &v) || (v > 1 && v != 4))
			return false;
		ask->hz = (int)v;
		return true;
	}
	if (s.n <= 5 || memcmp(s.p, "last=", 5) != 0)
		return false;
	ask->has_last = true;
	return number((struct weir_slice){s.p + 5, s.n - 5}, &ask->last);
}

static bool take_query(struct weir_slice target, struct sse_request *ask)
{
	const char *p = memchr(target.p, '?', target.n), *end = target.p + target.n;

	for (p = p ? p + 1 : end; p < end;) {
		const char *amp = memchr(p, '&', (size_t)(end - p));
		struct weir_slice param = {p, (size_t)((amp ? amp : end) - p)};
		if (param.n > 0 && !take_param(param, ask))
			return false;
		p += param.n + 1;
	}
	return true;
}

/* Copy the field to buf[size] and return it, or return NULL if it was not sent. A value that is too
 * long is truncated; no allowed value is that long, so it matches none. */
static const char *field(const char *p, size_t n, const char *name, char *buf, size_t size)
{
	struct weir_slice s = head_field(p, n, name);

	if (!s.p)
		return NULL;
	snprintf(buf, size, "%.*s", (int)s.n, s.p);
	return buf;
}

/* Return whether the request comes from our own page or a program. A foreign page could not read
 * the events, but it could occupy all slots. */
static bool is_from_here(const char *p, size_t n)
{
	char host[300], origin[300], site[32];
	const char *at = field(p, n, "Host", host, sizeof(host));

	return at && authority_allows_act(at, field(p, n, "Origin", origin, sizeof(origin)),
			 field(p, n, "Sec-Fetch-Site", site, sizeof(site)));
}

bool sse_request_read(
    const char *p, size_t n, struct sse_request *ask, struct head_problem *problem)
{
	uint64_t last;

	*ask = (struct sse_request){.hz = 1};
	if (!is_from_here(p, n)) {
		*problem = (struct head_problem){
		    .status = 403, .why = "a page of another origin may not watch events here"};
		return false;
	}
	if (!take_query(head_target(p, n), ask)) {
		*problem = (struct head_problem){.status = 400,
		    .why = "/events takes hz=, the number of ticks per second, which is 0, 1 or 4, "
			   "and last=, the id of an event, which is a whole number"};
		return false;
	}
	if (number(head_field(p, n, "Last-Event-ID"), &last)) {
		ask->has_last = true;
		ask->last = last;
	}
	return true;
}
