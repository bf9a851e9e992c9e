/* SPDX-License-Identifier: MIT */
/* Reads client hints about requests; see wire.h. */
#include "http/message/wire.h"

#include <stdio.h>
#include <string.h>

#include <weir/clock.h>

#include "http/message/guard.h"
#include "http/message/put.h"

/* Maximum number of digits: the limit of gRPC. In ms, eight digits can express more than a day. */
#define DIGITS_MAX 8

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

static bool named(const struct weir_http_header *h, const char *name, size_t n)
{
	return h->name.n == n && guard_same(h->name.p, name, n);
}

static unsigned hint_of(const struct weir_http_header *h)
{
	if (named(h, "traceparent", 11))
		return WIRE_TRACE;
	if (named(h, "grpc-timeout", 12) || named(h, "x-deadline-ms", 13))
		return WIRE_LEFT;
	return named(h, "x-retry-attempt", 15) ? WIRE_ATTEMPT : 0;
}

unsigned wire_hints(const struct weir_http_request *req)
{
	unsigned found = 0;

	for (int i = 0; i < req->n_headers; i++)
		found |= hint_of(&req->headers[i]);
	return found;
}

/* Read the leading digits of `s`. Returns their number, or 0 if there are none or too many. */
static size_t digits(struct weir_slice s, int64_t *value)
{
	size_t i = 0;

	*value = 0;
	for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++) {
		if (i == DIGITS_MAX)
			return 0;
		*value = *value * 10 + (s.p[i] - '0');
	}
	return i;
}

static int64_t unit_ns(char unit)
{
	switch (unit) {
	case 'H':
		return 3600000000000;
	case 'M':
		return 60000000000;
	case 'S':
		return 1000000000;
	case 'm':
		return 1000000;
	case 'u':
		return 1000;
	case 'n':
		return 1;
	default:
		return 0;
	}
}

/* Read "250" in `unit`, or "250m" with its own unit if `unit` is 0. Returns ns, or -1 if `s` is
 * unreadable. */
static int64_t read_left(struct weir_slice s, char unit)
{
	int64_t value;
	size_t n = digits(s, &value);

	if (n == 0 || s.n != n + (unit == 0))
		return -1;
	int64_t ns = unit_ns(unit ? unit : s.p[n]);
	if (ns == 0)
		return -1;
	return value > WIRE_LEFT_MAX_NS / ns ? WIRE_LEFT_MAX_NS : value * ns;
}

int64_t wire_left_ns(const struct weir_http_request *req, bool *malformed)
{
	int64_t least = -1;

	*malformed = false;
	for (int i = 0; i < req->n_headers; i++) {
		const struct weir_http_header *h = &req->headers[i];
		bool ms = named(h, "x-deadline-ms", 13), grpc = !ms && named(h, "grpc-timeout", 12);
		if (!ms && !grpc)
			continue;
		int64_t left_ns = read_left(h->value, ms ? 'm' : 0);
		if (left_ns < 0)
			*malformed = true;
		else if (least < 0 || left_ns < least)
			least = left_ns;
	}
	return least;
}

int wire_attempt(const struct weir_http_request *req, bool *malformed)
{
	int most = 0;

	for (int i = 0; i < req->n_headers; i++) {
		const struct weir_http_header *h = &req->headers[i];
		int64_t n;
		if (!named(h, "x-retry-attempt", 15))
			continue;
		if (digits(h->value, &n) != h->value.n || h->value.n == 0 || n > 255)
			*malformed = true;
		else if (n > most)
			most = (int)n;
	}
	return most;
}

bool wire_trace(const struct weir_http_request *req, struct weir_trace *trace, bool *malformed)
{
	const struct weir_http_header *only = NULL;
	int found = 0;

	for (int i = 0; i < req->n_headers; i++) {
		const struct weir_http_header *h = &req->headers[i];
		if (!named(h, "traceparent", 11))
			continue;
		found++;
		only = h;
	}
	bool good = found == 1 && weir_traceparent_read(only->value, trace);
	if (found > 0 && !good)
		*malformed = true;
	return good;
}

