/* SPDX-License-Identifier: MIT */
/* Computes the value of `memory: auto`, at startup. Reads files. Any thread. */
#ifndef WEIR_NET_MEMORY_AUTO_H
#define WEIR_NET_MEMORY_AUTO_H

#include <stdint.h>

/** Return an eighth of `bytes`, but at least MEMORY_AUTO_MIN and at most MEMORY_AUTO_MAX. An
 * eighth is a guess that leaves memory for caches, the graph and the kernel. The maximum is more
 * than idle TLS connections hold at the default of max_connections, and the minimum is what some
 * 4,000 of them hold. */
int64_t memory_auto_share(int64_t bytes);
#define MEMORY_AUTO_MIN (64LL << 20)
#define MEMORY_AUTO_MAX (1LL << 30)

/** Return the memory that the control groups of this process allow it, in bytes; INT64_MAX if
 * unlimited. Reads the limits of the group that the file `list` (/proc/self/cgroup) names, and of
 * all groups above it: below `root` (/sys/fs/cgroup) in version 2, below `root`/memory in version
 * 1. In a container that does not see its own group, the root is used. */
int64_t memory_auto_group(const char *root, const char *list);

/** Return memory_auto_share of what this process may use: the host's memory, or less if its
 * control groups limit it. */
int64_t memory_auto(void);

#endif
