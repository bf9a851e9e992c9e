/* SPDX-License-Identifier: MIT */
/* Accept-Encoding (RFC 9110, 12.5.3): weights, stars, malformed lists, and the coding chosen. */
#include "file/encoding.h"

#include <stdio.h>
#include <string.h>

#include "cunit_main.h"

/* A request with up to two Accept-Encoding fields; NULL: none. */
static struct weir_http_request *request_of(const char *one, const char *two)
{
	static struct weir_http_header headers[3];
	static struct weir_http_request req;

	req = (struct weir_http_request){.headers = headers, .n_headers = 1};
	headers[0] = (struct weir_http_header){{"Accept", 6}, {"br", 2}};
	if (one)
		headers[req.n_headers++] =
		    (struct weir_http_header){{"Accept-Encoding", 15}, {one, strlen(one)}};
	if (two)
		headers[req.n_headers++] =
		    (struct weir_http_header){{"accept-encoding", 15}, {two, strlen(two)}};
	return &req;
}

/* Checks the ranks of br, zstd, gzip and identity, given as four digits. */
static void check(const char *field, const char *ranks)
{
	struct encoding_wish w;
	char got[ENCODING_N + 1] = "";

	encoding_wish(request_of(field, NULL), &w);
	for (int e = 0; e < ENCODING_N; e++)
		got[e] = (char)('0' + w.rank[e]);
	if (strcmp(got, ranks) != 0)
		fprintf(stderr, "'%s': %s, not %s\n", field ? field : "(none)", got, ranks);
	CU_ASSERT_STRING_EQUAL(got, ranks);
}

static void test_names(void)
{
	check(NULL, "0001");
	check("", "0001");
	check("gzip", "0021");
	check("GZip", "0021");
	check("x-gzip", "0021");
	check("br, gzip, zstd", "2221");
	check("gzip, deflate, br", "2021");
	check("deflate, compress", "0001");
	check("identity", "0001");
	check("identity, br", "1001"); /* equal preference */
	check(" ,, gzip ,\t, ", "0021");
}

static void test_weights(void)
{
	check("gzip;q=0", "0001");
	check("gzip;q=0.000", "0001");
	check("gzip;q=0.001", "0021");
	check("br;q=0.5, gzip;q=0.8", "2031");
	check("br;q=1.0, gzip;q=0.8, zstd;q=0.9", "4321");
	check("br;Q=0.5,gzip", "2031");
	check("br ; q=0.5 ,gzip ;q=1.000", "2031");
	check("gzip;q=0.5, identity;q=0.6", "0012");
	check("identity;q=0", "0000");
	check("gzip, identity;q=0", "0010");
	check("gzip, gzip;q=0", "0021"); /* the first one counts */
}

static void test_star(void)
{
	check("*", "1111");
	check("*;q=0", "0000");
	check("gzip, *;q=0", "0010");
	check("gzip, identity;q=0.5, *;q=0", "0021");
	check("br;q=0, *", "0111");
	check("gzip;q=0.5, *;q=0.1", "1121");
	check("identity, *;q=0", "0001");
}

static void test_malformed(void)
{
	check("gzip;q=2", "0001");
	check("gzip;q=1.001", "0001");
	check("gzip;q=0.1234", "0001");
	check("gzip;q=.5", "0001");
	check("gzip;q=-1", "0001");
	check("gzip;q=", "0001");
	check("gzip;q", "0001");
	check("gzip;", "0001");
	check("gzip;x=1", "0001");
	check("gzip q=1", "0001");
	check("gzip;q=0.5;q=0", "0001");
	check("gzip;q=0,5", "0001"); /* the weight is malformed, and "5" is another coding */
	check("brr, gzipx", "0001");
	check("gzip;q=1x, br", "2001");
}

static void test_several_fields(void)
{
	struct encoding_wish w;

	encoding_wish(request_of("gzip;q=0.5", "br"), &w);
	CU_ASSERT(w.rank[ENCODING_BR] == 3 && w.rank[ENCODING_GZIP] == 2);
	CU_ASSERT_EQUAL(encoding_code(request_of("gzip", "br")),
	    encoding_code(request_of("br;q=0.7, gzip;q=0.7", NULL)));
}

/* Requests that get the same responses have the same code. */
static void test_codes(void)
{
	CU_ASSERT_EQUAL(encoding_code(request_of(NULL, NULL)), 0);
	CU_ASSERT_EQUAL(encoding_code(request_of("identity", NULL)), 0);
	CU_ASSERT_EQUAL(encoding_code(request_of("deflate;q=0.5, gzip;q=0", NULL)), 0);
	static const char *const differ[] = {"gzip", "br", "zstd", "gzip, br", "gzip, br;q=0.5",
	    "gzip;q=0.5, br", "identity;q=0", "gzip, identity;q=0", "gzip, identity", "*",
	    "gzip, br, zstd", "gzip;q=0.1, identity"};
	for (size_t i = 0; i < sizeof(differ) / sizeof(differ[0]); i++) {
		unsigned code = encoding_code(request_of(differ[i], NULL));
		CU_ASSERT(code > 0 && code < 4096);
		for (size_t k = 0; k < i; k++)
			CU_ASSERT_NOT_EQUAL(code, encoding_code(request_of(differ[k], NULL)));
	}
}

static enum encoding choose(const char *field, const enum encoding *order, int n)
{
	struct encoding_wish w;

	encoding_wish(request_of(field, NULL), &w);
	return encoding_choose(&w, order, n);
}

static void test_choose(void)
{
	static const enum encoding all[] = {ENCODING_BR, ENCODING_ZSTD, ENCODING_GZIP};
	static const enum encoding gzip_first[] = {ENCODING_GZIP, ENCODING_BR};

	CU_ASSERT_EQUAL(choose("gzip, br", all, 3), ENCODING_BR);
	CU_ASSERT_EQUAL(choose("gzip, br", gzip_first, 2), ENCODING_GZIP);
	CU_ASSERT_EQUAL(choose("gzip, br;q=0.9", all, 3), ENCODING_GZIP);
	CU_ASSERT_EQUAL(choose("zstd", gzip_first, 2), ENCODING_IDENTITY);
	CU_ASSERT_EQUAL(choose("*", all, 3), ENCODING_BR);
	CU_ASSERT_EQUAL(choose("*;q=0", all, 3), ENCODING_N);
	CU_ASSERT_EQUAL(choose("zstd, identity;q=0", gzip_first, 2), ENCODING_N);
	CU_ASSERT_EQUAL(choose("gzip;q=0.5, identity", all, 3), ENCODING_IDENTITY);
	CU_ASSERT_EQUAL(choose(NULL, all, 3), ENCODING_IDENTITY);
	CU_ASSERT_EQUAL(choose(NULL, all, 0), ENCODING_IDENTITY);
}

CUNIT_MAIN("encoding", {"names", test_names}, {"weights", test_weights}, {"star", test_star},
    {"malformed", test_malformed}, {"several fields", test_several_fields}, {"codes", test_codes},
    {"choose", test_choose})
