/* SPDX-License-Identifier: MIT */
/* Opening files below a root full of traps: links, pipes, sockets, directories, paths out of the
 * root. */
#include "file/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cunit_main.h"

static char base[] = "/tmp/weir-open-XXXXXX";
static char root_path[64];
#define NS_PER_S 1000000000LL

static int root = -1;

static void put(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", base, name);
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static void link_to(const char *target, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", base, name);
	CU_ASSERT_EQUAL_FATAL(symlink(target, path), 0);
}

static void make_dir(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", base, name);
	CU_ASSERT_EQUAL_FATAL(mkdir(path, 0755), 0);
}

static void make_socket(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%.60s/%.30s", base, name);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
}

static void test_set_up(void)
{
	char path[128];

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(base));
	make_dir("root");
	make_dir("root/dir");
	put("secret.txt", "secret");
	put("root/file.txt", "hello");
	put("root/empty", "");
	put("root/dir/inner.txt", "inner");
	link_to("../secret.txt", "root/out");
	link_to("file.txt", "root/in");
	link_to("dir", "root/dirlink");
	link_to("/etc/passwd", "root/absolute");
	link_to("loop", "root/loop");
	link_to("/proc/self/root/etc", "root/magic");
	snprintf(path, sizeof(path), "%s/root/fifo", base);
	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0644), 0);
	make_socket("root/socket");
	snprintf(root_path, sizeof(root_path), "%s/root", base);
	CU_ASSERT_EQUAL_FATAL(file_root(root_path, &root), 0);
}

static int status_of(const char *name)
{
	struct file f;
	int rc = file_open(root, FILE_LINKS_NO, name, &f);

	if (rc == 0) {
		close(f.fd);
		return 200;
	}
	CU_ASSERT_EQUAL(rc, WEIR_EFAILED);
	CU_ASSERT_EQUAL(f.fd, -1);
	return f.status;
}

static void test_regular(void)
{
	struct file f;
	char text[8] = "";

	CU_ASSERT_EQUAL_FATAL(file_open(root, FILE_LINKS_NO, "file.txt", &f), 0);
	CU_ASSERT_EQUAL(f.size_bytes, 5);
	CU_ASSERT(f.inode != 0 && f.modified.tv_sec > 0 && f.changed.tv_sec > 0);
	CU_ASSERT_EQUAL(read(f.fd, text, sizeof(text)), 5);
	CU_ASSERT_STRING_EQUAL(text, "hello");
	CU_ASSERT(fcntl(f.fd, F_GETFD) & FD_CLOEXEC);
	close(f.fd);
	CU_ASSERT_EQUAL(status_of("empty"), 200);
	CU_ASSERT_EQUAL(status_of("dir/inner.txt"), 200);
}

static void test_refused(void)
{
	static const char *const gone[] = {"nothing", "file.txt/x", "out", "in",
	    "dirlink/inner.txt", "dirlink", "absolute", "loop", "magic/passwd", "fifo", "socket",
	    "../secret.txt", "dir/../../secret.txt", "/etc/passwd", "dir/nothing", ""};

	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
		int status = status_of(gone[i]);
		if (status != 404)
			printf("\n  '%s': %d", gone[i], status);
		CU_ASSERT_EQUAL(status, 404);
	}
	char name[300];
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CU_ASSERT_EQUAL(status_of(name), 404);
	CU_ASSERT_EQUAL(status_of("dir"), 301);
}

static void test_devices(void)
{
	int dev;
	struct file f;

	CU_ASSERT_EQUAL_FATAL(file_root("/dev", &dev), 0);
	CU_ASSERT_EQUAL(file_open(dev, FILE_LINKS_NO, "null", &f), WEIR_EFAILED);
	CU_ASSERT_EQUAL(f.status, 404);
	CU_ASSERT_EQUAL(file_open(dev, FILE_LINKS_NO, "zero", &f), WEIR_EFAILED);
	CU_ASSERT_EQUAL(f.status, 404);
	close(dev);
}

