/* SPDX-License-Identifier: MIT */
/* Names to addresses: servers that lie, loop, are silent or change. */
#include "net/resolve_rig.h"

/* ---- servers that lie, loop or are silent ---- */

static void test_hostile(void)
{
	struct caller c;

	begin((struct resolve_conf){.timeout_ns = 500 * MS, .tries = 1});
	dns_set(dns, "forged.test", DNS_FORGED, "192.0.2.1", 10);
	dns_set(dns, "loop.test", DNS_LOOP, NULL, 10);
	dns_set(dns, "cut.test", DNS_CUT, "192.0.2.1", 10);
	dns_set(dns, "pointer.test", DNS_POINTER, "192.0.2.1", 10);
	dns_set(dns, "failed.test", DNS_FAILED, NULL, 0);
	dns_set(dns, "many.test", DNS_MANY, NULL, 10);
	CU_ASSERT(says("forged.test", RESOLVE_OK, "192.0.2.1"));
	CU_ASSERT(says("loop.test", RESOLVE_NONE, NULL));
	CU_ASSERT(says("failed.test", RESOLVE_FAILED, NULL));
	CU_ASSERT(says("many.test", RESOLVE_OK, NULL));
	ask(&c, "many.test");
	CU_ASSERT_EQUAL(c.n, RESOLVE_ADDRESSES_MAX);
	static const char *const broken[] = {"cut.test", "pointer.test"};
	for (int i = 0; i < 2; i++) {
		ask(&c, broken[i]);
		while (!atomic_load(&c.done))
			clock_move(100);
		CU_ASSERT(c.status == RESOLVE_FAILED || c.status == RESOLVE_NONE);
	}
	finish();
}

/* The second server is asked when the first is silent, and each twice. */
static void test_silent(void)
{
	struct dns *second = dns_begin();
	char servers[80];
	struct caller c;

	begin((struct resolve_conf){.timeout_ns = 500 * MS, .tries = 2});
	in_loop(unmake, NULL);
	snprintf(servers, sizeof(servers), "%s,%s", dns_address(dns), dns_address(second));
	conf.servers = servers;
	int rc = -1;
	in_loop(make, &rc);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	dns_set(dns, "a.test", DNS_SILENT, NULL, 0);
	dns_set(second, "a.test", DNS_GOOD, "192.0.2.2", 10);
	dns_set(dns, "b.test", DNS_SILENT, NULL, 0);
	dns_set(second, "b.test", DNS_SILENT, NULL, 0);
	ask(&c, "a.test");
	FIXTURE_AWAIT(is_asked("a.test", 1));
	while (!atomic_load(&c.done))
		clock_move(100);
	CU_ASSERT(c.status == RESOLVE_OK && strcmp(c.text[0], "192.0.2.2") == 0);
	ask(&c, "b.test");
	while (!atomic_load(&c.done))
		clock_move(100);
	CU_ASSERT_EQUAL(c.status, RESOLVE_FAILED);
	FIXTURE_AWAIT(is_asked("b.test", 2) && dns_asked(second, "b.test") == 2);
	CU_ASSERT(at_once("b.test", RESOLVE_FAILED, NULL)); /* kept for a second */
	finish();
	dns_end(second);
}

/* ---- resolv.conf ---- */

static void write_file(const char *path, const char *line)
{
	FILE *f = fopen(path, "we");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fprintf(f, "%s\n", line);
	fclose(f);
}

/* A new file is read within a second, and what was kept is asked again. */
static void test_file(void)
{
	char path[] = "/tmp/weir-resolv-XXXXXX";
	int fd = mkstemp(path);

	close(fd);
	write_file(path, "nameserver 127.0.0.1\nsearch none.test");
	begin((struct resolve_conf){.file = path, .timeout_ns = 500 * MS, .tries = 1});
	clock_move(1100);
	CU_ASSERT(at_once("192.0.2.1", RESOLVE_OK, NULL));
	write_file(path, "nameserver 127.0.0.1\nsearch other.test");
	CU_ASSERT_EQUAL(counts().reread, 0);
	struct caller c;
	ask(&c, "a.test.");
	CU_ASSERT_EQUAL(counts().reread, 1);
	while (!atomic_load(&c.done))
		clock_move(100);
	clock_move(1100);
	ask(&c, "b.test.");
	CU_ASSERT_EQUAL(counts().reread, 1);
	while (!atomic_load(&c.done))
		clock_move(100);
	finish();
	unlink(path);
}

static void test_bad_servers(void)
{
	int rc = 0;

	begin((struct resolve_conf){0});
	in_loop(unmake, NULL);
	conf.servers = "not an address";
	in_loop(make, &rc);
	CU_ASSERT_EQUAL(rc, WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(failure.text, "not a list of name servers"));
	finish();
}

CUNIT_MAIN("resolve_servers", {"hostile", test_hostile}, {"silent", test_silent},
    {"resolv.conf", test_file}, {"bad servers", test_bad_servers})
