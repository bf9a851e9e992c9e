/* SPDX-License-Identifier: MIT */
/* Which files may be opened: types, modes and links; owners if the test runs as root. */
#include <weir/trust.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cunit_main.h"

#define OTHER 54321

static char top[64];
static struct weir_err err;

static const char *at(const char *name)
{
	static char path[2][256];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", top, name);
	return path[turn];
}

static void put(const char *name, mode_t mode)
{
	unlink(at(name));
	int fd = open(at(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	CU_ASSERT_EQUAL(write(fd, "text", 4), 4);
	CU_ASSERT_EQUAL(fchmod(fd, mode), 0);
	close(fd);
}

/* A folder with a file in it, alone in the folder `top`. */
static void begin(void)
{
	unsetenv("WEIR_TRUST_FILES");
	unsetenv("SUDO_UID");
	snprintf(top, sizeof(top), "/tmp/weir-trust-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(top));
	CU_ASSERT_EQUAL(mkdir(at("dir"), 0755), 0);
	put("dir/file", 0644);
}

static void end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", top);
	CU_ASSERT_EQUAL(system(command), 0);
}

static bool opens(const char *path)
{
	char text[5] = "";
	int fd = 0, rc = weir_trust_open(path, &fd, &err);

	if (rc != 0) {
		CU_ASSERT_EQUAL(err.code, rc);
		/* Otherwise a caller that closes `fd` could close a reused descriptor. */
		CU_ASSERT_EQUAL(fd, -1);
		return false;
	}
	CU_ASSERT_EQUAL(read(fd, text, 4), 4);
	CU_ASSERT_STRING_EQUAL(text, "text");
	CU_ASSERT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	return true;
}

/* Expect a refusal with these words and this hint, which may be "". */
static void refused(const char *path, const char *words, const char *hint)
{
	CU_ASSERT_FALSE(opens(path));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, words));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.hint, hint));
	if (!strstr(err.text, words) || !strstr(err.hint, hint))
		fprintf(stderr, "%s: '%s' (%s), not '%s' (%s)\n", path, err.text, err.hint, words,
		    hint);
}

static void test_modes(void)
{
	static const struct {
		mode_t dir, file;
		const char *words, *hint; /* NULL: it is opened */
	} rows[] = {
	    {0755, 0644, NULL, NULL},
	    {0700, 0400, NULL, NULL},
	    {0755, 0755, NULL, NULL},
	    {01777, 0644, NULL, NULL},
	    {0755, 0666, "dir/file' is writable by every user", "chmod o-w /"},
	    {0755, 0602, "dir/file' is writable by every user", "chmod o-w /"},
	    {0777, 0644, "dir' is writable by every user", "chmod o-w /"},
	    {0757, 0600, "the folder '/", "chmod o-w /"},
	    {01777, 0646, "dir/file' is writable by every user", "chmod o-w /"},
	};

	begin();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put("dir/file", rows[i].file);
		CU_ASSERT_EQUAL(chmod(at("dir"), rows[i].dir), 0);
		if (rows[i].words)
			refused(at("dir/file"), rows[i].words, rows[i].hint);
		else
			CU_ASSERT(opens(at("dir/file")));
	}
	setenv("WEIR_TRUST_FILES", "any", 1);
	CU_ASSERT(opens(at("dir/file")));
	end();
}

static void test_kinds(void)
{
	begin();
	CU_ASSERT_EQUAL(mkfifo(at("fifo"), 0600), 0);
	refused(at("fifo"), "is not a regular file", "");
	refused(at("dir"), "is not a regular file", "");
	refused("/dev/null", "is not a regular file", "");
	refused("/", "is not a regular file", "");
	refused(at("none"), "none' cannot be opened: No such file", "");
	refused(at("dir/file/x"), "dir/file' cannot be opened: Not a directory", "");
	CU_ASSERT_EQUAL(err.code, WEIR_ENOENT);
	end();
}

/* Relative paths, "..", links to files and folders, and too many links. */
static void test_ways(void)
{
	begin();
	CU_ASSERT_EQUAL(chdir(top), 0);
	CU_ASSERT(opens("dir/file"));
	CU_ASSERT(opens("./dir//../dir/./file"));
	CU_ASSERT_EQUAL(symlink("dir", at("link")), 0);
	CU_ASSERT(opens("link/file"));
	CU_ASSERT_EQUAL(symlink(at("link/file"), at("dir/whole")), 0);
	CU_ASSERT(opens("dir/whole"));
	CU_ASSERT_EQUAL(symlink("../dir/file", at("dir/up")), 0);
	CU_ASSERT(opens("link/up"));
	CU_ASSERT_EQUAL(symlink("loop", at("loop")), 0);
	refused("loop", strerror(ELOOP), "");
	CU_ASSERT_EQUAL(mkdir(at("open"), 0700), 0);
	CU_ASSERT_EQUAL(symlink(at("dir/file"), at("open/file")), 0);
	CU_ASSERT(opens("open/file"));
	CU_ASSERT_EQUAL(chmod(at("open"), 0777), 0); /* the link can be replaced */
	refused("open/file", "open' is writable by every user", "chmod o-w");
	CU_ASSERT_EQUAL(chdir("/"), 0);
	end();
}