static void test_permission(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/root/dir/inner.txt", base);
	CU_ASSERT_EQUAL_FATAL(chmod(path, 0), 0);
	/* root can read everything, so nothing is refused */
	CU_ASSERT_EQUAL(status_of("dir/inner.txt"), geteuid() == 0 ? 200 : 403);
	CU_ASSERT_EQUAL_FATAL(chmod(path, 0644), 0);
}

static void test_out_of_descriptors(void)
{
	struct rlimit before, none;

	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3; /* 0 to 2 are open, so the next one fails */
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
	int status = status_of("file.txt");
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &before), 0);
	CU_ASSERT_EQUAL(status, 503);
}

static void test_bad_roots(void)
{
	char path[128];
	int fd = -7;

	snprintf(path, sizeof(path), "%s/nowhere", base);
	CU_ASSERT_EQUAL(file_root(path, &fd), WEIR_ESYS);
	CU_ASSERT_EQUAL(errno, ENOENT);
	snprintf(path, sizeof(path), "%s/secret.txt", base);
	CU_ASSERT_EQUAL(file_root(path, &fd), WEIR_ESYS);
	CU_ASSERT_EQUAL(errno, ENOTDIR);
	CU_ASSERT_EQUAL(fd, -7);
}

#define THEN_S 1000000000

static const struct file some = {
    .fd = -1, .size_bytes = 5, .modified = {THEN_S, 0}, .changed = {THEN_S + 50, 0}, .inode = 7};

static const char *etag(const struct file *f, enum file_etags what, int64_t now_ns)
{
	static char text[4][FILE_ETAG_SIZE];
	static int turn;

	turn = (turn + 1) % 4;
	CU_ASSERT_EQUAL(file_etag(f, what, now_ns, text[turn]), strlen(text[turn]));
	return text[turn];
}

static const int64_t later_ns = (THEN_S + 100) * NS_PER_S;

/* Does the tag distinguish `f` from `some`? */
static bool tells(struct file f, enum file_etags what)
{
	return strcmp(etag(&some, what, later_ns), etag(&f, what, later_ns)) != 0;
}

static void test_etag(void)
{
	const char *a = etag(&some, FILE_ETAGS_LOCAL, later_ns);
	struct file f;

	CU_ASSERT(a[0] == '"' && a[strlen(a) - 1] == '"');
	CU_ASSERT_STRING_EQUAL(a, etag(&some, FILE_ETAGS_LOCAL, 2 * later_ns));
	CU_ASSERT_STRING_NOT_EQUAL(a, etag(&some, FILE_ETAGS_PORTABLE, later_ns));
#define CHANGED(member, by, portable)                                                              \
	f = some;                                                                                  \
	f.member += by;                                                                            \
	CU_ASSERT(tells(f, FILE_ETAGS_LOCAL));                                                     \
	CU_ASSERT_EQUAL(tells(f, FILE_ETAGS_PORTABLE), portable)
	CHANGED(modified.tv_nsec, 1, true);
	CHANGED(modified.tv_sec, 1, true);
	CHANGED(size_bytes, 1, true);
	CHANGED(changed.tv_nsec, 1, false); /* written in place, and the mtime set back */
	CHANGED(changed.tv_sec, -1, false);
	CHANGED(inode, 1, false); /* a copy on another host */
	CHANGED(modified.tv_sec, 1L << 33, true);
#undef CHANGED
	f.inode = 0xabcdef; /* nikto, CVE-2003-1418: the tag must not contain the inode number */
	CU_ASSERT_PTR_NULL(strstr(etag(&f, FILE_ETAGS_LOCAL, later_ns), "abcdef"));
}

/* A file that may change again within the same time stamp has a weak tag, and a different one
 * later. */
