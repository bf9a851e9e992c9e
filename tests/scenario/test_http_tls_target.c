/* SPDX-License-Identifier: MIT */
/* A target in absolute form has the scheme of its connection: https over TLS, and no other. */
#include "fixture/http/tls.h"

static void check(const char *request, int status)
{
	struct server s = tls_server_start("t.reply");
	struct tls_client k = tls_client_open(s.port, &(struct tls_wish){0});
	struct answer a = {0};

	CU_ASSERT(tls_say(&k, request));
	CU_ASSERT(tls_answer(&k, &a));
	CU_ASSERT_EQUAL(a.status, status);
	answer_free(&a);
	tls_client_close(&k);
	server_stop(&s);
}

static void test_scheme(void)
{
	check("GET https://t/x HTTP/1.1\r\nHost: t\r\n\r\n", 200);
	check("GET http://t/x HTTP/1.1\r\nHost: t\r\n\r\n", 400);
}

CUNIT_MAIN(
    "tls target", {"make files", tls_begin}, {"scheme", test_scheme}, {"remove files", tls_end})
