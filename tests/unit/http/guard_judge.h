/* SPDX-License-Identifier: MIT */
/*
 * Verdicts of the byte guard, and of llhttp after it, on texts; for test_guard*.c. Header-only.
 */
#ifndef WEIR_TESTS_GUARD_JUDGE_H
#define WEIR_TESTS_GUARD_JUDGE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/message/guard.h"
#include "http/message/parse.h"

#include "cunit_main.h"

#define HOST "Host: a\r\n"

/* Judge exactly n bytes in an allocation of that size, so that ASan detects reads past the end.
 * Returns 0 for more, 200 for good, else the status of the refusal. */
static inline int judge_n(const char *text, size_t n, bool llhttp)
{
	static struct weir_http_header headers[WEIR_HTTP_HEADERS_MAX];
	struct http_head head = {.headers = headers};
	char *exact = malloc(n ? n : 1);
	enum guard_verdict v;

	memcpy(exact, text, n);
	v = llhttp ? parse_head(exact, n, &head) : guard_head(exact, n, &head);
	free(exact);
	return v == GUARD_MORE ? 0 : v == GUARD_GOOD ? 200 : head.status;
}

/* The verdict on `text`. It must be the same for the guard alone and with llhttp, and at every
 * split: a shorter prefix gives "more" or already the final verdict. */
static inline int judge(const char *text)
{
	size_t n = strlen(text);
	int whole = judge_n(text, n, true), guard = judge_n(text, n, false);

	/* The guard refuses malformed texts without llhttp; only llhttp knows the methods. */
	CU_ASSERT(guard == whole || (guard == 200 && whole == 501));
	for (size_t i = 0; i < n; i++) {
		int part = judge_n(text, i, true);
		if (part != 0 && part != whole) {
			fprintf(
			    stderr, "split at %zu says %d, whole %d: %s\n", i, part, whole, text);
			CU_FAIL("verdict depends on the split");
		}
	}
	return whole;
}

struct verdict {
	const char *text;
	int status;
};

static inline void judge_all(const struct verdict *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int status = judge(v[i].text);
		if (status != v[i].status)
			fprintf(stderr, "got %d, expected %d: \"%s\"\n", status, v[i].status,
			    v[i].text);
		CU_ASSERT_EQUAL(status, v[i].status);
	}
}

#define JUDGE_ALL(table) judge_all(table, sizeof(table) / sizeof(table[0]))

#endif