/* ---- retry times and outgoing fields ---- */

int wire_retry_after_s(int64_t known_ns, int least_s, bool spread, uint64_t seed)
{
	int64_t s = known_ns / NS_PER_S + (known_ns % NS_PER_S != 0);

	s = s > WIRE_RETRY_MAX_S ? WIRE_RETRY_MAX_S : s;
	s = s < least_s ? least_s : s;
	if (!spread)
		return (int)s;
	int64_t first = (s + 1) / 2, last = s + (s + 1) / 2;
	first = first < least_s ? least_s : first;
	last = last > WIRE_RETRY_MAX_S ? WIRE_RETRY_MAX_S : last;
	last = last < first ? first : last;
	/* the highest bits of the product depend on all bits of the seed (Knuth, TAOCP 3, 6.4) */
	return (int)(first + (int64_t)((seed ^ seed >> 32) * 0x9e3779b97f4a7c15ULL >> 32) %
				 (last - first + 1));
}

int64_t weir_http_deadline_left_ns(const struct weir_http_request *req, int64_t rtt_ns)
{
	if (req->ev.deadline_ns == WEIR_NO_DEADLINE)
		return WEIR_NO_DEADLINE;
	int64_t left_ns = weir_event_left_ns(&req->ev, weir_clock_ns(CLOCK_MONOTONIC)) - rtt_ns;
	return left_ns > 0 ? left_ns : 0;
}

int weir_http_deadline_field(
    const struct weir_http_request *req, int64_t rtt_ns, char *buf, size_t size)
{
	int64_t left_ns = weir_http_deadline_left_ns(req, rtt_ns);

	if (size > 0)
		buf[0] = '\0';
	if (left_ns == WEIR_NO_DEADLINE)
		return 0;
	if (left_ns < NS_PER_MS)
		return WEIR_EDEADLINE;
	int n = snprintf(buf, size, "x-deadline-ms: %lld\r\n", (long long)(left_ns / NS_PER_MS));
	if (n > 0 && (size_t)n < size)
		return n;
	if (size > 0)
		buf[0] = '\0';
	return WEIR_EINVAL;
}

int weir_http_trace_field(struct weir_http_request *req, char *buf, size_t size)
{
	struct weir_trace trace;
	char *at = buf;

	if (size > 0)
		buf[0] = '\0';
	if (size < WEIR_HTTP_TRACE_BYTES)
		return WEIR_EINVAL;
	if (!weir_event_trace(&req->ev, &trace))
		return 0;
	at = PUT(at, "traceparent: ");
	weir_traceparent_print(&trace, at);
	at = PUT(at + WEIR_TRACEPARENT_BYTES - 1, "\r\n");
	*at = '\0';
	return (int)(at - buf);
}

/* ---- users ---- */

/* Find the field of the event type that `text` names, and its argument. */
static const struct weir_field *field_of(const char *text, const char **arg)
{
	for (const struct weir_field *f = weir_http_request_type.fields; f->name; f++) {
		size_t n = strlen(f->name);
		bool takes = n > 0 && f->name[n - 1] == '.';
		if (takes ? strncmp(text, f->name, n) == 0 && text[n]
			  : strcmp(text, f->name) == 0) {
			*arg = takes ? text + n : NULL;
			return f;
		}
	}
	return NULL;
}

bool wire_user_known(const char *text)
{
	const char *arg;

	return !text[0] || field_of(text, &arg) != NULL;
}

uint32_t wire_user(const struct weir_http_request *req, const char *text)
{
	const char *arg;
	const struct weir_field *f = text[0] ? field_of(text, &arg) : NULL;
	struct weir_slice s = f ? f->get(&req->ev, arg) : (struct weir_slice){NULL, 0};

	return s.n ? ((uint32_t)weir_hash(s) & ~WEIR_SESSION_RETRY) | 1 : 0;
}
