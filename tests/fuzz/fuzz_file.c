/* SPDX-License-Identifier: MIT */
/*
 * Input of clients to file.read and file.cache: paths, conditions with ranges, codings.
 *
 * Input: "P" and a path, or "C" and lines "Name: value". For any input, a mapped name stays below
 * its root and has only one spelling, a verdict stays inside the file, parts do not overlap and
 * have the announced lengths, and the ranks of codings are dense.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/condition.h"
#include "file/encoding.h"
#include "file/httpdate.h"
#include "file/multipart.h"
#include "file/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FILE_BYTES 1000

static void expect(int cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_file: %s\n", what);
	abort();
}

/* Relative, without empty, dot and hidden segments, control bytes and backslashes. */
static void check_name(const char *name)
{
	static const char well_known[] = ".well-known";

	expect(name[0] != '\0' && name[strlen(name) - 1] != '/', "an empty segment at the end");
	for (const char *s = name; s; s = strchr(s, '/')) {
		s += *s == '/';
		size_t n = strcspn(s, "/");
		expect(n > 0 && n <= 255, "an empty or a long segment");
		expect(s[0] != '.' || (s == name && n == sizeof(well_known) - 1 &&
					  memcmp(s, well_known, n) == 0),
		    "a hidden segment");
	}
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		expect(*p >= 0x20 && *p != 0x7f && *p != '\\', "a byte that must not get through");
}

/* The path of a name maps to the same name again, and has only one spelling. */
static void check_spelling(const char *name)
{
	char where[3 * PATH_MAP_MAX + 3], again[PATH_MAP_MAX];

	expect(path_directory(name, where, sizeof(where)) == 0, "a name that cannot be spelt");
	struct weir_slice path = {where, strlen(where)};
	expect(where[1] != '/', "it leaves the site");
	for (size_t i = 0; i < path.n; i++)
		expect(where[i] == '%' || path_is_plain((unsigned char)where[i]), "not escaped");
	path.n--; /* the slash */
	expect(path_map(path, "", again, sizeof(again)) == 0, "its spelling leads nowhere");
	expect(strcmp(name, again) == 0, "its spelling leads elsewhere");
}

static void fuzz_path(const uint8_t *data, size_t size)
{
	struct weir_slice path = {(const char *)data, size};
	char name[PATH_MAP_MAX];

	if (path_map(path, "index.html", name, sizeof(name)) != 0)
		return;
	check_name(name);
	check_spelling(name);
}

/* Parse the next line as a header field; false at the end. */
static int next_header(struct weir_slice *rest, struct weir_http_header *h)
{
	const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
	size_t n = end ? (size_t)(end - rest->p) : rest->n;
	const char *colon = n ? memchr(rest->p, ':', n) : NULL;

	if (!colon)
		return 0;
	h->name = (struct weir_slice){rest->p, (size_t)(colon - rest->p)};
	const char *value = colon + 1;
	while (value < rest->p + n && *value == ' ')
		value++;
	h->value = (struct weir_slice){value, (size_t)(rest->p + n - value)};
	size_t skip = n + (end != NULL);
	*rest = (struct weir_slice){rest->p + skip, rest->n - skip};
	return 1;
}

/* Several parts: disjoint, few, and of exactly the announced length. */
static void check_parts(const struct condition *c, const struct condition_file *file, int parts)
{
	struct range_set set;
	struct multipart m;

	condition_ranges(c, file, &set);
	expect(set.n == parts && parts <= RANGE_MAX, "another number of parts");
	for (int i = 0; i < set.n; i++) {
		const struct byte_range *a = &set.range[i];
		for (int k = 0; k < i; k++) {
			const struct byte_range *b = &set.range[k];
			expect(
			    a->offset > b->offset + b->length || b->offset > a->offset + a->length,
			    "parts that meet");
		}
	}
	multipart_init(&m, &set, (struct weir_slice){"text/plain", 10}, FILE_BYTES);
	struct weir_http_piece piece[MULTIPART_PIECES];
	size_t n = multipart_text_bytes(&m);
	char *text = malloc(n);
	int pieces = multipart_pieces(&m, text, NULL, piece);
	for (int i = 0; i < pieces; i++)
		expect(piece[i].p || piece[i].offset + piece[i].n <= FILE_BYTES,
		    "a part is outside the file");
	expect(memcmp(text + n - 4, "--\r\n", 4) == 0, "a body that ends elsewhere");
	free(text);
}

static void check_encodings(const struct weir_http_request *req)
{
	struct encoding_wish w;
	int seen = 0, highest = 0;

	encoding_wish(req, &w);
	for (int e = 0; e < ENCODING_N; e++) {
		seen |= 1 << w.rank[e];
		highest = w.rank[e] > highest ? w.rank[e] : highest;
	}
	expect((seen | 1) == (2 << highest) - 1, "a rank is left out");
	expect(encoding_code(req) < 4096, "a code that is too large");
}

static void check_verdict(const struct condition_verdict *v)
{
	char range[CONDITION_RANGE_SIZE];

	if (v->parts > 1) {
		expect(v->status == 206 && v->length == 0, "parts of what is no 206");
		return;
	}

	switch (v->status) {
	case 200:
		expect(v->offset == 0 && v->length == FILE_BYTES, "200 is the whole file");
		break;
	case 206:
		expect(v->offset >= 0 && v->length > 0 && v->offset + v->length <= FILE_BYTES,
		    "206 is outside the file");
		break;
	default:
		expect(v->status == 304 || v->status == 412 || v->status == 416, "another status");
		expect(v->length == 0, "a body where there is none");
	}
	condition_content_range(v, FILE_BYTES, range);
}

static void fuzz_condition(const uint8_t *data, size_t size)
{
	struct weir_slice rest = {(const char *)data, size};
	struct condition_file file = {{"\"e1\"", 4}, 784111777, FILE_BYTES, false, false, false};
	struct weir_http_header headers[100];
	struct weir_http_request req = {.headers = headers};
	struct condition c;
	int64_t at_s;

	while (req.n_headers < 100 && next_header(&rest, &headers[req.n_headers])) {
		httpdate_parse(headers[req.n_headers].value, &at_s);
		req.n_headers++;
	}
	condition_scan(&req, &c);
	struct condition_verdict get = condition_judge(&c, WEIR_HTTP_GET, &file);
	struct condition_verdict head = condition_judge(&c, WEIR_HTTP_HEAD, &file);
	check_encodings(&req);
	check_verdict(&get);
	if (get.parts > 1)
		check_parts(&c, &file, get.parts);
	check_verdict(&head);
	expect(head.status != 206 && head.status != 416, "a range of a HEAD");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0 && data[0] == 'P')
		fuzz_path(data + 1, size - 1);
	if (size > 0 && data[0] == 'C')
		fuzz_condition(data + 1, size - 1);
	return 0;
}
