/* SPDX-License-Identifier: MIT */
/* Hints of clients about their requests; see wire.h. */
#include "http/wire.h"

#include <string.h>
#include <strings.h>

/* gRPC's bound; as many ms are a year. */
#define DIGITS_MAX 8

static bool named(const struct weir_http_header *h, const char *name, size_t n)
{
	return h->name.n == n && strncasecmp(h->name.p, name, n) == 0;
}

/* Leading digits of `s`; returns how many, 0 for none or too many. */
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

/* "250" of unit `unit`, or "250m" when it is 0. -1: can not be read. */
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

/* ---- users ---- */

/* The field of the event type that `text` names, and its argument. */
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

	return s.n ? (uint32_t)weir_hash(s) | 1 : 0;
}
