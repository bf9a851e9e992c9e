/* SPDX-License-Identifier: MIT */
/* Loads files into one tree: reading, including, merging. */
#ifndef WEIR_CONFIG_LOAD_H
#define WEIR_CONFIG_LOAD_H

#include <weir/error.h>

#include "source.h"

/** A load in progress. */
struct load {
	struct sources *all;
	struct weir_errs *errs;
	struct weir_node *root; /* all->root, into which all files are merged */
	bool from_file;         /* may include files and load plug-ins */
	bool look;              /* load no new plug-ins (config_look) */
	bool usable;            /* the first file is a map, so binding can continue */
};

/** The chain of files that include the current one, to detect cycles. */
struct load_path {
	const struct load_path *up;
	const struct source *source;
};

/** Expand, merge and include the contents of `source`. Mistakes are added to load->errs. Returns 0
 *  or WEIR_ENOMEM. */
int load_source(struct load *load, struct source *source, const struct load_path *up);

/** Read the file `path` and load it with load_source. `at` is the position that names the file. */
int load_file(
    struct load *load, const char *path, const struct weir_mark *at, const struct load_path *up);

/** Resolve `path` relative to the file `from` into `buf[size]`. Returns false if it does not
 *  fit. */
bool load_relative(const char *from, const char *path, char *buf, size_t size);

#endif
