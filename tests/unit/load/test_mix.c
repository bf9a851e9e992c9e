/* SPDX-License-Identifier: MIT */
/* Requests: their bytes, refused ones, bodies from a folder, and the two synthetic sites. */
#include "load/mix.h"

#include <math.h>
#include <sys/stat.h>

#include "load_text.h"

static struct load_plan plan;
static struct load_class *cls = &plan.class[0];
static struct weir_err err;

static const struct mix_head get = {.method = "GET", .host = "h:80"};

static void fresh(void)
{
	load_plan_fini(&plan);
	memset(&err, 0, sizeof(err));
	plan.n_classes = 1;
}

static void check_bytes(int i, const char *head, const char *body)
{
	const struct load_request *r = &cls->request[i];

	CU_ASSERT_FATAL(i < cls->n_requests);
	CU_ASSERT_EQUAL(r->n_head, strlen(head));
	CU_ASSERT_EQUAL_FATAL(r->n_bytes, strlen(head) + strlen(body));
	CU_ASSERT_EQUAL(memcmp(r->bytes, head, r->n_head), 0);
	CU_ASSERT_EQUAL(memcmp(r->bytes + r->n_head, body, strlen(body)), 0);
	CU_ASSERT_EQUAL(r->at_ns, -1);
}

static void test_bytes(void)
{
	const char *const headers[] = {"X-A: 1", "accept:\t*/*"}, *const host[] = {"HOST: other"};
	struct mix_head head = {"POST", "h:80", 2, headers, true};

	fresh();
	CU_ASSERT_EQUAL(mix_add(cls, &get, "/a?b=c", 1, NULL, 0, &err), 0);
	CU_ASSERT_EQUAL(mix_add(cls, &head, "/p", 1, "body", 4, &err), 0);
	CU_ASSERT_EQUAL(mix_add(cls, &head, "/p", 1, NULL, 0, &err), 0);
	head = (struct mix_head){"HEAD", "h:80", 1, host, false};
	CU_ASSERT_EQUAL(mix_add(cls, &head, "/", 1, NULL, 0, &err), 0);
	head = (struct mix_head){"OPTIONS", "h:80", 0, NULL, false};
	CU_ASSERT_EQUAL(mix_add(cls, &head, "*", 1, "", 0, &err), 0);
	check_bytes(0, "GET /a?b=c HTTP/1.1\r\nHost: h:80\r\n\r\n", "");
	check_bytes(1,
	    "POST /p HTTP/1.1\r\nHost: h:80\r\nX-A: 1\r\naccept:\t*/*\r\nConnection: close\r\n"
	    "Content-Length: 4\r\n\r\n",
	    "body");
	check_bytes(2,
	    "POST /p HTTP/1.1\r\nHost: h:80\r\nX-A: 1\r\naccept:\t*/*\r\nConnection: close\r\n"
	    "Content-Length: 0\r\n\r\n",
	    "");
	check_bytes(3, "HEAD / HTTP/1.1\r\nHOST: other\r\n\r\n", "");
	check_bytes(4, "OPTIONS * HTTP/1.1\r\nHost: h:80\r\nContent-Length: 0\r\n\r\n", "");
	CU_ASSERT_TRUE(cls->request[3].no_body && !cls->request[0].no_body);
}

