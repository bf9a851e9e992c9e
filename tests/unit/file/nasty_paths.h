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

extern const struct nasty_path nasty_paths[];
extern const int n_nasty_paths;

#endif
