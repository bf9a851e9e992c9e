/* SPDX-License-Identifier: MIT */
/* Precompressed neighbours on a real disk: which one is chosen, and which are too old or not
 * usable. */
#include "file/variant.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cunit_main.h"

#define PLAIN_S  1000000000
#define PLAIN_NS 123456789

static char base[] = "/tmp/weir-variant-XXXXXX";
static int root = -1;
static const struct variant_order all = {3, {ENCODING_BR, ENCODING_ZSTD, ENCODING_GZIP}};

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", base, name);
	return path;
}

/* Create a file that contains its own name, last modified at `s` seconds and `ns`. */
static void put_at(const char *name, long s, long ns)
{
	struct timespec then[2] = {{s, ns}, {s, ns}};
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CU_ASSERT_FATAL(fd != -1);
	CU_ASSERT_EQUAL(write(fd, name, strlen(name)), (ssize_t)strlen(name));
	CU_ASSERT_EQUAL(futimens(fd, then), 0);
	close(fd);
}

static void put(const char *name)
{
	put_at(name, PLAIN_S, PLAIN_NS);
}

static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

/* What a client that sends `accept` gets for "f": the name of the file. Checks that the answer
 * varies if, and only if, `varies`. */
static const char *choose(const char *accept, bool varies)
{
	static char text[32];
	struct weir_http_header h = {{"Accept-Encoding", 15}, {accept, strlen(accept)}};
	struct weir_http_request req = {.headers = &h, .n_headers = 1};
	struct encoding_wish wish;
	struct variant v = {.encoding = ENCODING_N};
	int before = open_files();

	encoding_wish(&req, &wish);
	CU_ASSERT_EQUAL_FATAL(file_open(root, FILE_LINKS_NO, "f", &v.file), 0);
	memset(text, 0, sizeof(text));
	int rc = variant_choose(root, FILE_LINKS_NO, "f", &all, &wish, &v);
	CU_ASSERT_EQUAL(v.varies, varies);
	CU_ASSERT_EQUAL(open_files(), before + (rc == 0)); /* no descriptor leaks */
	if (rc < 0) {
		CU_ASSERT_EQUAL(rc, WEIR_ENOENT);
		return "refused";
	}
	CU_ASSERT_EQUAL(read(v.file.fd, text, sizeof(text) - 1), v.file.size_bytes);
	close(v.file.fd);
	return text;
}

static void test_make_root(void)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(base));
	CU_ASSERT_EQUAL_FATAL(file_root(base, &root), 0);
	put("f");
}

static void test_none(void)
{
	CU_ASSERT_STRING_EQUAL(choose("br, gzip", false), "f");
	CU_ASSERT_STRING_EQUAL(choose("*;q=0", false), "f"); /* nothing to choose from */
}

static void test_chosen(void)
{
	put("f.gz");
	CU_ASSERT_STRING_EQUAL(choose("br, gzip", true), "f.gz");
	CU_ASSERT_STRING_EQUAL(choose("br", true), "f");
	put("f.br");
	put("f.zst");
	CU_ASSERT_STRING_EQUAL(choose("br, gzip, zstd", true), "f.br");
	CU_ASSERT_STRING_EQUAL(choose("gzip, zstd", true), "f.zst");
	CU_ASSERT_STRING_EQUAL(choose("br;q=0.9, gzip", true), "f.gz");
	CU_ASSERT_STRING_EQUAL(choose("", true), "f");
	CU_ASSERT_STRING_EQUAL(choose("*;q=0", true), "refused");
	CU_ASSERT_STRING_EQUAL(choose("zstd, identity;q=0", true), "f.zst");
	unlink(path_of("f.br"));
	unlink(path_of("f.zst"));
}

/* A neighbour older than the file is ignored. */
static void test_old(void)
{
	put_at("f.gz", PLAIN_S - 1, PLAIN_NS);
	CU_ASSERT_STRING_EQUAL(choose("gzip", false), "f");
	put_at("f.gz", PLAIN_S, PLAIN_NS - 1);
	CU_ASSERT_STRING_EQUAL(choose("gzip", false), "f");
	put_at("f.gz", PLAIN_S, PLAIN_NS + 1);
	CU_ASSERT_STRING_EQUAL(choose("gzip", true), "f.gz");
	put_at("f.gz", PLAIN_S, 0); /* its time was copied without the fraction */
	CU_ASSERT_STRING_EQUAL(choose("gzip", true), "f.gz");
	put_at("f.gz", PLAIN_S, PLAIN_NS / 1000 * 1000);
	CU_ASSERT_STRING_EQUAL(choose("gzip", true), "f.gz");
	put_at("f.gz", PLAIN_S, 1000);
	CU_ASSERT_STRING_EQUAL(choose("gzip", false), "f");
	unlink(path_of("f.gz"));
}

/* Dates beyond 64 bits of nanoseconds: the file's is later, whatever the conversion would give. */
static void test_far_dates(void)
{
	put_at("f", 10000000000, 5);
	put_at("f.gz", PLAIN_S, 0);
	CU_ASSERT_STRING_EQUAL(choose("gzip", false), "f");
	put_at("f.gz", 10000000000, 5);
	CU_ASSERT_STRING_EQUAL(choose("gzip", true), "f.gz");
	put_at("f.gz", 9999999999, 6);
	CU_ASSERT_STRING_EQUAL(choose("gzip", false), "f");
	unlink(path_of("f.gz"));
	put("f");
}

/* Links, pipes and directories are not neighbours. */
static void test_traps(void)
{
	CU_ASSERT_EQUAL_FATAL(symlink("/etc/passwd", path_of("f.br")), 0);
	CU_ASSERT_EQUAL_FATAL(mkfifo(path_of("f.zst"), 0644), 0);
	CU_ASSERT_EQUAL_FATAL(mkdir(path_of("f.gz"), 0755), 0);
	CU_ASSERT_STRING_EQUAL(choose("br, zstd, gzip", false), "f");
	unlink(path_of("f.br"));
	unlink(path_of("f.zst"));
	rmdir(path_of("f.gz"));
}

static void test_remove_root(void)
{
	close(root);
	unlink(path_of("f"));
	CU_ASSERT_EQUAL(rmdir(base), 0);
}

/* Without descriptors it is unknown whether neighbours exist. A response as if none existed would
 * claim to be valid for all clients. */
static void test_no_descriptors(void)
{
	struct weir_http_request req = {.n_headers = 0};
	struct encoding_wish wish;
	struct variant v = {.encoding = ENCODING_N};
	struct rlimit was, none;

	put("f");
	put("f.zst");
	encoding_wish(&req, &wish);
	int before = open_files();
	CU_ASSERT_EQUAL_FATAL(file_open(root, FILE_LINKS_NO, "f", &v.file), 0);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = (rlim_t)v.file.fd + 1; /* the file has the lowest free descriptor */
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
	int rc = variant_choose(root, FILE_LINKS_NO, "f", &all, &wish, &v);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &was), 0);
	CU_ASSERT_EQUAL(rc, WEIR_EPRESSURE);
	CU_ASSERT_EQUAL(open_files(), before);
	unlink(path_of("f.zst"));
}

CUNIT_MAIN("variant", {"make a root", test_make_root}, {"none", test_none}, {"chosen", test_chosen},
    {"old", test_old}, {"far dates", test_far_dates}, {"traps", test_traps},
    {"no descriptors", test_no_descriptors}, {"remove the root", test_remove_root})