static void test_seal(void)
{
	fresh();
	snprintf(cls->name, sizeof(cls->name), "gold");
	check_refused(load_class_seal(cls, &err), &err, "'gold' has no request");
	for (int i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(mix_add(cls, &get, "/", i + 1, NULL, 0, &err), 0);
	CU_ASSERT_EQUAL(load_class_seal(cls, &err), 0);
	CU_ASSERT_DOUBLE_EQUAL(cls->request[0].cumulative, 1 / 500500.0, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(cls->request[499].cumulative, 125250 / 500500.0, 1e-12);
	CU_ASSERT_EQUAL(cls->request[999].cumulative, 1);
}

static void refuse_header(const char *header, const char *words)
{
	const struct mix_head head = {"GET", "h", 1, &header, false};

	check_refused(mix_add(cls, &head, "/", 1, NULL, 0, &err), &err, words);
}

static void test_refused(void)
{
	struct mix_head head = get;

	fresh();
	check_refused(mix_add(cls, &get, "a", 1, NULL, 0, &err), &err, "'a' is not a path");
	check_refused(mix_add(cls, &get, "", 1, NULL, 0, &err), &err, "'' is not a path");
	check_refused(mix_add(cls, &get, "*", 1, NULL, 0, &err), &err, "'*' is not a path");
	check_refused(mix_add(cls, &get, "/a b", 1, NULL, 0, &err), &err, "0x20: write it as %20");
	check_refused(mix_add(cls, &get, "/\r\nX: y", 1, NULL, 0, &err), &err, "0x0d");
	check_refused(mix_add(cls, &get, "/\xc3\xa9", 1, NULL, 0, &err), &err, "%C3");
	check_refused(mix_add(cls, &get, "/w", 0, NULL, 0, &err), &err, "weight 0 of '/w'");
	check_refused(mix_add(cls, &get, "/", NAN, NULL, 0, &err), &err, "weight nan");
	check_refused(mix_add(cls, &get, "/", 1, "x", MIX_BODY_MAX_BYTES + 1, &err), &err, "64MiB");
	head.method = "OPTIONS";
	check_refused(mix_add(cls, &head, "**", 1, NULL, 0, &err), &err, "'**' is not a path");
	head.method = "G T";
	check_refused(mix_add(cls, &head, "/", 1, NULL, 0, &err), &err, "'G T' is not a method");
	head.method = "";
	check_refused(mix_add(cls, &head, "/", 1, NULL, 0, &err), &err, "'' is not a method");
	head.method = "CONNECT";
	check_refused(mix_add(cls, &head, "/", 1, NULL, 0, &err), &err, "CONNECT");
	refuse_header("X", "'X' is not a header");
	refuse_header(": y", "': y' is not a header");
	refuse_header("X : y", "'X : y' is not a header");
	refuse_header("X: y\r\nZ: 1", "0x0d");
	refuse_header("X: \x7f", "0x7f");
	refuse_header("content-length: 5", "'content-length: 5'");
	refuse_header("Transfer-Encoding: chunked", "the generator decides on it");
	refuse_header("Connection: close", "the generator decides on it");
	refuse_header("Expect: 100-continue", "the generator decides on it");
	CU_ASSERT_EQUAL(cls->n_requests, 0);
}

static void body_file(const char *dir, const char *name, const char *text)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static void remove_all(const char *dir, const char *const *name, int n)
{
	char path[200];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, name[i]);
		CU_ASSERT_EQUAL(remove(path), 0);
	}
	CU_ASSERT_EQUAL(rmdir(dir), 0);
}

static void test_bodies(void)
{
	const struct mix_head head = {"PUT", "h", 0, NULL, false};
	const char *const names[] = {"b", "a", "c", ".hidden", "folder"};
	char dir[] = "bodies.XXXXXX", sub[200];

	fresh();
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	check_refused(mix_add_bodies(cls, &head, "/p", dir, &err), &err, "contains no file");
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, dir));
	for (int i = 0; i < 4; i++)
		body_file(dir, names[i], i == 2 ? "" : names[i]);
	snprintf(sub, sizeof(sub), "%s/folder", dir);
	CU_ASSERT_EQUAL(mkdir(sub, 0777), 0);
	CU_ASSERT_EQUAL(mix_add_bodies(cls, &head, "/p", dir, &err), 0);
	CU_ASSERT_EQUAL_FATAL(cls->n_requests, 3);
	check_bytes(0, "PUT /p HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n", "a");
	check_bytes(1, "PUT /p HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n", "b");
	check_bytes(2, "PUT /p HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "");
	check_refused(mix_add_bodies(cls, &head, "p", dir, &err), &err, "'p' is not a path");
	remove_all(dir, names, 5);
	CU_ASSERT_EQUAL(mix_add_bodies(cls, &head, "/p", dir, &err), WEIR_ESYS);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, dir));
}

