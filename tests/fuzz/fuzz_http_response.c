/* SPDX-License-Identifier: MIT */
/*
 * Whatever a stage puts into a response, it remains a single response: fields, types and trailers
 * are accepted only if the result is lines of "name: value" without control bytes, and ready-made
 * lines are accepted only if they are such lines.
 *
 * Input: lines "NAME=VALUE", each added as a field; the value of the first one is also the content
 * type. The whole input is used as ready-made lines, too. NUL ends a name or value, as for a stage.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http.h>

#include "http/request/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_http_response: %s\n", what);
	abort();
}

static bool is_name_byte(uint8_t b)
{
	return (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') ||
	       (b && strchr("!#$%&'*+-.^_`|~", b));
}

/* The rule for ready-made lines, implemented differently: one state, one byte at a time. */
static bool are_lines(const uint8_t *p, size_t n)
{
	enum { START, NAME, VALUE, LF } state = START;

	for (size_t i = 0; i < n; i++) {
		uint8_t b = p[i];
		if (state == START || state == NAME) {
			if (!is_name_byte(b) && (b != ':' || state == START))
				return false;
			state = b == ':' ? VALUE : NAME;
		} else if (state == VALUE) {
			if (b == '\r')
				state = LF;
			else if ((b < 0x20 && b != '\t') || b == 0x7f)
				return false;
		} else if (b == '\n') {
			state = START;
		} else {
			return false;
		}
	}
	return state == START;
}

static bool says_length(const uint8_t *p, size_t n)
{
	static const char *const ours[] = {
	    "content-length:", "connection:", "date:", "transfer-encoding:"};

	for (size_t at = 0; at < n; at++)
		for (size_t k = 0; k < 4 && (at == 0 || p[at - 1] == '\n'); k++)
			if (n - at >= strlen(ours[k]) &&
			    strncasecmp((const char *)p + at, ours[k], strlen(ours[k])) == 0)
				return true;
	return false;
}

static void check_fields(const struct weir_http_request *req)
{
	struct weir_slice all = {req->fields, req->n_fields};

	expect(are_lines((const uint8_t *)all.p, all.n), "what was added is no list of lines");
	expect(!says_length((const uint8_t *)all.p, all.n), "a stage may say how long it is");
	expect(weir_http_fields_good(all), "what was added is not good");
}

static void add(struct weir_http_request *req, char *line)
{
	char *value = strchr(line, '=');
	uint32_t before = req->n_fields;

	if (!value)
		return;
	*value++ = '\0';
	int rc = weir_http_add_field(req, line, value);
	expect(rc == 0 || req->n_fields == before, "refused, and added");
	expect((rc == 0 || rc == WEIR_ENOMEM) == response_field_good(line, value), "two opinions");
	check_fields(req);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_req *r;
	char *text, *line, *end;

	if (size > 40000)
		return 0;
	expect(weir_http_fields_good((struct weir_slice){(const char *)data, size}) ==
		   (are_lines(data, size) && !says_length(data, size)),
	    "ready-made lines");
	r = calloc(1, sizeof(*r));
	text = malloc(size + 1);
	expect(r && text, "no memory");
	memcpy(text, data, size);
	text[size] = '\0';
	request_fields_reset(&r->pub);
	for (line = text; line <= text + size; line = end + 1) {
		end = line + strcspn(line, "\n");
		if (end < text + size && *end == '\n')
			*end = '\0';
		add(&r->pub, line);
	}
	line = text + strlen(text);
	weir_http_respond_copy(
	    &r->pub, 200, line < text + size ? line + 1 : text, (struct weir_slice){"x", 1});
	check_fields(&r->pub);
	expect(r->pub.res.status == 200 || r->pub.res.status == 500, "another status");
	weir_http_response_reset(&r->pub);
	free(text);
	free(r);
	return 0;
}
