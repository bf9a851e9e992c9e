/* SPDX-License-Identifier: MIT */
/* What the first bytes of a connection are, at and beside each limit. */
#include "net/tls/tls_hello.h"

#include "cunit_main.h"

#define HEAD(...) ((const unsigned char[TLS_HELLO_HEAD]){__VA_ARGS__})

static void test_first_byte(void)
{
	for (int b = 0; b < 256; b++) {
		enum tls_hello expected = b == TLS_HELLO_TYPE    ? TLS_HELLO_LATER
					  : b >= 'A' && b <= 'Z' ? TLS_HELLO_PLAIN
								 : TLS_HELLO_BAD;
		CU_ASSERT_EQUAL(
		    tls_hello_judge(HEAD((unsigned char)b, 3, 1, 0, 1), 1, 1), expected);
	}
}

/* The second byte is the major version; it counts once it has arrived. */
static void test_version(void)
{
	CU_ASSERT_EQUAL(tls_hello_judge(HEAD(22, 9), 1, 1), TLS_HELLO_LATER);
	CU_ASSERT_EQUAL(tls_hello_judge(HEAD(22, 9), 2, 2), TLS_HELLO_BAD);
	CU_ASSERT_EQUAL(tls_hello_judge(HEAD(22, 2), 2, 2), TLS_HELLO_BAD);
	CU_ASSERT_EQUAL(tls_hello_judge(HEAD(22, 3), 2, 2), TLS_HELLO_LATER);
	CU_ASSERT_EQUAL(tls_hello_judge(HEAD(22, 3, 1, 0), 4, 4), TLS_HELLO_LATER);
}

/* A record is whole when all of its bytes wait in the socket. */
static void test_length(void)
{
	CU_ASSERT_EQUAL(tls_hello_judge(HEAD(22, 3, 1, 0, 0), 5, 5), TLS_HELLO_BAD);
	CU_ASSERT_EQUAL(tls_hello_judge(HEAD(22, 3, 1, 0, 1), 5, 5), TLS_HELLO_LATER);
	CU_ASSERT_EQUAL(tls_hello_judge(HEAD(22, 3, 1, 0, 1), 5, 6), TLS_HELLO_WHOLE);
	CU_ASSERT_EQUAL(tls_hello_judge(HEAD(22, 3, 1, 2, 3), 5, 5 + 514), TLS_HELLO_LATER);
	CU_ASSERT_EQUAL(tls_hello_judge(HEAD(22, 3, 1, 2, 3), 5, 5 + 515), TLS_HELLO_WHOLE);
	CU_ASSERT_EQUAL(tls_hello_judge(HEAD(22, 3, 1, 2, 3), 5, 100000), TLS_HELLO_WHOLE);
	CU_ASSERT_EQUAL(tls_hello_judge(HEAD(22, 3, 1, 0x40, 0), 5, 5), TLS_HELLO_LATER);
	CU_ASSERT_EQUAL(tls_hello_judge(HEAD(22, 3, 1, 0x40, 1), 5, 5), TLS_HELLO_BAD);
}

CUNIT_MAIN("tls hello", {"first byte", test_first_byte}, {"version", test_version},
    {"length", test_length})
