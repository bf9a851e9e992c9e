/* SPDX-License-Identifier: MIT */
/* Bodies with several ranges: every byte, from memory or from a file; lengths; boundaries. */
#include "file/multipart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static const char text[] = "0123456789abcdefghij";

static const struct range_set two = {2, {{0, 2}, {18, 2}}};

static void check_body(const char *type, const char *line, bool of_file)
{
	struct weir_http_piece piece[MULTIPART_PIECES];
	struct multipart m;
	char expected[512], written[MULTIPART_TYPE_SIZE], also[MULTIPART_TYPE_SIZE];

	multipart_init(&m, &two, (struct weir_slice){type, strlen(type)}, 20);
	size_t n_text = multipart_text_bytes(&m), n = 0;
	char *lines = malloc(n_text), body[512]; /* exact size: ASan detects one byte too many */
	int pieces = multipart_pieces(&m, lines, of_file ? NULL : text, piece);
	CU_ASSERT_EQUAL(pieces, 5);
	for (int i = 0; i < pieces; i++) {
		CU_ASSERT_EQUAL(piece[i].p == NULL, of_file && i % 2 == 1);
		const char *p = piece[i].p ? piece[i].p : text + piece[i].offset;
		memcpy(body + n, p, (size_t)piece[i].n);
		n += (size_t)piece[i].n;
	}
	CU_ASSERT_EQUAL(n, n_text + 4);
	int length = snprintf(expected, sizeof(expected),
	    "\r\n--%s\r\nContent-Range: bytes 0-1/20\r\n%s\r\n01"
	    "\r\n--%s\r\nContent-Range: bytes 18-19/20\r\n%s\r\nij"
	    "\r\n--%s--\r\n",
	    m.boundary, line, m.boundary, line, m.boundary);
	CU_ASSERT_EQUAL(n, (size_t)length);
	CU_ASSERT(n == (size_t)length && memcmp(body, expected, n) == 0);
	free(lines);
	multipart_type(&m, written);
	snprintf(also, sizeof(also), "multipart/byteranges; boundary=%s", m.boundary);
	CU_ASSERT_STRING_EQUAL(written, also);
}

static void test_body(void)
{
	check_body("text/plain", "Content-Type: text/plain\r\n", false);
	check_body("text/plain", "Content-Type: text/plain\r\n", true);
	check_body("", "", false);
}

static void test_boundaries_differ(void)
{
	struct multipart a, b;

	multipart_init(&a, &two, (struct weir_slice){"", 0}, 20);
	multipart_init(&b, &two, (struct weir_slice){"", 0}, 20);
	CU_ASSERT_EQUAL(strlen(a.boundary), 16);
	CU_ASSERT_STRING_NOT_EQUAL(a.boundary, b.boundary);
}

CUNIT_MAIN("multipart", {"body", test_body}, {"boundaries differ", test_boundaries_differ})