/* A name longer than any file's is not taken for a folder and a file in it. */
static void test_long_names(void)
{
	char folder[NAME_MAX + 1], path[2 * NAME_MAX + 3];

	begin();
	CU_ASSERT_EQUAL(chdir(top), 0);
	memset(folder, 'a', NAME_MAX);
	folder[NAME_MAX] = '\0';
	CU_ASSERT_EQUAL(mkdir(folder, 0700), 0);
	CU_ASSERT_EQUAL(chdir(folder), 0);
	CU_ASSERT_EQUAL(symlink("../dir/file", "b"), 0);
	CU_ASSERT_EQUAL(chdir(".."), 0);
	snprintf(path, sizeof(path), "%s/b", folder);
	CU_ASSERT(opens(path));
	snprintf(path, sizeof(path), "%sb", folder);
	refused(path, strerror(ENAMETOOLONG), "");
	CU_ASSERT_EQUAL(chdir("/"), 0);
	end();
}

/* Owners of the file, the folder and the link. */
static void test_owners(void)
{
	begin();
	if (geteuid() == 0) {
		CU_ASSERT_EQUAL(chown(at("dir/file"), OTHER, 0), 0);
		refused(at("dir/file"), "file' belongs to user 54321, which is neither",
		    "chown root /");
		setenv("SUDO_UID", "54321", 1);
		CU_ASSERT(opens(at("dir/file")));
		setenv("SUDO_UID", "54320", 1);
		CU_ASSERT_FALSE(opens(at("dir/file")));
		CU_ASSERT_EQUAL(chown(at("dir/file"), 0, OTHER), 0);
		CU_ASSERT(opens(at("dir/file")));
		CU_ASSERT_EQUAL(chmod(at("dir/file"), 0664), 0);
		refused(at("dir/file"), "is writable by group 54321", "chmod g-w /");
		CU_ASSERT_EQUAL(chown(at("dir/file"), 0, 0), 0);
		CU_ASSERT(opens(at("dir/file"))); /* only root is in the group root */
		CU_ASSERT_EQUAL(chown(at("dir"), OTHER, 0), 0);
		refused(at("dir/file"), "the folder '/", "under folders owned by root");
		CU_ASSERT_EQUAL(chown(at("dir"), 0, 0), 0);
		CU_ASSERT_EQUAL(symlink("dir/file", at("link")), 0);
		CU_ASSERT_EQUAL(lchown(at("link"), OTHER, 0), 0);
		refused(at("link"), "the link '/", "");
	}
	end();
}

/* A user who is not in the user database and whose group may write its files (umask 002). */
static void test_private_group(void)
{
	begin();
	if (geteuid() == 0) {
		CU_ASSERT_EQUAL(chmod(top, 0755), 0);
		CU_ASSERT_EQUAL(chown(at("dir"), OTHER, OTHER), 0);
		CU_ASSERT_EQUAL(chown(at("dir/file"), OTHER, OTHER), 0);
		CU_ASSERT_EQUAL(chmod(at("dir"), 0775), 0);
		CU_ASSERT_EQUAL(chmod(at("dir/file"), 0664), 0);
		CU_ASSERT_EQUAL(seteuid(OTHER), 0);
		CU_ASSERT(opens(at("dir/file")));
		CU_ASSERT_EQUAL(seteuid(0), 0);
		CU_ASSERT_EQUAL(chown(at("dir/file"), OTHER, OTHER + 1), 0);
		CU_ASSERT_EQUAL(seteuid(OTHER), 0);
		refused(at("dir/file"), "is writable by group 54322", "chmod g-w /");
		CU_ASSERT_EQUAL(seteuid(0), 0);
	}
	end();
}

/* Let the user OTHER write `name` by an access control list; the mode shows it as group
 * permissions. Returns false if the file system does not support such lists. */
static bool share(const char *name, bool folder)
{
	const struct {
		uint32_t version;
		struct {
			uint16_t tag, rights;
			uint32_t id;
		} entry[5];
	} list = {2, {{0x01, 7, UINT32_MAX}, {0x02, 7, OTHER}, {0x04, 5, UINT32_MAX},
			 {0x10, 7, UINT32_MAX}, {0x20, folder ? 5 : 4, UINT32_MAX}}};
	int rc = setxattr(at(name), "system.posix_acl_access", &list, sizeof(list), 0);

	CU_ASSERT(rc == 0 || errno == ENOTSUP);
	return rc == 0;
}

/* The group is the owner's own, but the list has another user. */
static void test_access_lists(void)
{
	begin();
	if (geteuid() == 0 && share("dir/file", false)) {
		refused(at("dir/file"),
		    "may be writable by users or groups in its access control list",
		    "setfacl -b /");
		put("dir/file", 0664);
		CU_ASSERT(opens(at("dir/file")));
		CU_ASSERT(share("dir", true));
		refused(at("dir/file"),
		    "dir' may be writable by users or groups in its access control list",
		    "setfacl -b /");
		CU_ASSERT_EQUAL(chmod(at("dir"), 0755), 0); /* sets the mask of the list */
		CU_ASSERT(opens(at("dir/file")));
	}
	end();
}

CUNIT_MAIN("trust", {"modes", test_modes}, {"kinds", test_kinds}, {"ways", test_ways},
    {"long names", test_long_names}, {"owners", test_owners}, {"private group", test_private_group},
    {"access control lists", test_access_lists})
