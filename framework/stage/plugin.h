/* SPDX-License-Identifier: MIT */
/* Copies plug-in files into memory, where they cannot change, and checks them. Any thread; no
 * state. */
#ifndef WEIR_STAGE_PLUGIN_H
#define WEIR_STAGE_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

struct plugin_copy {
	int fd;      /* a sealed memory file; the owner closes it */
	size_t size; /* size of the file in bytes */
	uint64_t id; /* hash of the content, never 0 */
};

/**
 * Copy the file at `path`, which weir_trust_open must accept. Check that the copy is a complete
 * shared object for this machine, that it can be loaded from memory, and that it has a stage type
 * of this ABI at `symbol`. Runs no code of the plug-in. Returns 0, or a WEIR_E code with `err`
 * filled in.
 */
int plugin_copy(
    const char *path, const char *symbol, struct plugin_copy *copy, struct weir_err *err);

/** Whether the two copies are identical, byte for byte. */
bool plugin_same(const struct plugin_copy *a, const struct plugin_copy *b);

#endif
