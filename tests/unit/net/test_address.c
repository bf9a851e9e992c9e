/* SPDX-License-Identifier: MIT */
/* Listen addresses in the forms that people write. */
#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "cunit_main.h"

/* "address port" of `text`, or the error. Static buffer. */
static const char *parsed(const char *text)
{
	static char out[512];
	struct address a;
	struct weir_err err = {0};
	char host[INET6_ADDRSTRLEN];

	if (address_parse(text, &a, &err) != 0) {
		CU_ASSERT(err.text[0] && err.hint[0] && err.code == WEIR_EINVAL);
		snprintf(out, sizeof(out), "%s", err.text);
		return out;
	}
	if (a.addr.ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)&a.addr;
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(out, sizeof(out), "%s %d", host, ntohs(in->sin_port));
	} else {
		const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&a.addr;
		inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof(host));
		snprintf(out, sizeof(out), "%s %d", host, ntohs(in->sin6_port));
	}
	return out;
}

static void test_good(void)
{
	CU_ASSERT_STRING_EQUAL(parsed("127.0.0.1:8080"), "127.0.0.1 8080");
	CU_ASSERT_STRING_EQUAL(parsed("0.0.0.0:0"), "0.0.0.0 0");
	CU_ASSERT_STRING_EQUAL(parsed(":80"), "0.0.0.0 80");
	CU_ASSERT_STRING_EQUAL(parsed("[::1]:65535"), "::1 65535");
	CU_ASSERT_STRING_EQUAL(parsed("[::]:8080"), ":: 8080");
}

static void test_bad(void)
{
	static const char *const bad[] = {"", ":", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
	    "127.0.0.1:-1", "127.0.0.1:65536", "127.0.0.1:123456", "127.0.0.1:80 ", "::1:80",
	    "[::1:80", "[::1]80", "[:80", "]:80", "300.0.0.1:80", "[127.0.0.1]x:80"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(parsed(bad[i]), "is not an address to listen on"));
}

static void test_file(void)
{
	char longest[5 + 107 + 1] = "unix:/";
	struct address a;
	struct weir_err err = {0};

	CU_ASSERT_EQUAL_FATAL(address_parse("unix:/run/weir/web.sock", &a, &err), 0);
	CU_ASSERT_STRING_EQUAL(address_file(&a), "/run/weir/web.sock");
	memset(longest + 6, 'x', 106);
	CU_ASSERT_EQUAL(address_parse(longest, &a, &err), 0);
	CU_ASSERT_EQUAL(strlen(address_file(&a)), 107);
	CU_ASSERT_EQUAL_FATAL(address_parse("127.0.0.1:80", &a, &err), 0);
	CU_ASSERT_PTR_NULL(address_file(&a));
}

static void test_bad_file(void)
{
	static const char *const bad[] = {
	    "unix:", "unix:web.sock", "unix:/run/", "unix:/", "unix:@web", "unix:127.0.0.1:80"};
	char path[5 + 108 + 1] = "unix:/";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(parsed(bad[i]), "is not an address to listen on"));
	memset(path + 6, 'x', 107);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(parsed(path), "the path has 108 bytes, but the kernel takes 107"));
}

CUNIT_MAIN("address", {"good", test_good}, {"bad", test_bad}, {"socket file", test_file},
    {"bad socket file", test_bad_file})
