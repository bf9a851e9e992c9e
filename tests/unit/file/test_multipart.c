/* SPDX-License-Identifier: MIT */
/* Bodies of several ranges: every byte of one, its length, boundaries, a file that cannot be read. */
#include "file/multipart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "cunit_main.h"

static const char text[] = "0123456789abcdefghij";

static int copy(void *arg, char *to, int64_t offset, size_t n)
{
	(void)arg;
	memcpy(to, text + offset, n);
	return 0;
}

static int fail(void *arg, char *to, int64_t offset, size_t n)
{
	(void)arg, (void)to, (void)offset, (void)n;
	return WEIR_ESYS;
}

static const struct range_set two = {2, {{0, 2}, {18, 2}}};

static void check_body(const char *type, const char *line)
{
	struct multipart m;
	char expected[512], written[MULTIPART_TYPE_SIZE], also[MULTIPART_TYPE_SIZE];

	multipart_init(&m, &two, (struct weir_slice){type, strlen(type)}, 20);
	size_t n = multipart_bytes(&m);
	char *body = malloc(n); /* exactly: ASan sees a byte too many */
	CU_ASSERT_EQUAL(multipart_write(&m, body, copy, NULL), 0);
	int length = snprintf(expected, sizeof(expected),
	    "\r\n--%s\r\nContent-Range: bytes 0-1/20\r\n%s\r\n01"
	    "\r\n--%s\r\nContent-Range: bytes 18-19/20\r\n%s\r\nij"
	    "\r\n--%s--\r\n",
	    m.boundary, line, m.boundary, line, m.boundary);
	CU_ASSERT_EQUAL(n, (size_t)length);
	CU_ASSERT(n == (size_t)length && memcmp(body, expected, n) == 0);
	free(body);
	multipart_type(&m, written);
	snprintf(also, sizeof(also), "multipart/byteranges; boundary=%s", m.boundary);
	CU_ASSERT_STRING_EQUAL(written, also);
}

static void test_body(void)
{
	check_body("text/plain", "Content-Type: text/plain\r\n");
	check_body("", "");
}

static void test_boundaries_differ(void)
{
	struct multipart a, b;

	multipart_init(&a, &two, (struct weir_slice){"", 0}, 20);
	multipart_init(&b, &two, (struct weir_slice){"", 0}, 20);
	CU_ASSERT_EQUAL(strlen(a.boundary), 16);
	CU_ASSERT_STRING_NOT_EQUAL(a.boundary, b.boundary);
}

static void test_unreadable(void)
{
	struct multipart m;

	multipart_init(&m, &two, (struct weir_slice){"", 0}, 20);
	char *body = malloc(multipart_bytes(&m));
	CU_ASSERT_EQUAL(multipart_write(&m, body, fail, NULL), WEIR_ESYS);
	free(body);
}

CUNIT_MAIN("multipart", {"body", test_body}, {"boundaries differ", test_boundaries_differ},
    {"unreadable", test_unreadable})
