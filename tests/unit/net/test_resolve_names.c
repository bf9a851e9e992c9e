/* SPDX-License-Identifier: MIT */
/* Names to addresses: what is kept for how long, and who asks. */
#include "net/resolve_rig.h"

/* ---- what needs no server ---- */

static void test_literals(void)
{
	static const char *const bad[] = {"", ".", "a..b", ".a", "a b", "a/b", "http://a", "1.2.3",
	    "127.1", "0x7f000001", "0x7f.1", "2130706433", "1.2.3.4.5", "1.2.3.256", "a.1",
	    "[1.2.3.4]", "::1%lo", "[::1", "a:80", "b\303\274cher"};
	char longest[300];

	begin((struct resolve_conf){0});
	CU_ASSERT(at_once("192.0.2.1", RESOLVE_OK, "192.0.2.1"));
	CU_ASSERT(at_once("2001:DB8::1", RESOLVE_OK, "2001:db8::1"));
	CU_ASSERT(at_once("[::1]", RESOLVE_OK, "::1"));
	CU_ASSERT(at_once("localhost", RESOLVE_OK, "127.0.0.1"));
	CU_ASSERT(at_once("x.LOCALHOST.", RESOLVE_OK, "127.0.0.1"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT(at_once(bad[i], RESOLVE_BAD_NAME, NULL));
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CU_ASSERT(at_once(longest, RESOLVE_BAD_NAME, NULL));
	longest[64] = '\0'; /* a label of 64 bytes */
	CU_ASSERT(at_once(longest, RESOLVE_BAD_NAME, NULL));
	CU_ASSERT_EQUAL(counts().asked, 0);
	finish();
}

static void test_socket_address(void)
{
	struct sockaddr_storage at;
	struct net_address a;

	net_address_read((struct weir_slice){"192.0.2.1", 9}, &a);
	CU_ASSERT_EQUAL(resolve_socket_address(&a, 80, &at), sizeof(struct sockaddr_in));
	CU_ASSERT_EQUAL(at.ss_family, AF_INET);
	CU_ASSERT_EQUAL(((struct sockaddr_in *)&at)->sin_addr.s_addr, inet_addr("192.0.2.1"));
	CU_ASSERT_EQUAL(((struct sockaddr_in *)&at)->sin_port, htons(80));
	net_address_read((struct weir_slice){"2001:db8::7", 11}, &a);
	CU_ASSERT_EQUAL(resolve_socket_address(&a, 443, &at), sizeof(struct sockaddr_in6));
	CU_ASSERT_EQUAL(((struct sockaddr_in6 *)&at)->sin6_addr.s6_addr[15], 7);
	CU_ASSERT_EQUAL(((struct sockaddr_in6 *)&at)->sin6_port, htons(443));
}

/* ---- answers that are kept ---- */

static void test_ttl(void)
{
	begin((struct resolve_conf){.ttl_min_ns = 2 * S, .ttl_max_ns = 100 * S});
	dns_set(dns, "a.test", DNS_GOOD, "192.0.2.1", 10);
	dns_set(dns, "zero.test", DNS_GOOD, "192.0.2.2", 0);
	dns_set(dns, "long.test", DNS_GOOD, "192.0.2.3", 86400);
	dns_set(dns, "odd.test", DNS_GOOD, "192.0.2.4", 0x80000000u);
	dns_set(dns, "alias.test", DNS_ALIAS, "192.0.2.5", 10);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(says("A.Test", RESOLVE_OK, "192.0.2.1"));
	CU_ASSERT(says("zero.test", RESOLVE_OK, "192.0.2.2"));
	CU_ASSERT(says("long.test", RESOLVE_OK, "192.0.2.3"));
	CU_ASSERT(says("odd.test", RESOLVE_OK, "192.0.2.4"));
	CU_ASSERT(says("alias.test", RESOLVE_OK, "192.0.2.5"));
	CU_ASSERT(is_asked("a.test", 1));
	dns_set(dns, "a.test", DNS_GOOD, "192.0.2.9", 10);
	clock_move(1900);
	CU_ASSERT(at_once("zero.test", RESOLVE_OK, "192.0.2.2"));
	CU_ASSERT(at_once("odd.test", RESOLVE_OK, "192.0.2.4"));
	clock_move(200);
	CU_ASSERT(says("zero.test", RESOLVE_OK, "192.0.2.2") && is_asked("zero.test", 2));
	CU_ASSERT(says("odd.test", RESOLVE_OK, "192.0.2.4") && is_asked("odd.test", 2));
	CU_ASSERT(at_once("a.test", RESOLVE_OK, "192.0.2.1"));
	CU_ASSERT(at_once("alias.test", RESOLVE_OK, "192.0.2.5"));
	clock_move(8000);
	CU_ASSERT(says("a.test", RESOLVE_OK, "192.0.2.9"));
	CU_ASSERT(says("alias.test", RESOLVE_OK, NULL) && is_asked("alias.test", 2));
	CU_ASSERT(at_once("long.test", RESOLVE_OK, "192.0.2.3"));
	clock_move(90000);
	CU_ASSERT(says("long.test", RESOLVE_OK, "192.0.2.3") && is_asked("long.test", 2));
	finish();
}

static void test_negative(void)
{
	begin((struct resolve_conf){.negative_ns = 5 * S});
	CU_ASSERT(says("none.test", RESOLVE_NONE, NULL));
	dns_set(dns, "empty.test", DNS_EMPTY, NULL, 0);
	CU_ASSERT(says("empty.test", RESOLVE_NONE, NULL));
	dns_set(dns, "none.test", DNS_GOOD, "192.0.2.1", 10);
	clock_move(4900);
	CU_ASSERT(at_once("none.test", RESOLVE_NONE, NULL));
	CU_ASSERT(at_once("empty.test", RESOLVE_NONE, NULL) && is_asked("empty.test", 1));
	clock_move(200);
	CU_ASSERT(says("none.test", RESOLVE_OK, "192.0.2.1"));
	CU_ASSERT_EQUAL(counts().negative, 2);
	finish();
}

/* Equal questions share one, however long the answer takes; callers that leave are not told. */
static void test_shared(void)
{
	struct caller c[5];

	begin((struct resolve_conf){0});
	dns_set(dns, "a.test", DNS_HELD, "192.0.2.1", 10);
	for (int i = 0; i < 5; i++)
		ask(&c[i], "a.test");
	in_loop((void (*)(void *))resolve_cancel, &c[2]);
	in_loop((void (*)(void *))resolve_cancel, &c[2]);
	FIXTURE_AWAIT(is_asked("a.test", 1));
	for (int i = 0; i < 5; i++)
		CU_ASSERT_FALSE(atomic_load(&c[i].done));
	while (!atomic_load(&c[0].done)) /* the two questions may not have arrived yet */
		dns_let_go(dns);
	for (int i = 0; i < 5; i++)
		if (i != 2)
			FIXTURE_AWAIT(atomic_load(&c[i].done) && c[i].status == RESOLVE_OK);
	CU_ASSERT_FALSE(atomic_load(&c[2].done));
	CU_ASSERT(is_asked("a.test", 1));
	CU_ASSERT_EQUAL(counts().joined, 4);
	finish();
}

/* While nobody answers, an old answer serves; servers are asked again now and then. */
static void test_stale(void)
{
	struct caller c;

	begin((struct resolve_conf){.stale_ns = 100 * S, .timeout_ns = 500 * MS, .tries = 1});
	dns_set(dns, "a.test", DNS_GOOD, "192.0.2.1", 10);
	CU_ASSERT(says("a.test", RESOLVE_OK, "192.0.2.1"));
	dns_set(dns, "a.test", DNS_SILENT, NULL, 0);
	clock_move(11000);
	for (int i = 0; i < 3; i++) {
		ask(&c, "a.test");
		CU_ASSERT(c.at_once && c.stale && strcmp(c.text[0], "192.0.2.1") == 0);
	}
	FIXTURE_AWAIT(is_asked("a.test", 2));
	clock_move(600);
	FIXTURE_AWAIT(counts().failed == 1);
	ask(&c, "a.test");
	CU_ASSERT(c.at_once && c.stale && is_asked("a.test", 2));
	clock_move(1100);
	dns_set(dns, "a.test", DNS_GOOD, "192.0.2.2", 10);
	ask(&c, "a.test");
	CU_ASSERT(c.at_once && c.stale);
	while (!(ask(&c, "a.test"), strcmp(c.text[0], "192.0.2.2") == 0 && !c.stale))
		CU_ASSERT(c.at_once);
	dns_set(dns, "a.test", DNS_SILENT, NULL, 0);
	clock_move(111000); /* too old */
	ask(&c, "a.test");
	CU_ASSERT_FALSE(c.at_once);
	while (!atomic_load(&c.done))
		clock_move(100);
	CU_ASSERT_EQUAL(c.status, RESOLVE_FAILED);
	finish();
}

/* A name that no longer exists is not kept for its stale answer. */
static void test_stale_gone(void)
{
	struct caller c;

	begin((struct resolve_conf){.stale_ns = 100 * S});
	dns_set(dns, "a.test", DNS_GOOD, "192.0.2.1", 10);
	CU_ASSERT(says("a.test", RESOLVE_OK, "192.0.2.1"));
	dns_set(dns, "a.test", DNS_NONE, NULL, 0);
	clock_move(11000);
	ask(&c, "a.test");
	CU_ASSERT(c.at_once && c.stale);
	FIXTURE_AWAIT(counts().negative == 1);
	CU_ASSERT(at_once("a.test", RESOLVE_NONE, NULL));
	finish();
}

/* The names that were used last are kept. */
static void test_full(void)
{
	char name[4][16];
	struct caller c[3];

	begin((struct resolve_conf){.max_names = 2});
	for (int i = 0; i < 4; i++) {
		snprintf(name[i], sizeof(name[i]), "n%d.test", i);
		dns_set(dns, name[i], DNS_GOOD, "192.0.2.1", 1000);
	}
	CU_ASSERT(says(name[0], RESOLVE_OK, NULL) && says(name[1], RESOLVE_OK, NULL));
	CU_ASSERT(at_once(name[0], RESOLVE_OK, NULL));
	CU_ASSERT(says(name[2], RESOLVE_OK, NULL));
	CU_ASSERT(at_once(name[0], RESOLVE_OK, NULL));
	CU_ASSERT(says(name[1], RESOLVE_OK, NULL) && is_asked(name[1], 2));
	CU_ASSERT_EQUAL(counts().evicted, 2);
	dns_set(dns, "s0.test", DNS_SILENT, NULL, 0);
	dns_set(dns, "s1.test", DNS_SILENT, NULL, 0);
	ask(&c[0], "s0.test");
	ask(&c[1], "s1.test");
	ask(&c[2], name[0]); /* those that are asked are not given up */
	CU_ASSERT(c[2].at_once && c[2].status == RESOLVE_NO_MEMORY);
	in_loop(unmake, NULL); /* while callers wait */
	CU_ASSERT(atomic_load(&c[0].done) && c[0].status == RESOLVE_CANCELLED);
	CU_ASSERT(atomic_load(&c[1].done) && c[1].status == RESOLVE_CANCELLED);
	finish();
}

static void forget(void *name)
{
	resolve_forget(resolver, name);
}

static void test_forget(void)
{
	char upper[] = "A.test";

	begin((struct resolve_conf){0});
	dns_set(dns, "a.test", DNS_GOOD, "192.0.2.1", 1000);
	dns_set(dns, "b.test", DNS_GOOD, "192.0.2.1", 1000);
	CU_ASSERT(says("a.test", RESOLVE_OK, NULL) && says("b.test", RESOLVE_OK, NULL));
	in_loop(forget, upper);
	CU_ASSERT(says("a.test", RESOLVE_OK, NULL) && is_asked("a.test", 2));
	CU_ASSERT(says("b.test", RESOLVE_OK, NULL) && is_asked("b.test", 1));
	in_loop(forget, NULL);
	CU_ASSERT(says("a.test", RESOLVE_OK, NULL) && is_asked("a.test", 3));
	CU_ASSERT(says("b.test", RESOLVE_OK, NULL) && is_asked("b.test", 2));
	finish();
}

CUNIT_MAIN("resolve_names", {"literals", test_literals}, {"socket address", test_socket_address},
    {"TTL", test_ttl}, {"negative", test_negative}, {"shared", test_shared}, {"stale", test_stale},
    {"stale and gone", test_stale_gone}, {"full", test_full}, {"forget", test_forget})
