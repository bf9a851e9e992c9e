/* SPDX-License-Identifier: MIT */
/*
 * Hints in requests: traceparent, x-deadline-ms, grpc-timeout, x-retry-attempt. Each has the value
 * that a second parser reads, or is counted as malformed. A trace that was read is written back the
 * same.
 *
 * Input: fields separated by newlines, each a byte for the name followed by the value.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/trace.h>

#include "http/conn/io.h"
#include "http/message/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 8 };

static const char *const names[] = {"traceparent", "TraceParent", "x-deadline-ms", "X-Deadline-MS",
    "grpc-timeout", "GRPC-Timeout", "x-retry-attempt", "X-Retry-Attempt", "host"};
#define NAMES (sizeof(names) / sizeof(names[0]))

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_hints: %s\n", what);
	abort();
}

/* ---- the second parser ---- */

static bool all_of(struct weir_slice s, size_t from, size_t n, const char *letters)
{
	for (size_t i = from; i < from + n; i++)
		if (i >= s.n || !s.p[i] || !strchr(letters, s.p[i]))
			return false;
	return true;
}

static bool all_zero(struct weir_slice s, size_t from, size_t n)
{
	return all_of(s, from, n, "0");
}

static bool is_trace(struct weir_slice s)
{
	static const char hex[] = "0123456789abcdef";
	bool first = all_zero(s, 0, 2);

	return all_of(s, 0, 2, hex) && all_of(s, 2, 1, "-") && all_of(s, 3, 32, hex) &&
	       all_of(s, 35, 1, "-") && all_of(s, 36, 16, hex) && all_of(s, 52, 1, "-") &&
	       all_of(s, 53, 2, hex) && !all_of(s, 0, 2, "f") && !all_zero(s, 3, 32) &&
	       !all_zero(s, 36, 16) && (s.n == 55 || (!first && s.p[55] == '-'));
}

/* Up to eight digits before `behind` more bytes; -1: something else. */
static int64_t number(struct weir_slice s, size_t behind)
{
	char text[9];

	if (s.n <= behind || s.n - behind > 8 || !all_of(s, 0, s.n - behind, "0123456789"))
		return -1;
	snprintf(text, sizeof(text), "%.*s", (int)(s.n - behind), s.p);
	return atoll(text);
}

static int64_t left_of(struct weir_slice s, bool grpc)
{
	static const char letters[] = "numSMH";
	static const int64_t ns[] = {1, 1000, 1000000, 1000000000, 60000000000, 3600000000000};
	int64_t value = number(s, grpc);
	const char *unit = grpc && s.n ? memchr(letters, s.p[s.n - 1], 6) : letters + 2;

	if (value < 0 || !unit)
		return -1;
	double exact = (double)value * (double)ns[unit - letters];
	return exact > (double)WIRE_LEFT_MAX_NS ? WIRE_LEFT_MAX_NS : value * ns[unit - letters];
}

/* ---- the checks ---- */

static void check_text(struct weir_slice s, const struct weir_trace *t)
{
	struct weir_trace again = *t;
	char text[WEIR_TRACEPARENT_BYTES];

	again.span = t->parent;
	weir_traceparent_print(&again, text);
	expect(strlen(text) == WEIR_TRACEPARENT_BYTES - 1, "a context of another length");
	expect(memcmp(text + 2, s.p + 2, 51) == 0, "another context than was read");
	expect(text[54] == (t->sampled ? '1' : '0') &&
		   t->sampled == (strchr("13579bdf", s.p[54]) != NULL),
	    "another flag");
}

static void check_trace(const struct weir_http_request *req)
{
	struct weir_trace was = {.id = {1, 2}, .span = 3, .parent = 4}, t = was;
	int found = 0, good = 0;
	bool malformed = false;
	struct weir_slice value = {0};

	for (int i = 0; i < req->n_headers; i++)
		if (strncasecmp(req->headers[i].name.p, "traceparent", 11) == 0) {
			value = req->headers[i].value;
			found++;
			good += is_trace(value);
		}
	bool said = wire_trace(req, &t, &malformed);
	expect(said == (found == 1 && good == 1), "two readers, two verdicts on a trace");
	expect(malformed == (found > 1 || good < found), "malformed or not");
	if (said)
		check_text(value, &t);
	else
		expect(
		    memcmp(&t, &was, sizeof(t)) == 0, "a trace that was not read is another one");
}

static void check_left(const struct weir_http_request *req)
{
	int64_t least = -1;
	bool bad = false, malformed = true;

	for (int i = 0; i < req->n_headers; i++) {
		const char *name = req->headers[i].name.p;
		bool grpc = strcasecmp(name, "grpc-timeout") == 0;
		if (!grpc && strcasecmp(name, "x-deadline-ms") != 0)
			continue;
		int64_t left = left_of(req->headers[i].value, grpc);
		bad |= left < 0;
		if (left >= 0 && (least < 0 || left < least))
			least = left;
	}
	expect(wire_left_ns(req, &malformed) == least, "another time");
	expect(malformed == bad, "a time that can not be read");
}

static void check_attempt(const struct weir_http_request *req)
{
	int64_t most = 0;
	bool bad = false, malformed = false;

	for (int i = 0; i < req->n_headers; i++) {
		if (strcasecmp(req->headers[i].name.p, "x-retry-attempt") != 0)
			continue;
		int64_t n = number(req->headers[i].value, 0);
		bad |= n < 0 || n > 255;
		most = n <= 255 && n > most ? n : most;
	}
	expect(wire_attempt(req, &malformed) == most, "another attempt");
	expect(malformed == bad, "an attempt that can not be read");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_http_header headers[FIELDS];
	struct weir_http_request *req = calloc(1, weir_http_request_type.size);
	const char *p = (const char *)data, *end = p + size;

	expect(req != NULL, "no memory");
	req->headers = headers;
	for (int i = 0; i < FIELDS && p < end; i++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		const char *stop = nl ? nl : end, *name = names[(uint8_t)*p % NAMES];
		if (stop > p) {
			headers[req->n_headers++] = (struct weir_http_header){
			    {name, strlen(name)}, {p + 1, (size_t)(stop - p) - 1}};
		}
		p = nl ? nl + 1 : end;
	}
	check_trace(req);
	check_left(req);
	check_attempt(req);
	free(req);
	return 0;
}
