/* SPDX-License-Identifier: MIT */
/* Networks of proxies as people write them, and which addresses they have. */
#include "net/network.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "cunit_main.h"

static struct weir_slice slice(const char *text)
{
	return (struct weir_slice){text, strlen(text)};
}

static bool has(const char *network, const char *address)
{
	static struct networks list;
	struct net_address a;
	struct weir_err err = {0};

	list.n = 1;
	CU_ASSERT_EQUAL_FATAL(network_parse(network, &list.item[0], &err), 0);
	CU_ASSERT_FATAL(net_address_read(slice(address), &a));
	return networks_have(&list, &a);
}

static void test_prefixes(void)
{
	CU_ASSERT(has("10.0.0.0/8", "10.255.0.1"));
	CU_ASSERT_FALSE(has("10.0.0.0/8", "11.0.0.0"));
	CU_ASSERT(has("192.0.2.128/25", "192.0.2.128") && has("192.0.2.128/25", "192.0.2.255"));
	CU_ASSERT_FALSE(has("192.0.2.128/25", "192.0.2.127"));
	CU_ASSERT(has("192.0.2.6/31", "192.0.2.7") && !has("192.0.2.6/31", "192.0.2.8"));
	CU_ASSERT(has("192.0.2.7", "192.0.2.7") && !has("192.0.2.7", "192.0.2.6"));
	CU_ASSERT(has("0.0.0.0/0", "255.1.2.3") && !has("0.0.0.0/0", "::1"));
	CU_ASSERT(has("::/0", "::1") && has("::/0", "1.2.3.4"));
	CU_ASSERT(has("fd00::/8", "fdff::1") && !has("fd00::/8", "fe00::1"));
	CU_ASSERT(has("2001:db8::1", "2001:DB8:0::1") && !has("2001:db8::1", "2001:db8::2"));
	CU_ASSERT(has("10.0.0.0/8", "::ffff:10.1.2.3")); /* the same address, in the other family */
	CU_ASSERT(has("2001:db8:0:8000::/49", "2001:db8:0:ffff::") &&
		  !has("2001:db8:0:8000::/49", "2001:db8:0:7fff::"));
}

/* The text of the error. Static memory. */
static const struct weir_err *error_of(const char *text)
{
	static struct weir_err err;
	struct network net;

	err = (struct weir_err){0};
	CU_ASSERT_EQUAL(network_parse(text, &net, &err), WEIR_EINVAL);
	CU_ASSERT(err.code == WEIR_EINVAL && err.text[0] && err.hint[0]);
	return &err;
}

static void test_bad(void)
{
	static const char *const bad[] = {"", "/8", "10", "10.0.0", "10.0.0.0/", "10.0.0.0/33",
	    "10.0.0.0/08", "10.0.0.0/-1", "10.0.0.0/8 ", " 10.0.0.0/8", "10.0.0.0/8/8", "::/129",
	    "[::1]", "fe80::1%eth0", "localhost", "10.0.0.0/1000", "10.0.0.0/x", "::1/12x",
	    "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(error_of(bad[i])->text, "is not a network"));
	CU_ASSERT_PTR_NOT_NULL(strstr(error_of("10.0.0.7/8")->hint, "10.0.0.0/8"));
	CU_ASSERT_PTR_NOT_NULL(strstr(error_of("10.0.0.7/8")->hint, "10.0.0.7 for"));
	CU_ASSERT_PTR_NOT_NULL(strstr(error_of("fd00::1/9")->hint, "fd00::/9"));
	CU_ASSERT_PTR_NOT_NULL(strstr(error_of("192.0.2.7/31")->hint, "192.0.2.6/31"));
}

static const char *spelled(const char *text)
{
	static char out[INET6_ADDRSTRLEN];
	struct net_address a;

	CU_ASSERT_FATAL(net_address_read(slice(text), &a));
	CU_ASSERT_EQUAL((size_t)net_address_text(&a, out), strlen(out));
	return out;
}

static void test_spelling(void)
{
	CU_ASSERT_STRING_EQUAL(spelled("2001:DB8:0:0::0:1"), "2001:db8::1");
	CU_ASSERT_STRING_EQUAL(spelled("::FFFF:192.0.2.7"), "192.0.2.7");
	CU_ASSERT_STRING_EQUAL(spelled("255.255.255.255"), "255.255.255.255");
	CU_ASSERT_STRING_EQUAL(spelled("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"),
	    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe");
}

static void test_not_read(void)
{
	static const char *const bad[] = {"", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4 ", "::1]",
	    "unknown", "1.2.3.4:5", "::g"};
	struct net_address a;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(net_address_read(slice(bad[i]), &a));
	CU_ASSERT_FALSE(net_address_read((struct weir_slice){"1.2.3.4\0x", 9}, &a));
	CU_ASSERT(net_address_read((struct weir_slice){"1.2.3.45", 7}, &a)); /* its length counts */
	CU_ASSERT_EQUAL(a.bytes[15], 4);
}

static void test_sockets(void)
{
	struct sockaddr_storage addr = {.ss_family = AF_INET};
	struct net_address a;

	((struct sockaddr_in *)&addr)->sin_addr.s_addr = htonl(0x0a000102);
	CU_ASSERT_FATAL(net_address_of(&addr, &a));
	CU_ASSERT_EQUAL(memcmp(a.bytes, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\1\2", 16), 0);
	addr = (struct sockaddr_storage){.ss_family = AF_INET6};
	((struct sockaddr_in6 *)&addr)->sin6_addr.s6_addr[15] = 9;
	CU_ASSERT_FATAL(net_address_of(&addr, &a));
	CU_ASSERT(a.bytes[15] == 9 && a.bytes[10] == 0);
	addr.ss_family = AF_UNIX;
	CU_ASSERT_FALSE(net_address_of(&addr, &a));
}

static void test_several(void)
{
	struct networks list = {.n = 2};
	struct weir_err err = {0};
	struct net_address a;

	CU_ASSERT_EQUAL(network_parse("10.0.0.0/8", &list.item[0], &err), 0);
	CU_ASSERT_EQUAL(network_parse("::1", &list.item[1], &err), 0);
	CU_ASSERT(net_address_read(slice("::1"), &a) && networks_have(&list, &a));
	list.n = 1;
	CU_ASSERT_FALSE(networks_have(&list, &a));
	list.n = 0;
	CU_ASSERT(net_address_read(slice("10.0.0.1"), &a) && !networks_have(&list, &a));
}

CUNIT_MAIN("network", {"prefixes", test_prefixes}, {"bad", test_bad}, {"spelling", test_spelling},
    {"not read", test_not_read}, {"sockets", test_sockets}, {"several", test_several})
