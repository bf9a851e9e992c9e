/* SPDX-License-Identifier: MIT */
/* Where the endpoint may listen, and which Host and Origin values it accepts. */
#include "admin/request/authority.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cunit_main.h"

static int parse(const char *listen, struct authority *a)
{
	struct weir_err err = {0};
	int rc = authority_parse(listen, a, &err);

	CU_ASSERT_EQUAL(rc, err.code);
	CU_ASSERT_EQUAL(rc != 0, err.text[0] != '\0');
	return rc;
}

static void test_parse(void)
{
	static const char *const good[] = {"127.0.0.1:9900", "127.0.0.2:1", "[::1]:9900",
	    "localhost:65535", "127.0.0.1:0", "unix:/run/x.sock",
	    /* need tokens and TLS: auth.h */
	    "0.0.0.0:9900", "[::]:9900", "192.0.2.1:9900", "[2001:db8::1]:9900"};
	static const char *const bad[] = {"", ":9900", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
	    "127.0.0.1:-1", "127.0.0.1:09900", "127.0.0.1:9900x", "127.0.0.1:1:2", "0.0.0.0",
	    "::1:9900", "[::1:9900", "[127.0.0.1]:9900", "127.1:9900", "0177.0.0.1:9900",
	    "example.org:9900", "127.0.0.1.example.org:9900", "LOCALHOST.:9900", "unix:x.sock",
	    "unix:"};
	struct authority a;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CU_ASSERT_EQUAL(parse(good[i], &a), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(parse(bad[i], &a), WEIR_EINVAL);
}

static void test_sentence(void)
{
	struct weir_err err = {0};
	struct authority a;
	char longest[300];

	CU_ASSERT_EQUAL(authority_parse("example.org:9900", &a, &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "a numeric address"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "'example.org:9900'"));
	CU_ASSERT_STRING_EQUAL(err.hint, "write 127.0.0.1:9900 or unix:/run/weir/admin.sock");
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "unix:/", 6);
	longest[sizeof(longest) - 1] = '\0';
	CU_ASSERT_EQUAL(authority_parse(longest, &a, &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "longer than 107 bytes"));
}

static bool allows(const struct authority *a, const char *host)
{
	return authority_allows_host(a, (struct weir_slice){host, strlen(host)});
}

