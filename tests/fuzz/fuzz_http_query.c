/* SPDX-License-Identifier: MIT */
/*
 * Percent-decoding and query parameters, compared with a second reader that encodes: what is decoded and
 * encoded again must be decoded to the same bytes, and each parameter found is in the query.
 *
 * Input: the size of the buffer, then the name to look for, a newline and the query.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "fuzz_http_query: %s\n", what);
	abort();
}

/* Escape every byte, and decode the result. */
static void check_again(const char *bytes, size_t n)
{
	char *text = malloc(3 * n + 1), *again = malloc(n + 1);

	for (size_t i = 0; i < n; i++)
		snprintf(text + 3 * i, 4, "%%%02x", (unsigned char)bytes[i]);
	int64_t m = weir_http_percent_decode((struct weir_slice){text, 3 * n}, true, again, n + 1);
	expect(m == (int64_t)n && memcmp(bytes, again, n) == 0, "other bytes when encoded again");
	free(text);
	free(again);
}

static void check_decode(struct weir_slice text, bool plus, char *buf, size_t size)
{
	int64_t n = weir_http_percent_decode(text, plus, buf, size);

	expect(n == WEIR_EINVAL || (n >= 0 && n < (int64_t)size), "a result outside of the buffer");
	expect(size == 0 || strlen(buf) == (size_t)(n > 0 ? n : 0), "the NUL");
	expect(n <= (int64_t)text.n, "more bytes than there were");
	if (n >= 0)
		check_again(buf, (size_t)n);
}

static void check_parameters(struct weir_slice query, char *buf, size_t size)
{
	struct weir_slice rest = query, name, value;
	const char *end = query.p + query.n, *at = query.p;

	while (weir_http_query_next(&rest, &name, &value)) {
		expect(name.p >= at && name.p + name.n <= end, "a name outside of the query");
		expect(!value.p || value.p == name.p + name.n + 1, "a value without its name");
		expect(!memchr(name.p, '=', name.n) && !memchr(name.p, '&', name.n), "a long name");
		expect(!value.p || !memchr(value.p, '&', value.n), "a long value");
		at = rest.p;
		check_decode(name, true, buf, size);
		check_decode(value, false, buf, size);
	}
	expect(rest.n == 0, "the end");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[64] = "";

	if (size == 0)
		return 0;
	size_t room = data[0];
	char *buf = malloc(room + 1), *exact = malloc(size);
	memcpy(exact, data + 1, size - 1);
	const char *nl = memchr(exact, '\n', size - 1);
	size_t n = nl ? (size_t)(nl - exact) : 0, from = nl ? n + 1 : 0;
	struct weir_slice query = {exact + from, size - 1 - from};

	snprintf(name, sizeof(name), "%.*s", (int)(n < 63 ? n : 63), exact);
	check_parameters(query, buf, room);
	int64_t found = weir_http_query_get(query, name, buf, room);
	expect(found == WEIR_ENOENT || found == WEIR_EINVAL ||
		   (found >= 0 && found < (int64_t)room && strlen(buf) == (size_t)found),
	    "a value outside of the buffer");
	free(buf);
	free(exact);
	return 0;
}