static void check_racy(struct file f, enum file_etags what, int64_t stamp_ns)
{
	const char *racy = etag(&f, what, stamp_ns + 1000000);
	const char *settled = etag(&f, what, stamp_ns + 200000000);

	CU_ASSERT(strncmp(racy, "W/\"", 3) == 0);
	CU_ASSERT(settled[0] == '"');
	CU_ASSERT_STRING_NOT_EQUAL(racy + 2, settled);
	/* another clock, a tick behind */
	CU_ASSERT_STRING_EQUAL(etag(&f, what, stamp_ns - 4000000), racy);
	/* a date in the future is not that of the last write */
	CU_ASSERT_STRING_EQUAL(etag(&f, what, stamp_ns - 1000000000), settled);
}

static void test_racy_etag(void)
{
	struct file f = some;
	char text[FILE_ETAG_SIZE];

	check_racy(some, FILE_ETAGS_LOCAL, file_time_ns(some.changed));
	check_racy(some, FILE_ETAGS_PORTABLE, file_time_ns(some.modified));
	f.inode = UINT64_MAX;
	f.modified = f.changed = (struct timespec){-1, 999999999};
	f.size_bytes = -1;
	CU_ASSERT(file_etag(&f, FILE_ETAGS_LOCAL, 0, text) < FILE_ETAG_SIZE);
}

/* Times beyond 64 bits of nanoseconds: after 2262 and before 1677. */
static void test_far_times(void)
{
	static const int64_t far[] = {9223372036, 9223372037, 10000000000, 253402300800, INT64_MAX,
	    -9223372036, -9223372038, -10000000000, INT64_MIN};
	struct weir_slice none = {NULL, 0};
	char text[FILE_ETAG_SIZE];

	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		struct timespec at = {far[i], 999999999};
		struct file f = {.fd = -1, .modified = at, .changed = at};
		CU_ASSERT((file_time_ns(at) > 0) == (far[i] > 0));
		CU_ASSERT_EQUAL(
		    file_condition(&f, none, later_ns).modified_s, far[i] > 0 ? THEN_S + 100 : 0);
		file_etag(&f, FILE_ETAGS_LOCAL, later_ns, text);
		CU_ASSERT_EQUAL(text[0], '"');
	}
	CU_ASSERT_EQUAL(file_time_ns((struct timespec){9223372036, 854775807}), INT64_MAX);
	CU_ASSERT_EQUAL(file_time_ns((struct timespec){9223372036, 854775808}), INT64_MAX);
	CU_ASSERT_EQUAL(file_time_ns((struct timespec){-2, 5}), -1999999995);
}

static void test_date_not_in_the_future(void)
{
	struct file f = {.fd = -1, .modified = {5, 0}};
	struct weir_slice none = {NULL, 0};

	CU_ASSERT_EQUAL(file_condition(&f, none, 9000000000).modified_s, 5);
	CU_ASSERT_EQUAL(file_condition(&f, none, 3000000000).modified_s, 3);
}

static void test_clean_up(void)
{
	static const char *const names[] = {"root/dir/inner.txt", "root/dir", "root/file.txt",
	    "root/empty", "root/out", "root/in", "root/dirlink", "root/absolute", "root/loop",
	    "root/magic", "root/fifo", "root/socket", "root", "secret.txt", ""};

	close(root);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[128];
		snprintf(path, sizeof(path), "%s/%s", base, names[i]);
		CU_ASSERT_EQUAL(remove(path), 0);
	}
}

CUNIT_MAIN("open", {"set up", test_set_up}, {"regular files", test_regular},
    {"refused", test_refused}, {"devices", test_devices}, {"permission", test_permission},
    {"out of descriptors", test_out_of_descriptors}, {"bad roots", test_bad_roots},
    {"ETag", test_etag}, {"racy ETag", test_racy_etag}, {"far times", test_far_times},
    {"date not in the future", test_date_not_in_the_future}, {"clean up", test_clean_up})