static void test_host(void)
{
	static const char *const good[] = {"127.0.0.1:9900", "localhost:9900", "LocalHost:9900",
	    "[::1]:9900", "[0:0:0:0:0:0:0:1]:9900", "127.0.0.5:9900"};
	static const char *const bad[] = {"", ":9900", "127.0.0.1", "localhost", "127.0.0.1:80",
	    "127.0.0.1:9901", "127.0.0.1:99000", "127.0.0.1:09900", "127.0.0.1:9900:9900",
	    "127.0.0.1:9900 ", "127.0.0.2:9900", "127.evil.example:9900",
	    "127.0.0.1.evil.example:9900", "localhost.evil.example:9900", "evil.example:9900",
	    "localhost.:9900", "user@127.0.0.1:9900", "127.1:9900", "2130706433:9900",
	    "0x7f.0.0.1:9900", "0177.0.0.1:9900", "::1:9900", "[::1]9900", "[::1",
	    "[::ffff:127.0.0.1]:9900", "[localhost]:9900", "[::1%lo]:9900", "0.0.0.0:9900",
	    "localhost:", "localhost,127.0.0.1:9900", "http://127.0.0.1:9900", "127.0.0.1:9900/"};
	struct authority a;

	parse("127.0.0.5:9900", &a);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CU_ASSERT_TRUE(allows(&a, good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(allows(&a, bad[i]));
	CU_ASSERT_FALSE(authority_allows_host(&a, (struct weir_slice){"localhost:9900\0x", 16}));
	CU_ASSERT_FALSE(authority_allows_host(&a, (struct weir_slice){NULL, 0}));
}

/* Bound to all addresses of this host, with TLS, and addressed by name. */
static void test_host_exposed(void)
{
	char plain[] = "weir.example.org", ported[] = "other.example.org:9900";
	char *names[] = {plain, ported};
	struct weir_strings hosts = {2, names};
	struct authority a;

	parse("0.0.0.0:9900", &a);
	CU_ASSERT_TRUE(authority_is_exposed(&a));
	CU_ASSERT_TRUE(allows(&a, "192.0.2.7:9900"));
	CU_ASSERT_TRUE(allows(&a, "[2001:db8::7]:9900"));
	CU_ASSERT_FALSE(allows(&a, "192.0.2.7:9901"));
	CU_ASSERT_FALSE(allows(&a, "weir.example.org:9900"));
	a.hosts = &hosts;
	CU_ASSERT_TRUE(allows(&a, "weir.example.org:9900"));
	CU_ASSERT_TRUE(allows(&a, "Weir.Example.org"));
	CU_ASSERT_TRUE(allows(&a, "weir.example.org:443"));
	CU_ASSERT_TRUE(allows(&a, "other.example.org:9900"));
	CU_ASSERT_FALSE(allows(&a, "other.example.org:443"));
	CU_ASSERT_FALSE(allows(&a, "other.example.org"));
	CU_ASSERT_FALSE(allows(&a, "weir.example.org:0"));
	CU_ASSERT_FALSE(allows(&a, "weir.example.org:x"));
	CU_ASSERT_FALSE(allows(&a, "weir.example.org.evil.example:9900"));
	CU_ASSERT_FALSE(allows(&a, "evil.example"));
	parse("192.0.2.7:443", &a);
	a.tls = true;
	CU_ASSERT_TRUE(allows(&a, "192.0.2.7"));
	CU_ASSERT_FALSE(allows(&a, "192.0.2.8"));
	parse("127.0.0.2:9900", &a);
	CU_ASSERT_FALSE(authority_is_exposed(&a));
	parse("unix:/run/x.sock", &a);
	CU_ASSERT_FALSE(authority_is_exposed(&a));
}

static void test_host_names(void)
{
	static const char *const good[] = {"a", "weir.example.org", "w-1_x:9900", "10.0.0.1"};
	static const char *const bad[] = {"", ":9900", "a:", "a:0", "a:x", "a b", "a/b",
	    "https://a", "[::1]", "*.example.org", "a:1:2"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CU_ASSERT_TRUE(authority_host_fits(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(authority_host_fits(bad[i]));
}

static void test_host_port_80(void)
{
	struct authority a;

	parse("127.0.0.1:80", &a);
	CU_ASSERT_TRUE(allows(&a, "localhost"));
	CU_ASSERT_TRUE(allows(&a, "[::1]"));
	CU_ASSERT_TRUE(allows(&a, "127.0.0.1:80"));
	CU_ASSERT_FALSE(allows(&a, "evil.example"));
}

/* A socket file has no port; curl sends the Host "localhost". */
static void test_host_file(void)
{
	struct authority a;

	parse("unix:/run/x.sock", &a);
	CU_ASSERT_TRUE(allows(&a, "localhost"));
	CU_ASSERT_TRUE(allows(&a, "localhost:1234"));
	CU_ASSERT_TRUE(allows(&a, "127.0.0.1"));
	CU_ASSERT_FALSE(allows(&a, "localhost:x"));
	CU_ASSERT_FALSE(allows(&a, "evil.example"));
}

static void test_origin(void)
{
	static const char host[] = "localhost:9900";

	CU_ASSERT_TRUE(authority_allows_act(host, NULL, NULL)); /* a program, not a page */
	CU_ASSERT_TRUE(authority_allows_act(host, "http://localhost:9900", NULL));
	CU_ASSERT_TRUE(authority_allows_act(host, "http://LOCALHOST:9900", "same-origin"));
	CU_ASSERT_TRUE(authority_allows_act(host, NULL, "none"));
	CU_ASSERT_TRUE(authority_allows_act(host, "https://localhost:9900", NULL)); /* a proxy */
	static const char *const bad[] = {"null", "", "http://", "ftp://localhost:9900",
	    "http://localhost", "http://localhost:9901", "http://127.0.0.1:9900",
	    "http://localhost:9900.evil.example", "http://evil.example", "http://localhost:9900/",
	    "http://localhost:9900 http://evil.example"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(authority_allows_act(host, bad[i], NULL));
	CU_ASSERT_FALSE(authority_allows_act(host, NULL, "cross-site"));
	CU_ASSERT_FALSE(authority_allows_act(host, NULL, "same-site"));
	CU_ASSERT_FALSE(authority_allows_act(host, "http://localhost:9900", "cross-site"));
}

static void test_listen(void)
{
	struct weir_err err = {0};
	struct authority a, b;
	char again[64];
	int fd = -1, other = -1;

	parse("127.0.0.1:0", &a);
	CU_ASSERT_EQUAL(authority_listen(&a, &fd, &err), 0);
	CU_ASSERT_TRUE(a.port > 0);
	snprintf(again, sizeof(again), "localhost:%d", a.port);
	parse(again, &b);
	CU_ASSERT_EQUAL(authority_listen(&b, &other, &err), WEIR_EBUSY);
	CU_ASSERT_EQUAL(other, -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "in use"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, again + strlen("localhost")));
	close(fd);
}

/* A socket file is accessible only to its owner. One left by a killed server is replaced, one in
 * use is not. */
static void test_listen_file(void)
{
	char dir[] = "/tmp/weir-test-XXXXXX", listen_at[64], path[48];
	struct weir_err err = {0};
	struct authority a;
	struct stat st;
	int fd = -1, other = -1;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(listen_at, sizeof(listen_at), "unix:%s", path);
	mode_t before = umask(0);
	parse(listen_at, &a);
	CU_ASSERT_EQUAL(authority_listen(&a, &fd, &err), 0);
	umask(before);
	CU_ASSERT_EQUAL(stat(path, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);
	CU_ASSERT_EQUAL(authority_listen(&a, &other, &err), WEIR_EBUSY);
	close(fd); /* the file stays, as after kill -9 */
	CU_ASSERT_EQUAL(authority_listen(&a, &fd, &err), 0);
	close(fd);
	authority_unlink(&a);
	CU_ASSERT_NOT_EQUAL(stat(path, &st), 0);
	rmdir(dir);
}

static void test_listen_refused(void)
{
	struct weir_err err = {0};
	struct authority a;
	int fd = -1;

	parse("unix:/nonexistent-folder/s", &a);
	CU_ASSERT_EQUAL(authority_listen(&a, &fd, &err), WEIR_ESYS);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/nonexistent-folder/s"));
	CU_ASSERT_EQUAL(fd, -1);
}

CUNIT_MAIN("authority", {"parse", test_parse}, {"sentence", test_sentence}, {"Host", test_host},
    {"Host where others reach us", test_host_exposed}, {"names for Host", test_host_names},
    {"Host without a port", test_host_port_80}, {"Host at a socket file", test_host_file},
    {"Origin", test_origin}, {"listen", test_listen}, {"listen at a file", test_listen_file},
    {"listen refused", test_listen_refused})