/* Shares and sizes of SPECweb99: 35/50/14/1 %, and the middle one of nine files has 35 % of its
 * class. */
static void test_specweb99(void)
{
	double share[4] = {0}, middle = 0, folder = 0, before = 0;

	fresh();
	CU_ASSERT_EQUAL(mix_add_site(cls, &get, "specweb99", "/s", 100, 1, &err), 0);
	CU_ASSERT_EQUAL_FATAL(cls->n_requests, 108); /* three folders of 36 */
	CU_ASSERT_EQUAL(load_class_seal(cls, &err), 0);
	for (int i = 0; i < 108; i++) {
		double p = cls->request[i].cumulative - before;
		int class, nth, dir;
		before = cls->request[i].cumulative;
		CU_ASSERT_EQUAL_FATAL(
		    sscanf(cls->request[i].bytes, "GET /s/specweb99/d%d/class%d_%d HTTP", &dir,
			&class, &nth),
		    3);
		share[class] += p;
		middle += class == 1 && nth == 5 ? p : 0;
		folder += dir == 0 ? p : 0;
	}
	CU_ASSERT_DOUBLE_EQUAL(share[0], 0.35, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(share[1], 0.50, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(share[2], 0.14, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(share[3], 0.01, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(middle, 0.5 * 0.353, 0.001);
	CU_ASSERT_DOUBLE_EQUAL(folder, 1 / (1 + 1 / 2.0 + 1 / 3.0), 1e-9);
	check_refused(
	    mix_add_site(cls, &get, "spec", "", 9, 1, &err), &err, "'spec' is not a kind of site");
	check_refused(mix_add_site(cls, &get, "surge", "", 0, 1, &err), &err, "0 files");
	check_refused(mix_add_site(cls, &get, "surge", "x", 1, 1, &err), &err, "'x/surge/000000'");
}

static int64_t size_of(const char *dir, const char *name)
{
	char path[200];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return stat(path, &st) == 0 ? st.st_size : -1;
}

/* The files of a site have the names used in its requests. Existing files are kept. */
static void test_write_site(void)
{
	const char *const names[] = {"x/y/specweb99/d0000/class0_1", "x/y/specweb99/d0000/class1_5",
	    "x/y/specweb99/d0000/class3_9"};
	char dir[] = "site.XXXXXX", path[200], deep[100];

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(deep, sizeof(deep), "%s/x/y", dir);
	CU_ASSERT_EQUAL(mix_write_site("specweb99", 1, 1, deep, &err), 0);
	CU_ASSERT_EQUAL(size_of(dir, names[0]), 102);
	CU_ASSERT_EQUAL(size_of(dir, names[1]), 5120);
	CU_ASSERT_EQUAL(size_of(dir, names[2]), 921600);
	snprintf(path, sizeof(path), "%s/%s", dir, names[1]);
	body_file(dir, names[0], "short");
	FILE *f = fopen(path, "r+");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputc('!', f); /* of the right size: kept, whatever its contents */
	fclose(f);
	CU_ASSERT_EQUAL(mix_write_site("specweb99", 1, 1, deep, &err), 0);
	CU_ASSERT_EQUAL(size_of(dir, names[0]), 102);
	f = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fgetc(f), '!');
	fclose(f);
	CU_ASSERT_EQUAL(mix_write_site("surge", 1, 1, path, &err), WEIR_ESYS);
	CU_ASSERT_EQUAL(mix_write_site("nosuch", 1, 1, dir, &err), WEIR_EINVAL);
	for (int i = 0; i < 36; i++) {
		snprintf(
		    path, sizeof(path), "%s/specweb99/d0000/class%d_%d", deep, i / 9, i % 9 + 1);
		CU_ASSERT_EQUAL(unlink(path), 0);
	}
	static const char *const folders[] = {
	    "/x/y/specweb99/d0000", "/x/y/specweb99", "/x/y", "/x", ""};
	for (int i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "%s%s", dir, folders[i]);
		CU_ASSERT_EQUAL(rmdir(path), 0);
	}
}

/* SURGE's sizes and popularity, as far as a hundred files show them. Another seed gives other
 * sizes. */
static void test_surge(void)
{
	char dir[] = "surge.XXXXXX", path[200], name[32];
	int small = 0, tail = 0, differ = 0;
	int64_t before[100] = {0};

	fresh();
	CU_ASSERT_EQUAL(mix_add_site(cls, &get, "surge", "", 100, 1, &err), 0);
	CU_ASSERT_EQUAL(load_class_seal(cls, &err), 0);
	CU_ASSERT_DOUBLE_EQUAL(cls->request[0].cumulative, 1 / 5.18737752, 1e-6); /* Zipf, H(100) */
	check_bytes(99, "GET /surge/000099 HTTP/1.1\r\nHost: h:80\r\n\r\n", "");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	for (uint64_t seed = 1; seed <= 2; seed++) {
		CU_ASSERT_EQUAL(mix_write_site("surge", 100, seed, dir, &err), 0);
		for (int i = 0; i < 100; i++) {
			snprintf(name, sizeof(name), "surge/%06d", i);
			int64_t size = size_of(dir, name);
			CU_ASSERT(size > 0 && size <= 64 << 20);
			small += size < 11575; /* exp(mu): half of the sizes */
			tail += size > 133000;
			differ += size != before[i];
			before[i] = size;
		}
	}
	CU_ASSERT(small > 80 && small < 120); /* of 200: 0.93 * 0.516 */
	CU_ASSERT(tail >= 6 && tail <= 24);   /* 0.07 */
	CU_ASSERT(differ > 195);
	for (int i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "%s/surge/%06d", dir, i);
		CU_ASSERT_EQUAL(unlink(path), 0);
	}
	snprintf(path, sizeof(path), "%s/surge", dir);
	CU_ASSERT_EQUAL(rmdir(path), 0);
	CU_ASSERT_EQUAL(rmdir(dir), 0);
	fresh();
}

static int add_paths(const char *text)
{
	char path[] = "/tmp/weir-paths-XXXXXX";

	fresh();
	make_file(path, text, strlen(text));
	int rc = mix_add_paths(cls, &get, path, &err);
	unlink(path);
	return rc;
}

static void test_paths(void)
{
	CU_ASSERT_EQUAL(add_paths("3 /a\n\n# a comment\n/b?c=d\r\n0.5\t /c"), 0);
	CU_ASSERT_EQUAL_FATAL(cls->n_requests, 3);
	check_bytes(0, "GET /a HTTP/1.1\r\nHost: h:80\r\n\r\n", "");
	check_bytes(1, "GET /b?c=d HTTP/1.1\r\nHost: h:80\r\n\r\n", "");
	CU_ASSERT_EQUAL(load_class_seal(cls, &err), 0);
	CU_ASSERT_DOUBLE_EQUAL(cls->request[0].cumulative, 3 / 4.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(cls->request[1].cumulative, 4 / 4.5, 1e-9);
	static const char *const bad[] = {
	    "/a\nb\n", "/a\n0 /b", "/a\n-1 /b", "/a\n1/b", "/a\n2 ", "/a\nnan /b", "/a\n1e10 /b"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_refused(add_paths(bad[i]), &err, ":2: write /PATH");
	check_refused(add_paths("/a\n/b c"), &err, ":2: ");
	CU_ASSERT_EQUAL(mix_add_paths(cls, &get, "/nonexistent/paths", &err), WEIR_ESYS);
	fresh();
}

CUNIT_MAIN("mix", {"paths", test_paths}, {"bytes", test_bytes}, {"seal", test_seal},
    {"refused", test_refused}, {"bodies", test_bodies}, {"specweb99", test_specweb99},
    {"write a site", test_write_site}, {"surge", test_surge})
