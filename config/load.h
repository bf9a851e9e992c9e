/* SPDX-License-Identifier: MIT */
/* Files into one tree: reading, including, merging. */
#ifndef WEIR_CONFIG_LOAD_H
#define WEIR_CONFIG_LOAD_H

#include <weir/error.h>

#include "source.h"

/** What is being loaded. */
struct load {
	struct sources *all;
	struct weir_errs *errs;
	struct weir_node *root; /* all->root, where everything is merged */
	bool from_file;         /* may include and load plug-ins */
	bool usable;            /* the first file is a map: worth binding */
};

/** A file on the way to the one being read: for cycles. */
struct load_path {
	const struct load_path *up;
	const struct source *source;
};

/** Expand, merge and include what `source` holds; mistakes go to load->errs. 0 or
 *  WEIR_ENOMEM. */
int load_source(struct load *load, struct source *source, const struct load_path *up);

/** Read the file `path`, named at `at`, and do the same. */
int load_file(
    struct load *load, const char *path, const struct weir_mark *at, const struct load_path *up);

/** `path` relative to the file `from`, in `buf[size]`; false when it does not fit. */
bool load_relative(const char *from, const char *path, char *buf, size_t size);

#endif
