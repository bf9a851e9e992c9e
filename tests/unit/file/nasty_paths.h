/* SPDX-License-Identifier: MIT */
/*
 * Request paths that try to reach files they must not, and the status that refuses them: 400 for
 * paths that no honest client sends, 404 for names that may not be served, 0 for ordinary names
 * that do not exist. Shared by the unit test of path_map and the scenario test, which sends them to
 * a server over a root with traps.
 */
#ifndef WEIR_TESTS_FILE_NASTY_PATHS_H
#define WEIR_TESTS_FILE_NASTY_PATHS_H

#include <stddef.h>

struct nasty_path {
	const char *path;
	size_t n;
	int status;
};

#define NASTY(path, status)                                                                        \
	{                                                                                          \
		path, sizeof(path) - 1, status                                                     \
	}

static const struct nasty_path nasty_paths[] = {
    /* upwards, out of the root */
    NASTY("/..", 400),
    NASTY("/../", 400),
    NASTY("/../secret.txt", 400),
    NASTY("/../../../../../../etc/passwd", 400),
    NASTY("/a/../../secret.txt", 400),
    NASTY("/a/b/../../../secret.txt", 400),
    NASTY("/./../secret.txt", 400),
    NASTY("//../secret.txt", 400),
    NASTY("/a//../../secret.txt", 400),
    NASTY("/a/./../../secret.txt", 400),
    /* the same, encoded */
    NASTY("/%2e%2e/secret.txt", 400),
    NASTY("/%2E%2E/secret.txt", 400),
    NASTY("/.%2e/secret.txt", 400),
    NASTY("/%2e./secret.txt", 400),
    NASTY("/%2e%2e", 400),
    NASTY("/a/%2e%2e/%2e%2e/secret.txt", 400),
    NASTY("/%2e%2e%2fsecret.txt", 404),
    NASTY("/..%2fsecret.txt", 404),
    NASTY("/..%2Fsecret.txt", 404),
    NASTY("/a/..%2f..%2fsecret.txt", 404),
    NASTY("/%2f..%2f..%2fetc%2fpasswd", 404),
    NASTY("/%2fetc/passwd", 404),
    NASTY("/a%2fb", 404),
    /* encoded twice: decoded once, it is a dot file or a name that does not exist */
    NASTY("/.%252e/secret.txt", 404),
    NASTY("/..%252fsecret.txt", 404),
    NASTY("/..%255csecret.txt", 404),
    /* backslashes */
    NASTY("/..\\secret.txt", 404),
    NASTY("/..\\..\\secret.txt", 404),
    NASTY("/%5c", 404),
    NASTY("/..%5csecret.txt", 404),
    NASTY("/a\\b", 404),
    NASTY("/a%5C..%5Csecret.txt", 404),
    NASTY("/\\\\host\\share", 404),
    NASTY("/c:\\windows\\win.ini", 404),
    /* NUL and other control bytes */
    NASTY("/index.html%00", 400),
    NASTY("/index.html%00.png", 400),
    NASTY("/%00", 400),
    NASTY("/a%00/../secret.txt", 400),
    NASTY("/a%01", 400),
    NASTY("/a%09", 400),
    NASTY("/a%0a", 400),
    NASTY("/a%0d%0aSet-Cookie:%20x=y", 400),
    NASTY("/a%1f", 400),
    NASTY("/a%7f", 400),
    NASTY("/%1b[2J", 400),
    /* percent signs that do not begin an escape */
    NASTY("/%", 400),
    NASTY("/a%", 400),
    NASTY("/%2", 400),
    NASTY("/%zz", 400),
    NASTY("/%2g", 400),
    NASTY("/%g2", 400),
    NASTY("/%%32%65%%32%65/secret.txt", 400),
    NASTY("/%u002e%u002e/secret.txt", 400),
    NASTY("/%-1", 400),
    NASTY("/% 2f", 400),
    /* dot files */
    NASTY("/.env", 404),
    NASTY("/.git/config", 404),
    NASTY("/.git", 404),
    NASTY("/.git/", 404),
    NASTY("/a/.hidden", 404),
    NASTY("/a/.hidden/b", 404),
    NASTY("/%2eenv", 404),
    NASTY("/%2egit/config", 404),
    NASTY("/...", 404),
    NASTY("/.../secret.txt", 404),
    NASTY("/....//secret.txt", 404),
    NASTY("/.%20/secret.txt", 404),
    NASTY("/..%20/secret.txt", 404),
    NASTY("/..;/secret.txt", 404),
    NASTY("/.well-known/.git", 404),
    NASTY("/a/.well-known/x", 404),
    NASTY("/.well-knownx/y", 404),
    NASTY("/.WELL-KNOWN/y", 404),
    NASTY("/.well-known/../.env", 404),
    NASTY("/.DS_Store", 404),
    NASTY("/.htaccess", 404),
    /* overlong UTF-8, and letters that look like dots and slashes: names that do not exist */
    NASTY("/%c0%ae%c0%ae/secret.txt", 0),
    NASTY("/%c0%ae%c0%ae%c0%afsecret.txt", 0),
    NASTY("/..%c0%afsecret.txt", 404),
    NASTY("/..%c1%9csecret.txt", 404),
    NASTY("/%e0%80%ae%e0%80%ae/secret.txt", 0),
    NASTY("/%f0%80%80%ae%f0%80%80%ae/secret.txt", 0),
    NASTY("/%ef%bc%8e%ef%bc%8e/secret.txt", 0),
    NASTY("/%e2%80%a5/secret.txt", 0),
    NASTY("/a%e2%88%95..%e2%88%95secret.txt", 0),
    NASTY("/%ff%fe/secret.txt", 0),
    NASTY("/\xc0\xae\xc0\xae/secret.txt", 0),
    /* encoded three times, and partly */
    NASTY("/%25252e%25252e/secret.txt", 0),
    NASTY("/%252e%252e%252fsecret.txt", 0),
    NASTY("/%2525", 0),
    NASTY("/..%25%32%66secret.txt", 404),
    NASTY("/%2e%2e%5csecret.txt", 404),
    NASTY("/%2e%2e/%2e%2e/%2e%2e/etc/passwd", 400),
    NASTY("/a/b/c.txt/../../../../secret.txt", 400),
    NASTY("/a/%2e/%2e%2e/%2E./secret.txt", 400),
    /* names that are special in other systems */
    NASTY("/index.html::$DATA", 0),
    NASTY("/index.html.", 0),
    NASTY("/index.html%20", 0),
    NASTY("/con", 0),
    NASTY("/~root/secret.txt", 0),
    NASTY("/proc/self/environ", 0),
    NASTY("/dev/zero", 0),
    NASTY("/$HOME/secret.txt", 0),
    NASTY("/*", 0),
    NASTY("/a/b/c.txt;x=/../../secret.txt", 0),
};

#define NASTY_PATHS ((int)(sizeof(nasty_paths) / sizeof(nasty_paths[0])))

#endif
