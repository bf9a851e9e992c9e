/* SPDX-License-Identifier: MIT */
/* Wrong tokens by address: five a minute. No client can have its own count or that of another
 * address forgotten. */
#include "admin/auth/failures.h"

#include <arpa/inet.h>
#include <string.h>

#include "cunit_main.h"

#define S 1000000000LL

static struct failures table;

static struct failures_key key(const char *text)
{
	struct sockaddr_storage address = {0};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		address.ss_family = AF_INET;
	} else {
		CU_ASSERT_EQUAL(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
		address.ss_family = AF_INET6;
	}
	return failures_key(&address);
}

static struct failures_key number(unsigned i)
{
	struct sockaddr_storage address = {.ss_family = AF_INET};

	((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(0x0a000000 + i);
	return failures_key(&address);
}

static bool same(const char *a, const char *b)
{
	struct failures_key x = key(a), y = key(b);

	return memcmp(&x, &y, sizeof(x)) == 0;
}

static void test_keys(void)
{
	CU_ASSERT_TRUE(same("192.0.2.1", "192.0.2.1"));
	CU_ASSERT_FALSE(same("192.0.2.1", "192.0.2.2"));
	CU_ASSERT_TRUE(same("192.0.2.1", "::ffff:192.0.2.1"));
	CU_ASSERT_TRUE(same("2001:db8:1:2::1", "2001:db8:1:2:ffff::7"));
	CU_ASSERT_FALSE(same("2001:db8:1:2::1", "2001:db8:1:3::1"));
	CU_ASSERT_FALSE(same("0.0.0.0", "::"));
}

static void test_five(void)
{
	struct failures_key a = key("192.0.2.1"), b = key("192.0.2.2");

	memset(&table, 0, sizeof(table));
	for (int i = 0; i < FAILURES_MAX; i++) {
		CU_ASSERT_EQUAL(failures_wait_ns(&table, a, (100 + i) * S), 0);
		CU_ASSERT_EQUAL(failures_add(&table, a, (100 + i) * S), i + 1);
	}
	/* the first failure was at 100 */
	CU_ASSERT_EQUAL(failures_wait_ns(&table, a, 104 * S), 56 * S);
	CU_ASSERT_EQUAL(failures_wait_ns(&table, b, 104 * S), 0);
	CU_ASSERT_EQUAL(failures_wait_ns(&table, a, 160 * S - 1), 1);
	CU_ASSERT_EQUAL(failures_wait_ns(&table, a, 160 * S), 0);
	/* Never more than five in any minute: one more is allowed now, the next in a second. */
	CU_ASSERT_EQUAL(failures_add(&table, a, 160 * S), FAILURES_MAX);
	CU_ASSERT_EQUAL(failures_wait_ns(&table, a, 160 * S), 1 * S);
	CU_ASSERT_EQUAL(failures_wait_ns(&table, a, 300 * S), 0);
	CU_ASSERT_EQUAL(failures_add(&table, a, 300 * S), 1);
}

/* A client that fails from many addresses evicts those with fewer failures, and its own address
 * last. */
static void test_eviction(void)
{
	struct failures_key guilty = key("192.0.2.1");

	memset(&table, 0, sizeof(table));
	for (int i = 0; i < FAILURES_MAX; i++)
		failures_add(&table, guilty, 100 * S);
	for (unsigned i = 0; i < 10 * FAILURES_SLOTS; i++)
		CU_ASSERT_EQUAL(failures_add(&table, number(i), 101 * S), 1);
	CU_ASSERT_TRUE(failures_wait_ns(&table, guilty, 102 * S) > 0);
	/* The same with two failures each: the guilty address is still locked out for a minute. */
	for (unsigned i = 0; i < 2 * FAILURES_SLOTS; i++)
		failures_add(&table, number(i / 2), 103 * S);
	CU_ASSERT_TRUE(failures_wait_ns(&table, guilty, 104 * S) > 0);
	/* A slot whose minute is over is evicted first. */
	for (unsigned i = 0; i < FAILURES_SLOTS; i++)
		failures_add(&table, number(1 << 20 | i), 165 * S);
	CU_ASSERT_EQUAL(failures_wait_ns(&table, guilty, 166 * S), 0);
}

/* A new address is not refused because the table is full. */
static void test_full(void)
{
	memset(&table, 0, sizeof(table));
	for (unsigned i = 0; i < FAILURES_SLOTS * FAILURES_MAX; i++)
		failures_add(&table, number(i / FAILURES_MAX), 100 * S);
	CU_ASSERT_TRUE(failures_wait_ns(&table, number(0), 101 * S) > 0);
	CU_ASSERT_TRUE(failures_wait_ns(&table, number(FAILURES_SLOTS - 1), 101 * S) > 0);
	CU_ASSERT_EQUAL(failures_wait_ns(&table, key("192.0.2.1"), 101 * S), 0);
	CU_ASSERT_EQUAL(failures_add(&table, key("192.0.2.1"), 101 * S), 1);
	CU_ASSERT_EQUAL(failures_wait_ns(&table, key("192.0.2.1"), 101 * S), 0);
}

CUNIT_MAIN("failures", {"keys", test_keys}, {"five a minute", test_five},
    {"eviction", test_eviction}, {"a full table", test_full})
