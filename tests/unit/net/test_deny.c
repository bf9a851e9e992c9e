/* SPDX-License-Identifier: MIT */
/* Which addresses are denied. */
#include "net/deny.h"

#include <string.h>

#include "cunit_main.h"

static bool denies(const struct deny *d, const char *text)
{
	struct net_address a;

	CU_ASSERT_FATAL(net_address_read((struct weir_slice){text, strlen(text)}, &a));
	return deny_has(d, &a);
}

static void test_private(void)
{
	static const char *const bad[] = {"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255",
	    "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254", "169.254.169.254",
	    "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.168.0.1", "198.18.0.1",
	    "198.19.255.255", "198.51.100.1", "203.0.113.9", "224.0.0.1", "255.255.255.255",
	    "::", "::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3", "::ffff:a9fe:a9fe",
	    "::ffff:0:10.1.2.3", "::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe",
	    "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "fc00::1",
	    "fd12:3456::1", "fe80::1", "febf::1", "fec0::1", "ff02::1", "3fff::1", "5f00::1"};
	static const char *const good[] = {"1.1.1.1", "9.255.255.255", "11.0.0.1", "100.63.255.255",
	    "100.128.0.1", "126.255.255.255", "128.0.0.1", "169.253.0.1", "172.15.0.1",
	    "172.32.0.1", "192.0.1.1", "192.167.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.255",
	    "::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2001:200::1", "2606:4700::1", "fbff::1",
	    "fe7f::1"};
	struct weir_err err;
	struct deny d = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(denies(&d, bad[i]));
	CU_ASSERT_EQUAL(deny_add(&d, "private", &err), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!denies(&d, bad[i]))
			CU_FAIL(bad[i]);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CU_ASSERT_FALSE(denies(&d, good[i]));
}

static void test_networks(void)
{
	struct weir_err err = {0};
	struct deny d = {0};

	CU_ASSERT_EQUAL(deny_add(&d, "1.1.1.0/24", &err), 0);
	CU_ASSERT_TRUE(denies(&d, "1.1.1.9"));
	CU_ASSERT_TRUE(denies(&d, "64:ff9b::1.1.1.9"));
	CU_ASSERT_FALSE(denies(&d, "1.1.2.9"));
	CU_ASSERT_FALSE(denies(&d, "127.0.0.1"));
	CU_ASSERT_EQUAL(deny_add(&d, "publik", &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "publik"));
}

CUNIT_MAIN("deny", {"private", test_private}, {"networks", test_networks})
