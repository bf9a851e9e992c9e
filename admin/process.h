/* SPDX-License-Identifier: MIT */
/*
 * Numbers of the process from /proc/self, under the names every Prometheus client library uses.
 *
 * The files are opened once, so that a scrape works while the process is out of descriptors. Used
 * by the admin thread alone.
 */
#ifndef WEIR_ADMIN_PROCESS_H
#define WEIR_ADMIN_PROCESS_H

#include <dirent.h>

#include "textbuf.h"

struct process {
	int stat_fd;   /* /proc/self/stat, -1 where there is none */
	DIR *fds;      /* /proc/self/fd, NULL where there is none */
	double boot_s; /* when the machine started, Unix time; 0 unknown */
};

/** Open what there is; what is not there is left out of the scrape. */
void process_init(struct process *process);

/** Append the process_* families. */
void process_prom(struct process *process, struct textbuf *out);

void process_fini(struct process *process);

#endif
