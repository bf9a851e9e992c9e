/* SPDX-License-Identifier: MIT */
/* How much memory there is for `memory: auto`. Any thread; reads files, at start. */
#ifndef WEIR_HTTP_MEMORY_AUTO_H
#define WEIR_HTTP_MEMORY_AUTO_H

#include <stdint.h>

/** An eighth of `bytes`, MEMORY_AUTO_MIN to MEMORY_AUTO_MAX. An eighth, a guess, leaves room for caches, the graph and the kernel; the
 *  most is more than max_connections with TLS hold idle, the least what 3,000 of them do. */
int64_t memory_auto_share(int64_t bytes);
#define MEMORY_AUTO_MIN (64LL << 20)
#define MEMORY_AUTO_MAX (1LL << 30)

/** The memory that the control groups of this process leave it, bytes; INT64_MAX: any. Version 2, of the group that the file
 *  `list` (/proc/self/cgroup) names below `root` (/sys/fs/cgroup) and of all above it; of version 1 what a container sees. */
int64_t memory_auto_group(const char *root, const char *list);

/** The share of what this process may use: the machine's memory, or less by its control groups. */
int64_t memory_auto(void);

#endif
